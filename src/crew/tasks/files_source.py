"""Tasks as files under `.crew/tasks/<namespace>/`, in the format of the original program.

    meta.json       {"schema": 1, "namespace": "default", "next_id": 2}
    1.md            front matter, description, comment blocks
    1.meta.json     status and lifecycle
    1.crew.json     dependencies, priority and terms, only if a task has them

The original refuses unknown fields in `1.meta.json` and in the front matter, but reads only files
called `<number>.md` and `<number>.meta.json`. Therefore a third file holds the fields that it does
not have. A person may also write `deps:` or `priority:` into the front matter: such a line wins,
and crew then edits that line.

Every file is replaced atomically under the exclusive lock. A task exists once its `.md` does, so
that file is written last and deleted first, and a crash in between leaves no half-made task. A
batch of tasks is first written to one file, `.crew/new-tasks-<namespace>`. After that, the next
reader or writer of tasks completes the batch.

Tasks may be committed, and then disappear together with `meta.json` when another branch is checked
out. Therefore `.crew/last-id-<namespace>`, which is on no branch, also holds the last number: crew
would mistake a second task with a known number for the first one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import Conflict, CrewError, NotFound, UsageError
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import DEFAULT_PRIORITY, TaskItem
from crew.tasks import (
    comment_blocks,
    files_format,
    front_matter,
    json_text,
    task_folder,
    timestamps,
)
from crew.tasks.files_format import is_number
from crew.tasks.source_snapshot import Signature, Snapshot, natural_order, rescan
from crew.tasks.task_source import (
    UNCHANGED,
    Lifecycle,
    NewComment,
    NewTask,
    TaskChanges,
    resolve_id,
    unknown_task,
)
from crew.tasks.validate_task import (
    changes_for,
    checked_changes,
    checked_comment,
    checked_comment_text,
    checked_task,
)

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PARTS = (".md", ".meta.json", ".crew.json")
_CLOSE_REASON = {TaskState.MERGED: "merged", TaskState.CLOSED: "abandoned"}


class FilesSource:
    """The default source."""

    def __init__(self, repo_root: Path, *, namespace: str = "default") -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise UsageError(
                f"{namespace!r} cannot be a task namespace",
                hint="set [tasks] namespace to letters, digits and . _ -",
            )
        self.namespace = namespace
        self.folder = repo_root / ".crew" / "tasks" / namespace
        self._last_id = repo_root / ".crew" / f"last-id-{namespace}"
        self._batch = repo_root / ".crew" / f"new-tasks-{namespace}"

    def stamp(self) -> object:
        return task_folder.scan_folder(self.folder, _PARTS).stamp

    def scan(self, previous: Snapshot | None = None) -> Snapshot:
        self._finish_batch()
        scan = task_folder.scan_folder(self.folder, _PARTS)
        if previous and previous.stamp == scan.stamp:
            return previous
        return rescan(previous, self._signatures(scan), self._read_locked, stamp=scan.stamp)

    def show(self, task: str) -> TaskItem:
        item = self._read_locked(task) if is_number(task) else None
        if item is None:
            raise unknown_task(task, self._ids())
        return item

    def resolve(self, prefix: str) -> str:
        return resolve_id(prefix, self._ids())

    def ensure(self) -> None:
        task_folder.make_folder(self.folder)
        with self._exclusive():
            self._keep_next_id(max(self._recorded_next_id() or 1, self._first_unused()))

    def add(self, new: NewTask, *, at: float) -> str:
        new = _validate(new)
        task_folder.make_folder(self.folder)
        with self._exclusive():
            number = self._next_id()
            task = str(number)
            task_folder.write_text(self._last_id, task, is_private=True)
            self._keep_next_id(number + 1)
            for name, text in _files_of(task, new, at=at):
                task_folder.write_text(self.folder / name, text)
        return task

    def add_all(
        self, count: int, make: Callable[[Sequence[str]], Sequence[NewTask]], *, at: float
    ) -> list[str]:
        task_folder.make_folder(self.folder)
        with self._exclusive():
            first = max(self._next_id(), self._first_unused())
            ids = [str(number) for number in range(first, first + count)]
            tasks = zip(ids, map(_validate, make(ids)), strict=True)
            files = {n: text for task, new in tasks for n, text in _files_of(task, new, at=at)}
            task_folder.write_text(self._last_id, ids[-1], is_private=True)
            self._keep_next_id(first + count)
            task_folder.write_batch(self._batch, self.folder, files)
        return ids

    def bring_back(self, items: Iterable[TaskItem], *, last_id: str) -> list[str]:
        self.ensure()
        with self._exclusive():
            missing = [one for one in items if not self._path(one.id, ".md").exists()]
            for item in missing:
                for name, text in files_format.texts_of(item).items():
                    task_folder.write_text(self.folder / name, text)
            task_folder.write_text(self._last_id, last_id, is_private=True)
            self._keep_next_id(max(self._first_unused(), int(last_id) + 1))
        return [one.id for one in missing]

    def edit(self, task: str, changes: TaskChanges) -> None:
        changes = checked_changes(changes)
        if changes.parent and not is_number(changes.parent):
            raise UsageError(f"{changes.parent!r} is not a task", hint="ids are numbers here")
        with self._exclusive():
            item = self._readable(task)
            changes = changes_for(item, changes)
            markdown = files_format.changed_markdown(self._text(task, ".md"), changes)
            self._replace(task, ".md", markdown)
            self._change_meta(
                task, {"agent": changes.agent, "base_branch": changes.base, "issue": changes.issue}
            )
            if changes.priority is not None:
                self._change_extras(task, deps=item.deps, priority=changes.priority)

    def set_status(
        self, task: str, status: TaskState, *, at: float, lifecycle: Lifecycle = UNCHANGED
    ) -> None:
        """Set the status. Safe to repeat. `started` is the time at which the task last began."""
        with self._exclusive():
            item = self._readable(task)
            fields: dict[str, Any] = {
                "agent": lifecycle.agent,
                "session": lifecycle.session,
                "review_count": lifecycle.review_count,
            }
            if item.status != status:
                fields["status"] = str(status)
                fields["status_version"] = files_format.STATUS_VERSION
                fields["close_reason"] = _CLOSE_REASON.get(status, "")
                fields["started"] = (
                    timestamps.to_text(at) if status == TaskState.IN_PROGRESS else None
                )
            self._change_meta(task, fields)

    def comment(self, task: str, comment: NewComment) -> None:
        comment = checked_comment(comment)
        with self._exclusive():
            comments = self._readable(task).comments
            if comment.key and any(one.key == comment.key for one in comments):
                return
            front = front_matter.parse(self._text(task, ".md"))
            rest = comment_blocks.with_comment(front.rest, comment, index=len(comments))
            self._replace(task, ".md", front.with_rest(rest).text())

    def change_comment(self, task: str, index: int, text: str) -> None:
        text = checked_comment_text(text)
        with self._exclusive():
            comments = self._readable(task).comments
            if not 0 <= index < len(comments):
                known = f"0 to {len(comments) - 1}" if comments else "none yet"
                raise NotFound(f"task {task} has no comment {index}", hint=f"its comments: {known}")
            front = front_matter.parse(self._text(task, ".md"))
            rest = comment_blocks.with_text(front.rest, index, text)
            self._replace(task, ".md", front.with_rest(rest).text())

    def add_dep(self, task: str, dep: str) -> None:
        """Add a dependency. The caller has checked for cycles; this refuses only a task itself."""
        if task == dep:
            raise Conflict(f"task {task} cannot wait for itself", hint="name another task")
        with self._exclusive():
            item = self._readable(task)
            self._readable(dep)
            if dep not in item.deps:
                self._change_extras(task, deps=(*item.deps, dep), priority=item.priority)

    def remove_dep(self, task: str, dep: str) -> None:
        with self._exclusive():
            item = self._readable(task)
            deps = tuple(other for other in item.deps if other != dep)
            if deps != item.deps:
                self._change_extras(task, deps=deps, priority=item.priority)

    def remove(self, task: str) -> None:
        with self._exclusive():
            paths = [self._path(task, part) for part in _PARTS] if is_number(task) else []
            if not any(path.exists() for path in paths):
                raise unknown_task(task, self._ids())
            for path in paths:
                task_folder.delete_file(path)

    def _read_locked(self, task: str) -> TaskItem | None:
        with task_folder.locked(self.folder / ".lock", exclusive=False):
            return self._read(task)

    def _read(self, task: str) -> TaskItem | None:
        """The task, or None. If it cannot be read, `corrupt` gives the reason."""
        try:
            markdown, meta, extras = (
                task_folder.read_text(self._path(task, part)) for part in _PARTS
            )
            if markdown is None:
                return None
            return files_format.read_item(task, markdown=markdown, meta=meta, extras=extras)
        except ValueError as error:
            return TaskItem(
                id=task,
                title=f"[cannot be read] task {task}",
                status=TaskState.ERROR,
                corrupt=str(error),
            )

    def _readable(self, task: str) -> TaskItem:
        item = self._read(task) if is_number(task) else None
        if item is None:
            raise unknown_task(task, self._ids())
        if item.corrupt:
            raise Conflict(
                f"task {task} cannot be read: {item.corrupt}",
                hint=f"repair it in {self.folder}, or remove it with `crew rm {task}`",
            )
        return item

    def _change_meta(self, task: str, fields: dict[str, Any]) -> None:
        meta = files_format.changed_meta(self._text(task, ".meta.json"), fields)
        self._replace(task, ".meta.json", meta)

    def _change_extras(self, task: str, *, deps: tuple[str, ...], priority: int) -> None:
        """Change the lines of the front matter in place. Other fields go to the third file."""
        front = front_matter.parse(self._text(task, ".md"))
        if front.get("deps") is not None:
            front = front.with_value("deps", ", ".join(deps))
        if front.get("priority"):
            front = front.with_value("priority", str(priority))
        self._replace(task, ".md", front.text())
        extras = task_folder.read_text(self._path(task, ".crew.json"))
        if extras is None:
            text = files_format.new_extras(deps=deps, priority=priority)
        else:
            text = json_text.with_fields(extras, {"deps": list(deps), "priority": priority})
        self._replace(task, ".crew.json", text)

    def _replace(self, task: str, part: str, text: str) -> None:
        path = self._path(task, part)
        if task_folder.read_text(path) != text:
            task_folder.write_text(path, text)

    def _text(self, task: str, part: str) -> str:
        return task_folder.read_text(self._path(task, part)) or ""

    def _path(self, task: str, part: str) -> Path:
        return self.folder / f"{task}{part}"

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self.folder.is_dir():
            raise NotFound("there are no tasks yet", hint='create one: crew new --title "…"')
        with task_folder.locked(self.folder / ".lock", exclusive=True):
            task_folder.finish_batch(self._batch, self.folder)
            yield

    def _finish_batch(self) -> None:
        """Complete a killed `add_all`. A reader without write permission skips it."""
        if self._batch.exists():
            with suppress(CrewError), self._exclusive():
                pass

    def _signatures(self, scan: task_folder.FolderScan) -> dict[str, Signature]:
        found = task_folder.signatures(scan, _PARTS)
        return {task: signature for task, signature in found.items() if is_number(task)}

    def _ids(self) -> list[str]:
        self._finish_batch()
        scan = task_folder.scan_folder(self.folder, _PARTS)
        return sorted(self._signatures(scan), key=natural_order)

    def _next_id(self) -> int:
        """The next id of meta.json. The files are listed only if it cannot be right."""
        recorded = self._recorded_next_id()
        wanted = max(recorded or 1, self._last_given() + 1)
        if recorded is None or any(self._path(str(wanted), part).exists() for part in _PARTS):
            return max(wanted, self._first_unused())
        return wanted

    def _last_given(self) -> int:
        try:
            last = (task_folder.read_text(self._last_id) or "").strip()
        except ValueError:  # unreadable: meta.json and the files are enough
            return 0
        return int(last) if is_number(last) else 0

    def _recorded_next_id(self) -> int | None:
        try:
            fields = json_text.read_object(self._text("meta", ".json"))
        except ValueError:
            return None
        if fields.get("schema", files_format.SCHEMA) != files_format.SCHEMA:
            raise Conflict(
                f"the tasks in {self.folder} have schema {fields['schema']}",
                hint="a newer crew wrote them; install that one",
            )
        recorded = fields.get("next_id")
        return recorded if isinstance(recorded, int) and recorded > 0 else None

    def _first_unused(self) -> int:
        used = [
            int(task) for task in task_folder.task_names(self.folder, _PARTS) if is_number(task)
        ]
        return max(used, default=0) + 1

    def _keep_next_id(self, next_id: int) -> None:
        fields = {"schema": files_format.SCHEMA, "namespace": self.namespace, "next_id": next_id}
        text = self._text("meta", ".json")
        try:
            json_text.read_object(text)
        except ValueError:
            self._replace("meta", ".json", json_text.dump(fields))
        else:
            self._replace("meta", ".json", json_text.with_fields(text, fields))


def _validate(new: NewTask) -> NewTask:
    new = checked_task(new)
    if any(not is_number(task) for task in (*new.deps, new.parent or "1")):
        raise UsageError("ids of tasks are numbers here", hint="`crew list -a` shows them")
    return new


def _files_of(task: str, new: NewTask, *, at: float) -> Iterator[tuple[str, str]]:
    """Name and text of each file of a new task, in the order of writing."""
    if new.deps or new.terms or new.priority != DEFAULT_PRIORITY:
        extras = files_format.new_extras(deps=new.deps, priority=new.priority, terms=new.terms)
        yield f"{task}.crew.json", extras
    yield f"{task}.meta.json", files_format.new_meta(new, at=at)
    yield f"{task}.md", files_format.new_markdown(new)
