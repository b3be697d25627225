"""Reads a crew in a thread of its own, so that no key waits for the disk."""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from crew.front.tui.live.crew_reader import CrewReader
from crew.front.tui.live.picture import News

LOOK_EVERY_S = 0.07


class ReaderThread:
    """Hands over news as soon as they are recorded; `hand_over` is called in this thread."""

    def __init__(
        self, root: Path, hand_over: Callable[[News], None], *, every_s: float = LOOK_EVERY_S
    ) -> None:
        self._root = root
        self._hand_over = hand_over
        self._every_s = every_s
        self._woken = threading.Event()
        self._stopped = False
        self._wishes: deque[Callable[[CrewReader], None]] = deque()
        self._thread = threading.Thread(target=self._read, name="crew-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def expect_tasks(self) -> None:
        """Look at the task files at once: a command of this view may have changed them."""
        self._wish(CrewReader.expect_tasks)

    def read_anew(self) -> None:
        """Read and hand over everything again."""
        self._wish(CrewReader.read_anew)

    def look_at(self, namespace: str) -> None:
        """Hand over the tasks of another namespace; empty for the own one."""
        self._wish(lambda reader: reader.look_at(namespace))

    def _wish(self, wish: Callable[[CrewReader], None]) -> None:
        self._wishes.append(wish)
        self._woken.set()

    def _read(self) -> None:
        reader = CrewReader(self._root)
        try:
            while not self._stopped:
                while self._wishes:
                    self._wishes.popleft()(reader)
                if (news := reader.look()) is not None:
                    self._hand_over(news)
                self._woken.wait(self._every_s)
                self._woken.clear()
        finally:
            reader.close()
