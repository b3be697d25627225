"""Snapshots of the view as text: the screen, then the style of each run of cells.

`python -m front.tui.snapshots` in the folder `tests` writes them all anew.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment

from crew.front.tui.view_app import CrewView
from crew.front.tui.view_parts import PAGES, PANES
from front.tui.sample_crew import make_sample, sample_time
from front.tui.seats import SMALL, WIDE, Seat, seated

FOLDER = Path(__file__).with_name("snapshots")
SIZES = {"80x24": SMALL, "160x50": WIDE}
TASK = "3"
"""The task that the panes show: it has a log, a branch, comments and a red gate."""

CALM = 4
"""After so many looks at the same screen, nothing more is on its way."""

Step = Callable[[Seat], Awaitable[None]]


def scenes() -> Mapping[str, Step]:
    """What is shown in each snapshot: every page and every pane that the view has."""
    pages = {f"page-{page.title.lower().replace(' ', '-')}": _page(page) for page in PAGES}
    panes = {f"pane-{pane.title.lower().replace(' ', '-')}": _pane(pane) for pane in PANES}
    return {**pages, **panes}


def _page(page: type) -> Step:
    async def show(seat: Seat) -> None:
        seat.view.show_page(page.__name__)

    return show


def _pane(pane: type) -> Step:
    async def show(seat: Seat) -> None:
        await seat.until(lambda: seat.view.page.move_to_key(TASK))
        await seat.until(lambda: seat.view.chosen_task == TASK)
        seat.view.action_look_at_task()
        await seat.pilot.pause()
        seat.view.show_pane(pane.__name__)

    return show


async def calm(seat: Seat) -> str:
    """The snapshot once the screen no longer changes."""
    seen, same = "", 0
    give_up_at = time.monotonic() + 60
    while same < CALM:
        await seat.pilot.pause(0.05)
        now = snapshot(seat.view)
        same = same + 1 if now == seen else 0
        seen = now
        assert time.monotonic() < give_up_at, seen
    return seen


def snapshot(view: CrewView) -> str:
    strips = view.screen._compositor.render_strips()
    text = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    names: dict[str, str] = {}
    styles = [" ".join(_runs(strip, names)) for strip in strips]
    legend = [f"{name} {style}" for style, name in names.items()]
    return "\n".join([*text, "", "styles", *legend, "", *styles, ""])


def _runs(strip: "list[Segment]", names: dict[str, str]) -> Iterator[str]:
    """Each run of cells with one style: a letter for the style and how many cells it has."""
    runs: list[tuple[str, int]] = []
    for segment in strip:
        style = " ".join(str(segment.style).split()) if segment.style else "none"
        style = style.partition(" meta")[0]
        cells = cell_len(segment.text)
        if runs and runs[-1][0] == style:
            runs[-1] = (style, runs[-1][1] + cells)
        else:
            runs.append((style, cells))
    for style, cells in runs:
        yield f"{names.setdefault(style, _letter(len(names)))}{cells}"


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"z{chr(ord('a') + number - 26)}"


def taken(root: Path, *, size: tuple[int, int], names: "list[str]") -> dict[str, str]:
    """The snapshots of these scenes, each in a view of its own."""
    found = {}

    async def take(name: str) -> str:
        async with seated(root, size=size, is_dark=True) as seat:
            await scenes()[name](seat)
            return await calm(seat)

    with sample_time():
        for name in names:
            found[name] = asyncio.run(take(name))
    return found


def in_utc() -> None:
    """The same time and the same person on every machine."""
    os.environ.update(TZ="UTC", LOGNAME="ada")
    time.tzset()


def main() -> None:
    in_utc()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "lamps"
        with sample_time():
            make_sample(root)
        for size, cells in SIZES.items():
            for name, text in taken(root, size=cells, names=list(scenes())).items():
                (FOLDER / f"{name}-{size}.txt").write_text(text)


if __name__ == "__main__":
    main()
