"""Finds changes that no checkout can be trusted to take: very long paths, and very many files.

If they landed, they would stop the delivery of all work behind them.
"""

import os

from crew.git.git_command import first_output
from crew.git.repository import Repository

LONGEST_PATH = 1024
"""A file system takes 4,096 bytes, those of the checkout's own folder included."""
LONGEST_NAME = 255
MOST_LISTED = 100_000_000
"""About two million paths. A few small objects can stand for a tree of any size."""

_SHOWN = 40


def is_too_long(path: bytes) -> bool:
    return len(path) > LONGEST_PATH or any(len(name) > LONGEST_NAME for name in path.split(b"/"))


def unfit_for_checkout(repo: Repository, commit: str, *, since: str | None) -> str:
    """Why the files of a commit cannot land; empty if they can. Those in `since` have landed."""
    paths = _paths(repo, commit)
    if paths is None:
        is_that_large = since is not None and _paths(repo, since) is None
        return "" if is_that_large else "it has more files than a checkout can hold"
    long = {path for path in paths if is_too_long(path)}
    if long and since is not None:
        long.difference_update(_paths(repo, since) or ())
    if not long:
        return ""
    return f"the path {os.fsdecode(min(long)[:_SHOWN])!a}… is too long for a checkout"


def _paths(repo: Repository, commit: str) -> list[bytes] | None:
    """All files of a commit; None if there are too many. Git prints each as soon as it has it."""
    args = ("ls-tree", "-r", "-z", "--name-only", commit)
    listed, is_all = first_output(repo.common_dir, *args, settings={}, most=MOST_LISTED)
    return listed.split(b"\0") if is_all else None
