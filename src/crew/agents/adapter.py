"""One interface for every agent CLI: an order in, an outcome out, a view of what it is doing."""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.step import StepOutcome
from crew.system.processes.sandbox import Sandbox

AdapterName = Literal[
    "command", "scripted", "claude", "codex", "codex-exec", "opencode", "gemini", "acp"
]
PromptVia = Literal["arg", "stdin", "file"]

DEFAULT_TEMPLATE = "{{.Command}} {{.SystemArgs}} {{.Args}} {{.Prompt}}"


@frozen
class StepOrder:
    """Everything an adapter needs for one step; `resume` says whether the session exists."""

    key: str  # run/round/step/attempt, unique for ever in this repository
    agent: str
    kind: str
    worktree: Path
    prompt: str
    session: str
    resume: bool
    log: Path
    done_word: str = "DONE"
    timeout_s: float = 1800.0
    idle_timeout_s: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)  # the CREW_ variables of this step
    looks_only: bool = False  # the worktree cannot be changed, where bubblewrap can see to it
    writable: tuple[Path, ...] = ()  # but for these


@frozen
class Permission:
    """What an agent's CLI asks leave for: a tool, and what it would do with it."""

    tool: str
    detail: str


async def _nobody(_permission: Permission) -> bool:
    """Where nobody can be asked, the answer is no."""
    return False


@frozen
class Watch:
    """Whom to tell.

    `started` once with the pid; `doing` one short line at each change; `heard` the id of a message
    once the agent has it; `asked` waits for a person's yes or no, where the agent is set to ask.
    """

    started: Callable[[int], None]
    doing: Callable[[str], None]
    heard: Callable[[str], None] = lambda _message: None
    asked: Callable[[Permission], Awaitable[bool]] = _nobody

    @property
    def can_ask(self) -> bool:
        return self.asked is not _nobody


@frozen
class Say:
    """Words for an agent in the middle of its step."""

    message: str  # its id
    text: str


class Interrupt:
    """The agent is to stop what it does and end its turn; its session stays good."""


class Controls:
    """What is told to a step while it is under way; an adapter that cannot hear leaves it be."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[Say | Interrupt] = asyncio.Queue()

    def tell(self, word: Say | Interrupt) -> None:
        self._said.put_nowait(word)

    async def next(self) -> Say | Interrupt:
        return await self._said.get()


@frozen
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
    network: bool = True  # for CLIs that can cut it for the commands they run


class Adapter(Protocol):
    """Turns one CLI into steps.

    A step is good when the program exits 0, says that it is finished, and flags no error; a program
    without a final message is judged by its exit code alone.
    """

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome: ...


class PromptPlace(StrEnum):
    """Where a CLI takes its system prompt."""

    OWN = "own"
    """In a flag or a field of its own, with each step."""

    FIRST_PROMPT = "first_prompt"
    """Nowhere else: in the first prompt of a session, which remembers it."""

    EVERY_PROMPT = "every_prompt"
    """Nowhere else, and the program has no session that could remember it."""


_ADAPTERS: Mapping[AdapterName, tuple[str, str, PromptPlace]] = {
    "command": ("command", "CommandAdapter", PromptPlace.EVERY_PROMPT),
    "scripted": ("scripted.scripted", "ScriptedAdapter", PromptPlace.EVERY_PROMPT),
    "claude": ("claude.claude", "ClaudeAdapter", PromptPlace.OWN),
    "codex": ("codex.codex", "CodexAdapter", PromptPlace.OWN),
    "codex-exec": ("codex.codex_exec", "CodexExecAdapter", PromptPlace.OWN),
    "opencode": ("opencode.opencode", "OpenCodeAdapter", PromptPlace.FIRST_PROMPT),
    "gemini": ("gemini.gemini", "GeminiAdapter", PromptPlace.FIRST_PROMPT),
    "acp": ("acp.acp", "AcpAdapter", PromptPlace.FIRST_PROMPT),
}
"""The module and class of each, loaded when used, for some bring much along."""


def remembers(adapter: str) -> bool:
    """Whether the sessions of such an agent know what earlier steps were told."""
    return _ADAPTERS[adapter][2] is not PromptPlace.EVERY_PROMPT  # type: ignore[index]


def placed(spec: AgentSpec, order: StepOrder) -> tuple[AgentSpec, StepOrder]:
    """The system prompt where this agent's program takes it: what its adapter sends."""
    place = _ADAPTERS[spec.adapter][2]
    if place is PromptPlace.OWN or not spec.system_prompt:
        return spec, order
    without = replace(spec, system_prompt="")
    if place is PromptPlace.FIRST_PROMPT and order.resume:
        return without, order
    return without, replace(order, prompt=f"{spec.system_prompt.rstrip()}\n\n{order.prompt}")


@frozen
class _Instructed:
    """Any adapter, with the system prompt where its program takes it."""

    make: Callable[[AgentSpec, Mapping[str, str]], Adapter]
    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome:
        spec, order = placed(self.spec, order)
        return await self.make(spec, self.caller).run_step(order, watch, controls)


def adapter_for(spec: AgentSpec, *, caller: Mapping[str, str] | None = None) -> Adapter:
    """The adapter of a configured agent; `caller` is the environment agents may inherit from."""
    module, name, _ = _ADAPTERS[spec.adapter]
    make = getattr(importlib.import_module(f"crew.agents.{module}"), name)
    return _Instructed(make=make, spec=spec, caller=os.environ if caller is None else caller)
