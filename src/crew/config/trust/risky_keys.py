"""The keys that run or loosen something, and so need a person's approval: all but a few."""

from collections.abc import Mapping
from typing import Any

from crew.config.layers.provenance import leaves
from crew.config.reserved_keys import KeyPath

HARMLESS_TABLES = frozenset({"run", "channel", "log", "roles"})
HARMLESS_KEYS = frozenset(
    {
        *(("tui", key) for key in ("group", "sort", "filter", "panel", "everything")),
        ("merge", "batch"),
        ("merge", "slots"),
        ("merge", "strategy"),
        ("tasks", "new_task_base"),
        ("worktree", "keep"),
        ("worktree", "pool"),
    }
)
"""A key that is not named here needs approval, so that a new key is safe from its first day."""


def needs_approval(path: KeyPath) -> bool:
    return path[0] not in HARMLESS_TABLES and path[:2] not in HARMLESS_KEYS


def risky_values(values: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """The keys among these values that need approval."""
    return {path: value for path, value in leaves(values) if needs_approval(path)}
