"""The rows of a diff on the screen: its files, their lines in one or two columns, comments."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from crew.front.tui.diff.diff_text import DiffLine, FileDiff, Hunk
from crew.front.tui.diff.line_comments import Anchor, LineComment, anchor_of
from crew.front.tui.widgets.safe_text import safe
from crew.front.tui.widgets.wrap import wrapped

COMMENT_INDENT = 6

RowKind = Literal["counter", "entry", "blank", "file", "note", "hunk", "line", "comment"]


class DiffRow(NamedTuple):
    """One row; `place` is its file, hunk and line. In two columns `right` is the second line."""

    kind: RowKind
    place: tuple[int, int, int] = (-1, -1, -1)
    left: DiffLine | None = None
    right: DiffLine | None = None
    text: str = ""
    comment: int = 0
    right_place: int = -1

    @property
    def key(self) -> str:
        """What stays the same when comments are added above the row."""
        if self.kind == "comment":
            return f"comment {self.comment} {self.text}"
        numbers = (one and (one.old, one.new) for one in (self.left, self.right))
        return f"{self.kind} {self.place} {list(numbers)} {self.text}"


class _Comments:
    """The comments by their place, and those whose place is gone."""

    def __init__(self, comments: Sequence[LineComment], width: int) -> None:
        self._by_anchor = {one.anchor: one for one in comments}
        self._width = width
        self.paths = {one.anchor.path for one in comments}

    def taken(self, path: str, lines: Iterable[DiffLine | None]) -> Iterator[DiffRow]:
        """The rows of the comments on these lines, each once."""
        for line in lines:
            anchor = anchor_of(path, line) if line is not None else None
            comment = self._by_anchor.pop(anchor, None) if anchor else None
            if comment is not None:
                yield from self.rows_of(comment)

    def rows_of(self, comment: LineComment) -> Iterator[DiffRow]:
        for line in comment.text.splitlines() or [""]:
            for part in wrapped(((safe(line), ""),), self._width):
                text = "".join(piece for piece, _ in part)
                yield DiffRow("comment", text=text, comment=comment.number)

    @property
    def left(self) -> list[LineComment]:
        return list(self._by_anchor.values())


def diff_rows(
    files: Sequence[FileDiff],
    comments: Sequence[LineComment],
    *,
    in_two_columns: bool,
    width: int = 80,
) -> list[DiffRow]:
    """All rows: the counter of comments, the list of files, and each file with its lines.

    Only comments are wrapped to the width; lines of code are cut where they are drawn.
    """
    book = _Comments(comments, max(20, width - COMMENT_INDENT))
    body = list(_body(files, book, in_two_columns=in_two_columns))
    rows: list[DiffRow] = []
    if comments:
        rows.append(DiffRow("counter", text=str(len(comments))))
    for lost in book.left:
        words = f"{lost.anchor.path}, line {lost.anchor.line}: no longer in the diff"
        rows += [DiffRow("note", text=words), *book.rows_of(lost)]
    rows += [DiffRow("entry", (number, -1, -1)) for number in range(len(files))]
    return [*rows, *body]


def _body(files: Sequence[FileDiff], book: _Comments, *, in_two_columns: bool) -> Iterator[DiffRow]:
    for number, file in enumerate(files):
        yield DiffRow("blank", (number, -1, -1))
        yield DiffRow("file", (number, -1, -1))
        for note in _file_notes(file):
            yield DiffRow("note", (number, -1, -1), text=note)
        has_comments = file.path in book.paths
        for place, hunk in enumerate(file.hunks):
            yield DiffRow("hunk", (number, place, -1), text=hunk.heading)
            paired = _pairs(hunk) if in_two_columns else _single(hunk)
            for left_at, right_at in paired:
                row = _line_row(hunk, (number, place), left_at, right_at)
                yield row
                if has_comments:
                    yield from book.taken(file.path, (row.left, row.right))


def _file_notes(file: FileDiff) -> Iterator[str]:
    yield from file.notes
    if file.is_binary:
        yield "a binary or very large file: no lines to show"
    elif not file.hunks and not file.notes:
        yield "no line differs"


def _line_row(hunk: Hunk, place: tuple[int, int], left: int, right: int) -> DiffRow:
    return DiffRow(
        "line",
        (*place, left if left >= 0 else right),
        left=hunk.lines[left] if left >= 0 else None,
        right=hunk.lines[right] if right >= 0 else None,
        right_place=right,
    )


def _single(hunk: Hunk) -> Iterator[tuple[int, int]]:
    return ((number, -1) for number in range(len(hunk.lines)))


def _pairs(hunk: Hunk) -> Iterator[tuple[int, int]]:
    """The lines of both columns: removed ones beside the added ones that follow them."""
    removed: list[int] = []
    added: list[int] = []
    for number, line in enumerate(hunk.lines):
        if line.kind == "removed" and not added:
            removed.append(number)
        elif line.kind == "added":
            added.append(number)
        elif line.kind == "note" and (removed or added):
            (added or removed).append(number)
        else:
            yield from _beside(removed, added)
            removed, added = ([number], []) if line.kind == "removed" else ([], [])
            if line.kind != "removed":
                yield number, number
    yield from _beside(removed, added)


def _beside(removed: list[int], added: list[int]) -> Iterator[tuple[int, int]]:
    for number in range(max(len(removed), len(added))):
        yield (
            removed[number] if number < len(removed) else -1,
            added[number] if number < len(added) else -1,
        )


def anchor_at(files: Sequence[FileDiff], row: DiffRow) -> Anchor | None:
    """Where a comment on this row belongs: the new line of a pair, or else the old one."""
    for line in (row.right, row.left):
        if row.kind == "line" and line is not None:
            anchor = anchor_of(files[row.place[0]].path, line)
            if anchor is not None:
                return anchor
    return None
