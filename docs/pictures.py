"""Draws the pictures of the terminal view: every page and pane, and `crew demo` as it goes on.

`python docs/pictures.py` writes them from the sample crew of the tests and from the record of a
demo, so that they are the same on every machine. `--record` watches a demo and keeps its facts.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent / "tests"), str(DOCS)]

from demo_record import RECORD, frames, record  # noqa: E402
from picture import moving, screen_of, still  # noqa: E402

from front.tui.sample_crew import make_sample, sample_time  # noqa: E402
from front.tui.seats import seated  # noqa: E402
from front.tui.snapshots import calm, in_utc, scenes  # noqa: E402

FOLDER = DOCS / "pictures"
SIZE = (120, 32)
LIGHT = "page-tasks"
"""The scene that is drawn in light colours too."""


def main() -> None:
    in_utc()
    FOLDER.mkdir(exist_ok=True)
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(record(), ensure_ascii=False, indent=0) + "\n")
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    for name, drawn in _pages_and_panes().items():
        (FOLDER / f"{name}.svg").write_text(drawn)
    times = frames(json.loads(RECORD.read_text()))
    drawn = moving(times, seconds=times[-1][0] + 4.0, rest=times[len(times) // 2][0])
    (DOCS / "demo.svg").write_text(drawn)


def _pages_and_panes() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder, sample_time():
        root = Path(folder) / "lamps"
        make_sample(root)
        drawn = {name: asyncio.run(_drawn(root, name)) for name in scenes()}
        return {**drawn, f"{LIGHT}-light": asyncio.run(_drawn(root, LIGHT, is_dark=False))}


async def _drawn(root: Path, name: str, *, is_dark: bool = True) -> str:
    async with seated(root, size=SIZE, is_dark=is_dark) as seat:
        if name.startswith("page-tasks"):
            await seat.until(lambda: seat.view.page.move_to_key("3"))
        await scenes()[name](seat)
        await calm(seat)
        return still(screen_of(seat.view.screen._compositor.render_strips()))  # noqa: SLF001


if __name__ == "__main__":
    main()
