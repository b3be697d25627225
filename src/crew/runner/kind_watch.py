"""Keeps a runner's rules at what the config and this machine say about agents now."""

from dataclasses import dataclass, replace
from pathlib import Path

from crew.config.layers.layer_files import layer_files
from crew.config.layers.layers import load_settings
from crew.config.model import AgentsSettings
from crew.runner.engine import Engine
from crew.workplace import Workplace, kinds_in


@dataclass(slots=True, kw_only=True)
class KindWatch:
    """`default_kind` is the one that this runner was started with; empty leaves it to the config.

    Only the agents are read again, and an agent that a run is under way with stays as it is: the
    file that configures it may go away with another branch.
    """

    workplace: Workplace
    engine: Engine
    default_kind: str = ""
    _stamp: object = None
    _read: AgentsSettings | None = None

    def look(self) -> None:
        """Cheap enough for every second: a few files and programs are looked for, none is read."""
        stamp = [_stamp_of(file) for file in layer_files(self.workplace.root).values()]
        if stamp != self._stamp:
            self._stamp = stamp  # first, so that a mistake in a file is complained about once
            self._read = load_settings(self.workplace.root).agents
        if self._read is not None:
            runs = self.engine.world.runs.values()
            self.workplace.renew_agents(
                self._read, keep={run.agent_kind for run in runs if run.is_live}
            )
        kinds = kinds_in(self.workplace.settings)
        if self.default_kind:
            kinds["default_kind"] = self.default_kind
        self.engine.follow(replace(self.engine.rules, **kinds))


def _stamp_of(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
