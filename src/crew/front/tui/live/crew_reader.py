"""Reads a crew as it changes: new facts are applied to the world, and no table is read again.

Only what has no facts is read by itself: the texts of tasks, the agents' words, the runner's lock.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.world import World, apply_all
from crew.front.tui.live.picture import News, Picture
from crew.store.database import change_count
from crew.store.fact_log import facts_after, last_fact, load_world
from crew.store.kept_values import all_doing, paused_why
from crew.store.runner_lock import find_runner
from crew.tasks.source_snapshot import Snapshot
from crew.tasks.task_source import TaskSource, open_source
from crew.workplace import Workplace

RUNNER_EVERY_S = 0.5
IDLE_SHARE = 400
"""Looking for changed task files takes at most this part of the time."""

BUSY_SHARE = 10
"""The same after a fact about a task, when a change is likely."""


class CrewReader:
    """Looks at one crew; belongs to the thread that uses it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workplace = Workplace(root=root)
        self._picture = Picture()
        self._snapshot = Snapshot()
        self._namespace = ""
        self._seen = -1
        self._file: tuple[int, int] | None = None
        self._runner_at = 0.0
        self._tasks_at = 0.0
        self._scan_s = 0.0
        self._tasks_due = True
        self._folder_changed = 0

    def close(self) -> None:
        self._workplace.close_database()

    def look(self) -> News | None:
        """What changed since the last look; None if nothing did."""
        return self._of_namespace(self._look_if_readable())

    def _look_if_readable(self) -> News | None:
        try:
            return self._look()
        except CrewError as error:
            return self._failed(error.message)
        except OSError as error:
            return self._failed(str(error))

    def read_anew(self) -> None:
        """Read everything with the next look."""
        self._file, self._runner_at = None, 0.0

    def look_at(self, namespace: str) -> None:
        """Show the tasks of another namespace; empty for the one that this crew works on."""
        self._namespace = namespace
        self.read_anew()

    def expect_tasks(self) -> None:
        """Look at the task files soon: something was asked for that changes them."""
        self._tasks_due = True

    def _failed(self, reason: str) -> News | None:
        """The crew cannot be read now; the next look that succeeds reads all of it again."""
        self._file = None
        if self._picture.failure == reason:
            return None
        self._picture = replace(self._picture, failure=reason)
        return News(picture=self._picture)

    def _of_namespace(self, news: News | None) -> News | None:
        """Without the rows of this crew if other tasks are shown, which have the same ids."""
        if news is None or not self._namespace:
            return news
        picture = replace(news.picture, world=World(), doing={}, namespace=self._namespace)
        return replace(news, picture=picture, facts=())

    def _look(self) -> News | None:
        now = time.monotonic()
        if now >= self._runner_at and self._file != self._file_id():
            return self._read_all()
        before, facts = self._picture, self._new_facts()
        tasks_changed = self._read_tasks(now, after_facts=facts)
        if now >= self._runner_at:
            self._read_runner(now)
        if self._picture is before:
            return None
        return News(picture=self._picture, facts=facts, tasks_changed=tasks_changed)

    def _file_id(self) -> tuple[int, int]:
        """The database file itself: `crew clean` and a repair put another one in its place."""
        found = self._workplace.database_file.stat()
        return found.st_dev, found.st_ino

    def _read_all(self) -> News:
        self._workplace.close_database()
        self._workplace = Workplace(root=self._root)
        file, db = self._file_id(), self._workplace.db
        self._seen = change_count(db)
        number = last_fact(db)
        world = load_world(db)
        # A fact that came between the two reads would be applied twice: read until none came.
        while (newest := last_fact(db)) != number:
            number, world = newest, load_world(db)
        self._picture = Picture(world=world, number=number)
        self._read_words()
        self._read_all_tasks()
        self._read_runner(time.monotonic())
        self._file = file
        return News(picture=self._picture, fresh=True, tasks_changed=True)

    def _read_all_tasks(self) -> None:
        """All tasks; crew's index saves the reading of files that did not change."""
        started = time.monotonic()
        is_own = not self._namespace
        self._snapshot = self._workplace.snapshot() if is_own else self._source().scan(None)
        self._tasks_at = time.monotonic()
        self._scan_s = max(self._tasks_at - started, 0.001)
        self._tasks_due = False
        self._picture = replace(self._picture, items=self._snapshot.by_id)

    def _new_facts(self) -> tuple[tuple[int, Fact], ...]:
        """Apply what was recorded since the last look."""
        db = self._workplace.db
        seen = change_count(db)
        if seen == self._seen:
            return ()
        self._seen = seen
        facts = tuple(facts_after(db, self._picture.number))
        if facts:
            world = apply_all(self._picture.world, (fact for _, fact in facts))
            self._picture = replace(self._picture, world=world, number=facts[-1][0])
        self._read_words()
        return facts

    def _read_words(self) -> None:
        db = self._workplace.db
        self._change(doing=all_doing(db), pause=paused_why(db, self._workplace.folder))

    def _read_tasks(self, now: float, *, after_facts: tuple[tuple[int, Fact], ...]) -> bool:
        """Read the task files that changed, as often as the time for it allows."""
        self._tasks_due |= any(fact.kind == "task" for _, fact in after_facts)
        share = BUSY_SHARE if self._tasks_due else IDLE_SHARE
        if self._file is not None and now < self._tasks_at + share * self._scan_s:
            return False
        started = time.monotonic()
        found = self._source().scan(self._snapshot)
        self._tasks_at = time.monotonic()
        self._scan_s = max(self._tasks_at - started, 0.001)
        self._tasks_due = False
        if found is self._snapshot:
            return False
        self._snapshot = found
        self._picture = replace(self._picture, items=found.by_id)
        return True

    def _source(self) -> TaskSource:
        if not self._namespace:
            return self._workplace.source
        source = self._workplace.settings.tasks.source
        return open_source(source, self._root, namespace=self._namespace)

    def _read_runner(self, now: float) -> None:
        self._runner_at = now + RUNNER_EVERY_S
        self._notice_folder()
        self._change(runner=find_runner(self._workplace.lock_file), failure="")

    def _notice_folder(self) -> None:
        """Expect other tasks once their folder has changed: a file is new, gone or replaced."""
        folder = getattr(self._source(), "folder", None)
        try:
            changed = folder.stat().st_mtime_ns if isinstance(folder, Path) else 0
        except OSError:
            changed = 0
        if changed != self._folder_changed:
            self._tasks_due, self._folder_changed = True, changed

    def _change(self, **changes: Any) -> None:
        """Replace small values of the picture, if one of them differs."""
        if any(getattr(self._picture, name) != value for name, value in changes.items()):
            self._picture = replace(self._picture, **changes)
