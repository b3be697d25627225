"""What `crew doctor` looks at; each finding says how to fix it."""

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from crew.config.agent_programs import missing_program
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import FINISHED
from crew.domain.rows.task_item import dependency_cycles
from crew.front.cli.call import Call
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

OLDEST_GIT = (2, 38)


@frozen
class Finding:
    """One thing that was looked at; a fix without `is_wrong` is advice."""

    check: str
    message: str
    fix: str = ""
    is_wrong: bool = False
    is_repaired: bool = False


def examine(call: Call, *, repair: bool) -> Iterator[Finding]:
    """Everything, in an order in which a later check may rely on the earlier ones."""
    yield from _guarded("git", git_version)
    try:
        workplace = call.workplace()
        settings = workplace.settings
    except CrewError as error:
        yield Finding(check="config", message=error.message, fix=error.hint, is_wrong=True)
        return
    yield Finding(check="config", message=f"the configuration of {workplace.root} is sound")
    yield from _guarded("tmux", terminal)
    yield from _guarded("sandbox", lambda: sandbox(settings.sandbox.mode))
    yield from _guarded("agents", lambda: agents(workplace))
    for name, look in _STATE_CHECKS.items():
        yield from _guarded(name, lambda look=look: look(workplace, repair))  # type: ignore[misc]


