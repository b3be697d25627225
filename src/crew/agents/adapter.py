"""One interface for every agent CLI: an order in, an outcome out, a view of what it is doing."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from crew.agents.sandbox import Sandbox
from crew.domain.step import StepOrder, StepOutcome

AdapterName = Literal["command", "scripted", "claude"]
PromptVia = Literal["arg", "stdin", "file"]

DEFAULT_TEMPLATE = "{{.Command}} {{.SystemArgs}} {{.Args}} {{.Prompt}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Whom to tell: `started` once with the pid, `doing` with one short line at each change."""

    started: Callable[[int], None]
    doing: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """How one configured agent is started; `command` and the template are for `command` agents."""

    name: str
    adapter: AdapterName = "command"
    command: str = ""
    command_template: str = DEFAULT_TEMPLATE
    prompt_via: PromptVia = "arg"
    model: str = ""
    args: tuple[str, ...] = ()
    system_args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    system_prompt: str = ""
    script: str = ""  # the file a `scripted` agent follows
    sandbox: Sandbox = "auto"


class Adapter(Protocol):
    """Turns one CLI into steps.

    A step is good when the program exits 0, says that it is finished, and flags no error; a program
    without a final message is judged by its exit code alone.
    """

    async def run_step(self, order: StepOrder, watch: Watch) -> StepOutcome: ...


def adapter_for(spec: AgentSpec, *, caller: Mapping[str, str] | None = None) -> Adapter:
    """The adapter of a configured agent; `caller` is the environment agents may inherit from."""
    environment = os.environ if caller is None else caller
    match spec.adapter:
        case "command":
            from crew.agents.command import CommandAdapter  # noqa: PLC0415 - loaded when used

            return CommandAdapter(spec, environment)
        case "scripted":
            from crew.agents.scripted import ScriptedAdapter  # noqa: PLC0415 - loaded when used

            return ScriptedAdapter(spec, environment)
        case "claude":
            from crew.agents.claude import ClaudeAdapter  # noqa: PLC0415 - loaded when used

            return ClaudeAdapter(spec, environment)
