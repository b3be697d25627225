"""Draws screens of the terminal view as SVG: one that stands still, or many that move.

Each run of cells has its exact width, so that any monospaced font will do. A moving picture has
every different line once, and tells when it is visible.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

CELL, LINE, SIZE = 8.43, 18, 14
MARGIN, HEAD = 12, 34
BAR = "│"
NO_BREAK = "\u00a0"
"""A browser joins ordinary blanks to one."""

FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


class Run(NamedTuple):
    """Cells of one style, from a column on."""

    at: int
    text: str
    ink: str
    ground: str
    is_bold: bool


Row = tuple[Run, ...]
Screen = tuple[Row, ...]


def screen_of(strips: "Iterable[Iterable[Segment]]") -> Screen:
    return tuple(tuple(_runs(strip)) for strip in strips)


def _runs(strip: "Iterable[Segment]") -> Iterator[Run]:
    at, last = 0, None
    for segment in strip:
        style = segment.style or Style()
        ink, ground = _colours(style)
        run = Run(at, segment.text, ink, ground, bool(style.bold))
        at += cell_len(segment.text)
        if last is not None and last[2:] == run[2:]:
            last = last._replace(text=last.text + run.text)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


def _colours(style: Style) -> tuple[str, str]:
    ink, ground = _hex(style.color, "#e0e0e0"), _hex(style.bgcolor, "#121212")
    return (ground, ink) if style.reverse else (ink, ground)


def _hex(colour: Color | None, otherwise: str) -> str:
    return otherwise if colour is None or colour.is_default else colour.get_truecolor().hex


def still(screen: Screen) -> str:
    """A picture of one screen."""
    ground = _ground(screen)
    rows = "\n".join(filter(None, (_row(n, row, ground) for n, row in enumerate(screen))))
    return _framed(screen, rows)


def moving(frames: Sequence[tuple[float, Screen]], *, seconds: float, rest: float) -> str:
    """A picture that shows each screen from its time on, for all of these seconds, in a loop.

    A program that cannot move pictures shows the screen at the time `rest`.
    """
    parts: list[str] = []
    ground = _ground(frames[0][1])
    for number in range(len(frames[0][1])):
        shown: dict[Row, list[tuple[float, float]]] = {}
        ends = [*(at for at, _ in frames[1:]), seconds]
        for (at, screen), end in zip(frames, ends, strict=True):
            _extend(shown.setdefault(screen[number], []), at, end)
        for row, times in shown.items():
            if drawn := _row(number, row, ground):
                parts.append(_timed(drawn, times, seconds, rest))
    return _framed(frames[0][1], "\n".join(parts))


def _extend(times: list[tuple[float, float]], at: float, end: float) -> None:
    if times and times[-1][1] == at:
        times[-1] = (times[-1][0], end)
    else:
        times.append((at, end))


def _timed(drawn: str, times: list[tuple[float, float]], seconds: float, rest: float) -> str:
    """The line, visible between these times alone."""
    if times == [(0.0, seconds)]:
        return drawn
    changes = [(0.0, "hidden")]
    for at, end in times:
        changes += [(at, "visible"), (end, "hidden")]
    if changes[1][0] == 0.0:
        del changes[0]
    moments = ";".join(f"{min(1.0, at / seconds):.4g}" for at, _ in changes)
    values = ";".join(value for _, value in changes)
    first = "visible" if any(at <= rest < end for at, end in times) else "hidden"
    return (
        f'<g visibility="{first}"><animate attributeName="visibility" calcMode="discrete" '
        f'dur="{seconds:g}s" repeatCount="indefinite" keyTimes="{moments}" values="{values}"/>'
        f"{drawn}</g>"
    )


def _ground(screen: Screen) -> str:
    """The background that most cells have, which is drawn once."""
    cells: dict[str, int] = {}
    for row in screen:
        for run in row:
            cells[run.ground] = cells.get(run.ground, 0) + len(run.text)
    return max(cells, key=lambda colour: cells[colour])


def _framed(screen: Screen, inside: str) -> str:
    columns = max((run.at + cell_len(run.text) for row in screen for run in row), default=80)
    width, height = 2 * MARGIN + columns * CELL, HEAD + len(screen) * LINE + MARGIN
    dots = "".join(
        f'<circle cx="{20 + 18 * number}" cy="17" r="6" fill="{colour}"/>'
        for number, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="{FONTS}" font-size="{SIZE}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{_ground(screen)}"/>{dots}\n'
        f"{inside}\n</svg>\n"
    )


def _row(number: int, row: Row, ground: str) -> str:
    top = HEAD + number * LINE
    grounds = "".join(
        f'<rect x="{_x(at)}" y="{top}" width="{(end - at) * CELL:.1f}" '
        f'height="{LINE}" fill="{colour}"/>'
        for at, end, colour in _grounds(row)
        if colour != ground
    )
    bars = "".join(_bar(run, top) for run in row if run.text == BAR)
    words = "".join(_words(run) for run in row if run.text.strip() and run.text != BAR)
    return grounds + bars + (f'<text y="{top + 13}">{words}</text>' if words else "")


def _grounds(row: Row) -> list[tuple[int, int, str]]:
    """The backgrounds of a line from column to column; neighbours of one colour are one."""
    found: list[tuple[int, int, str]] = []
    for run in row:
        at, end = run.at, run.at + cell_len(run.text)
        if found and found[-1][2] == run.ground:
            at = found.pop()[0]
        found.append((at, end, run.ground))
    return found


def _bar(run: Run, top: int) -> str:
    """A border from line to line, which a letter would not reach."""
    middle = MARGIN + (run.at + 0.5) * CELL
    return f'<rect x="{middle:.1f}" y="{top}" width="1" height="{LINE}" fill="{run.ink}"/>'


def _words(run: Run) -> str:
    text = run.text.rstrip()
    start = len(text) - len(text.lstrip())
    text, at = text.lstrip().replace(" ", NO_BREAK), run.at + start
    bold = ' font-weight="bold"' if run.is_bold else ""
    width = f"{cell_len(text) * CELL:.1f}"
    return f'<tspan x="{_x(at)}" textLength="{width}" fill="{run.ink}"{bold}>{escape(text)}</tspan>'


def _x(column: int) -> str:
    return f"{MARGIN + column * CELL:.1f}"
