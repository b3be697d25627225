"""Keeps `state.json` and the manifests of runs as the world is, beside the loop."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crew.domain.world import World
from crew.runner.manifests import manifest, manifest_file, write_manifest
from crew.runner.views import state_document, write_state
from crew.runner.workplace import Workplace

PAUSE_S = 0.2


@dataclass(slots=True, kw_only=True)
class StateFiles:
    """In a thread of its own, since a file takes the disk longer than most of what crew does.

    One write at a time, so that an older world is never written over a newer one; `failed` hears
    of one that could not be made.
    """

    workplace: Workplace
    world: Callable[[], World]
    failed: Callable[[BaseException], None]
    _seen: World | None = None
    _written: Mapping[str, Any] | None = None
    _pause: asyncio.TimerHandle | None = None
    _writing: "asyncio.Task[None] | None" = None

    def keep(self) -> None:
        """At once when an agent's state changes; what else there is to tell waits for a pause."""
        if self._writing is not None or self.world() is self._seen:
            return  # who writes looks again afterwards
        if self._pause is None:
            self._begin()
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._end_pause)
        elif self._seen is None or _states(self._seen) != _states(self.world()):
            self._begin()

    async def keep_last(self) -> None:
        """The world as it is in the end, whatever is under way."""
        before = self._seen
        while (writing := self._writing) is not None:
            writing.remove_done_callback(self._ended)
            await asyncio.wait({writing})
            before = None if writing.exception() else self._seen
            if self._writing is writing:
                break  # else it had ended before we came, and told so only now
        if self._pause is not None:
            self._pause.cancel()
        self._write(before, self.world())

    def _end_pause(self) -> None:
        self._pause = None
        self.keep()

    def _begin(self) -> None:
        before, self._seen = self._seen, self.world()
        write = asyncio.to_thread(self._write, before, self._seen)
        self._writing = asyncio.ensure_future(write)
        self._writing.add_done_callback(self._ended)

    def _ended(self, writing: "asyncio.Task[None]") -> None:
        self._writing = None
        if writing.cancelled():
            return
        if error := writing.exception():
            self.failed(error)
        else:
            self.keep()

    def _write(self, before: World | None, world: World) -> None:
        """Written when what it tells changes: most facts tell nothing about agents."""
        if before is None or world.runs is not before.runs:
            self._write_manifests(before, world)
        document = state_document(world)
        if document != self._written:
            write_state(self.workplace.state_file, document)
        self._written = document

    def _write_manifests(self, before: World | None, world: World) -> None:
        known = before.runs if before else {}
        for run in world.runs.values():
            if run is not known.get(run.id):
                told = manifest(self.workplace, world, run, at=time.time())
                write_manifest(manifest_file(self.workplace, run.id), told)


def _states(world: World) -> list[tuple[str, str]]:
    return [(agent.id, agent.state) for agent in world.agents.values()]
