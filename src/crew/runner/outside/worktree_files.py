"""Copies files and links shared folders from the main checkout into a worktree.

A file that exists at the destination stays as it is. So every step can be repeated, and neither a
tracked file nor an agent's change is ever overwritten.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePath

from crew.config.model import WorktreeSettings
from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen
from crew.git.git_command import git
from crew.git.repository import Repository
from crew.git.worktrees.excludes import pattern_for
from crew.git.worktrees.worktrees import bound_to
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect

_MAGIC = re.compile(r"[*?\[]")


@frozen
class Belongings:
    """What was brought into a worktree: patterns that hide it from git, and remarks for people."""

    patterns: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@frozen
class _Move:
    """The way from the main checkout into a worktree; paths inside `never` are skipped."""

    root: Path
    worktree: Path
    never: tuple[Path, ...]


@frozen
class _Tracked:
    """The paths that git itself puts into the worktree, even those that were deleted there."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


def bring_belongings(
    repo: Repository, settings: WorktreeSettings, *, worktree: Path, worktrees: Path
) -> Belongings:
    """Copy and link what the config names; every refusal comes before the first change."""
    move = _Move(root=repo.root, worktree=worktree, never=(repo.root / ".git", worktrees))
    copies = {entry: _found(move, entry) for entry in settings.copy}
    links = {entry: _linkable(repo.root, entry) for entry in settings.link}
    names = tuple(dict.fromkeys(name for found in copies.values() for name in found))
    for name in (*names, *settings.link):
        _refuse_outside(worktree, name)
    tracked = _tracked(repo, worktree) if names else _Tracked()
    patterns = [pattern for name in names for pattern in _bring_copy(move, name, tracked)]
    remarks = [_missing("copy", entry) for entry, found in copies.items() if not found]
    for entry, folder in links.items():
        if folder is None:
            remarks.append(_missing("link", entry))
        elif _bring_link(folder, worktree / entry):
            patterns.append(pattern_for(str(PurePath(entry))))
        else:
            remarks.append(f"[worktree] link: {entry} is in the worktree already and stays")
    return Belongings(patterns=tuple(patterns), remarks=tuple(remarks))


def linked_folders(root: Path, settings: WorktreeSettings) -> tuple[Path, ...]:
    """The folders of the main checkout that worktrees share and must not change."""
    folders = (_linkable(root, entry) for entry in settings.link)
    return tuple(dict.fromkeys(folder for folder in folders if folder is not None))


def _missing(key: str, entry: str) -> str:
    return f"[worktree] {key}: there is no {entry} in the main checkout"


def _linkable(root: Path, entry: str) -> Path | None:
    _refuse_outside(root, _checked("link", entry))
    folder = root / entry
    if not folder.is_dir():
        return None
    if not folder.resolve().is_relative_to(root.resolve()):
        raise _leaves(entry)
    return folder.resolve()


def _found(move: _Move, entry: str) -> tuple[str, ...]:
    """The paths that an entry matches; a pattern does not follow symlinks."""
    _checked("copy", entry)
    if not _MAGIC.search(entry):
        _refuse_outside(move.root, entry)
        return (str(PurePath(entry)),) if os.path.lexists(move.root / entry) else ()
    names = {str(path.relative_to(move.root)) for path in move.root.glob(entry)} - {"."}
    return tuple(sorted(name for name in names if _may_be_copied(move, name)))


def _may_be_copied(move: _Move, name: str) -> bool:
    path = move.root / name
    return _is_inside(move.root, name) and not any(path.is_relative_to(no) for no in move.never)


def _checked(key: str, entry: str) -> str:
    path = PurePath(entry)
    if path.is_absolute() or ".." in path.parts:
        raise _leaves(entry)
    if not path.parts or path.parts[0] == ".git":
        raise UsageError(
            f"[worktree] {key} cannot name {entry!r}",
            hint="name files and folders inside the repository, but not .git",
        )
    return entry


def _refuse_outside(top: Path, name: str) -> None:
    if not _is_inside(top, name):
        raise _leaves(name)


def _is_inside(top: Path, name: str) -> bool:
    """Whether the folder that contains it is really below `top`, with symlinks resolved."""
    return (top / name).parent.resolve().is_relative_to(top.resolve())


def _leaves(entry: str) -> UsageError:
    return UsageError(
        f"[worktree] names {entry!r}, which leads out of the repository",
        hint="name files and folders inside the repository, relative to its top",
    )


def _tracked(repo: Repository, worktree: Path) -> _Tracked:
    listed = git(worktree, "ls-files", "-z", env=bound_to(repo, worktree))
    files = frozenset(listed.split("\0")) - {""}
    folders = {folder for file in files for folder in _folders_above(file)}
    return _Tracked(files=files, folders=frozenset(folders))


def _folders_above(name: str) -> Iterator[str]:
    while folder := name.rpartition("/")[0]:
        yield folder
        name = folder


def _bring_copy(move: _Move, name: str, tracked: _Tracked) -> Iterator[str]:
    """Copy a file or a folder; yields patterns that hide exactly the copy from git."""
    is_shared = name in tracked.folders
    if not is_shared and name not in tracked.files:
        yield pattern_for(name)
    for leaf in _leaves_of(move, name):
        if leaf not in tracked.files:
            _bring(move.root / leaf, move.worktree / leaf)
            if is_shared:
                yield pattern_for(leaf)


def _leaves_of(move: _Move, name: str) -> Iterator[str]:
    """Every file, symlink and empty folder below a folder; anything else yields itself."""
    path = move.root / name
    if path in move.never:
        return
    if path.is_symlink() or not path.is_dir():
        yield name
        return
    inside = sorted(entry.name for entry in path.iterdir())
    for entry in inside:
        yield from _leaves_of(move, f"{name}/{entry}")
    if not inside:
        yield name


def _bring(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        return
    if source.is_symlink():
        _place_link(source.readlink(), target)
    elif source.is_dir():
        _make_folder(target)
    elif source.is_file():  # pipes, sockets and devices have no content to copy
        _place_copy(source, target)


def _bring_link(folder: Path, target: Path) -> bool:
    """Whether the link exists now; anything else at its path stays."""
    if not os.path.lexists(target):
        _place_link(folder, target)
    return target.is_symlink() and target.readlink() == folder


@effect("furnish.make_folder")
def _make_folder(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)


@effect("furnish.place_link")
def _place_link(points_to: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(points_to)


@effect("furnish.place_copy")
def _place_copy(source: Path, target: Path) -> None:
    """Copy as a whole or not at all; a repeat after a kill reuses the unfinished file's name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.crew-new")
    _copy_content(source, fresh)
    shutil.copystat(source, fresh)
    put_in_place(fresh, target)


def _copy_content(source: Path, target: Path) -> None:
    """Copy the content; where the file system can, both files share it until one changes."""
    target.unlink(missing_ok=True)
    with source.open("rb") as read, target.open("xb") as write:
        with contextlib.suppress(OSError, AttributeError):  # another disk, or not Linux
            while os.copy_file_range(read.fileno(), write.fileno(), 1 << 30):
                pass
        # Copies the rest; usually nothing is left.
        shutil.copyfileobj(read, write)
