"""The checks of `crew doctor` on a crew's state, and the repairs of `--repair`.

A repair holds the writer's lock, so that no runner starts during it. Facts record every change of a
row: worktrees that a row names are removed by the request `prune`, landed work is delivered by
`deliver`. Rows that differ from their facts are built again, which needs no fact.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.names import branch_name, made_ref
from crew.domain.tasks.task_outcomes import Intake, begun_again
from crew.domain.upkeep.findings import Finding, task_findings
from crew.git.repository import ref_tip
from crew.git.worktrees.moved_worktrees import Origin, broken_links, link_again, origin_of
from crew.runner.upkeep.late_deliveries import deliver_all, undelivered
from crew.runner.upkeep.live_terminals import close_terminals, stray_terminals
from crew.runner.upkeep.orphan_worktrees import find_orphans, remove_orphans
from crew.runner.upkeep.remains_checks import landed_refs, leftovers, locks
from crew.runner.writer_lock import holding_the_lock
from crew.store.database import DAMAGED, StoreFailed, check_whole
from crew.store.fact_log import load_world, record
from crew.store.place_record import Standing
from crew.store.row_repair import differences, rebuild_rows
from crew.store.runner_lock import COMMAND, find_runner, writer_lock
from crew.store.salvage import salvage
from crew.system.private_files import close_to_others, exposed
from crew.system.processes.ownership import kill_leftovers, owned_processes
from crew.workplace import SHARED

if TYPE_CHECKING:
    from crew.workplace import Workplace

PEOPLES = frozenset({"config.toml", "config.runtime.toml", "workflows"})
"""The entries of `.crew` that people write, with the modes of their editors."""

_SHOWN = 5


def database(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    try:
        check_whole(workplace.db)
    except StoreFailed as error:
        if error.code != DAMAGED or not repair or find_runner(workplace.lock_file) is not None:
            raise
        yield from _salvaged(workplace)
    yield from _rows(workplace, repair)


def _salvaged(workplace: "Workplace") -> Iterator[Finding]:
    with writer_lock(workplace.lock_file, role=COMMAND, started="now"):
        workplace.close_database()
        saved = salvage(workplace.database_file)
        if saved.lost:
            _begin_again(workplace)
    message = f"the database was damaged; its old file is now {saved.aside.name}, and the new one "
    message += f"has what could be read: {saved.lost[0] if saved.lost else 'nothing is lost'}"
    yield Finding(check="database", message=message, is_repaired=True)
    for lost in saved.lost[1:]:
        yield Finding(check="database", message=lost, is_repaired=True)


def _begin_again(workplace: "Workplace") -> None:
    """Let lost tasks start again for which this crew has made a branch."""
    world, items = load_world(workplace.db), workplace.snapshot().items
    made = {item.id: made_ref(branch_name(item.id, item.issue)) for item in items}
    ours = [item for item in items if ref_tip(workplace.repo, made[item.id])]
    intake = Intake(target=workplace.target, at=time.time())
    record(workplace.db, world, begun_again(world, ours, intake))


def _rows(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    wrong = differences(workplace.db)
    if not wrong:
        yield Finding(check="database", message="the rows match their facts")
    elif repair and find_runner(workplace.lock_file) is None:
        with holding_the_lock(workplace):
            lost = rebuild_rows(workplace.db)
        message = "; ".join((f"rebuilt {', '.join(wrong)}", *lost))
        yield Finding(check="database", message=message, is_repaired=True)
    else:
        yield Finding(
            check="database",
            message=f"the rows of {', '.join(wrong)} do not match their facts",
            fix="`crew stop`, then `crew doctor --repair` rebuilds them",
            is_wrong=True,
        )


def place(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Whether the crew, its id and the links of its worktrees are those of this repository."""
    here, wrong = workplace.repo, _out_of_place(workplace)
    is_free = find_runner(workplace.lock_file) is None
    if wrong and repair and is_free:
        with holding_the_lock(workplace):  # which settles a crew that was copied or moved
            for one in broken_links(here):
                link_again(here, one, one.was, Origin(git_dir=here.common_dir, is_copied=False))
        message = f"{wrong}; its id and its links are those of this place now"
        yield Finding(check="place", message=message, is_repaired=True)
    elif wrong:
        fix = "`crew doctor --repair` repairs it"
        yield Finding(check="place", message=wrong, fix=fix, is_wrong=True)
    else:
        yield Finding(check="place", message="the crew and its worktrees belong to this repository")


