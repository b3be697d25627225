"""Moves refs by compare-and-swap: one process wins, and a repeated move is not an error."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.git.git_command import ask, failure, start_git
from crew.git.repository import Repository, commit_of
from crew.git.spawn_git import StartedGit
from crew.git.worktrees.worktree_admin import clear_lock
from crew.system.crash_points import effect

ABSENT = ""
"""Git's word for a ref that must not exist yet, whatever the length of its ids."""
STAYS_EMPTY_S = 1.0


class Moved(Conflict):
    """The ref is not at the expected commit: another process moved it."""

    code = "moved"

    def __init__(self, ref: str, *, at: str | None, expected: str | None) -> None:
        super().__init__(
            f"{ref} is at {_short(at)}, not at {_short(expected)}",
            hint="build on its current commit and try again",
        )
        self.at = at


@effect("git.advance")
def advance(
    repo: Repository,
    ref: str,
    *,
    to: str,
    expected: str | None,
    keep_open: int | None = None,
    begun: StartedGit | None = None,
) -> None:
    """Move a ref (full name) from `expected` to `to`. None: the ref must not exist yet.

    `begun` is the git that `begun_advance` started for the same move.
    """
    if begun is not None and _commits(begun, repo, ref, to=to):
        return
    args = ("update-ref", "-m", "crew", ref, to, expected or ABSENT)
    answer = ask(repo.common_dir, *args, keep_open=keep_open)
    if answer.code == 0:
        return
    if answer.code < 0:
        clear_own_lock(repo, ref, to=to)
    at = commit_of(repo, ref)
    if at == to:
        return
    if at == expected:
        raise failure(args, answer)
    raise Moved(ref, at=at, expected=expected)


@contextmanager
def begun_advance(
    repo: Repository, ref: str, *, to: str, expected: str, keep_open: int
) -> Iterator[StartedGit]:
    """Start a git for `advance` that knows the move. The rest takes half a millisecond.

    Until then it holds no lock. If crew dies before the commit, git ends by itself and moves
    nothing.
    """
    args = ("update-ref", "-m", "crew", "--stdin")
    with start_git(repo.common_dir, *args, keep_open=keep_open) as begun:
        begun.ask(f"start\nupdate {ref} {to} {expected}\n".encode())
        yield begun


def is_prepared(begun: StartedGit) -> bool:
    """Lock the ref at its expected commit, so that the move cannot fail any more."""
    return begun.ask(b"prepare\n") == b"prepare: ok"


def _commits(begun: StartedGit, repo: Repository, ref: str, *, to: str) -> bool:
    """Whether it moved the ref. If not, it has ended, and `advance` finds the reason."""
    if begun.ask(b"commit\n") == b"commit: ok":
        return True
    if begun.end() < 0:
        clear_own_lock(repo, ref, to=to)
    return False


def clear_own_lock(repo: Repository, ref: str, *, to: str) -> None:
    """Remove the lock of a git that was killed while it moved this ref to `to` for crew.

    The caller knows that this git is dead. The lock is its own if it contains that commit or is
    empty: a live git fills its lock at once, so a lock that stays empty belongs to a dead one.
    """
    lock = repo.common_dir / f"{ref}.lock"
    found = _lock_state(lock)
    if found is not None and found[1] == b"":
        time.sleep(STAYS_EMPTY_S)
    if found is not None and found[1] in (b"", f"{to}\n".encode()) and _lock_state(lock) == found:
        clear_lock(lock)


def _lock_state(lock: Path) -> tuple[int, bytes] | None:
    try:
        return lock.stat().st_ino, lock.read_bytes()
    except OSError:
        return None


@effect("git.delete_ref")
def delete_ref(repo: Repository, ref: str, *, expected: str) -> None:
    """Delete a ref (full name) that is at `expected`. Safe if it is already deleted."""
    _delete(repo, ref, expected)


@effect("git.delete_ref")
def delete_refs(repo: Repository, refs: Mapping[str, str]) -> None:
    """Delete refs at their expected commits in one call. Safe if some are already deleted."""
    lines = "".join(f"delete {ref} {expected}\n" for ref, expected in refs.items())
    answer = ask(repo.common_dir, "update-ref", "--stdin", stdin=lines.encode())
    if answer.code != 0:
        for ref, expected in refs.items():
            _delete(repo, ref, expected)


def _delete(repo: Repository, ref: str, expected: str) -> None:
    args = ("update-ref", "-d", ref, expected)
    answer = ask(repo.common_dir, *args)
    if answer.code == 0:
        return
    at = commit_of(repo, ref)
    if at is None:
        return
    if at == expected:
        raise failure(args, answer)
    raise Moved(ref, at=at, expected=expected)


def _short(commit: str | None) -> str:
    return commit[:10] if commit else "nothing"
