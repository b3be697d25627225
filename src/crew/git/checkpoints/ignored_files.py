"""Chooses the ignored files that a checkpoint keeps: few and small ones, and no caches."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from crew.domain.kernel.frozen import frozen

CACHES = (
    *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"),
    *("node_modules", ".venv"),
)
"""Folders that tools can fill again. crew neither keeps nor lists their content."""

FILE_LIMIT = 1_000_000
TOTAL_LIMIT = 10_000_000
MOST_FILES = 1_000
"""An ignored folder with more files than this is not kept."""


@frozen
class Chosen:
    """`kept`: files. `left_out`: what is not kept, and why. `nested`: repositories."""

    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()


def is_cache(path: str) -> bool:
    return path.endswith(".pyc") or any(part in CACHES for part in path.split("/"))


def choose(
    worktree: Path,
    ignored: Iterable[str],
    *,
    is_repository: Callable[[str], bool] = lambda _: True,
) -> Chosen:
    """Choose from the ignored paths of a worktree, smallest files first.

    `is_repository`: whether crew reads the repository of a folder with a `.git`. The files of
    others are chosen like those of any folder.
    """
    sizes: dict[str, int] = {}
    left_out: list[str] = []
    nested: list[str] = []
    for path in ignored:
        if is_cache(path):
            continue
        files = dict(_files(worktree, path, nested, is_repository))
        if len(files) > MOST_FILES:
            left_out.append(f"{path} (more than {MOST_FILES:,} files)")
        else:
            sizes |= files
    kept: list[str] = []
    room = TOTAL_LIMIT
    for path, size in sorted(sizes.items(), key=lambda item: (item[1], item[0])):
        if size > FILE_LIMIT or size > room:
            left_out.append(f"{path} ({size / 1e6:.1f} MB)")
        else:
            kept.append(path)
            room -= size
    return Chosen(kept=tuple(kept), left_out=tuple(left_out), nested=tuple(nested))


def repositories_in(worktree: Path, ignored: Iterable[str]) -> tuple[str, ...]:
    """The repositories in those parts of ignored folders that are searched."""
    nested: list[str] = []
    for path in ignored:
        if path.endswith("/") and not is_cache(path):
            for _ in _files(worktree, path, nested, lambda _: True):
                pass
    return tuple(nested)


def _files(
    worktree: Path, path: str, nested: list[str], is_repository: Callable[[str], bool]
) -> Iterator[tuple[str, int]]:
    """The files at or below a path with their sizes, upper ones first, up to a limit.

    Repositories are added to `nested` and not entered.
    """
    folders, seen = [path.removesuffix("/")], 0
    if not path.endswith("/"):
        yield from file_size(worktree, path)
        return
    while folders and seen <= MOST_FILES:
        folder = folders.pop(0)
        names = _names(worktree / folder)
        if ".git" in names and is_repository(folder):
            nested.append(folder)
            continue
        for name in names:
            if name == ".git":
                continue
            inner = f"{folder}/{name}"
            if (worktree / inner).is_dir() and not (worktree / inner).is_symlink():
                folders += [] if is_cache(inner) else [inner]
                continue
            seen += 1
            yield from file_size(worktree, inner)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are enough
    except OSError:
        return []


def file_size(worktree: Path, path: str) -> Iterator[tuple[str, int]]:
    """The path and its size, if it is a file or a link."""
    try:
        found = (worktree / path).lstat()
    except OSError:
        return
    if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
        yield path, found.st_size