def _out_of_place(workplace: "Workplace") -> str:
    record, repo = workplace.place, workplace.repo
    is_home = workplace.standing == Standing.HOME
    origin = origin_of(repo) if record is None else None
    if record is not None and not is_home:
        is_copied = workplace.standing == Standing.COPIED
        origin = Origin(git_dir=Path(record.path), is_copied=is_copied)
    if origin is not None and origin.is_copied:
        return f"this repository is a copy of {origin.git_dir}, and so is its crew"
    if origin is not None:
        return (
            f"this repository was moved here from {origin.git_dir}, which its worktrees still name"
        )
    broken = ", ".join(str(one.was) for one in broken_links(repo))
    return f"git does not work in {broken}, which names a repository that is gone" if broken else ""


def privacy(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Whether other users of this machine can read what crew keeps."""
    open_ones = list(exposed(workplace.folder, besides=SHARED | PEOPLES))
    if not open_ones:
        yield Finding(check="privacy", message="only you can read .crew")
    elif repair:
        close_to_others(workplace.folder, besides=SHARED)
        message = f"closed {len(open_ones)} files and folders in .crew to other users"
        yield Finding(check="privacy", message=message, is_repaired=True)
    else:
        names = [str(path.relative_to(workplace.root)) for path in open_ones[:_SHOWN]]
        yield Finding(
            check="privacy",
            message=f"other users may read {', '.join(names)}"
            + (f" and {len(open_ones) - _SHOWN} more" if len(open_ones) > _SHOWN else ""),
            fix="`crew doctor --repair` closes them, and so does the next `crew run`",
            is_wrong=True,
        )


def tasks(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: ARG001, FBT001
    yield from task_findings(workplace.snapshot().items)


def processes(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    if find_runner(workplace.lock_file) is not None:
        return
    left = owned_processes(workplace.repo_id)
    if left and repair:
        with holding_the_lock(workplace):  # which itself ends them after a killed writer
            kill_leftovers(workplace.repo_id)
        yield Finding(check="processes", message=f"ended {len(left)} processes", is_repaired=True)
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


def terminals(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Terminals on crew's own tmux server that no row names."""
    strays = stray_terminals(workplace)
    if strays and repair and find_runner(workplace.lock_file) is None:
        with holding_the_lock(workplace):
            close_terminals(workplace, strays)
        for session in strays:
            message = f"ended the terminal {session.name}, which belonged to no task"
            yield Finding(check="terminals", message=message, is_repaired=True)
        return
    for session in strays:
        yield Finding(
            check="terminals",
            message=f"the terminal {session.name} (process {session.pid}) belongs to no task",
            fix="`crew stop`, then `crew doctor --repair` ends it; its files stay where they are",
            is_wrong=True,
        )
    if not strays:
        yield Finding(check="terminals", message="every terminal belongs to a task")


def worktrees(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    found = find_orphans(workplace)
    if found and repair and find_runner(workplace.lock_file) is None:
        remove_orphans(workplace, found)
        for path in found:
            yield Finding(check="worktrees", message=f"kept and removed {path}", is_repaired=True)
        return
    for path in found:
        yield Finding(
            check="worktrees",
            message=f"the worktree {path} belongs to no task",
            fix="`crew doctor --repair` keeps its content as a checkpoint and removes it",
            is_wrong=True,
        )
    if not found:
        yield Finding(check="worktrees", message="every worktree belongs to a task")


def deliveries(workplace: "Workplace", repair: bool) -> Iterator[Finding]:  # noqa: FBT001
    """Compare the landed refs and the recorded landings with the target branches."""
    found = undelivered(workplace)
    if repair and found and find_runner(workplace.lock_file) is None:
        deliver_all(workplace, found)
        left = undelivered(workplace)
        for target in found.keys() - left.keys():
            message = f"delivered to {target} what had landed for it"
            if not workplace.has_branch(target):
                message = f"{target} was deleted, and your branches have what landed for it"
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


STATE_CHECKS = {
    "place": place,
    "privacy": privacy,
    "database": database,
    "tasks": tasks,
    "processes": processes,
    "terminals": terminals,
    "worktrees": worktrees,
    "locks": locks,
    "leftovers": leftovers,
    "landed refs": landed_refs,
    "deliveries": deliveries,
}
