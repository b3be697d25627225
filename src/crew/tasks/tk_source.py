"""Tickets of `tk` in `.tickets/*.md`, read and written as `tk` does.

The files are the whole interface. crew never calls the program, because it rewrites lines of the
description that begin with `status:` and prints less than the files hold. Fields that `tk` does not
have are lines that begin with `crew-` at the end of the front matter, which `tk` keeps.
`TICKETS_DIR` names the folder. Otherwise it is the nearest `.tickets` between the current folder
and the repository's root.

`tk` takes no lock. crew locks the folder itself when it writes, which leaves no lock file.
"""

import os
import re
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.names import is_task_id
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem
from crew.tasks import front_matter, task_folder, tk_format
from crew.tasks.front_matter import FrontMatter
from crew.tasks.source_snapshot import Snapshot, rescan
from crew.tasks.task_source import (
    UNCHANGED,
    Lifecycle,
    NewComment,
    NewTask,
    TaskChanges,
    resolve_id,
    unknown_task,
)
from crew.tasks.validate_task import changes_for, checked_changes, checked_comment, checked_task

_PARTS = (".md",)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def tickets_folder(repo_root: Path, *, start: Path, override: str | None) -> Path:
    """The folder of the tickets; the one in the root if there are none yet."""
    if override:
        return start / override
    root = repo_root.resolve()
    here = start.resolve()
    ways = [here, *here.parents] if here.is_relative_to(root) else [root]
    for place in ways[: ways.index(root) + 1]:
        if (place / ".tickets").is_dir():
            return place / ".tickets"
    return root / ".tickets"


class TkSource:
    """A source for tasks that are kept with `tk`. It has no namespaces."""

    def __init__(
        self,
        repo_root: Path,
        *,
        namespace: str = "default",  # noqa: ARG002 - part of how every source is opened
        choose: Callable[[str], str] = secrets.choice,
    ) -> None:
        self.folder = tickets_folder(
            repo_root, start=Path.cwd(), override=os.environ.get("TICKETS_DIR")
        )
        self._prefix = id_prefix(self.folder.resolve().parent.name)
        self._choose = choose

    def stamp(self) -> object:
        return task_folder.scan_folder(self.folder, _PARTS).stamp

    def scan(self, previous: Snapshot | None = None) -> Snapshot:
        scan = task_folder.scan_folder(self.folder, _PARTS)
        if previous and previous.stamp == scan.stamp:
            return previous
        return rescan(previous, task_folder.signatures(scan, _PARTS), self._read, stamp=scan.stamp)

    def show(self, task: str) -> TaskItem:
        item = self._read(task) if is_task_id(task) else None
        if item is None:
            raise unknown_task(task, self._ids())
        return item

    def resolve(self, prefix: str) -> str:
        return resolve_id(prefix, self._ids())

    def ensure(self) -> None:
        task_folder.make_folder(self.folder)

    def add(self, new: NewTask, *, at: float) -> str:
        new = checked_task(new)
        task_folder.make_folder(self.folder)
        with self._exclusive():
            task = self._free_id()
            task_folder.write_text(self._path(task), tk_format.new_ticket(task, new, at=at))
        return task

    def edit(self, task: str, changes: TaskChanges) -> None:
        changes = checked_changes(changes)

        def changed(front: FrontMatter) -> FrontMatter:
            item = tk_format.read_item(task, front.text())
            return tk_format.changed(front, changes_for(item, changes))

        self._change(task, changed)

    def set_status(
        self, task: str, status: TaskState, *, at: float, lifecycle: Lifecycle = UNCHANGED
    ) -> None:
        self._change(
            task,
            lambda front: tk_format.with_status(front, status, at=at, lifecycle=lifecycle),
        )

    def comment(self, task: str, comment: NewComment) -> None:
        new = checked_comment(comment)

        def noted(front: FrontMatter) -> FrontMatter:
            comments = tk_format.comments(tk_format.cut(front.rest).notes)
            if new.key and any(one.key == new.key for one in comments):
                return front
            return front.with_rest(tk_format.with_note(front.rest, new))

        self._change(task, noted)

    def change_comment(self, task: str, index: int, text: str) -> None:  # noqa: ARG002 - tk has none
        raise UsageError("the notes of a ticket cannot be changed", hint="add a new note instead")

    def add_dep(self, task: str, dep: str) -> None:
        """Add a dependency. The caller has checked for cycles; this refuses only a task itself."""
        if task == dep:
            raise Conflict(f"task {task} cannot wait for itself", hint="name another task")
        self.show(dep)
        self._change_deps(task, lambda deps: deps if dep in deps else (*deps, dep))

    def remove_dep(self, task: str, dep: str) -> None:
        self._change_deps(task, lambda deps: tuple(other for other in deps if other != dep))

    def remove(self, task: str) -> None:
        with self._exclusive():
            if not is_task_id(task) or not self._path(task).exists():
                raise unknown_task(task, self._ids())
            task_folder.delete_file(self._path(task))

    def _change_deps(self, task: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        def changed(front: FrontMatter) -> FrontMatter:
            deps = front_matter.parse_list(front.get("deps") or "")
            if change(deps) == deps:
                return front
            return front.with_value("deps", front_matter.inline_list(change(deps)))

        self._change(task, changed)

    def _change(self, task: str, change: Callable[[FrontMatter], FrontMatter]) -> None:
        """Rewrite the ticket if `change` changes its text."""
        with self._exclusive():
            item = self.show(task)
            if item.corrupt:
                raise Conflict(
                    f"task {task} cannot be read: {item.corrupt}",
                    hint=f"repair {self._path(task)}, or remove it with `crew rm {task}`",
                )
            text = task_folder.read_text(self._path(task)) or ""
            front = front_matter.parse(text)
            if (after := change(front)) != front:
                task_folder.write_text(self._path(task), after.text())

    def _read(self, task: str) -> TaskItem | None:
        """The ticket, or None. If it cannot be read, `corrupt` gives the reason."""
        try:
            text = task_folder.read_text(self._path(task))
            if text is not None and not is_task_id(task):
                return _corrupt(task, "the file's name cannot be a task id")
            return None if text is None else tk_format.read_item(task, text)
        except ValueError as error:
            return _corrupt(task, str(error))

    def _free_id(self) -> str:
        taken = set(self._ids())
        while True:
            task = f"{self._prefix}-{''.join(self._choose(_ALPHABET) for _ in range(4))}"
            if task not in taken:
                return task

    def _ids(self) -> list[str]:
        return sorted(task_folder.signatures(task_folder.scan_folder(self.folder, _PARTS), _PARTS))

    def _path(self, task: str) -> Path:
        return self.folder / f"{task}.md"

    def _exclusive(self) -> AbstractContextManager[None]:
        if not self.folder.is_dir():
            raise NotFound("there are no tickets yet", hint='create one: crew new --title "…"')
        return task_folder.locked(self.folder, exclusive=True)


def _corrupt(task: str, why: str) -> TaskItem:
    title = f"[cannot be read] ticket {task}"
    return TaskItem(id=task, title=title, status=TaskState.ERROR, corrupt=f"{task}.md: {why}")


def id_prefix(project: str) -> str:
    """The first letter of each part of the folder's name; of a single part its first three."""
    letters = "".join(part[0] for part in re.split(r"[-_]", project) if part)
    prefix = letters if len(letters) > 1 else project[:3]
    return re.sub(r"[^A-Za-z0-9]", "", prefix) or "t"
