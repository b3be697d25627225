"""Comments on lines of a diff: collected while a person reads, and sent as one message."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.front.tui.diff.diff_text import DiffLine
from crew.front.tui.widgets.safe_text import safe

LONGEST_MESSAGE = 50_000
"""The most characters that a comment of a task keeps; a longer message would be cut."""

LONGEST_CODE = 400

Side = Literal["new", "old"]


@frozen
class Anchor:
    """The line that a comment is about: of the new text, or a removed one of the old text."""

    path: str
    side: Side
    line: int
    code: str


@frozen
class LineComment:
    """What a person wrote about a line; `number` tells the comments of a task apart."""

    number: int
    anchor: Anchor
    text: str


def anchor_of(path: str, line: DiffLine) -> Anchor | None:
    """Where a comment on this line belongs; None for a line that is in no file."""
    if line.kind == "note":
        return None
    side: Side = "old" if line.kind == "removed" else "new"
    return Anchor(
        path=path, side=side, line=line.old or 0 if side == "old" else line.new, code=line.text
    )


class CommentBook:
    """The comments of all tasks that were not sent yet; it lasts as long as the view."""

    def __init__(self) -> None:
        self._by_task: dict[str, tuple[LineComment, ...]] = {}
        self._last = 0

    def of(self, task: str) -> tuple[LineComment, ...]:
        return self._by_task.get(task, ())

    def at(self, task: str, anchor: Anchor) -> LineComment | None:
        return next((one for one in self.of(task) if one.anchor == anchor), None)

    def write(self, task: str, anchor: Anchor, text: str) -> None:
        """Keep a comment; an earlier one on the same line is replaced."""
        known = self.at(task, anchor)
        if known is not None:
            changed = replace(known, text=text)
            self._by_task[task] = tuple(changed if one is known else one for one in self.of(task))
            return
        self._last += 1
        new = LineComment(number=self._last, anchor=anchor, text=text)
        self._by_task[task] = (*self.of(task), new)

    def forget(self, task: str, numbers: Iterable[int]) -> None:
        gone = set(numbers)
        self._by_task[task] = tuple(one for one in self.of(task) if one.number not in gone)


def message_of(comments: Iterable[LineComment]) -> str:
    """All comments as one text: each with its file, line and quoted code."""
    in_order = sorted(comments, key=lambda one: (one.anchor.path, one.anchor.line, one.number))
    count = "One comment" if len(in_order) == 1 else f"{len(in_order)} comments"
    parts = [f"{count} on the change:", *map(_part, in_order)]
    return "\n\n".join(parts)


def _part(comment: LineComment) -> str:
    at = comment.anchor
    where = f"{safe(at.path)}, line {at.line}" + (" (removed)" if at.side == "old" else "")
    return f"{where}:\n> {safe(at.code[:LONGEST_CODE]).rstrip()}\n{comment.text.strip()}"


@frozen
class Road:
    """How the comments of a task are sent: the command, and what it will do."""

    command: tuple[str, ...]
    question: str


def road_for(task: str, status: str, count: int) -> Road | None:
    """To the agent at work, or with the task back to it; None if no agent will read them."""
    words = "1 comment" if count == 1 else f"{count} comments"
    if status == TaskState.DONE:
        return Road(
            command=("comment", "--request-changes", "--", task, "-"),
            question=f"Request changes: send task {task} back with {words}?",
        )
    if status in {TaskState.IN_PROGRESS, TaskState.TODO, TaskState.ERROR}:
        receiver = "that works on it" if status == TaskState.IN_PROGRESS else "that starts it next"
        return Road(
            command=("send", "--", task, "-"),
            question=f"Send {words} on task {task} to the agent {receiver}?",
        )
    return None
