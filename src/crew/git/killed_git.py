"""Cleans up after a git of crew that was killed from outside, so that its call can be repeated.

The caller knows that this git is dead. A lock is removed only if no other process can have made it:
because only crew writes there, because of its content, or because no git is left that could.
"""

import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crew.git.hardening import common_dir_of, git_dir_of
from crew.git.task_repository.agent_refs import remove
from crew.system.crash_points import effect
from crew.system.processes.git_processes import have_gits_ended

MOST_RUNS = 5
"""How often a call is run if its git process is killed again and again."""
RUN_AGAIN = "was killed by another process; crew runs it again"
STAYS_EMPTY_S = 1.0
PATIENCE_S = 10.0

_FROM_OUTSIDE = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
_CHILD_DIED = re.compile(r"died of signal (9|15)\b")
_NO_REFS = {"-m", "crew", "--no-deref"}
_ONCE = ("worktree",)
"""Commands that leave half of their work and refuse to begin again: their callers repair it."""


def was_killed(code: int, err: str) -> bool:
    """Whether git, or a program that it started, was killed by another process."""
    return code in _FROM_OUTSIDE or (code != 0 and _CHILD_DIED.search(err) is not None)


def can_repeat(args: tuple[str, ...]) -> bool:
    """Whether crew may run the call again. A repeat of any call but one has the same result."""
    return not args or args[0] not in _ONCE


def clear_locks_of(
    where: Path, args: tuple[str, ...], *, env: Mapping[str, str], stdin: bytes | Path | None
) -> None:
    """Remove the locks that the git process of this call left when it was killed."""
    for lock in _index_locks(env):
        clear_lock(lock)
    named = env.get("GIT_DIR")
    git_dir = Path(named) if named else git_dir_of(where.absolute())
    if git_dir is not None and "update-ref" in args:
        _clear_ref_locks(common_dir_of(git_dir), args, stdin if isinstance(stdin, bytes) else b"")
    if args[:2] == ("config", "--file"):
        clear_abandoned((Path(f"{args[2]}.lock"),), places=(where, where.parent))


def clear_ref_lock(common_dir: Path, ref: str, *, to: str) -> None:
    """Remove the lock of a git process that was killed while it moved this ref to `to` for crew.

    The lock is its own if it contains that commit or is empty: a live git fills its lock at once,
    so a lock that stays empty belongs to a dead one.
    """
    lock = common_dir / f"{ref}.lock"
    found = _state_of(lock)
    if found is not None and found[1] == b"":
        time.sleep(STAYS_EMPTY_S)
    if found is not None and found[1] in (b"", f"{to}\n".encode()) and _state_of(lock) == found:
        clear_lock(lock)


def clear_abandoned(
    locks: Iterable[Path], *, places: tuple[Path, ...], patience_s: float = PATIENCE_S
) -> bool:
    """Remove these locks if the git processes in these places have ended; False if one runs on."""
    before = {lock: state for lock in locks if (state := _state_of(lock)) is not None}
    if not before or not have_gits_ended(places, patience_s=patience_s):
        return not before
    for lock, state in before.items():
        if _state_of(lock) == state:
            clear_lock(lock)
    return True


def packed_locks(common_dir: Path) -> tuple[Path, ...]:
    """The locks of a git process that deletes refs; the second is its half-made file."""
    return common_dir / "packed-refs.lock", common_dir / "packed-refs.new"


@effect("git.clear_lock")
def clear_lock(lock: Path) -> None:
    """Remove a lock. An agent may have made a folder of that name."""
    remove(lock)


def _index_locks(env: Mapping[str, str]) -> Iterator[Path]:
    """The lock of an index that only crew writes: a copy, or that of a task's own repository."""
    git_dir, index = Path(env.get("GIT_DIR", "/")), env.get("GIT_INDEX_FILE", "")
    if index and Path(index) != git_dir / "index":
        yield Path(f"{index}.lock")
    elif git_dir.parts[-3:-1] == ("crew", "folders"):
        yield git_dir / "index.lock"


def _clear_ref_locks(common_dir: Path, args: tuple[str, ...], stdin: bytes) -> None:
    moves = dict(_moves(args, stdin))
    for ref, to in moves.items():
        clear_ref_lock(common_dir, ref, to=to)
    if "" in moves.values():
        clear_abandoned(packed_locks(common_dir), places=(common_dir, common_dir.parent))


def _moves(args: tuple[str, ...], stdin: bytes) -> Iterator[tuple[str, str]]:
    """The refs that an `update-ref` moves, and to which commit: none for a deletion."""
    words = [word for word in args[args.index("update-ref") + 1 :] if word not in _NO_REFS]
    if words[:1] == ["-d"]:
        yield words[1], ""
    elif words[:1] != ["--stdin"]:
        yield words[0], words[1]
    for line in os.fsdecode(stdin).splitlines():
        verb, ref, to = (*line.split(" "), "", "")[:3]
        if verb in {"create", "update", "delete"}:
            yield ref, "" if verb == "delete" else to


def _state_of(lock: Path) -> tuple[tuple[int, int], bytes] | None:
    """Which file it is, and its content. A new file may get the inode of a deleted one."""
    try:
        stat = lock.stat()
        return (stat.st_ino, stat.st_mtime_ns), lock.read_bytes()
    except OSError:
        return None
