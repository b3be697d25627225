"""Every key of the config as frozen values: the only place that defines keys and their types."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from crew.config.toml.value_kinds import (
    answers,
    choice,
    duration,
    flag,
    names,
    network_access,
    number,
    template,
    text,
    text_map,
    texts,
    web_addresses,
    whole,
    words,
)
from crew.domain.kernel.adapter_names import ADAPTERS
from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.suggest import nearest
from crew.domain.kernel.templates import AGENT_NAMES, DIFF_NAMES, PLACE_NAMES
from crew.domain.rows.workflow import KeepsSession

VIEW_GROUPS = ("state", "wave", "quest")
VIEW_SORTS = ("id", "status", "priority", "agent", "title", "newest")

MOVABLE_SESSIONS = frozenset({"claude", "codex", "codex-exec", "scripted"})
"""Adapters whose program can resume a session in a different folder."""


@frozen
class RunSettings:
    """How the runner drives agents."""

    agents: int = whole()
    max_steps: int = whole(at_least=1)
    step_timeout_s: float = duration("step_timeout")
    idle_timeout_s: float = duration("idle_timeout")
    stop_timeout_s: float = duration("stop_timeout")
    backoff_s: float = number()
    max_backoff_s: float = number()
    stuck_after: int = whole(at_least=1)
    recovery: str = choice("resume", "reset")


@frozen
class CompleteSettings:
    """The gate. Without a command, crew looks for one in the repository."""

    command: str | None = text(default=None)
    timeout_s: float = duration("timeout")
    min_reviews: int = whole()
    skip_review: bool = flag()
    merge: bool = flag()
    require_gate: bool = flag()
    on_no_tests: str = choice("pass", "fail")


@frozen
class ReviewSettings:
    """The reviewers. An empty list means `[agents] reviewer_default`."""

    mode: str = choice("none", "single", "claudex")
    agents: tuple[str, ...] = names("agent")
    max_rounds: int = whole(at_least=1)


@frozen
class MergeSettings:
    """The merge queue. The target None means the repository's default branch."""

    target: str | None = text(default=None)
    strategy: str = choice("speculative", "serial")
    batch: int = whole(at_least=1)
    slots: int = whole(at_least=1)
    conflict: str = choice("agent", "ask")
    sign: bool = flag()


@frozen
class WorktreeSettings:
    """Where worktrees are, and which files a new one gets. None: next to the repository."""

    dir: str | None = text(default=None)
    setup_command: str | None = text(default=None)
    copy: tuple[str, ...] = texts()
    link: tuple[str, ...] = texts()
    pool: int = whole()
    keep: bool = flag()
    kind: str = choice("own", "linked")
    checkpoint_max_mb: int = whole(at_least=1)
    checkpoint_days: int = whole(at_least=1)


@frozen
class GateSettings:
    """What stays in a gate's worktree for the next gate: patterns as in `.gitignore`."""

    keep: tuple[str, ...] = texts()


@frozen
class TaskSettings:
    """Where tasks come from, and from which branch a new one starts."""

    source: str = text()
    namespace: str = text()
    new_task_base: str = choice("current", "default")


@frozen
class ChannelSettings:
    """The defaults of new channels."""

    timeout_s: float = duration("timeout")
    wait_timeout_s: float = duration("wait_timeout")
    heartbeat_s: float = duration("heartbeat")
    interrupt: str = choice("inject", "interrupt", "queue", "parallel")
    announce_timeouts: bool = flag()
    announce_disconnects: bool = flag()
    auto_detect_turn_end: bool = flag()
    auto_detect_silence_s: float = duration("auto_detect_silence")


@frozen
class SandboxSettings:
    """What an agent's processes may reach outside their worktree."""

    mode: str = choice("auto", "strict", "bwrap", "off")
    network: bool | tuple[str, ...] = network_access()
    allow_read: tuple[str, ...] = texts()
    allow_write: tuple[str, ...] = texts()
    memory_mb: int = whole()
    max_processes: int = whole()


@frozen
class LogSettings:
    """How much crew writes to its own log, and how large each log may become."""

    level: str = choice("debug", "info", "warning", "error")
    max_mb: int = whole(at_least=1)


@frozen
class DiffSettings:
    """The command of `crew diff`, a template."""

    command: str = template(DIFF_NAMES)


