"""Lists the worktrees with their branches, and deletes a branch that none of them has."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from crew.domain.kernel.names import landed_ref, made_ref
from crew.git.git_command import ask
from crew.git.refs import delete_ref, delete_refs
from crew.git.repository import Repository, ref_tip
from crew.git.task_repository.branch_holders import checked_out
from crew.git.worktrees import worktree_admin
from crew.system.foreign_files import read_foreign


def worktree_paths(repo: Repository) -> dict[Path, str]:
    """Every worktree with its branch, the main one first. A detached one has an empty name."""
    listing = ask(repo.common_dir, "worktree", "list", "--porcelain", "-z")
    found: dict[Path, str] = {}
    path = repo.root
    for line in os.fsdecode(listing.out).split("\0"):
        word, _, rest = line.partition(" ")
        if word == "worktree":
            path = Path(rest) if found else repo.root
            found[path] = ""
        elif word == "branch":
            found[path] = rest.removeprefix("refs/heads/")
    for path, git_dir in worktree_admin.own_folders(repo):
        found[path] = (symbolic_head(git_dir) or "").removeprefix("refs/heads/")
    return found


def delete_branch(
    repo: Repository, branch: str, *, expected: str, marks: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Delete a branch that is at `expected` and that no worktree has checked out.

    `marks` are refs to delete with it, and their commits.
    """
    holders = worktree_paths(repo) if _may_be_held(repo, branch) else {}
    holder = next((path for path, held_one in holders.items() if held_one == branch), None)
    if holder is not None:
        raise checked_out(branch, holder)
    delete_refs(repo, {f"refs/heads/{branch}": expected, **marks})


def delete_made_branch(repo: Repository, branch: str) -> None:
    """Delete a branch that crew made, and then crew's mark of it.

    Without the mark, a lock that a killed git left on the branch would count as a person's.
    """
    if head := ref_tip(repo, f"refs/heads/{branch}"):  # it may also be a target
        landed = {mark: at for mark in (landed_ref(branch),) if (at := ref_tip(repo, mark))}
        delete_branch(repo, branch, expected=head, marks=landed)
    if made := ref_tip(repo, made_ref(branch)):
        delete_ref(repo, made_ref(branch), expected=made)


def _may_be_held(repo: Repository, branch: str) -> bool:
    """Whether a HEAD names the branch, or cannot be read, so that git has to decide."""
    if (repo.common_dir / "reftable").exists():
        return True
    try:
        heads = [symbolic_head(git_dir) for git_dir in worktree_admin.git_dirs(repo)]
    except OSError:
        return True
    return f"refs/heads/{branch}" in heads


def symbolic_head(git_dir: Path) -> str | None:
    """The branch (full name) that a git dir is on; None if its HEAD is detached."""
    text = os.fsdecode(read_foreign(f"{git_dir}/HEAD", max_bytes=4096)).strip()
    return text.removeprefix("ref: ") if text.startswith("ref: ") else None
