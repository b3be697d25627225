"""A view for tests: driven by keys without a terminal, and read as lines of text."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from crew.front.tui.view_app import CrewView
from crew.front.tui.view_parts import PANES

PATIENCE_S = 60.0
WIDE, SMALL = (160, 50), (80, 24)


class Seat:
    """A person in front of the view."""

    def __init__(self, view: CrewView, pilot: "Pilot[None]") -> None:
        self.view = view
        self.pilot = pilot
        self.told: list[str] = []
        show = view.notify
        view.notify = lambda words, **more: (self.told.append(words), show(words, **more))[1]

    def lines(self) -> list[str]:
        strips = self.view.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def text(self) -> str:
        return "\n".join(self.lines())

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(*("space" if letter == " " else letter for letter in text))

    async def paste(self, text: str) -> None:
        """Put a text where the cursor is, which costs less than its letters."""
        self.view.post_message(events.Paste(text))
        await self.pilot.pause()

    async def until(self, is_so: "Callable[[], object]") -> None:
        """Wait until it is so; far longer than it should ever take."""
        give_up_at = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < give_up_at, self.text()
            await self.pilot.pause(0.02)

    async def hears(self, words: str) -> None:
        """Wait for a notice with these words; it counts once."""
        await self.until(lambda: any(words in one for one in self.told))
        self.told.clear()

    def paste_keys(self, text: str) -> None:
        """All keys of a text in one piece, as a terminal hands over what is typed fast."""
        for letter in text:
            key = "enter" if letter == "\r" else _character_to_key(letter)
            event = events.Key(key, letter)
            event.set_sender(self.view)
            self.view.post_message(event)

    async def look_at(self, pane: str) -> None:
        """Go into the chosen task, to this pane of it, whichever was looked at before."""
        await self.until(lambda: self.view.chosen_task)
        await self.press("l")
        for _ in PANES:
            if type(self.view.pane).__name__ == pane:
                break
            await self.press("v")
        await self.until(lambda: self.view.pane.task_id)
        assert type(self.view.pane).__name__ == pane

    async def sees(self, words: str) -> None:
        await self.until(lambda: words in self.text())


@asynccontextmanager
async def seated(
    root: Path, *, size: tuple[int, int] = WIDE, notifications: bool = True, **choices
):
    """A view on the crew of this repository that has read it once."""
    view = CrewView(root, **choices)
    async with view.run_test(size=size, notifications=notifications) as pilot:
        seat = Seat(view, pilot)
        await seat.until(lambda: view.picture.number or view.picture.items or view.picture.failure)
        yield seat


def sit(root: Path, story: "Callable[[Seat], Awaitable[None]]", **more) -> None:
    """Tell a story in front of the view, to its end."""

    async def told() -> None:
        async with seated(root, **more) as seat:
            await story(seat)

    asyncio.run(told())
