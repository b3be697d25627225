"""Keeps `state.json` and the manifests of runs up to date with the world, in a thread."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from crew.domain.world import World
from crew.runner.views.documents import Documents
from crew.system.full_disk import is_disk_full
from crew.workplace import Workplace

log = logging.getLogger(__name__)

TOGETHER_S = 0.02
"""The end of a step and the start of the next one are written together."""
STATE_PAUSE_S = 0.2
RUNS_PAUSE_S = 1.0
"""Each file costs the disk more than all else that crew does for a step of a real agent."""

_NEVER = float("-inf")


@dataclass(slots=True)
class _Written:
    """What a kind of file shows: its world, and when its last write began."""

    world: World | None = None
    at: float = _NEVER

    def due_at(self, world: World, *, pause_s: float) -> float | None:
        """When to write this world; None if that was done."""
        return None if world is self.world else self.at + pause_s


@dataclass(slots=True, kw_only=True)
class StateFiles:
    """Writes in a thread, since the disk is slower than most of crew's work.

    One write at a time, so that an older world never overwrites a newer one; `failed` is called
    with the error of a failed write.
    """

    workplace: Workplace
    world: Callable[[], World]
    failed: Callable[[BaseException], None]
    _state: _Written = field(default_factory=_Written)
    _runs: _Written = field(default_factory=_Written)
    _documents: Documents = field(init=False)
    _timer: asyncio.TimerHandle | None = None
    _writing: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self._documents = Documents(workplace=self.workplace)

    def keep(self) -> None:
        """Write `state.json` soon when an agent's state changes, all the rest after a pause."""
        if self._writing is not None:
            return  # the writer looks again afterwards
        world, loop = self.world(), asyncio.get_running_loop()
        due = [at for at in (self._state_due(world), self._runs_due(world)) if at is not None]
        if not due:
            return
        at = max(min(due), loop.time() + TOGETHER_S)
        if self._timer is None or at < self._timer.when():
            self._stop_timer()
            self._timer = loop.call_at(at, self._write_due)

    def _state_due(self, world: World) -> float | None:
        seen = self._state.world
        has_moved = seen is not None and _states(seen) != _states(world)
        return self._state.due_at(world, pause_s=0.0 if has_moved else STATE_PAUSE_S)

    def _runs_due(self, world: World) -> float | None:
        return self._runs.due_at(world, pause_s=RUNS_PAUSE_S)

    async def keep_last(self) -> None:
        """Write the last world, after the write under way has ended."""
        while (writing := self._writing) is not None:
            writing.remove_done_callback(self._ended)
            await asyncio.wait({writing})
            if self._writing is writing:
                break  # otherwise its callback ran meanwhile and may have begun another write
        self._stop_timer()
        try:
            self._documents.write(self.world(), runner_up=False)
        except OSError as error:
            if not is_disk_full(error):
                raise
            log.warning("%s could not be written: %s", self.workplace.state_file, error)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _write_due(self) -> None:
        self._timer = None
        world, now = self.world(), asyncio.get_running_loop().time()
        self._state = _Written(world=world, at=now)
        due = self._runs_due(world)
        write = self._documents.write_state
        if due is not None and due <= now:
            self._runs, write = self._state, self._documents.write
        self._writing = asyncio.ensure_future(asyncio.to_thread(write, world))
        self._writing.add_done_callback(self._ended)

    def _ended(self, writing: "asyncio.Task[None]") -> None:
        self._writing = None
        if writing.cancelled():
            return
        if error := writing.exception():
            self._state, self._runs = _Written(), _Written()  # they are written again
            self.failed(error)
        else:
            self.keep()


def _states(world: World) -> list[tuple[str, str]]:
    return [(agent.id, agent.state) for agent in world.agents.values()]
