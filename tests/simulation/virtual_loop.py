"""An asyncio loop whose clock jumps to the next deadline instead of waiting for it."""

import asyncio
import heapq
import selectors

STEP_S = 1e-6
"""Every round takes this long, so that rounding cannot leave us just before a deadline."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits."""

    def __init__(self) -> None:
        self.virtual_time = 1000.0
        super().__init__(selectors.SelectSelector())
        # The death of a simulated runner is meant; what it had under way has nobody to tell.
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        return self.virtual_time

    def _run_once(self) -> None:
        """A round of asyncio's own loop without what only files and threads need."""
        ready, timers = self._ready, self._scheduled
        while timers and timers[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False
        if not ready and not self._stopping:
            if not timers:
                raise RuntimeError("nothing can ever happen again: everybody waits for somebody")
            self.virtual_time = max(self.virtual_time, timers[0]._when)
        self.virtual_time += STEP_S
        while timers and timers[0]._when < self.virtual_time:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
