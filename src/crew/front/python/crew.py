"""`from crew import Crew`: the Python interface, with the same requests and views as commands."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.quests.quest_requests import find_quest
from crew.domain.requests import Request
from crew.domain.rows.question import Question
from crew.domain.rows.task_item import TaskItem
from crew.domain.upkeep.clean_plan import Inventory
from crew.domain.upkeep.findings import Finding
from crew.domain.upkeep.prune_plan import Remains
from crew.front.python.runner_process import Running, start_run
from crew.runner.new_tasks import checked_names
from crew.runner.quest_start import begin_quest, cancel_quest
from crew.runner.requests.ask_crew import ask, wake
from crew.runner.requests.person_only import refuse_agents
from crew.runner.upkeep.clean_state import remove_state, take_inventory
from crew.runner.upkeep.doctor_checks import examine
from crew.runner.upkeep.kept_work import kept_task, kept_views, restore_work
from crew.runner.upkeep.prune_remains import find_remains, remove_remains
from crew.runner.views.quest_views import load_view
from crew.store.database import change_count, open_database
from crew.store.fact_log import facts_after, load_some, load_world
from crew.tasks.task_source import NewTask
from crew.workplace import Workplace, find_workplace, make_workplace

__all__ = ["Crew", "Event", "Quest", "Running"]

LOOK_EVERY_S = 0.1

T = TypeVar("T")


@frozen
class Event:
    """A fact: at this time, `trigger` changed `changes` of the subject, which is a `kind`.

    `source` and `target` are states; both are None if no state changed.
    """

    number: int
    at: datetime
    kind: str
    subject: str
    trigger: str
    source: str | None
    target: str | None
    changes: Mapping[str, Any]

    @property
    def is_question(self) -> bool:
        """Whether this event is a new question for a person."""
        return self.kind == "question" and self.trigger == "asked"


class Crew:
    """The crew of one repository; use it in one thread only, like the store that it reads.

    The runner makes all changes if one is up; otherwise the call makes them itself. Either way they
    are complete when the call returns. Errors are `crew.domain.kernel.errors.CrewError`s with a
    `hint`.
    """

    def __init__(self, path: str | Path = ".", *, init: bool = False) -> None:
        """`init` sets up `.crew/` first, as `crew init` does."""
        self._place = Path(path)
        self._workplace = make_workplace(self._place) if init else find_workplace(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; a runner that was started keeps running."""
        self._workplace.db.close()

    @property
    def root(self) -> Path:
        return self._workplace.root

    def new_task(
        self,
        title: str,
        body: str = "",
        *,
        after: tuple[str, ...] = (),
        labels: tuple[str, ...] = (),
        priority: int = 2,
        agent: str | None = None,
        base: str | None = None,
    ) -> TaskItem:
        """Create a task; `after` are the ids of tasks that it waits for.

        `base` is the branch that it starts from and lands on, by default as for `crew new`.
        What `crew new` refuses is refused here too, such as an agent that is not configured.
        """
        refuse_agents(self.root, "a new task from Python")
        source = self._workplace.source
        new = NewTask(
            title=title,
            body=body,
            deps=after,
            labels=labels,
            priority=priority,
            agent=agent,
            base=self._workplace.base_of_new(base, place=self._place),
        )
        task = source.add(checked_names(self._workplace, new), at=time.time())
        wake(self._workplace)
        return source.show(task)

    def tasks(self) -> list[TaskItem]:
        """All tasks, as their source has them, with the states that crew recorded."""
        rows = load_world(self._workplace.db).tasks
        return [
            replace(item, status=type(item.status)(rows[item.id].state))
            if item.id in rows and rows[item.id].state != rows[item.id].written
            else item
            for item in self._workplace.snapshot().items
        ]

    def quest(
        self,
        text: str,
        *,
        workflow: str = "quest",
        slots: int | None = None,
        base: str | None = None,
    ) -> "QuestHandle":
        """Begin a quest; the first line of the text is its title, and `base` as for a task."""

        def deed(here: Workplace) -> str:
            branch = here.base_of_new(base, place=self._place)
            return begin_quest(here, text, workflow=workflow, slots=slots, base=branch)

        return QuestHandle(self, self._do(deed))

    def quests(self) -> list["QuestHandle"]:
        return [QuestHandle(self, one) for one in load_world(self._workplace.db).quests]

    def find_quest(self, quest: str) -> "QuestHandle":
        """A quest by its id; raises `NotFound` if there is none."""
        return QuestHandle(self, find_quest(load_world(self._workplace.db), quest).id)

    def questions(self) -> list[Question]:
        """The open questions, the oldest first."""
        found = load_world(self._workplace.db).questions.values()
        return sorted((one for one in found if one.is_open), key=lambda one: one.asked_at)

    def answer(self, question: str, text: str) -> Question:
        """Answer a question; the session that asked continues with it."""
        args = {"question": question, "text": text}
        self._do(lambda here: ask(here, Request(verb="answer", args=args)))
        return load_world(self._workplace.db).questions[question]

    def run(
        self, *, agents: int | None = None, agent: str | None = None, drain: bool = True
    ) -> Running:
        """Start the runner in a process of its own, and return while it runs.

        With `drain` it ends when nothing more can change. It outlives this program.
        """
        refuse_agents(self.root, "a run from Python")
        return start_run(self._workplace, agents=agents, agent=agent, drain=drain)

    def prune(self, *, branches: bool = False, dry_run: bool = False) -> Remains:
        """Remove the worktrees and merged branches of finished tasks, as `crew prune` does.

        `branches` includes unmerged branches. Checkpoints keep the content. While a runner is up,
        it removes the worktrees, and branches stay. Returns what was removed or, with `dry_run`,
        what would be removed.
        """

        def deed(here: Workplace) -> Remains:
            found = find_remains(here, unmerged=branches)
            if not (dry_run or found.is_nothing):
                remove_remains(here, found, unmerged=branches)
            return found

        return self._do(deed)

    def clean(self, *, dry_run: bool = False) -> Inventory:
        """Remove all worktrees and all state, as `crew clean` does; tasks and checkpoints stay.

        The events are removed too. Refused while a runner is up. Returns what was removed or, with
        `dry_run`, what would be removed.
        """

        def deed(here: Workplace) -> Inventory:
            found = take_inventory(here)
            if not dry_run:
                remove_state(here)
            return found

        try:
            self._forget()  # closed only later, the connection would remove the new log too
            return self._do(deed)
        finally:
            self._forget()

    def doctor(self, *, repair: bool = False) -> list[Finding]:
        """Check everything that crew needs, as `crew doctor` does; `repair` makes safe repairs."""
        return self._do(lambda here: list(examine(lambda: here, repair=repair)))

    def checkpoints(self, task: str) -> list[dict[str, Any]]:
        """The checkpoints of a task's worktree: the document of `crew checkpoints --json`."""
        return kept_views(self._workplace, kept_task(self._workplace, task))

    def restore(
        self, task: str, number: int | None = None, *, into: str | Path | None = None
    ) -> Path:
        """Write a checkpoint, by default the last, to a new or empty folder, and return the folder.

        No existing file is touched.
        """
        here, folder = self._workplace, Path(into).absolute() if into else None
        named = kept_task(here, task)
        return restore_work(here, named, number=number, into=folder)[0]

    def events(
        self,
        *,
        follow: bool = False,
        since: datetime | None = None,
        after: int = 0,
        subject: str | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """The events, the oldest first; with `follow` also new ones, until `until` is true.

        `after` is the number of an event; `subject` is an id, or `kind:id` such as `task:12`.
        """
        db = open_database(self._workplace.folder / "crew.db")
        start = since.timestamp() if since else 0.0
        try:
            while True:
                is_last = not follow or until()
                seen = change_count(db)
                for number, fact in facts_after(db, after, subject=subject, since=start):
                    after = number
                    yield _event(number, fact)
                if is_last:
                    return
                while change_count(db) == seen and not until():
                    time.sleep(LOOK_EVERY_S)
        finally:
            db.close()

    def _forget(self) -> None:
        """Close the store, so that the next call opens it again."""
        self._workplace.db.close()
        self._workplace = Workplace(root=self.root)

    def _do(self, deed: Callable[[Workplace], T]) -> T:
        """Call it here or, in a running event loop, in a thread: it may need its own loop."""
        refuse_agents(self.root, "a change from Python")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return deed(self._workplace)
        return _in_a_thread(self.root, deed)


class QuestHandle:
    """A quest of a crew; each property reads the present state."""

    def __init__(self, crew: Crew, quest: str) -> None:
        self._crew = crew
        self.id = quest

    def __repr__(self) -> str:
        return f"Quest({self.id!r}, {self.state})"

    @property
    def state(self) -> str:
        """`open`, `complete` or `cancelled`."""
        (quest,) = load_some(self._crew._workplace.db, "quest", [self.id])  # noqa: SLF001 - its own crew
        return quest.state

    def show(self) -> dict[str, Any]:
        """Everything about it: the document of `crew quest show --json`."""
        return load_view(self._crew._workplace, self.id)  # noqa: SLF001 - its own crew

    def questions(self) -> list[Question]:
        """The open questions of its roles."""
        mine = {str(one["id"]) for one in self.show()["questions"]}
        return [one for one in self._crew.questions() if one.id in mine]

    def cancel(self, reason: str = "") -> None:
        """Cancel the quest: its agents are ended, and all their work is kept."""
        self._crew._do(  # noqa: SLF001 - its own crew
            lambda here: cancel_quest(here, self.id, reason=reason)
        )


def _event(number: int, fact: Fact) -> Event:
    return Event(
        number=number,
        at=datetime.fromtimestamp(fact.at, UTC),
        kind=fact.kind,
        subject=fact.subject,
        trigger=fact.trigger,
        source=fact.source,
        target=fact.target,
        changes=fact.changes,
    )


def _in_a_thread(root: Path, deed: Callable[[Workplace], T]) -> T:
    """Call it in a thread with a workplace of its own: a connection belongs to one thread."""
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        here = find_workplace(root)
        try:
            done.append(deed(here))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            failed.append(error)
        finally:
            here.db.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


Quest = QuestHandle
"""The public name in `from crew import Quest`; inside crew, `Quest` is the row."""
