"""Reserved keys that this version does not support. Setting one is an error."""

from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str, ...]

NOT_SUPPORTED = "is not supported by this version of crew yet"

NOT_YET: Mapping[str, tuple[str, ...]] = {
    "budget": ("task_usd", "quest_usd", "day_usd", "crew_usd", "step_tokens"),
    "cluster": ("server", "namespace", "remote"),
}
"""The reserved keys by table. The change that implements a key removes it here."""


def is_not_yet(path: KeyPath) -> bool:
    return len(path) > 1 and path[1] in NOT_YET.get(path[0], ())


def not_yet_set(values: Mapping[str, Any]) -> KeyPath | None:
    """The first reserved key that has a value here. An empty table does not count."""
    return next((path for path in _leaves(values) if is_not_yet(path)), None)


def _leaves(values: Mapping[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)
