"""A checkout that shows the target branch, and why a delivery to it waits."""

from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref
from crew.git.worktrees.worktree_admin import environment_for

Signature = tuple[int, int, int, int]
"""Inode, size, mtime and mode. If they are equal, so is the content, even after a rename."""


class Waiting(Conflict):
    """The delivery is not possible now. The hint shows how a person gets the work."""

    code = "waiting"


@frozen
class Checkout:
    """A worktree that has the target branch checked out."""

    path: Path
    git_dir: Path
    target: str

    @property
    def env(self) -> dict[str, str]:
        return environment_for(self.git_dir, self.path)

    @property
    def index_lock(self) -> Path:
        return self.git_dir / "index.lock"


def signature_of(file: Path) -> Signature:
    found = file.lstat()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def wait_for(checkout: Checkout, reason: str) -> Waiting:
    return Waiting(
        f"{reason} in {checkout.path}",
        hint=f"commit it or move it away, or merge the work yourself: "
        f"git merge {landed_ref(checkout.target)}",
    )
