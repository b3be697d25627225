"""An asyncio loop whose clock jumps to the next deadline instead of waiting for it."""

import asyncio
import selectors


class _JumpingSelector(selectors.SelectSelector):
    loop: "VirtualLoop"

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("nothing can ever happen again: everybody waits for somebody")
        # A hair more than asked, so that rounding cannot leave us just before the deadline.
        self.loop.virtual_time += max(0.0, timeout) + 1e-6
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits."""

    def __init__(self) -> None:
        self.virtual_time = 1000.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        # The death of a simulated runner is meant; what it had under way has nobody to tell.
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        return self.virtual_time
