"""What a source looked like at one moment, kept so that the next look reads only what changed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crew.domain.task import TaskState
from crew.domain.task_item import Comment, TaskItem

Signature: TypeAlias = tuple[int, ...]
"""Change time and inode of each file of a task; another value means that it changed."""

_ITEM_FIELDS = tuple(TaskItem.__dataclass_fields__)
_COMMENT_FIELDS = tuple(Comment.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One task with the signature of the files it was read from."""

    signature: Signature
    item: TaskItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All tasks of a source, in the order of their ids."""

    entries: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def items(self) -> tuple[TaskItem, ...]:
        return tuple(entry.item for entry in self.entries.values())

    @property
    def by_id(self) -> dict[str, TaskItem]:
        return {task: entry.item for task, entry in self.entries.items()}

    def rows(self) -> list[list[Any]]:
        """Plain lists, numbers and strings, ready for JSON; `from_rows` reads them back."""
        return [[list(entry.signature), _item_row(entry.item)] for entry in self.entries.values()]

    @classmethod
    def from_rows(cls, rows: Iterable[list[Any]]) -> "Snapshot":
        entries = (
            Entry(signature=tuple(signature), item=_item_from_row(row)) for signature, row in rows
        )
        return cls(entries={entry.item.id: entry for entry in entries})


def rescan(
    previous: Snapshot | None,
    signatures: Mapping[str, Signature],
    read: Callable[[str], TaskItem | None],
) -> Snapshot:
    """The tasks of `signatures`; one whose signature is as before is taken over unread.

    `read` answers None for a task that vanished between the look and the reading.
    """
    known = previous.entries if previous else {}
    if previous and {task: entry.signature for task, entry in known.items()} == signatures:
        return previous
    entries: dict[str, Entry] = {}
    for task in sorted(signatures, key=natural_order):
        entry = known.get(task)
        if entry is None or entry.signature != signatures[task]:
            item = read(task)
            if item is None:
                continue
            entry = Entry(signature=signatures[task], item=item)
        entries[task] = entry
    return Snapshot(entries=entries)


def natural_order(task: str) -> tuple[bool, int, str]:
    """Numbers by their value and before words, so that 9 comes before 10."""
    is_number = task.isascii() and task.isdigit()
    return (not is_number, int(task) if is_number else 0, task)


def _item_row(item: TaskItem) -> list[Any]:
    row = [getattr(item, name) for name in _ITEM_FIELDS]
    row[_COMMENTS] = [[getattr(one, name) for name in _COMMENT_FIELDS] for one in item.comments]
    return row


def _item_from_row(row: list[Any]) -> TaskItem:
    fields = dict(zip(_ITEM_FIELDS, row, strict=True))
    fields["status"] = TaskState(fields["status"])
    fields["labels"] = tuple(fields["labels"])
    fields["deps"] = tuple(fields["deps"])
    fields["comments"] = tuple(
        Comment(**dict(zip(_COMMENT_FIELDS, one, strict=True))) for one in fields["comments"]
    )
    return TaskItem(**fields)


_COMMENTS = _ITEM_FIELDS.index("comments")
