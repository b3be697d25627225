"""Other names for settings, from the documents that define channels and agents."""

from collections.abc import Iterator, Mapping
from typing import Any

TABLE, OTHER_TABLE = "channel", "turnConfig"
OTHER_NAMES: Mapping[str, str] = {
    "defaultTimeoutSeconds": "timeout",
    "timeoutSeconds": "timeout",
    "timeoutAt": "timeout",
    "humanInterruptMode": "interrupt",
    "announceTimeouts": "announce_timeouts",
    "announceDisconnects": "announce_disconnects",
    "autoDetectTurnEnd": "auto_detect_turn_end",
    "autoDetectSilenceSeconds": "auto_detect_silence",
}

AGENT_NAMES: Mapping[str, str] = {"worktree_setup_script": "setup_script"}


def agent_with_own_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's table under crew's own names, each of which overrides its alias."""
    own = {key: value for key, value in fields.items() if key not in AGENT_NAMES}
    return {AGENT_NAMES[key]: fields[key] for key in fields if key in AGENT_NAMES} | own


def with_own_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same under crew's own names. If a key is set under both, crew's own name wins."""
    tables = [values.get(name, {}) for name in (OTHER_TABLE, TABLE)]
    if not any(tables) or not all(isinstance(one, dict) for one in tables):
        return dict(values)
    every = {**tables[0], **tables[1]}
    renamed = {OTHER_NAMES[key]: value for key, value in every.items() if key in OTHER_NAMES}
    own = {key: value for key, value in every.items() if key not in OTHER_NAMES}
    rest = {key: value for key, value in values.items() if key not in (TABLE, OTHER_TABLE)}
    return {**rest, TABLE: {**renamed, **own}}


def own_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path of a key under crew's own names."""
    if len(path) == 3 and path[0] == "agents":
        return (*path[:2], AGENT_NAMES.get(path[2], path[2]))
    if len(path) != 2 or path[0] not in (TABLE, OTHER_TABLE):
        return path
    return (TABLE, OTHER_NAMES.get(path[1], path[1]))


def spellings(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every path under which a file may have this key, crew's own first."""
    yield path
    if path[0] == "agents":
        yield from ((*path[:-1], other) for other, own in AGENT_NAMES.items() if own == path[-1])
    if path[0] == TABLE:
        keys = [path[1:], *((other,) for other, own in OTHER_NAMES.items() if (own,) == path[1:])]
        yield from ((table, *key) for table in (TABLE, OTHER_TABLE) for key in keys)
