"""Lists the paths that differ between two commits."""

from collections.abc import Sequence
from dataclasses import replace

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import git
from crew.git.repository import Repository

SYMLINK, SUBMODULE, _NOTHING = "120000", "160000", "000000"


@frozen
class FileChange:
    """One path that differs between two commits. The mode None means that it does not exist."""

    path: str
    old_mode: str | None
    old_blob: str
    new_mode: str | None
    new_blob: str


def changed_paths(repo: Repository, old: str, new: str) -> tuple[FileChange, ...]:
    """Every path that differs. Deletions come first, since a file may replace a folder."""
    raw = git(
        repo.common_dir, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new
    )
    parts = raw.split("\0")
    changes = [_change(e, p) for e, p in zip(parts[::2], parts[1::2], strict=False)]
    return tuple(sorted(changes, key=lambda change: (change.new_mode is not None, change.path)))


def file_changes(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """The changed files without submodules, which are an index entry and a folder."""
    as_files = (
        replace(
            change,
            old_mode=None if change.old_mode == SUBMODULE else change.old_mode,
            new_mode=None if change.new_mode == SUBMODULE else change.new_mode,
        )
        for change in changes
    )
    return tuple(change for change in as_files if change.old_mode or change.new_mode)


def arriving_submodules(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """The submodules that are added or moved to another commit."""
    return tuple(change.path for change in changes if change.new_mode == SUBMODULE)


def leaving_submodules(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """The submodules that are removed or replaced."""
    return tuple(
        change.path
        for change in changes
        if change.old_mode == SUBMODULE and change.new_mode != SUBMODULE
    )


def _change(entry: str, path: str) -> FileChange:
    old_mode, new_mode, old_blob, new_blob = entry.removeprefix(":").split(" ")[:4]
    return FileChange(
        path=path,
        old_mode=None if old_mode == _NOTHING else old_mode,
        old_blob=old_blob,
        new_mode=None if new_mode == _NOTHING else new_mode,
        new_blob=new_blob,
    )
