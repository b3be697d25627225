"""Notices that `.crew` was deleted while the runner is up, and writes it again.

`git clean -fdx` deletes ignored files, and `.crew` is one of them. The open database outlives its
file, git has the branches and checkpoints, and crew remembers the tasks and the configuration.
"""

import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World
from crew.store.database import MADE_MEANWHILE, save_again
from crew.store.fact_log import load_world
from crew.store.runner_lock import COMMAND, writer_lock
from crew.system.foreign_files import NotBelieved, read_foreign
from crew.system.private_files import append_private, make_private_folder
from crew.tasks.task_source import RestorableSource
from crew.workplace import Workplace, known_items, make_folders

log = logging.getLogger(__name__)

_CONFIG = ("config.toml", "config.runtime.toml")
_LARGEST = 1_000_000
_MAY_GO_ON_S = 0.5
_DELETED_WITHIN_S = 10.0
"""A task that was missing for no longer when the folder was found deleted was deleted with it."""


class FolderGone(CrewError):
    """The folder with the crew's state was deleted, and the runner ends."""

    code = "folder_gone"


@dataclass(slots=True)
class KeptFolder:
    """What is needed to write `.crew` again: its tasks and its configuration as last read."""

    workplace: Workplace
    _config: dict[str, bytes] = field(default_factory=dict)
    _removed: dict[str, tuple[float, TaskItem]] = field(default_factory=dict)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Write the folder again if it is deleted while inside, whatever happens there then."""
        try:
            yield
        except (CrewError, OSError) as error:
            if not self.workplace.has_lost_folder:
                raise
            log.warning("%s is gone: %s", self.workplace.folder, error)
        if self.workplace.has_lost_folder:
            raise self._written_again()

    def check(self) -> None:
        """Raise if the folder was deleted: what fails without it is no fault of an agent."""
        if self.workplace.has_lost_folder:
            gone = f"{self.workplace.folder} is gone"
            raise FolderGone(gone, hint="the runner ends, and writes it again")

    def remember(self) -> None:
        """Read what only files have; small files that did not change are not read again."""
        for path in _files_of_config(self.workplace.folder):
            with suppress(OSError, NotBelieved):
                name = str(path.relative_to(self.workplace.folder))
                self._config[name] = read_foreign(path, max_bytes=_LARGEST)

    def notice(self, facts: Iterable[Fact], before: bytes) -> None:
        """Keep the tasks whose files are missing now: perhaps all are just being deleted.

        `before` is the index of the tasks before these facts.
        """
        missing = [fact for fact in facts if fact.trigger == "missing"]
        known = known_items(before) if missing else {}
        for fact in missing:
            if fact.subject in known:
                self._removed[fact.subject] = (fact.at, known[fact.subject])

    def _written_again(self) -> FolderGone:
        """Write what can be written; the error says what that was, and what is lost."""
        workplace = self.workplace
        if not workplace.repo.common_dir.is_dir():
            return FolderGone(
                f"the repository is no longer at {workplace.root}: it was moved or deleted",
                hint="`crew run` in its new place continues; all work is in git",
            )
        time.sleep(_MAY_GO_ON_S)  # the deletion
        try:
            world = load_world(workplace.db)
            items = self._items(world)
            make_folders(workplace)
            with writer_lock(workplace.lock_file, role=COMMAND, started="now"):
                self._write_config()  # what people wrote comes first
                tasks = self._bring_back(items, world)
                save_again(workplace.db, workplace.database_file)
                workplace.close_database()
        except (CrewError, OSError, sqlite3.Error) as error:
            log.warning("%s could not be written again: %s", workplace.folder, error)
            return _nothing_written(workplace, error)
        return self._told(tasks)

    def _items(self, world: World) -> list[TaskItem]:
        """The tasks to write again: each with the state that crew wrote last."""
        now = time.time()
        known = dict(known_items(self.workplace.index_text()))
        late = {name: one for name, (at, one) in self._removed.items() if _is_late(at, now)}
        found = (one for one in {**late, **known}.values() if not one.corrupt)
        rows = world.tasks
        return [
            replace(one, status=TaskState(rows[one.id].written)) if one.id in rows else one
            for one in found
        ]

    def _bring_back(self, items: list[TaskItem], world: World) -> list[str]:
        source = self.workplace.kept_source
        if not isinstance(source, RestorableSource):
            return []
        numbers = [int(task) for task in {*world.tasks, *(i.id for i in items)} if task.isdigit()]
        return source.bring_back(items, last_id=str(max(numbers, default=0)))

    def _write_config(self) -> None:
        for name, content in self._config.items():
            path = self.workplace.folder / name
            if not path.exists():
                make_private_folder(path.parent)
                append_private(path, content)

    def _told(self, tasks: list[str]) -> FolderGone:
        file = self.workplace.database_file
        other = file.with_name(f"{file.name}.{MADE_MEANWHILE}")
        more = f"; {other.name} has what another command recorded since" if other.exists() else ""
        words = f" and {len(tasks)} task{'s' * (len(tasks) > 1)}" if tasks else ""
        return FolderGone(
            f"{self.workplace.folder} was deleted while the runner was up, as by `git clean "
            f"-fdx`: the configuration, the records{words} are written again; the logs and the "
            f"sessions in it are lost{more}",
            hint="`crew run` continues; the work is in git, with its branches and checkpoints",
        )


def _nothing_written(workplace: Workplace, error: Exception) -> FolderGone:
    reason = error.message if isinstance(error, CrewError) else error
    return FolderGone(
        f"{workplace.folder} was deleted while the runner was up, and its records are lost: "
        f"{reason}",
        hint="`crew init`, then `crew run` begin again; the branches crew-… and the checkpoints "
        "have the work: `git branch --list 'crew-*'`",
    )


def _is_late(at: float, now: float) -> bool:
    return now - at < _DELETED_WITHIN_S


def _files_of_config(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in _CONFIG)
    yield from (path for path in (folder / "workflows").rglob("*") if path.is_file())
