"""A stored snapshot of a source, so that the next scan reads only changed tasks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from typing import Any, TypeAlias

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import Comment, TaskItem
from crew.domain.rows.terms import read_terms

Signature: TypeAlias = str
"""Change time, inode and size of each file of a task. A different text means a change."""

Row: TypeAlias = dict[str, Any]
"""The fields of a task that differ from their defaults, as plain values."""


def _defaults(model: type[TaskItem | Comment]) -> dict[str, Any]:
    return {one.name: None if one.default is MISSING else one.default for one in fields(model)}


_DEFAULTS = {model: _defaults(model) for model in (TaskItem, Comment)}
_SHAPE = f"2 {list(_DEFAULTS.values())}"
"""Rows of another shape come from another version of crew, which may have other defaults."""


class Items(Mapping[str, TaskItem]):
    """Tasks by id. Each is built from its row on first use, since a list shows few of many."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self.rows = rows
        self._built: dict[str, TaskItem] = {}

    def __getitem__(self, task: str) -> TaskItem:
        item = self._built.get(task)
        if item is None:
            item = self._built[task] = _item(self.rows[task])
        return item

    def column(self, name: str) -> dict[str, Any]:
        """One field of every task in its JSON form, without building the tasks."""
        default = _DEFAULTS[TaskItem][name]
        return {task: row.get(name, default) for task, row in self.rows.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@frozen
class Snapshot:
    """All tasks of a source in the order of their ids. `stamp` identifies its scan."""

    stamp: str = ""
    signatures: Mapping[str, Signature] = field(default_factory=dict)
    by_id: Items = field(default_factory=lambda: Items({}))

    @property
    def items(self) -> tuple[TaskItem, ...]:
        return tuple(self.by_id.values())

    def rows(self) -> list[Any]:
        """Plain lists, numbers and strings for JSON. `from_rows` reads them back."""
        # One text for all signatures: there are many, and they are rarely read one by one.
        return [_SHAPE, self.stamp, "\n".join(self.signatures.values()), *self.by_id.rows.values()]

    @classmethod
    def from_rows(cls, rows: list[Any]) -> "Snapshot":
        """Empty if another version of crew wrote the rows. Then all tasks are read again."""
        if not rows or rows[0] != _SHAPE:
            return cls()
        _, stamp, signatures, *found = rows
        by_id = {row["id"]: row for row in found}
        return cls(
            stamp=stamp,
            signatures=dict(zip(by_id, signatures.split("\n"), strict=False)),
            by_id=Items(by_id),
        )


def rescan(
    previous: Snapshot | None,
    signatures: Mapping[str, Signature],
    read: Callable[[str], TaskItem | None],
    *,
    stamp: str = "",
) -> Snapshot:
    """The tasks of `signatures`. Tasks with an unchanged signature are not read again.

    `read` returns None for a task that was deleted after the scan.
    """
    before = previous or Snapshot()
    rows: dict[str, Row] = {}
    for task in sorted(signatures, key=natural_order):
        if before.signatures.get(task) == signatures[task]:
            rows[task] = before.by_id.rows[task]
        elif (item := read(task)) is not None:
            rows[task] = _row(item)
    return Snapshot(
        stamp=stamp, signatures={task: signatures[task] for task in rows}, by_id=Items(rows)
    )


def natural_order(task: str) -> tuple[bool, int, str]:
    """Sort numbers by value and before words, so that 9 comes before 10."""
    is_number = task.isascii() and task.isdigit()
    return (not is_number, int(task) if is_number else 0, task)


def _row(value: TaskItem | Comment) -> Row:
    row = {
        name: field_value
        for name, default in _DEFAULTS[type(value)].items()
        if (field_value := getattr(value, name)) != default
    }
    if "comments" in row:
        row["comments"] = [_row(comment) for comment in row["comments"]]
    return row


def _item(row: Row) -> TaskItem:
    if row.keys().isdisjoint(_CONVERSIONS):
        return TaskItem(**row)
    anew = {name: make(row[name]) for name, make in _CONVERSIONS.items() if name in row}
    return TaskItem(**row | anew)


def _comments(rows: list[Row]) -> tuple[Comment, ...]:
    return tuple(Comment(**row) for row in rows)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "status": TaskState,
    "labels": tuple,
    "deps": tuple,
    "terms": lambda pairs: read_terms(dict(pairs)),
    "comments": _comments,
}
"""Conversions for the fields whose types JSON does not have."""
