"""Keeps a runner's rules up to date with the agent kinds that are configured and installed."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from crew.config.agent_programs import installed_programs
from crew.config.layers.layer_files import layer_files
from crew.config.model import AgentsSettings
from crew.domain.provider_limits import all_retried
from crew.runner.engine import Engine
from crew.trusted_config import load_settings, remember_own
from crew.workplace import Workplace, kinds_in

LOOK_FOR_PROGRAMS_S = 3.0
"""A search for missing programs goes through every folder of the PATH."""


@dataclass(slots=True, kw_only=True)
class KindWatch:
    """`default_kind` is the `--agent` of this runner; if it is empty, the config decides.

    Only the agent kinds are read again. A kind that a run is using keeps its settings: its config
    file may disappear when another branch is checked out. After a change, kinds with an outage are
    tried again.
    """

    workplace: Workplace
    engine: Engine
    default_kind: str = ""
    _stamp: object = None
    _read: AgentsSettings | None = None
    _installed: frozenset[str] = frozenset()
    _look_again_at: float = 0.0

    def look(self) -> None:
        """Look for changed files and vanished programs, and every few seconds for new programs."""
        stamp = [_stamp_of(file) for file in layer_files(self.workplace.root).values()]
        now = time.monotonic()
        if stamp == self._stamp and now < self._look_again_at and self._has_programs():
            return
        self._look_again_at = now + LOOK_FOR_PROGRAMS_S
        if stamp != self._stamp:
            is_changed, self._stamp = self._stamp is not None, stamp  # a mistake is reported once
            self._read = load_settings(self.workplace.root).agents
            remember_own(self.workplace.root)
            if is_changed:
                self.engine.record(all_retried(self.engine.world, at=self.engine.now()))
        if self._read is not None:
            runs = self.engine.world.runs.values()
            self.workplace.renew_agents(
                self._read, keep={run.agent_kind for run in runs if run.is_live}
            )
        self._installed = installed_programs(self.workplace.settings.agents)
        kinds = kinds_in(self.workplace.settings)
        if self.default_kind:
            kinds["default_kind"] = self.default_kind
        self.engine.follow(replace(self.engine.rules, **kinds))

    def _has_programs(self) -> bool:
        return all(os.access(program, os.X_OK) for program in self._installed)


def _stamp_of(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
