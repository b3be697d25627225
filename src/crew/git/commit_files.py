"""Reads commits without starting git, as long as each commit is in a file of its own.

Recent commits usually are. Git reads packed, damaged, unusual and very long commits. A commit never
changes, so each is read once.
"""

import os
import re
import zlib
from functools import lru_cache
from itertools import dropwhile, takewhile
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.foreign_files import read_foreign

MOST_READ = 100
"""For a longer line of commits one git process is faster."""

_MOST_OLDER = 20
_LONGEST_REF = 4096
_MOST_BYTES = 65_536
_MOST_KEPT = 1_000  # about 1 MB
_COMMIT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADERS = re.compile(
    rb"commit \d+\0tree (%b)\n((?:parent %b\n)*)author " % (_COMMIT_ID.pattern, _COMMIT_ID.pattern)
)
_ENCODING = b"\nencoding "
_SPACE = " \t\r\n"


@frozen
class CommitFile:
    """A commit: its tree, its parents, and the first paragraph of its message on one line."""

    tree: str
    parents: tuple[str, ...]
    subject: str


@frozen
class CheckedOut:
    """The commit of a HEAD, and its branch unless it is detached."""

    commit: str
    branch: str | None


class _Unreadable(Exception):
    """Only git can read this commit, or nothing can."""


def checked_out_in(git_dir: Path, common_dir: Path) -> CheckedOut | None:
    """The HEAD of a worktree; None if its branch is packed or has no commit."""
    try:
        head = read_foreign(f"{git_dir}/HEAD", max_bytes=_LONGEST_REF).strip()
        ref = head.removeprefix(b"ref: ") if head.startswith(b"ref: refs/heads/") else None
        commit = head if ref is None else _tip(common_dir, os.fsdecode(ref))
    except (OSError, ValueError):
        return None
    if not _COMMIT_ID.fullmatch(commit):
        return None
    branch = None if ref is None else os.fsdecode(ref.removeprefix(b"refs/heads/"))
    return CheckedOut(commit=commit.decode(), branch=branch)


def _tip(common_dir: Path, ref: str) -> bytes:
    return read_foreign(f"{common_dir}/{ref}", max_bytes=_LONGEST_REF).strip()


def read_commit(common_dir: Path, commit: str) -> CommitFile | None:
    """The commit; None if git must read it."""
    try:
        return _read(common_dir, commit)
    except _Unreadable:
        return None


def read_line(common_dir: Path, *, base: str, head: str) -> dict[str, CommitFile] | None:
    """The commits from `head` back to `base`, without it; None if it is not a short plain line."""
    line: dict[str, CommitFile] = {}
    while head != base:
        found = read_commit(common_dir, head)
        if found is None or len(found.parents) != 1 or len(line) == MOST_READ:
            return None
        line[head] = found
        head = found.parents[0]
    return line


def is_in_history(common_dir: Path, *, ancestor: str, descendant: str) -> bool | None:
    """Whether a commit is an ancestor of another, or the same; None if git must find out.

    No ancestor of `ancestor` has it in its history, so the search ends there.
    """
    if read_commit(common_dir, ancestor) is None:
        return None
    older = _some_ancestors(common_dir, ancestor)
    seen, left = {descendant}, [descendant]
    while left and len(seen) <= MOST_READ:
        commit = left.pop()
        if commit == ancestor:
            return True
        if commit in older:
            continue
        found = read_commit(common_dir, commit)
        if found is None:
            return None
        left += (parent for parent in found.parents if parent not in seen)
        seen.update(found.parents)
    return None if left else False


def _some_ancestors(common_dir: Path, commit: str) -> set[str]:
    """The ancestors of a commit, as far back as a few files show them."""
    seen, left = set[str](), [commit]
    while left and len(seen) <= _MOST_OLDER:
        found = read_commit(common_dir, left.pop(0))
        fresh = [one for one in found.parents if one not in seen] if found is not None else []
        left += fresh
        seen.update(fresh)
    return seen


def has_tree(common_dir: Path, commit: str) -> bool:
    """Whether files show that a commit and its tree exist; git may know more."""
    found = read_commit(common_dir, commit)
    if found is None:
        return False
    return os.path.lexists(f"{common_dir}/objects/{found.tree[:2]}/{found.tree[2:]}")


@lru_cache(maxsize=_MOST_KEPT)
def _read(common_dir: Path, commit: str) -> CommitFile:
    """Raises instead of a None, which the cache would keep: a missing commit may come."""
    try:
        file = f"{common_dir}/objects/{commit[:2]}/{commit[2:]}"
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(read_foreign(file, max_bytes=_MOST_BYTES), _MOST_BYTES)
    except (OSError, ValueError, zlib.error) as problem:
        raise _Unreadable from problem
    headers, _, message = text.partition(b"\n\n")
    found = _HEADERS.match(headers)
    if found is None or not unpacked.eof or _ENCODING in headers:
        raise _Unreadable
    parents = tuple(line[7:].decode() for line in found[2].splitlines())
    return CommitFile(tree=found[1].decode(), parents=parents, subject=_subject(message))


def _subject(message: bytes) -> str:
    """The same text as git's format `%s`."""
    lines = (line.rstrip(_SPACE) for line in message.decode("utf-8", "surrogateescape").split("\n"))
    return " ".join(takewhile(bool, dropwhile(lambda line: not line, lines)))
