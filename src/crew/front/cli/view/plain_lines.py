"""`crew dashboard --plain`: one line for each change, for screen readers and for pipes."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from crew.domain.kernel.errors import CrewError
from crew.domain.world import World
from crew.front.cli.crew.narration import told
from crew.front.cli.output import line
from crew.front.cli.view.dashboard_frame import count_tasks
from crew.front.cli.watching.ps import around, paused_line
from crew.runner.views.row_views import agents_by_age, moment
from crew.store.database import Database, change_count
from crew.store.fact_log import facts_after, last_fact, load_world
from crew.store.kept_values import paused_why
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.2


def print_changes(workplace: "Workplace") -> NoReturn:
    """Print the present state, then every change until Ctrl-C. The cursor never moves up."""
    db = workplace.db
    last = last_fact(db)
    for words in _beginning(workplace, load_world(db)):
        _print(words)
    changes = Changes(workplace, last)
    while True:
        for words in changes.look():
            _print(words)
        time.sleep(LOOK_EVERY_S)


def _print(words: str) -> None:
    print(words, flush=True)


def _beginning(workplace: "Workplace", world: World) -> Iterator[str]:
    """The crew in a few lines: the runner, the tasks, the agents that have one, the questions."""
    unmerged = [task.id for task in world.tasks.values() if task.awaits_merge]
    yield from around(world, find_runner(workplace.lock_file), unmerged=unmerged)
    yield count_tasks(world)
    for agent in agents_by_age(world):
        if agent.task:
            title = world.tasks[agent.task].title if agent.task in world.tasks else ""
            yield line(f"agent {agent.id}: {agent.state} on task {agent.task} {title}")


class Changes:
    """What happened since the last look, as lines."""

    def __init__(self, workplace: "Workplace", last: int) -> None:
        self._workplace = workplace
        self._last = last
        self._seen = -1
        self._runner = find_runner(workplace.lock_file)
        self._paused = paused_why(workplace.db, workplace.folder)
        self._failure = ""

    def look(self) -> list[str]:
        try:
            found = [*self._facts(self._workplace.db), *self._runner_lines()]
        except CrewError as error:
            is_new, self._failure = error.message != self._failure, error.message
            return [f"cannot read the crew: {error.message}"] if is_new else []
        self._failure = ""
        return found

    def _facts(self, db: Database) -> Iterator[str]:
        if self._seen == (seen := change_count(db)):
            return
        self._seen = seen
        for number, fact in facts_after(db, self._last):
            self._last = number
            if words := told(fact):
                # A screen reader says "right arrow".
                yield f"{moment(fact.at)} {words.replace(' → ', ' to ', 1)}"
        if self._paused != (paused := paused_why(db, self._workplace.folder)):
            self._paused = paused
            yield paused_line(paused) if paused else "no longer paused"

    def _runner_lines(self) -> Iterator[str]:
        runner = find_runner(self._workplace.lock_file)
        before, self._runner = self._runner, runner
        if (before or {}).get("pid") != (runner or {}).get("pid"):
            yield f"runner {runner['pid']} is up" if runner else "the runner has ended"
