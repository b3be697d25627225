"""Writes `state.json` and the manifests of runs, which other programs read."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crew.domain.rows.run import Run
from crew.domain.world import World
from crew.runner.pause_views import with_pauses
from crew.runner.views.manifests import manifest, manifest_file, write_manifest
from crew.runner.views.row_views import state_document, write_state
from crew.workplace import Workplace


@dataclass(slots=True, kw_only=True)
class Documents:
    """`state` and `runs` are the contents already written, which are not written again."""

    workplace: Workplace
    runs: Mapping[str, Run] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None

    def write(self, world: World, *, runner_up: bool = True) -> None:
        self._write_manifests(world)
        self.write_state(world, runner_up=runner_up)

    def write_state(self, world: World, *, runner_up: bool = True) -> None:
        """Write `state.json` if it changed; most facts do not concern agents."""
        found = state_document(world, runner_up=runner_up)
        agents = with_pauses(world, found["agents"], lambda: self.workplace.rules)
        document = {**found, "agents": agents}
        if document != self.state:
            write_state(self.workplace.state_file, document)
        self.state = document

    def _write_manifests(self, world: World) -> None:
        if world.runs is self.runs:
            return
        for run in world.runs.values():
            if run is not self.runs.get(run.id):
                told = manifest(self.workplace, world, run, at=time.time())
                write_manifest(manifest_file(self.workplace, run.id), told)
        self.runs = world.runs
