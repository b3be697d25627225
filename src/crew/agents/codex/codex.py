"""The adapter of Codex: drives its app-server, or `codex exec` if there is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from crew.agents.adapter import AgentSpec, Controls, StepOrder, Watch
from crew.agents.codex.codex_app import run_app_server_step
from crew.agents.codex.codex_exec import CodexExecAdapter
from crew.domain.rows.step import StepOutcome

_FLAGS_OF_BOTH = frozenset({"-c", "--config", "--enable", "--disable"})


@dataclass(frozen=True, slots=True)
class CodexAdapter:
    """Runs `codex`, or the program in `command`. Accepts messages while it works."""

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
    """Whether the app-server accepts all these arguments. `exec` accepts more."""
    rest = list(arguments)
    while rest:
        flag, _, value = rest.pop(0).partition("=")
        if flag not in _FLAGS_OF_BOTH:
            return False
        if not value and rest:
            rest.pop(0)
    return True
