"""The change of a task: by file, in one or two columns, with comments on its lines."""

import time
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import Task
from crew.front.tui.diff.diff_colours import CodeColours
from crew.front.tui.diff.diff_lines import DiffPainter
from crew.front.tui.diff.diff_rows import DiffRow, anchor_at, diff_rows
from crew.front.tui.diff.diff_text import FileDiff, parse_diff
from crew.front.tui.diff.line_comments import (
    LONGEST_MESSAGE,
    CommentBook,
    message_of,
    road_for,
)
from crew.front.tui.live.picture import News
from crew.front.tui.panes.pane import Pane, Unread
from crew.front.tui.widgets.line_list import LineList, ShownLine
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.by_hand.change_text import ChangePlace, change_text, find_change
from crew.workplace import Workplace

TWO_COLUMNS_FROM = 100
LOOK_AGAIN_S = 5.0
"""How often a task in progress is asked for new commits."""


NOTHING = "no file differs from the target"
NOT_BEGUN = "nothing is committed yet: s starts the task, the log shows what its agent does"


@frozen
class ReadChange:
    """The change as it was read; without a place there is none yet."""

    place: ChangePlace | None = None
    files: tuple[FileDiff, ...] = ()
    is_all: bool = True
    why_empty: str = ""


class DiffPane(Pane):
    """Shows what the task has changed against its target."""

    title: ClassVar[str] = "Diff"
    keys: ClassVar[str] = "] [ file  b columns  c comment  C send  D delete"
    has_cursor: ClassVar[bool] = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "file(1)", "next file", show=False),
        Binding("left_square_bracket", "file(-1)", "previous file", show=False),
        Binding("b", "columns", "one or two columns", show=False),
        Binding("r", "read_again", "read again", show=False),
        Binding("c", "comment", "comment on the line", show=False),
        Binding("C", "send", "send the comments", show=False),
        Binding("D", "delete", "delete the comment", show=False),
        Binding("enter", "choose", "comment, or go to the file", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.comments = CommentBook()
        self._change = ReadChange()
        self._painter = DiffPainter(files=(), colours=CodeColours())
        self._wants_two_columns = False
        self._is_due = self._is_reading = False
        self._read_at = 0.0

    # Reading

    def fill(self) -> None:
        self._change = ReadChange()
        self.retitle()
        self._is_due = True
        self.say("reading the change …" if self.task_id else "no task")

    def take(self, news: News) -> None:
        mine = (self.task_id, f"{self.task_id}.")
        about = (fact for _, fact in news.facts if fact.kind in {"task", "run"})
        if news.fresh or any(f.subject == mine[0] or f.subject.startswith(mine[1]) for f in about):
            self._is_due = True

    def tick(self) -> None:
        is_open = self.task_id in self.picture.items
        is_live = is_open and self.picture.status_of(self.task_id) == "in_progress"
        if is_live and time.monotonic() > self._read_at + LOOK_AGAIN_S:
            self._is_due = True
        if self._is_due and self.is_settled and not self._is_reading:
            self._is_due, self._is_reading = False, True
            self.run_worker(self._read(self.task_id), exit_on_error=False)

    def action_read_again(self) -> None:
        self._change = replace(self._change, place=None)
        self._is_due = True

    async def _read(self, task: str) -> None:
        known, row = self._change, self.picture.world.tasks.get(task)
        try:
            found = await self.read(lambda workplace: _read_change(workplace, task, row, known))
        finally:
            self._is_reading = False
            self._read_at = time.monotonic()
        if task != self.task_id:
            self._is_due = True
        elif isinstance(found, Unread):
            self._change = ReadChange(why_empty=found.why)
            self._show_change()
        elif found != known:
            self._change = found
            self._show_change()

    def _show_change(self) -> None:
        change = self._change
        in_two = self._wants_two_columns and self.line_width >= TWO_COLUMNS_FROM
        self._painter = DiffPainter(
            files=change.files, colours=CodeColours(), in_two_columns=in_two
        )
        comments = self.comments.of(self.task_id)
        rows = diff_rows(change.files, comments, in_two_columns=in_two, width=self.line_width)
        if not change.files:
            rows.append(DiffRow("note", text=change.why_empty or NOTHING))
        elif not change.is_all:
            rows.append(DiffRow("note", text=f"more is not shown: crew diff {self.task_id}"))
        self.show(rows, self._line_of, key_of=lambda row: row.key)
        self.retitle()

    def _line_of(self, row: DiffRow, width: int) -> ShownLine:
        return self._painter.line(row, width)

    def on_resize(self) -> None:
        is_shaped = self._wants_two_columns or self.comments.of(self.task_id)
        if is_shaped and self._change.files:
            self._show_change()

    def remarks(self) -> list[Span]:
        files = self._change.files
        spans: list[Span] = []
        if files:
            added, removed = sum(f.added for f in files), sum(f.removed for f in files)
            spans = [(f"  +{added}", "good"), (f" -{removed}", "bad")]
        if count := len(self.comments.of(self.task_id)):
            spans.append((f"  {count} comment{'s' if count > 1 else ''}", "warn"))
        return spans

    # Moving

    def action_file(self, by: int) -> None:
        heads = [n for n, row in enumerate(self.rows) if self._kind(row) == "file"]
        if by > 0:
            to = next((head for head in heads if head > self.cursor), None)
        else:
            to = next((head for head in reversed(heads) if head < self.cursor), None)
        if to is not None:
            self._go_to(to)

    def _go_to(self, index: int) -> None:
        self.move_to(index)
        self.scroll_to(y=index, animate=False)

    @staticmethod
    def _kind(row: object) -> str:
        return row.kind if isinstance(row, DiffRow) else ""

    def action_columns(self) -> None:
        self._wants_two_columns = not self._wants_two_columns
        if self._wants_two_columns and self.line_width < TWO_COLUMNS_FROM:
            self._wants_two_columns = False
            self.view.notify(
                f"two columns need a width of {TWO_COLUMNS_FROM}, the pane has {self.line_width}: "
                "z gives the pane the whole width",
                severity="warning",
            )
            return
        if self._change.files:
            self._show_change()

    # Comments

    def action_choose(self) -> None:
        row = self.cursor_row
        if not isinstance(row, DiffRow):
            return
        if row.kind == "counter":
            self.action_send()
        elif row.kind == "entry":
            heads = (n for n, one in enumerate(self.rows) if one.kind == "file")
            self._go_to(next(n for n in heads if self.rows[n].place[0] == row.place[0]))
        else:
            self.action_comment()

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        message.stop()
        self.action_choose()

    def action_comment(self) -> None:
        self.run_worker(self._comment(), exit_on_error=False)

    async def _comment(self) -> None:
        task, row = self.task_id, self.cursor_row
        anchor = anchor_at(self._change.files, row) if isinstance(row, DiffRow) else None
        if isinstance(row, DiffRow) and row.kind == "comment":
            anchor = next(
                (c.anchor for c in self.comments.of(task) if c.number == row.comment), None
            )
        if anchor is None:
            self.view.notify("put the cursor on a line of code to comment on it")
            return
        known = self.comments.at(task, anchor)
        text = await self.view.write(
            f"{safe(anchor.path)}, line {anchor.line}: {safe(anchor.code).strip()}",
            text=known.text if known else "",
            several_lines=True,
        )
        if text is not None and text.strip():
            self.comments.write(task, anchor, text.strip())
            self._comments_changed(task)

    def action_delete(self) -> None:
        self.run_worker(self._delete(), exit_on_error=False)

    async def _delete(self) -> None:
        task, row = self.task_id, self.cursor_row
        if not isinstance(row, DiffRow):
            return
        anchor = anchor_at(self._change.files, row)
        known = self.comments.at(task, anchor) if anchor else None
        number = known.number if known else row.comment
        if number and await self.view.confirm("Delete this comment?"):
            self.comments.forget(task, [number])
            self._comments_changed(task)

    def action_send(self) -> None:
        self.run_worker(self._send(), exit_on_error=False)

    async def _send(self) -> None:
        """Send all comments as one message; they stay here if it is refused."""
        task, comments = self.task_id, self.comments.of(self.task_id)
        if not comments:
            self.view.notify("no comments yet: c on a line of the diff writes one")
            return
        status = self.picture.status_of(task) if task in self.picture.items else ""
        road, message = road_for(task, status, len(comments)), message_of(comments)
        if road is None:
            self.view.notify(
                f"task {task} is {status or 'gone'}, so no agent will read comments on it: "
                "n makes a task for what is left to do",
                severity="warning",
                markup=False,
            )
        elif len(message) > LONGEST_MESSAGE:
            self.view.notify(
                f"the comments have {len(message)} characters together, and {LONGEST_MESSAGE} can "
                "be sent: D deletes one",
                severity="warning",
            )
        elif await self.view.confirm(road.question):
            reply = await self.view.command(*road.command, stdin=message)
            if not reply.is_refused:
                self.comments.forget(task, [one.number for one in comments])
                self._comments_changed(task)

    def _comments_changed(self, task: str) -> None:
        if task == self.task_id:
            self._show_change()


def _read_change(
    workplace: Workplace, task: str, row: Task | None, known: ReadChange
) -> ReadChange:
    """The change now; the known one if its commits are the same."""
    place = find_change(workplace, task, row=row, known=known.place)
    if place is None:
        return ReadChange(why_empty=NOT_BEGUN)
    if place == known.place:
        return known
    found = change_text(workplace, place)
    return ReadChange(place=place, files=parse_diff(found.text), is_all=found.is_all)
