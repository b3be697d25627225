"""Moves refs by compare-and-swap: one process wins, and a repeated move is not an error."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.git.git_command import ask, failure, start_git
from crew.git.killed_git import clear_abandoned, clear_ref_lock, packed_locks
from crew.git.repository import Repository, commit_of, may_be_packed
from crew.git.spawn_git import StartedGit
from crew.git.task_repository.agent_refs import read_bytes
from crew.system.atomic_files import claim_file, put_in_place, write_file
from crew.system.crash_points import effect

_LONGEST_REF = 4096
ABSENT = ""
"""Git's word for a ref that must not exist yet, whatever the length of its ids."""


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

    `begun` is the process that `begun_advance` started for the same move.
    """
    if begun is not None and _commits(begun, repo, ref, to=to):
        return
    args = ("update-ref", "-m", "crew", ref, to, expected or ABSENT)
    answer = ask(repo.common_dir, *args, env=_apart_from_head(repo), keep_open=keep_open)
    if answer.code == 0:
        return
    at = commit_of(repo, ref)
    if at == to:
        return
    if at == expected:
        raise failure(args, answer)
    raise Moved(ref, at=at, expected=expected)


@effect("git.swap_ref")
def is_swapped(repo: Repository, ref: str, *, to: str, expected: str) -> bool:
    """Move a ref without git, which would take three milliseconds; False if git must do it.

    Only for a ref with a file of its own that no HEAD names. The lock is the one that git takes.
    """
    file = f"{repo.common_dir}/{ref}"
    lock, before = f"{file}.lock", f"{expected}\n".encode()
    if read_bytes(file, most=_LONGEST_REF) != before or not claim_file(lock, f"{to}\n".encode()):
        return False
    try:
        if read_bytes(file, most=_LONGEST_REF) == before:
            _log_move(repo, ref, to=to, expected=expected)
            put_in_place(lock, file)
            return True
    except OSError:
        Path(lock).unlink(missing_ok=True)
        raise
    Path(lock).unlink(missing_ok=True)
    return False


def _log_move(repo: Repository, ref: str, *, to: str, expected: str) -> None:
    """Add a line to the log of a ref, if it has one."""
    line = f"{expected} {to} crew <crew> {int(time.time())} +0000\tcrew\n".encode()
    with suppress(FileNotFoundError):
        file = f"{repo.common_dir}/logs/{ref}"
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


@contextmanager
def begun_advance(
    repo: Repository, ref: str, *, to: str, expected: str, keep_open: int
) -> Iterator[StartedGit]:
    """Start a git for `advance` that knows the move. The rest takes half a millisecond.

    Until then it holds no lock. If crew dies before the commit, git ends by itself and moves
    nothing.
    """
    args = ("update-ref", "-m", "crew", "--stdin")
    env = _apart_from_head(repo)
    with start_git(repo.common_dir, *args, env=env, keep_open=keep_open) as begun:
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
        clear_ref_lock(repo.common_dir, ref, to=to)
    return False


@effect("git.delete_ref")
def delete_ref(repo: Repository, ref: str, *, expected: str) -> None:
    """Delete a ref (full name) that is at `expected`. Safe if it is already deleted."""
    if not _is_unlinked(repo, ref, expected):
        _delete(repo, ref, expected)


def _is_unlinked(repo: Repository, ref: str, expected: str) -> bool:
    """Delete a ref that only crew writes, without git; False if git must do it."""
    file, content = f"{repo.common_dir}/{ref}", f"{expected}\n".encode()
    if not ref.startswith("refs/crew/") or may_be_packed(repo, ref):
        return False
    if read_bytes(file, most=_LONGEST_REF) != content or not claim_file(f"{file}.lock", b""):
        return False
    is_there = read_bytes(file, most=_LONGEST_REF) == content
    if is_there:
        Path(file).unlink()
    Path(f"{file}.lock").unlink(missing_ok=True)
    return is_there


@effect("git.delete_ref")
def delete_refs(repo: Repository, refs: Mapping[str, str]) -> None:
    """Delete refs at their expected commits in one call. Safe if some are already deleted."""
    _free_packed_refs(repo)
    lines = "".join(f"delete {ref} {expected}\n" for ref, expected in refs.items())
    answer = ask(repo.common_dir, "update-ref", "--stdin", stdin=lines.encode())
    if answer.code != 0:
        for ref, expected in refs.items():
            _delete(repo, ref, expected)


def _free_packed_refs(repo: Repository) -> None:
    """Remove the lock on the packed refs if no git holds it: each deletion would wait for it."""
    locks = packed_locks(repo.common_dir)
    if locks[0].exists():
        from crew.git.worktrees.worktree_admin import worktree_folders  # noqa: PLC0415 - seldom

        places = (repo.root, repo.common_dir, *worktree_folders(repo))
        clear_abandoned(locks, places=places)


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


def _apart_from_head(repo: Repository) -> Mapping[str, str]:
    """Bind git to a git dir with a HEAD of its own and the refs of the repository.

    Git also locks the HEAD that names the branch it moves. A git of crew that is killed must leave
    no lock in a person's checkout: only the person could know that it is stale.
    """
    if (repo.common_dir / "reftable").exists():
        return {}
    git_dir = repo.common_dir / "crew" / "head"
    if not (git_dir / "HEAD").exists():
        _lay_head(git_dir)
    return {"GIT_DIR": str(git_dir)}


@effect("git.lay_head")
def _lay_head(git_dir: Path) -> None:
    git_dir.mkdir(parents=True, exist_ok=True)
    write_file(git_dir / "commondir", b"../..\n")
    write_file(git_dir / "HEAD", b"ref: refs/crew/none\n")


def _short(commit: str | None) -> str:
    return commit[:10] if commit else "nothing"
