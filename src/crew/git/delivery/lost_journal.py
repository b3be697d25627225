"""Makes the journal of a killed sync again, when its file was damaged, from what the sync left."""

from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.names import landed_ref
from crew.git.delivery.sync_journal import TOKEN, Journal
from crew.git.repository import Repository, commit_of, ref_tip
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktree_list import worktree_paths


def found_journal(repo: Repository) -> Journal | None:
    """The journal of the one sync that left its folder; None if there is none, or it is unclear."""
    found = list(_unfinished(repo))
    return found[0] if len(found) == 1 else None


def _unfinished(repo: Repository) -> Iterator[Journal]:
    for path, target in worktree_paths(repo).items():
        git_dir = git_dir_for(repo, path)
        for token in _tokens(git_dir) if git_dir and target else ():
            if ends := _ends(repo, target):
                old, new = ends
                yield Journal(
                    token=token,
                    path=str(path),
                    git_dir=str(git_dir),
                    target=target,
                    old=old,
                    new=new,
                )


def _tokens(git_dir: Path) -> list[str]:
    home = git_dir / "crew-sync"
    if home.is_symlink() or not home.is_dir():
        return []
    return [entry.name for entry in home.iterdir() if TOKEN.fullmatch(entry.name)]


def _ends(repo: Repository, target: str) -> tuple[str, str] | None:
    """From which commit to which the sync was to move the branch, which may have moved already."""
    branch = f"refs/heads/{target}"
    at, landed = ref_tip(repo, branch), ref_tip(repo, landed_ref(target))
    if at is None or landed is None:
        return None
    if at != landed:
        return at, landed
    before = commit_of(repo, f"{branch}@{{1}}")
    return (before, at) if before else None
