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

PAUSE_S = 0.2


@dataclass(slots=True, kw_only=True)
class StateFiles:
    """Writes in a thread, since the disk is slower than most of crew's work.

    One write at a time, so that an older world never overwrites a newer one; `failed` is called
    with the error of a failed write. `_told` is the last world that was written completely, `_seen`
    the last one that was offered.
    """

    workplace: Workplace
    world: Callable[[], World]
    failed: Callable[[BaseException], None]
    _told: World | None = None
    _seen: World | None = None
    _documents: Documents = field(init=False)
    _pause: asyncio.TimerHandle | None = None
    _writing: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self._documents = Documents(workplace=self.workplace)

    def keep(self) -> None:
        """Write `state.json` at once when an agent's state changes, the rest after a pause."""
        if self._writing is not None:
            return  # the writer looks again afterwards
        world = self.world()
        if self._pause is None and world is not self._told:
            self._told = world
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._end_pause)
            self._begin(self._documents.write, world)
        elif self._seen is not None and _states(self._seen) != _states(world):
            self._begin(self._documents.write_state, world)

    async def keep_last(self) -> None:
        """Write the last world, after the write under way has ended."""
        while (writing := self._writing) is not None:
            writing.remove_done_callback(self._ended)
            await asyncio.wait({writing})
            if self._writing is writing:
                break  # otherwise its callback ran meanwhile and may have begun another write
        if self._pause is not None:
            self._pause.cancel()
        try:
            self._documents.write(self.world(), runner_up=False)
        except OSError as error:
            if not is_disk_full(error):
                raise
            log.warning("%s could not be written: %s", self.workplace.state_file, error)

    def _end_pause(self) -> None:
        self._pause = None
        self.keep()

    def _begin(self, write: Callable[[World], None], world: World) -> None:
        self._seen = world
        self._writing = asyncio.ensure_future(asyncio.to_thread(write, world))
        self._writing.add_done_callback(self._ended)

    def _ended(self, writing: "asyncio.Task[None]") -> None:
        self._writing = None
        if writing.cancelled():
            return
        if error := writing.exception():
            self._told = None  # it is written again
            self.failed(error)
        else:
            self.keep()


def _states(world: World) -> list[tuple[str, str]]:
    return [(agent.id, agent.state) for agent in world.agents.values()]
