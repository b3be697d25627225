"""Reads only the names of the configured agents, ten times faster than the whole config."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from crew.config.layers.layer_files import BUILT_IN_FILES, layer_files


class Glance(NamedTuple):
    """The default agent, and the names of all agents."""

    worker_default: str
    kinds: frozenset[str]


def glance(repo_root: Path) -> Glance | None:
    """None if a file cannot be read. Commands that need the whole config report that."""
    import tomllib  # noqa: PLC0415 - `ps` without idle agents does without it

    default, kinds = "", set[str]()
    try:
        for file in (*BUILT_IN_FILES, *layer_files(repo_root).values()):
            values = tomllib.loads(file.read_text(encoding="utf-8-sig")) if file.exists() else {}
            agents = _table(values, "agents")
            default = str(agents.get("worker_default", default))
            for table in (agents, _table(values, "workers"), _table(values, "managers")):
                kinds |= {name for name, value in table.items() if isinstance(value, dict)}
    except (OSError, ValueError):
        return None
    default = os.environ.get("CREW_AGENTS_WORKER_DEFAULT") or default
    return Glance(worker_default=default, kinds=frozenset(kinds))


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}
