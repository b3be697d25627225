"""Draws the rows of a diff for a width: numbers, signs, code, in one or two columns."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from crew.domain.kernel.frozen import frozen
from crew.front.tui.diff.diff_colours import CodeColours
from crew.front.tui.diff.diff_rows import DiffRow
from crew.front.tui.diff.diff_text import DiffLine, FileDiff
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import Span, Spans, safe

_SIGNS = {"added": "+", "removed": "-", "context": " ", "note": "\\"}
_GROUNDS = {"added": "added", "removed": "removed"}
_SYMBOLS = {"added": "+", "deleted": "-", "renamed": "→", "copied": "→", "changed": "~"}
_COMMENT = "  ▌ "


@frozen
class DiffPainter:
    """Draws rows of these files; `colours` keeps what is costly."""

    files: Sequence[FileDiff]
    colours: CodeColours
    in_two_columns: bool = False

    def line(self, row: DiffRow, width: int) -> ShownLine:
        return ShownLine(spans=self._spans(row, width), key=row.key)

    def _spans(self, row: DiffRow, width: int) -> Spans:
        match row.kind:
            case "counter":
                words = "1 comment" if row.text == "1" else f"{row.text} comments"
                return ((f" {words} not sent yet", "warn bold"), ("   C or enter sends", "muted"))
            case "comment":
                return ((_COMMENT, "warn bold"), (safe(row.text), "warn"))
            case "entry" | "file":
                return _file_spans(self.files[row.place[0]], is_entry=row.kind == "entry")
            case "hunk":
                return ((f"  ⋯ {safe(row.text)}", "note"),)
            case "line" if self.in_two_columns:
                return self._both(row, width)
            case "line" if row.left is not None:
                numbers = f"{row.left.old or '':>5} {row.left.new or '':>5} "
                return self._code(row.left, row.place, numbers, width)
            case _:
                return ((f"  {safe(row.text)}", "muted"),)

    def _both(self, row: DiffRow, width: int) -> Spans:
        half = (width - 1) // 2
        left = self._side(row.left, row.place, half, is_old=True)
        right_place = (row.place[0], row.place[1], row.right_place)
        right = self._side(row.right, right_place, width - 1 - half, is_old=False)
        return (*left, ("│", "muted"), *right)

    def _side(
        self, line: DiffLine | None, place: tuple[int, int, int], width: int, *, is_old: bool
    ) -> Spans:
        if line is None:
            return ((" " * width, ""),)
        number = line.old if is_old else line.new
        return self._code(line, place, f"{number or '':>5} ", width)

    def _code(self, line: DiffLine, place: tuple[int, int, int], numbers: str, width: int) -> Spans:
        ground = _GROUNDS.get(line.kind, "")
        head = [(numbers, "muted"), (f"{_SIGNS[line.kind]} ", f"bold {ground}".strip())]
        if line.kind == "note":
            return fitted([*head, (line.text, "muted")], width, "")
        file, hunk, at = place
        lines = self.files[file].hunks[hunk].lines
        code = self.colours.spans(self.files[file].path, hunk, lines, at)
        return fitted(
            [*head, *((text, f"{style} {ground}".strip()) for text, style in code)], width, ground
        )


def _file_spans(file: FileDiff, *, is_entry: bool) -> Spans:
    name = f"{safe(file.old_path)} → {safe(file.path)}" if file.old_path else safe(file.path)
    symbol = f" {_SYMBOLS.get(file.what, '~')} "
    counts: list[Span] = [(f"  +{file.added}", "good"), (f" -{file.removed}", "bad")]
    if file.is_binary:
        counts = [("  binary", "note")]
    words = [] if file.what == "changed" else [(f"  {file.what}", "muted")]
    style = "" if is_entry else "bold"
    return ((symbol, "busy"), (name, style), *counts, *words)


def fitted(spans: Sequence[Span], width: int, ground: str) -> list[Span]:
    """The spans in exactly this many cells; the rest of the width has the ground's colour."""
    made: list[Span] = []
    left = width
    for text, style in spans:
        size = cell_len(text)
        if size > left:
            made.append((fit(text, left) if left else "", style))
            return made
        made.append((text, style))
        left -= size
    made.append((set_cell_size("", left), ground))
    return made