def _guarded(check: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """A check that cannot be made is a finding too, and the others go on."""
    try:
        yield from look()
    except CrewError as error:
        yield Finding(check=check, message=error.message, fix=error.hint, is_wrong=True)


def git_version() -> Iterator[Finding]:
    from pathlib import Path  # noqa: PLC0415

    from crew.git.git_command import git  # noqa: PLC0415

    words = git(Path("/"), "--version")
    match = re.search(r"(\d+)\.(\d+)", words)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST_GIT:
        yield Finding(
            check="git",
            message=f"{words} is too old: merging in memory needs 2.38",
            fix="install a newer git",
            is_wrong=True,
        )
    else:
        yield Finding(check="git", message=words)


def terminal() -> Iterator[Finding]:
    """Only tasks at a terminal need it, so that its lack is advice."""
    from crew.agents.terminal.tmux import checked_version, load_program  # noqa: PLC0415

    try:
        yield Finding(check="tmux", message=checked_version(load_program()))
    except CrewError as error:
        yield Finding(
            check="tmux", message=f"{error.message}: no `crew start`, no `attach`", fix=error.hint
        )


def sandbox(mode: str) -> Iterator[Finding]:
    from crew.system.processes.process import working_bwrap  # noqa: PLC0415

    if mode == "off":
        yield Finding(check="sandbox", message="the sandbox is off", fix='[sandbox] mode = "auto"')
    elif working_bwrap() is not None:
        yield Finding(check="sandbox", message="bubblewrap gives every step its own pid namespace")
    elif sys.platform != "linux":
        yield Finding(
            check="sandbox",
            message="bubblewrap is not available: a reaper process ends steps instead",
        )
    else:
        yield Finding(
            check="sandbox",
            message="bubblewrap does not work here: a reaper process ends steps instead",
            fix="install bubblewrap and allow user namespaces",
            is_wrong=mode == "bwrap",
        )


def agents(workplace: "Workplace") -> Iterator[Finding]:
    """Wrong only where it hurts: for the default worker, and for agents that exist."""
    from crew.store.fact_log import load_world  # noqa: PLC0415

    settings = workplace.settings.agents
    used = {agent.agent_kind for agent in load_world(workplace.db).crew.values()}
    for kind in sorted({settings.worker_default, *used}):
        known = settings.by_name.get(kind)
        missing = missing_program(known) if known else None
        if known is None or missing:
            yield Finding(
                check="agents",
                message=f"{missing or kind} is not {'installed' if missing else 'configured'}, "
                f"and the agent {kind} needs it",
                fix=f"install it, or set [agents.{kind}] in .crew/config.toml",
                is_wrong=True,
            )
        else:
            yield Finding(check="agents", message=f"the agent {kind} is installed")


def database(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    from crew.store.fact_log import differences, rebuild_rows  # noqa: PLC0415

    wrong = differences(workplace.db)
    if not wrong:
        yield Finding(check="database", message="the rows match their facts")
    elif repair and find_runner(workplace.lock_file) is None:
        rebuild_rows(workplace.db)
        yield Finding(check="database", message=f"rebuilt {', '.join(wrong)}", is_repaired=True)
    else:
        yield Finding(
            check="database",
            message=f"the rows of {', '.join(wrong)} do not match their facts",
            fix="`crew stop`, then `crew doctor --repair` rebuilds them",
            is_wrong=True,
        )


def tasks(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001
    items = workplace.snapshot().items
    known = {item.id for item in items}
    for cycle in dependency_cycles(items):
        yield Finding(
            check="tasks",
            message=f"tasks wait for each other: {' → '.join((*cycle, cycle[0]))}",
            fix=f"crew undep {cycle[0]} {cycle[1 % len(cycle)]}",
            is_wrong=True,
        )
    for item in items:
        if item.corrupt:
            yield Finding(
                check="tasks",
                message=f"task {item.id} cannot be read: {item.corrupt}",
                fix=f"fix its file, or `crew rm {item.id}`",
                is_wrong=True,
            )
        for dep in item.deps if item.status not in FINISHED else ():
            if dep not in known:
                yield Finding(
                    check="tasks",
                    message=f"task {item.id} waits for {dep}, which does not exist",
                    fix=f"crew undep {item.id} {dep}",
                    is_wrong=True,
                )
    yield Finding(check="tasks", message=f"{len(items)} tasks were read")


def processes(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    from crew.system.processes.ownership import kill_leftovers, owned_processes  # noqa: PLC0415

    if find_runner(workplace.lock_file) is not None:
        return
    left = owned_processes(workplace.repo_id)
    if left and repair:
        count = kill_leftovers(workplace.repo_id)
        yield Finding(check="processes", message=f"ended {count} processes", is_repaired=True)
    elif left:
        pids = ", ".join(str(pid) for pid, _ in left)
        yield Finding(
            check="processes",
            message=f"no runner is up, and processes of its steps still run: {pids}",
            fix="`crew doctor --repair` ends them; so does the next `crew run`",
            is_wrong=True,
        )
    else:
        yield Finding(check="processes", message="no process was left behind")


def worktrees(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    from crew.front.cli.undoing.orphans import orphans, remove_orphan  # noqa: PLC0415

    found = orphans(workplace)
    for path in found:
        if repair and find_runner(workplace.lock_file) is None:
            remove_orphan(workplace, path)
            yield Finding(check="worktrees", message=f"kept and removed {path}", is_repaired=True)
        else:
            yield Finding(
                check="worktrees",
                message=f"the worktree {path} belongs to no task",
                fix="`crew doctor --repair` keeps its content as a checkpoint and removes it",
                is_wrong=True,
            )
    if not found:
        yield Finding(check="worktrees", message="every worktree belongs to a task")


def deliveries(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Compares the landed refs, and what is recorded as landed, with the target branches."""
    from crew.front.cli.crew.undelivered import deliver_all, undelivered  # noqa: PLC0415

    found = undelivered(workplace)
    if repair and found and find_runner(workplace.lock_file) is None:
        deliver_all(workplace, found)
        left = undelivered(workplace)
        for target in found.keys() - left.keys():
            message = f"delivered to {target} what had landed for it"
            yield Finding(check="deliveries", message=message, is_repaired=True)
        found = left
    for target, late in found.items():
        yield Finding(
            check="deliveries",
            message=f"{target} does not have what landed for it: {late.what}",
            fix=late.fix,
            is_wrong=True,
        )
    if not found:
        yield Finding(check="deliveries", message="everything that landed is delivered")


_STATE_CHECKS = {
    "database": database,
    "tasks": tasks,
    "processes": processes,
    "worktrees": worktrees,
    "deliveries": deliveries,
}
