"""The interface of every agent CLI: takes an order, reports activity, returns an outcome."""

import asyncio
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from crew.domain.kernel.adapter_names import AdapterName
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.prices import Price
from crew.domain.rows.step import StepOutcome
from crew.system.sandbox.allowed import EVERYTHING, Allowed, Sandbox

PromptVia = Literal["arg", "stdin", "file"]

YES = frozenset({"y", "yes", "allow", "ok"})
"""The answers of a person that give a permission."""

DEFAULT_TEMPLATE = "{{.Command}} {{.SystemArgs}} {{.Args}} {{.Prompt}}"


@frozen
class StepOrder:
    """Everything an adapter needs for one step. `resume`: the session exists already."""

    key: str  # run/round/step/attempt, unique in this repository
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
    looks_only: bool = False  # the agent only reads in the worktree
    trusts_project: bool = False  # settings of the repository may start programs
    unapproved: tuple[str, ...] = ()  # files of the repository because of which they may not
    allowed: Allowed = EVERYTHING  # what it may reach, where a sandbox can enforce it


@frozen
class Permission:
    """A permission request of an agent's CLI: a tool, and what it would do with it."""

    tool: str
    detail: str


@frozen
class Inquiry:
    """A question of an agent's CLI to a person, who may answer with another text than a choice."""

    question: str
    context: str = ""
    choices: tuple[str, ...] = ()


async def _no_answer(_inquiry: Inquiry) -> str | None:
    """There is no answer if no person can be asked."""
    return None


async def _always_no(_permission: Permission) -> bool:
    """The answer is no if no person can be asked."""
    return False


@frozen
class Watch:
    """The callbacks of a step.

    `started` gets the pid once, `doing` one short line at each change, and `heard` the id of a
    message once the agent has it. `asked` waits for a person's yes or no, `inquired` for the
    answer to a question.
    """

    started: Callable[[int], None]
    doing: Callable[[str], None]
    heard: Callable[[str], None] = lambda _message: None
    asked: Callable[[Permission], Awaitable[bool]] = _always_no
    inquired: Callable[[Inquiry], Awaitable[str | None]] = _no_answer

    @property
    def can_ask(self) -> bool:
        return self.asked is not _always_no


@frozen
class Say:
    """A message for an agent during its step."""

    message: str  # its id
    text: str


class Interrupt:
    """The agent has to stop and end its step. Its session stays usable."""


class Controls:
    """Messages and interrupts for a running step. Some adapters do not support them."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Say | Interrupt] = asyncio.Queue()

    def send(self, control: Say | Interrupt) -> None:
        self._queue.put_nowait(control)

    async def next(self) -> Say | Interrupt:
        return await self._queue.get()


@frozen
class AgentSpec:
    """How to start one configured agent. Only `command` agents use `command` and the template."""

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
    network: bool = True  # for CLIs that can disable it for their commands
    prices: Mapping[str, Price] = field(default_factory=dict)  # for CLIs that report no cost


class Adapter(Protocol):
    """Turns one CLI into steps.

    A step is good if the program exits with 0, reports its end and flags no error. A program
    without a final message is judged by its exit code alone.
    """

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome: ...


@dataclass(frozen=True, slots=True)
class OneWayAdapter(ABC):
    """An adapter whose program reads nothing during a step: no control reaches it."""

    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self,
        order: StepOrder,
        watch: Watch,
        controls: Controls | None = None,  # noqa: ARG002
    ) -> StepOutcome:
        return await self._step(order, watch)

    @abstractmethod
    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome: ...


class PromptPlace(StrEnum):
    """Where a CLI accepts its system prompt."""

    OWN = "own"
    """In its own flag or field, with each step."""

    FIRST_PROMPT = "first_prompt"
    """Only in the first prompt of a session, which remembers it."""

    EVERY_PROMPT = "every_prompt"
    """Only in each prompt, since the program has no session that could remember it."""


_ADAPTERS: Mapping[AdapterName, tuple[str, str, PromptPlace]] = {
    "command": ("command", "CommandAdapter", PromptPlace.EVERY_PROMPT),
    "scripted": ("scripted.scripted", "ScriptedAdapter", PromptPlace.FIRST_PROMPT),
    "claude": ("claude.claude", "ClaudeAdapter", PromptPlace.OWN),
    "codex": ("codex.codex", "CodexAdapter", PromptPlace.OWN),
    "codex-exec": ("codex.codex_exec", "CodexExecAdapter", PromptPlace.OWN),
    "opencode": ("opencode.opencode", "OpenCodeAdapter", PromptPlace.FIRST_PROMPT),
    "gemini": ("gemini.gemini", "GeminiAdapter", PromptPlace.FIRST_PROMPT),
    "acp": ("acp.acp", "AcpAdapter", PromptPlace.FIRST_PROMPT),
}
"""The module and class of each, imported on use, since some are slow to import."""


def remembers(adapter: str) -> bool:
    """Whether the sessions of such an agent remember the prompts of earlier steps."""
    return _ADAPTERS[adapter][2] is not PromptPlace.EVERY_PROMPT  # type: ignore[index]


def place_system_prompt(spec: AgentSpec, order: StepOrder) -> tuple[AgentSpec, StepOrder]:
    """The order with the system prompt where this agent's program accepts it."""
    place = _ADAPTERS[spec.adapter][2]
    if place is PromptPlace.OWN or not spec.system_prompt:
        return spec, order
    without = replace(spec, system_prompt="")
    if place is PromptPlace.FIRST_PROMPT and order.resume:
        return without, order
    return without, replace(order, prompt=f"{spec.system_prompt.rstrip()}\n\n{order.prompt}")


@frozen
class _Instructed:
    """Any adapter, with the system prompt where its program accepts it, and remedies of errors."""

    make: Callable[[AgentSpec, Mapping[str, str]], Adapter]
    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome:
        from crew.agents.errors.ways_out import with_remedy  # noqa: PLC0415 - it names the specification

        spec, order = place_system_prompt(self.spec, order)
        outcome = await self.make(spec, self.caller).run_step(order, watch, controls)
        return with_remedy(spec, outcome)


def adapter_for(spec: AgentSpec, *, caller: Mapping[str, str] | None = None) -> Adapter:
    """The adapter of a configured agent. `caller` is the environment that agents may inherit."""
    module, name, _ = _ADAPTERS[spec.adapter]
    make = getattr(importlib.import_module(f"crew.agents.{module}"), name)
    return _Instructed(make=make, spec=spec, caller=os.environ if caller is None else caller)
