"""Puts files into a checkout one by one, so that each move can be undone byte for byte.

The old file is renamed first and checked after that, so that an edit in between is noticed and not
overwritten. The new file is linked into place, which fails if another file appeared.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.delivery.checkout import Checkout, Signature, signature_of, wait_for
from crew.git.delivery.commit_diff import FileChange
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.foreign_files import read_foreign

SEEN = "seen.json"
MAX_SEEN_BYTES = 2**28


@frozen
class FileMove:
    """One file: its path, the path of the prepared new file, and the path of the old one."""

    change: FileChange
    target: Path
    fresh: Path
    aside: Path
    old: Signature | None
    new: Signature | None


def plan_moves(
    checkout: Checkout,
    staging: Path,
    changes: Sequence[FileChange],
    seen: Sequence[Signature | None],
) -> tuple[FileMove, ...]:
    """Record the signatures of the files before the first one is touched."""
    fresh = [staging / "new" / c.path if c.new_mode is not None else None for c in changes]
    new = [signature_of(file) if file is not None else None for file in fresh]
    (staging / "old").mkdir(exist_ok=True)
    _write_signatures(staging, json.dumps({"old": list(seen), "new": new}))
    return load_moves(checkout, staging, changes)


def has_begun(staging: Path) -> bool:
    """Whether files may already have been touched."""
    return (staging / SEEN).exists()


def load_moves(
    checkout: Checkout, staging: Path, changes: Sequence[FileChange]
) -> tuple[FileMove, ...]:
    """The moves of a sync; none if it died before the first one."""
    try:
        seen = _read_signatures(staging / SEEN, count=len(changes))
    except FileNotFoundError:
        return ()
    return tuple(
        FileMove(
            change=change,
            target=checkout.path / change.path,
            fresh=staging / "new" / change.path,
            aside=staging / "old" / str(number),
            old=seen["old"][number],
            new=seen["new"][number],
        )
        for number, change in enumerate(changes)
    )


def _read_signatures(file: Path, *, count: int) -> dict[str, list[Signature | None]]:
    """The recorded signatures; none that cannot be read, and then every old file is kept."""
    try:
        seen = json.loads(read_foreign(file, max_bytes=MAX_SEEN_BYTES))
        found = {side: [_signature(one) for one in seen[side]] for side in ("old", "new")}
        if all(len(side) == count for side in found.values()):
            return found
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        pass
    return {"old": [None] * count, "new": [None] * count}


def place_all(checkout: Checkout, moves: Sequence[FileMove]) -> None:
    """Place every new file. Raises if an old one was edited meanwhile; the caller undoes it."""
    for move in moves:
        if move.old is not None:
            _set_aside(checkout, move)
        if move.new is not None:
            _place(checkout, move)
    for move in moves:
        if move.old is not None and signature_of(move.aside) != move.old:
            raise wait_for(checkout, f"{move.change.path} is being changed by another process")


def take_back_all(checkout: Checkout, moves: Sequence[FileMove]) -> None:
    """Undo the placed files. A file that was edited since stays as it is."""
    for move in reversed(moves):
        if move.new is not None and _is_placed(move) and _has_signature(move.target, move.new):
            _unplace(checkout, move)
        if os.path.lexists(move.aside) and not os.path.lexists(move.target):
            _put_back(move)


def rescue_edited(moves: Sequence[FileMove]) -> tuple[Path, ...]:
    """Keep an old file next to the new one, if it was written to after the move."""
    edited = [m for m in moves if os.path.lexists(m.aside) and not _has_signature(m.aside, m.old)]
    return tuple(_rescue(move) for move in edited)


@effect("git.sync_seen")
def _write_signatures(staging: Path, text: str) -> None:
    write_file(staging / SEEN, text.encode(), unfinished=staging / (SEEN + ".new"))


@effect("git.sync_set_aside")
def _set_aside(checkout: Checkout, move: FileMove) -> None:
    try:
        move.target.rename(move.aside)
    except OSError:
        raise wait_for(
            checkout, f"{move.change.path} is being changed by another process"
        ) from None
    if move.new is None:
        _remove_empty(checkout, move.target.parent)


@effect("git.sync_place")
def _place(checkout: Checkout, move: FileMove) -> None:
    try:
        move.target.parent.mkdir(parents=True, exist_ok=True)
        os.link(move.fresh, move.target, follow_symlinks=False)
    except OSError:
        raise wait_for(checkout, f"another process created {move.change.path}") from None
    move.fresh.unlink()


@effect("git.sync_unplace")
def _unplace(checkout: Checkout, move: FileMove) -> None:
    move.target.unlink()
    _remove_empty(checkout, move.target.parent)


@effect("git.sync_put_back")
def _put_back(move: FileMove) -> None:
    move.target.parent.mkdir(parents=True, exist_ok=True)
    move.aside.rename(move.target)


@effect("git.sync_rescue")
def _rescue(move: FileMove) -> Path:
    kept = move.target.with_name(f"{move.target.name}.before-crew-{os.urandom(4).hex()}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(move.aside, kept)
    return kept


def _is_placed(move: FileMove) -> bool:
    if not os.path.lexists(move.target):
        return False
    return (
        not os.path.lexists(move.fresh) or move.fresh.lstat().st_ino == move.target.lstat().st_ino
    )


def _has_signature(file: Path, signature: Signature | None) -> bool:
    try:
        return signature_of(file) == signature
    except OSError:
        return False


def _remove_empty(checkout: Checkout, folder: Path) -> None:
    while folder != checkout.path and folder.is_relative_to(checkout.path):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _signature(listed: list[int] | None) -> Signature | None:
    return None if listed is None else (listed[0], listed[1], listed[2], listed[3])
