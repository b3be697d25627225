"""Keeps `state.json` and the manifests of runs as the world is, beside the loop."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crew.domain.run import Run
from crew.domain.world import World
from crew.runner.manifests import manifest, manifest_file, write_manifest
from crew.runner.views import state_document, write_state
from crew.runner.workplace import Workplace

PAUSE_S = 0.2


@dataclass(slots=True, kw_only=True)
class StateFiles:
    """In a thread of its own, since a file takes the disk longer than most of what crew does.

    One write at a time, so that an older world is never written over a newer one; `failed` hears
    of one that could not be made. `_told` is the last world of which everything was written,
    `_seen` the last one at all; `_document` and `_runs` are what the files say.
    """

    workplace: Workplace
    world: Callable[[], World]
    failed: Callable[[BaseException], None]
    _told: World | None = None
    _seen: World | None = None
    _document: Mapping[str, Any] | None = None
    _runs: Mapping[str, Run] = field(default_factory=dict)
    _pause: asyncio.TimerHandle | None = None
    _writing: "asyncio.Task[None] | None" = None

    def keep(self) -> None:
        """`state.json` at once when an agent's state changes; all else waits for a pause."""
        if self._writing is not None:
            return  # who writes looks again afterwards
        world = self.world()
        if self._pause is None and world is not self._told:
            self._told = world
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._end_pause)
            self._begin(self._write, world)
        elif self._seen is not None and _states(self._seen) != _states(world):
            self._begin(self._write_state, world)

    async def keep_last(self) -> None:
        """The world as it is in the end, whatever is under way."""
        while (writing := self._writing) is not None:
            writing.remove_done_callback(self._ended)
            await asyncio.wait({writing})
            if self._writing is writing:
                break  # else it had ended before we came, and told so only now
        if self._pause is not None:
            self._pause.cancel()
        self._write_manifests(self.world())
        self._write_state(self.world(), runner_up=False)

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
            self.failed(error)
        else:
            self.keep()

    def _write(self, world: World) -> None:
        self._write_manifests(world)
        self._write_state(world)

    def _write_state(self, world: World, *, runner_up: bool = True) -> None:
        """Written when what it tells changes: most facts tell nothing about agents."""
        document = state_document(world, runner_up=runner_up)
        if document != self._document:
            write_state(self.workplace.state_file, document)
        self._document = document

    def _write_manifests(self, world: World) -> None:
        if world.runs is self._runs:
            return
        for run in world.runs.values():
            if run is not self._runs.get(run.id):
                told = manifest(self.workplace, world, run, at=time.time())
                write_manifest(manifest_file(self.workplace, run.id), told)
        self._runs = world.runs


def _states(world: World) -> list[tuple[str, str]]:
    return [(agent.id, agent.state) for agent in world.agents.values()]
