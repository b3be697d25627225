"""Stores what a person has approved of each config file of the repository, in `.crew`."""

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from crew.config.reserved_keys import KeyPath
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import as_json
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.foreign_files import read_foreign
from crew.system.private_files import FILE_MODE

NAME = "approved.json"
MOST_HASHES = 50
MOST_BYTES = 4_000_000


@frozen
class Approval:
    """The approved contents of one file by hash; of the last one also its text and its values.

    `is_committed`: git tracked the file then. If it is gone now, a commit may have deleted it.
    """

    hashes: tuple[str, ...] = ()
    text: str = ""
    values: Mapping[KeyPath, Any] = field(default_factory=dict)
    is_committed: bool = False

    def approves(self, content: bytes) -> bool:
        if not self.hashes:
            return False
        return content == self.text.encode() or content_hash(content) in self.hashes


NOTHING = Approval()


def content_hash(content: bytes) -> str:
    import hashlib  # noqa: PLC0415 - slow to load, and most contents are the last approved one

    return hashlib.sha256(content).hexdigest()


def load_approvals(folder: Path) -> dict[str, Approval]:
    """The approvals by file. A file that is no longer readable approves nothing."""
    try:
        raw = read_foreign(folder / NAME, max_bytes=MOST_BYTES, is_own=True)
        files = json.loads(raw or b"{}")["files"]
        return {name: _approval(entry) for name, entry in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _approval(entry: Mapping[str, Any]) -> Approval:
    return Approval(
        hashes=tuple(map(str, entry["hashes"])),
        text=str(entry["text"]),
        values={tuple(map(str, path)): value for path, value in entry["values"]},
        is_committed=bool(entry["is_committed"]),
    )


@effect("config.approve")
def keep_approvals(folder: Path, approvals: Mapping[str, Approval]) -> None:
    files = {
        name: {
            "hashes": list(one.hashes[-MOST_HASHES:]),
            "text": one.text,
            "values": [[list(path), value] for path, value in one.values.items()],
            "is_committed": one.is_committed,
        }
        for name, one in approvals.items()
    }
    text = as_json({"version": 1, "files": files}, indent=1)
    write_file(folder / NAME, text.encode(), mode=FILE_MODE, is_durable=True)