@frozen
class NotifySettings:
    """How a person is notified of a question: URLs to post to, or a shell command."""

    urls: tuple[str, ...] = web_addresses()
    command: str | None = text(default=None)


@frozen
class KeyBinding:
    """A person's own key of the terminal view: the shell command that it runs, a template."""

    key: str
    command: str = template(PLACE_NAMES)
    description: str = text(default="")
    override: bool = flag(default=False)
    worktree: bool = flag(default=False)


@frozen
class TuiSettings:
    """The terminal view: what it shows, as it was chosen last, and a person's own keys."""

    group: str = choice(*VIEW_GROUPS)
    sort: str = choice(*VIEW_SORTS)
    filter: str = text()
    panel: str = text()
    everything: bool = flag()
    theme: str = choice("auto", "dark", "light")
    keybindings: Mapping[str, KeyBinding] = field(default_factory=dict)


@frozen
class RoleSettings:
    """A role of the workflows. None means that the workflow decides."""

    session: str | None = choice(*KeepsSession, default=None)


@frozen
class AgentSettings:
    """One agent kind, with inherited values filled in. `args` starts with `system_args`."""

    name: str
    adapter: str = choice(*ADAPTERS)
    command: str | None = text(default=None)
    command_template: str | None = template(AGENT_NAMES, default=None)
    interactive_template: str | None = template(AGENT_NAMES, default=None)
    interactive_resume: str | None = template(AGENT_NAMES, default=None)
    prompt_via: str = choice("arg", "stdin", "file", default="arg")
    default_model: str | None = text(default=None)
    system_args: tuple[str, ...] = words(default=())
    args: tuple[str, ...] = words(default=())
    system_prompt: str | None = text(default=None)
    prompt: str | None = text(default=None)
    env: Mapping[str, str] = text_map(default={})
    inherit: str | None = text(default=None)
    role: str = choice("worker", "manager", "reviewer", default="worker")
    description: str = text(default="")
    permissions: str = choice("policy", "ask", default="policy")
    provider: str | None = text(default=None)
    setup_script: str | None = template(PLACE_NAMES, default=None)
    exclude_patterns: tuple[str, ...] = texts(default=())
    script: str | None = text(default=None)
    first_run: tuple[Mapping[str, Any], ...] = answers(default=())
    home_read: tuple[str, ...] = texts(default=())
    home_write: tuple[str, ...] = texts(default=())
    home_copy: tuple[str, ...] = texts(default=())
    price_input: float | None = number(default=None)
    price_cached_input: float | None = number(default=None)
    price_output: float | None = number(default=None)


@frozen
class AgentsSettings:
    """The default agent and the extra prompt of each role, and all agent kinds by name."""

    worker_default: str = text()
    worker_prompt: str = text()
    manager_default: str = text()
    manager_prompt: str = text()
    reviewer_default: str = text()
    reviewer_prompt: str = text()
    by_name: Mapping[str, AgentSettings] = field(default_factory=dict)

    def named(self, name: str) -> AgentSettings:
        if name in self.by_name:
            return self.by_name[name]
        near = nearest(name, self.by_name)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(self.by_name)}"
        raise NotFound(f"no agent is called {name!r}", hint=f"{hint} (or add [agents.{name}])")


@frozen
class Settings:
    """The whole config. Each field is the table of the same name."""

    run: RunSettings
    complete: CompleteSettings
    review: ReviewSettings
    merge: MergeSettings
    worktree: WorktreeSettings
    tasks: TaskSettings
    channel: ChannelSettings
    sandbox: SandboxSettings
    gate: GateSettings
    log: LogSettings
    diff: DiffSettings
    notify: NotifySettings
    tui: TuiSettings
    agents: AgentsSettings
    roles: Mapping[str, RoleSettings]


TABLES: Mapping[str, type] = {
    "run": RunSettings,
    "complete": CompleteSettings,
    "review": ReviewSettings,
    "merge": MergeSettings,
    "worktree": WorktreeSettings,
    "gate": GateSettings,
    "tasks": TaskSettings,
    "channel": ChannelSettings,
    "sandbox": SandboxSettings,
    "log": LogSettings,
    "diff": DiffSettings,
    "notify": NotifySettings,
}
"""The tables without subtables: all except `agents`, `roles` and `tui`."""
