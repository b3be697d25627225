"""`crew poll`: waits until a task's status changes."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import Conflict, TimedOut
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import FINISHED, TaskState
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import DURATION
from crew.front.cli.tab_completion import complete_tasks
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.store.database import change_count
from crew.store.fact_log import facts_after, last_fact

if TYPE_CHECKING:
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.2
NOTICE_EVERY_S = 1.0
STATUSES = [str(state) for state in TaskState]
EXAMPLE = """crew poll 12 --timeout 10m
crew poll 12 13 --status done --status merged
crew wait 12 --status merged && git pull"""


@frozen
class StatusChange:
    """One task changed from one status to another."""

    task: str
    before: str
    after: str


@command("poll", example=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=complete_tasks)
@click.option(
    "-s",
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Wait for this status (repeatable: any of them); returns at once if it has it.",
)
@click.option(
    "-t", "--timeout", "timeout_s", type=DURATION, metavar="D", help="Exit with 124 after D."
)
@pass_call
def poll(
    call: Call, tasks: tuple[str, ...], statuses: tuple[str, ...], timeout_s: float | None
) -> None:
    """Wait until the status of a task changes.

    Prints the first change of any of the tasks, as `12: in_progress -> done`. Exit code 124 after
    the timeout, 5 when no change is possible any more.
    """
    workplace = call.workplace()
    named = list(dict.fromkeys(workplace.source.resolve(task) for task in tasks))
    watch, wanted = PollTarget(workplace, named), frozenset(statuses)
    change = _already(watch, wanted)
    if change is None:
        narrate(call, f"waiting: {watch.told()}")
        change = _awaited(watch, wanted, timeout_s)
    if call.json:
        print_json({"id": change.task, "from": change.before, "to": change.after})
    else:
        say(f"{change.task}: {change.before} -> {change.after}")


def _already(watch: "PollTarget", statuses: frozenset[str]) -> StatusChange | None:
    found = (task for task, status in watch.status.items() if status in statuses)
    task = next(found, None)
    if task is None:
        return None
    return StatusChange(task=task, before=watch.status[task], after=watch.status[task])


def _awaited(
    watch: "PollTarget", statuses: frozenset[str], timeout_s: float | None
) -> StatusChange:
    give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        watch.notice_ends()
        for change in watch.changes():
            if not statuses or change.after in statuses:
                return change
        watch.refuse_hopeless(statuses)
        if give_up_at is not None and time.monotonic() >= give_up_at:
            raise TimedOut(f"nothing changed: {watch.told()}", hint="`crew ps` shows the agents")
        time.sleep(LOOK_EVERY_S)


class PollTarget:
    """The statuses of some tasks, and all their changes, even short ones."""

    def __init__(self, workplace: "Workplace", tasks: list[str]) -> None:
        self._source, self._folder = workplace.source, workplace.folder
        # Read before the facts, so that every later fact is a change.
        self.status = {task: str(self._source.show(task).status) for task in tasks}
        self._db = workplace.db
        self._writes = change_count(self._db)
        self._number = last_fact(self._db)
        self._recorded: dict[str, set[str]] = {task: set() for task in tasks}
        self._looked_at = 0.0

    def notice_ends(self) -> None:
        """Record terminals that ended without a report; only a runner would do so otherwise."""
        if time.monotonic() - self._looked_at >= NOTICE_EVERY_S:
            runs_at_terminals(self._folder, self._db)
            self._looked_at = time.monotonic()

    def changes(self) -> Iterator[StatusChange]:
        """The changes that crew recorded since the last call, then those in the task files."""
        if (writes := change_count(self._db)) != self._writes:
            self._writes = writes
            yield from self._recorded_changes()
        for task in self.status:
            item = self._source.show(task)
            if item.corrupt:  # another program may be writing it, so it has no status
                continue
            status, recorded = str(item.status), self._recorded[task]
            # The file is written after the fact: for a moment it still has an earlier status.
            if status not in recorded or self.status[task] not in recorded:
                yield from self._moved(task, status)

    def _recorded_changes(self) -> Iterator[StatusChange]:
        for number, fact in facts_after(self._db, self._number):
            self._number = number
            if fact.kind == "task" and fact.target and fact.subject in self.status:
                self._recorded[fact.subject] |= {str(fact.source), fact.target}
                yield from self._moved(fact.subject, fact.target)

    def _moved(self, task: str, status: str) -> Iterator[StatusChange]:
        before, self.status[task] = self.status[task], status
        if status != before:
            yield StatusChange(task=task, before=before, after=status)

    def refuse_hopeless(self, statuses: frozenset[str]) -> None:
        """Raise if all tasks are merged or closed: their status can never change."""
        if all(status in FINISHED for status in self.status.values()):
            raise Conflict(
                f"no change is possible any more: {self.told()}",
                hint=f"name its status too: --status {min(self.status.values())}"
                if statuses
                else "`crew list -a` shows the status of all tasks",
                code="no_more_changes",
            )

    def told(self) -> str:
        return ", ".join(f"task {task} is {status}" for task, status in self.status.items())
