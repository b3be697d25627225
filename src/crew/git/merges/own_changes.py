"""Tells a task's own new commits from merges that only bring in what landed."""

from crew.git.git_command import git
from crew.git.merges.merges import MergeConflict, contains, contents, merged_tree
from crew.git.repository import Repository

MOST_MERGES = 20
"""Of a branch with more of them, none is looked at: an agent can make thousands."""

_OPENS, _CLOSES = b"<<<<<<< ", b">>>>>>> "


def only_merged(repo: Repository, *, before: str, head: str, landed: str) -> bool:
    """Whether `head` adds nothing to `before` but merges of landed commits.

    In such a merge only the lines of conflicts may differ from what git makes of both sides.
    """
    if not contains(repo, ancestor=before, descendant=head):
        return False
    most = f"--max-count={MOST_MERGES + 1}"
    listed = git(repo.common_dir, "rev-list", "--parents", most, head, f"^{before}", f"^{landed}")
    commits = [line.split(" ") for line in listed.splitlines()]
    if len(commits) > MOST_MERGES:
        return False
    return all(_brings_in(repo, commit, parents, landed) for commit, *parents in commits)


def _brings_in(repo: Repository, commit: str, parents: list[str], landed: str) -> bool:
    """Whether the commit merges landed work, and nothing else."""
    if len(parents) != 2 or not contains(repo, ancestor=parents[1], descendant=landed):
        return False
    tree = git(repo.common_dir, "rev-parse", f"{commit}^{{tree}}")
    merged = merged_tree(repo, onto=parents[0], head=parents[1])
    if not isinstance(merged, MergeConflict):
        return merged == tree
    args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", merged.tree, tree)
    changed = {name for name in git(repo.common_dir, *args).split("\0") if name}
    if not changed <= set(merged.paths):
        return False
    sides = (merged.tree, tree, *parents)
    blobs = contents(repo, [f"{side}:{path}" for path in changed for side in sides])
    return all(_resolves(*(blobs[f"{side}:{path}"] for side in sides)) for path in changed)


def _resolves(
    marked: bytes | None, result: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bool:
    """Whether a file is a side of its conflict, or has everything around the marked lines."""
    if result in (ours, theirs):
        return True
    around = _around(marked or b"")
    if result is None or len(around) == 1:
        return False
    first, *middle, last = around
    if len(result) < len(first) + len(last):
        return False
    if not (result.startswith(first) and result.endswith(last)):
        return False
    at, end = len(first), len(result) - len(last)
    for part in middle:
        at = result.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _around(marked: bytes) -> list[bytes]:
    """The parts of a file before, between and after its conflicts."""
    parts, is_inside = [b""], False
    for line in marked.splitlines(keepends=True):
        if line.startswith(_OPENS) and not is_inside:
            is_inside = True
            parts.append(b"")
        elif line.startswith(_CLOSES) and is_inside:
            is_inside = False
        elif not is_inside:
            parts[-1] += line
    return parts
