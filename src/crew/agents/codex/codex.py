"""Codex as an agent: through its app-server, and through `codex exec` where that cannot be had."""

from collections.abc import Mapping
from dataclasses import dataclass

from crew.agents.adapter import AgentSpec, Controls, StepOrder, Watch
from crew.agents.codex.codex_app import run_app_server_step
from crew.agents.codex.codex_exec import CodexExecAdapter
from crew.domain.rows.step import StepOutcome

_FLAGS_OF_BOTH = frozenset({"-c", "--config", "--enable", "--disable"})


@dataclass(frozen=True, slots=True)
class CodexAdapter:
    """Runs the real `codex`, or whatever program `command` names; it can be spoken to meanwhile."""

    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome:
        if is_for_app_server((*self.spec.system_args, *self.spec.args)):
            outcome = await run_app_server_step(self.spec, self.caller, order, watch, controls)
            if outcome is not None:
                return outcome
        return await CodexExecAdapter(self.spec, self.caller).run_step(order, watch)


def is_for_app_server(arguments: tuple[str, ...]) -> bool:
    """Whether the app-server knows all of these; `exec` knows more."""
    rest = list(arguments)
    while rest:
        flag, _, value = rest.pop(0).partition("=")
        if flag not in _FLAGS_OF_BOTH:
            return False
        if not value and rest:
            rest.pop(0)
    return True
