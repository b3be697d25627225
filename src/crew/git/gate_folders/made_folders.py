"""Gives folders and files the modes that crew made them with, and takes added attributes away.

Code of a gate can change both, and so reach the next gate in the same folder: a folder that nothing
can write to, or an access list that closes every file which is made in it.
"""

import os
import stat
import sys
from pathlib import Path

from crew.domain.kernel.frozen import frozen

_ADDED = ("user.", "system.posix_acl_")
_INHERITED = "system.posix_acl_default"
_EXECUTABLE = 0o111
_ALL, _OWNERS = 0o7777, 0o7700


@frozen
class Made:
    """How crew makes folders and files at a place, as its umask was.

    `bits`: those of a mode that count. `inherited`: the mark that a folder may have from there.
    """

    mode: int
    bits: int
    inherited: int

    def restore(self, place: str | int, *, is_file: bool = False) -> None:
        """Restore a folder, named by its path, or a file, which the caller has opened."""
        for name in self._foreign(place):
            os.removexattr(place, name)
        wanted = self.mode & 0o666 if is_file else self.mode
        found = stat.S_IMODE(os.stat(place).st_mode)  # noqa: PTH116 - may be a descriptor
        if (found & ~self.inherited) & self.bits != wanted & self.bits:
            os.chmod(place, wanted)  # noqa: PTH101 - may be a descriptor

    def is_like(self, file: "os.DirEntry[str]", git_mode: int) -> bool:
        """Whether a file or a link is as git writes it: its mode, its attributes and one name."""
        found = file.stat(follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return found.st_nlink == 1
        wanted = self.mode if git_mode & _EXECUTABLE else self.mode & 0o666
        is_right = stat.S_IMODE(found.st_mode) & self.bits == wanted & self.bits
        return is_right and found.st_nlink == 1 and not self._foreign(file.path)

    def _foreign(self, place: str | int) -> list[str]:
        """The attributes there that were not inherited."""
        has_lists = self.bits != _ALL
        return [one for one in _added_to(place) if one.startswith("user.") or not has_lists]


def made_like(git_dir: Path, place: Path) -> Made:
    """As crew makes them at this place. It wrote HEAD there, where no gate can write, as a file."""
    mode = stat.S_IMODE((git_dir / "HEAD").stat().st_mode) & 0o666
    has_lists = _INHERITED in _added_to(str(place))  # those of what is below say more than a umask
    return Made(
        mode=mode | (mode & 0o444) >> 2,
        bits=_OWNERS if has_lists else _ALL,
        inherited=stat.S_IMODE(place.stat().st_mode) & stat.S_ISGID,
    )


def _added_to(place: str | int) -> list[str]:
    """The attributes there that a program can add without rights."""
    if sys.platform != "linux":
        return []
    try:
        return [name for name in os.listxattr(place) if name.startswith(_ADDED)]
    except OSError:  # this file system has none
        return []
