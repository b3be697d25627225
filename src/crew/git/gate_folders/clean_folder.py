"""Finds and deletes what the code of a gate left in its folder, before the next gate runs there.

Git does not clean the folder: it looks into each repository inside, where it could wait for a pipe
for ever, it leaves `.git` in a tracked folder, and it fails where it may not write.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.gate_folders.ignore_patterns import is_named
from crew.git.gate_folders.made_folders import Made, made_like
from crew.git.task_repository.agent_refs import is_folder, remove
from crew.git.worktrees.clean_check import has_kind, has_numbers
from crew.git.worktrees.index_file import LINK, Index, folders_of, read_index, tracked_modes
from crew.git.worktrees.worktree_admin import environment_for
from crew.system.crash_points import effect


def clean_folder(worktree: Path, git_dir: Path, *, keep: tuple[str, ...]) -> None:
    """Leave the files that the index lists, unless they changed, and what `keep` names.

    The folders get the modes of new ones. Only while no process of a gate runs there. Raises if
    something cannot be deleted.
    """
    look = _look(worktree, git_dir, keep=keep, made=made_like(git_dir, worktree.parent))
    if left := list(look.left()):
        _delete(worktree / name for name in left)


def untracked_in(worktree: Path, git_dir: Path) -> tuple[str, ...]:
    """All paths that the index does not list; of a folder in which it lists nothing, only that."""
    return tuple(_look(worktree, git_dir).left())


@effect("git.clean_worktree")
def _delete(left: Iterable[Path]) -> None:
    for path in left:
        remove(path)
        if is_folder(path):
            path.rmdir()  # says why it could not be deleted


@frozen
class _Look:
    """A look through a folder. `modes`: the files that the index lists, with git's modes.

    With `made`, folders are restored, and a changed file counts as left.
    """

    top: Path
    index: Index | None
    modes: Mapping[str, int]
    keep: tuple[str, ...]
    made: Made | None

    def left(self) -> Iterator[str]:
        """What is neither listed nor kept."""
        entered = {*folders_of(self.modes), *self._submodules()}
        folders = [""]
        while folders:
            for entry, path in self._entries(folders.pop()):
                if self._is_listed(entry, path):
                    continue
                if self._is_kept(entry, path):
                    yield from self._left_in_kept(path)
                elif not entry.is_dir(follow_symlinks=False):
                    yield path
                elif path in entered or self._adds_kept(path, entered):
                    folders.append(f"{path}/")
                else:
                    yield path

    def _entries(self, folder: str) -> "Iterator[tuple[os.DirEntry[str], str]]":
        if self.made is not None:
            self.made.restore(f"{self.top}/{folder}")
        with os.scandir(f"{self.top}/{folder}") as entries:
            for entry in entries:
                if (path := folder + entry.name) != ".git":
                    yield entry, path

    def _submodules(self) -> Iterator[str]:
        return (path for path, mode in self.modes.items() if mode == LINK)

    def _is_listed(self, entry: "os.DirEntry[str]", path: str) -> bool:
        """Whether it is a file or a link as listed: git would wait for a pipe in its place."""
        mode = self.modes.get(path, LINK)
        if mode == LINK or not has_kind(entry, mode):
            return False
        return self.made is None or self._is_as_written(entry, path, self.made)

    def _is_as_written(self, entry: "os.DirEntry[str]", path: str, made: Made) -> bool:
        """Whether nothing changed it. Git compares less: no parts of a second, not all modes."""
        if self.index is not None:
            return has_numbers(entry, self.index.files[path])
        return made.is_like(entry, self.modes[path])

    def _is_kept(self, entry: "os.DirEntry[str]", path: str) -> bool:
        if not self.keep or self.modes.get(path, LINK) != LINK:
            return False
        is_dir = entry.is_dir(follow_symlinks=False)
        if not (is_dir or entry.is_file(follow_symlinks=False) or entry.is_symlink()):
            return False
        return is_named(path, self.keep, is_folder=is_dir)

    def _left_in_kept(self, path: str) -> Iterator[str]:
        """A submodule's repository: git would read it, and a new gate has no other half of it."""
        if self.modes.get(path) == LINK and os.path.lexists(self.top / path / ".git"):
            yield f"{path}/.git"

    def _adds_kept(self, top: str, entered: set[str]) -> bool:
        """Whether a folder without listed files holds something to keep; adds the way to that."""
        folders = [f"{top}/"] if self.keep else []
        while folders:
            folder = folders.pop()
            for entry, path in self._entries(folder):
                if self._is_kept(entry, path):
                    entered.update(folders_of((path,)))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
        return top in entered


def _look(
    worktree: Path, git_dir: Path, *, keep: tuple[str, ...] = (), made: Made | None = None
) -> _Look:
    index, env = read_index(git_dir), environment_for(git_dir, worktree)
    has_one = index is not None or (git_dir / "index").exists()
    modes = tracked_modes(worktree, index, env) if has_one else {}
    return _Look(top=worktree, index=index, modes=modes, keep=keep, made=made)
