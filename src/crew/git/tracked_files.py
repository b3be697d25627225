"""Finds out whether a commit may have brought a file of the main checkout."""

import os
from pathlib import Path

from crew.domain.kernel.names import landed_ref
from crew.git import hardening

_PLAIN_VERSIONS = (2, 3)
_SHARED_INDEX, _SPARSE_INDEX = b"link", b"sdir"


def is_changing(root: Path) -> bool:
    """Whether git or a delivery is changing this checkout: both hold its index meanwhile."""
    return (_git_dir(root) / "index.lock").exists()


def is_tracked(root: Path, path: str, *, is_changing: bool) -> bool:
    """Whether the index has this file, or, while it changes, whether a coming commit has it."""
    if may_be_tracked(root, path) and _is_in_the_index(root, path):
        return True
    return is_changing and _is_in_a_commit(root, path)


def may_be_tracked(root: Path, path: str) -> bool:
    """Whether the index may list this path; seen without git if the index spells out its paths."""
    try:
        index = (_git_dir(root) / "index").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    spelled_out = index[:4] == b"DIRC" and int.from_bytes(index[4:8], "big") in _PLAIN_VERSIONS
    if not spelled_out or _SHARED_INDEX in index or _SPARSE_INDEX in index:
        return True
    return os.fsencode(path) + b"\0" in index


def _is_in_the_index(root: Path, path: str) -> bool:
    from crew.git.git_command import git  # noqa: PLC0415 - most indexes are read without git

    return bool(git(root, "ls-files", "--", path))


def _is_in_a_commit(root: Path, path: str) -> bool:
    from crew.git.git_command import ask, git  # noqa: PLC0415 - see above

    refs = git(root, "for-each-ref", "--format=%(refname)", landed_ref("")).split()
    names = (f"{ref}:{path}" for ref in ("HEAD", *refs))
    return any(ask(root, "cat-file", "-e", name).code == 0 for name in names)


def _git_dir(root: Path) -> Path:
    return hardening.git_dir_of(root) or root / ".git"
