"""Merges commits without a checkout. The same merge always gives the same commit."""

import os
import re

from crew.domain.kernel.frozen import frozen
from crew.git import lfs
from crew.git.commit_files import has_tree, is_in_history, read_commit
from crew.git.git_command import GitAnswer, GitFailed, ask, failure, git
from crew.git.merges.attributes import attributes_worktree
from crew.git.merges.favoured_side import favoured_tree
from crew.git.promised_objects import bring_for_merge, bring_promised
from crew.git.refs import Moved, advance
from crew.git.repository import Repository, commit_of
from crew.git.task_repository.plain_objects import NotPlain, PlainEntry, stored_tree
from crew.git.worktrees.worktree_admin import environment_for
from crew.system.crash_points import effect

__all__ = [
    "MergeConflict",
    "Merged",
    "Moved",
    "Unmergeable",
    "advance",
    "contains",
    "contents",
    "identity",
    "merge",
    "merged_tree",
]

_OBJECT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


_TASKS = ".crew/tasks/"


@frozen
class Merged:
    """The merge commit. No ref points to it yet."""

    commit: str


@frozen
class Unmergeable:
    """The commit that cannot be merged with anything: it is missing, or has another history."""

    reason: str


@frozen
class MergeConflict:
    """The paths in conflict, git's messages, and the tree with the marked files."""

    paths: tuple[str, ...]
    detail: str
    tree: str


def merge(
    repo: Repository,
    *,
    onto: str,
    head: str,
    message: str,
    at: float,
    favours: str = "",
    is_persons: bool = False,
) -> Merged | MergeConflict | Unmergeable:
    """Merge `head` into `onto` as a commit with both as parents.

    `favours` names the side that wins in a conflict: `mine` is the side of `head`. `is_persons`:
    people made the commits of `head`, so they may change the files of tasks.
    """
    ours, theirs = _commit_id(repo, onto), _commit_id(repo, head)
    bring_for_merge(repo, onto=ours, head=theirs)
    if is_persons:
        bring_promised(repo, theirs)
    try:
        tree = merged_tree(repo, onto=ours, head=theirs)
    except GitFailed:
        if reason := _fault_of(repo, theirs, onto=ours):
            return Unmergeable(reason=reason)
        raise
    if isinstance(tree, MergeConflict) and favours:
        tree = favoured_tree(repo, onto=ours, head=theirs, favours_head=favours == "mine")
    if isinstance(tree, MergeConflict):
        return tree
    if reason := _intrusion(repo, onto=ours, tree=tree, is_persons=is_persons):
        return Unmergeable(reason=reason)
    return Merged(commit=_commit(repo, tree, (ours, theirs), message, at))


def _intrusion(repo: Repository, *, onto: str, tree: str, is_persons: bool) -> str:
    """Why a merge must not reach a checkout: it changes files in the folder of crew's own state.

    New ones would be in the way of every delivery, or replace crew's records where there are none.
    Only people may change the files of tasks: an agent could free a task of its review there.
    """
    if _has_same_state(repo, onto, tree):
        return ""
    args = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", onto, tree)
    words = git(repo.common_dir, *args, "--", ":(icase).crew").split("\0")
    for how, name in zip(words[::2], words[1::2], strict=False):
        if name.casefold().startswith(_TASKS):
            if not is_persons:
                return f"it changes {name!a}, and only people change task files"
        elif how == "A":
            return f"it adds {name!a}, and only .crew/tasks may be committed there"
    return ""


def _has_same_state(repo: Repository, onto: str, tree: str) -> bool:
    """Whether the folder of crew's state is the same in both; False if git must compare them."""
    commit = read_commit(repo.common_dir, onto)
    try:
        return commit is not None and _state(repo, commit.tree) == _state(repo, tree)
    except NotPlain:
        return False


def _state(repo: Repository, tree: str) -> list[PlainEntry]:
    entries = stored_tree(repo.common_dir / "objects", tree)
    return [one for name, one in entries.items() if name.lower() == b".crew"]


def _fault_of(repo: Repository, commit: str, *, onto: str) -> str:
    """Why this commit cannot be merged with any other; empty if git failed for another reason."""
    if not is_readable(repo, commit):
        return f"the commit {commit[:12]} is missing or damaged"
    base = ask(repo.common_dir, "merge-base", commit, onto)
    if base.code == 1 and is_readable(repo, onto):
        return "its branch has no commit in common with the target"
    return ""


def is_readable(repo: Repository, commit: str) -> bool:
    """Whether the commit and the tree it names can be read."""
    if has_tree(repo.common_dir, commit):
        return True
    return ask(repo.common_dir, "cat-file", "-e", f"{commit}^{{tree}}").code == 0


def merged_tree(
    repo: Repository, *, onto: str, head: str, style: str = "merge"
) -> str | MergeConflict:
    """The tree of the merge. Exit code 1 with a tree id is a conflict, all else an error.

    `style` is the style of conflict markers in that tree: "diff3" includes the base.
    """
    place = attributes_worktree(repo, onto)
    marks = ("-c", f"merge.conflictStyle={style}")
    args = (*marks, "merge-tree", "--write-tree", "-z", "--name-only", "--messages", onto, head)
    answer = ask(place, *args, env=environment_for(repo.common_dir, place))
    tree, _, rest = os.fsdecode(answer.out).partition("\0")
    if _OBJECT_ID.fullmatch(tree) is None or answer.code not in {0, 1}:
        raise failure(args, answer)
    return tree if answer.code == 0 else _conflict(repo, tree, rest, sides=(onto, head))


def contains(repo: Repository, *, ancestor: str, descendant: str) -> bool:
    """Whether a commit has another in its history. A commit that is missing is in none."""
    known = is_in_history(repo.common_dir, ancestor=ancestor, descendant=descendant)
    if known is not None:
        return known
    args = ("merge-base", "--is-ancestor", ancestor, descendant)
    answer = ask(repo.common_dir, *args)
    if answer.code not in {0, 1} and is_readable(repo, ancestor):
        raise failure(args, answer)
    return answer.code == 0


def identity(at: float) -> dict[str, str]:
    """Fixed author and time, so that a repeat gives the same commit."""
    moment = f"@{int(at)} +0000"
    return {
        "GIT_AUTHOR_NAME": "crew",
        "GIT_AUTHOR_EMAIL": "crew@localhost",
        "GIT_AUTHOR_DATE": moment,
        "GIT_COMMITTER_NAME": "crew",
        "GIT_COMMITTER_EMAIL": "crew@localhost",
        "GIT_COMMITTER_DATE": moment,
    }


def contents(repo: Repository, names: list[str]) -> dict[str, bytes | None]:
    """The blobs of `rev:path` names, or None if missing, read in one process."""
    stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
    answer = ask(repo.common_dir, "cat-file", "--batch", "-z", stdin=stdin)
    if answer.code != 0:
        raise failure(("cat-file",), answer)
    found: dict[str, bytes | None] = {}
    rest = answer.out
    for name in names:
        missing = os.fsencode(name) + b" missing\n"
        if rest.startswith(missing):
            found[name], rest = None, rest[len(missing) :]
            continue
        header, _, rest = rest.partition(b"\n")
        if header.endswith(b" submodule"):  # as a newer git says
            found[name] = None
            continue
        size = int(header.split(b" ")[2])
        found[name], rest = rest[:size], rest[size + 1 :]
    return found


def _conflict(repo: Repository, tree: str, rest: str, *, sides: tuple[str, str]) -> MergeConflict:
    listed, _, messages = rest.partition("\0\0")
    paths = tuple(dict.fromkeys(path for path in listed.split("\0") if path))
    conflicts = [line for line in messages.replace("\0", "\n").splitlines() if "CONFLICT (" in line]
    binary = [
        f"CONFLICT (binary): {path} is in git-lfs: take one side whole"
        for path in _in_lfs(repo, paths, sides)
    ]
    detail = "\n".join([*(line for line in conflicts if ":" in line), *binary])
    return MergeConflict(paths=paths, detail=detail, tree=tree)


def _in_lfs(repo: Repository, paths: tuple[str, ...], sides: tuple[str, str]) -> list[str]:
    """The files whose sides are pointers to contents that git cannot merge."""
    if not lfs.is_used(repo.common_dir):
        return []
    found = contents(repo, [f"{side}:{path}" for path in paths for side in sides])
    pointers = {name for name, blob in found.items() if blob and lfs.parse_pointer(blob)}
    return [path for path in paths if pointers & {f"{side}:{path}" for side in sides}]


@effect("git.commit_merge")
def _commit(repo: Repository, tree: str, parents: tuple[str, str], message: str, at: float) -> str:
    sides = [word for parent in parents for word in ("-p", parent)]
    stdin = message.encode("utf-8", "surrogateescape")
    return git(repo.common_dir, "commit-tree", *sides, tree, stdin=stdin, env=identity(at))


def _commit_id(repo: Repository, rev: str) -> str:
    if _OBJECT_ID.fullmatch(rev) is not None:
        return rev
    commit = commit_of(repo, rev)
    if commit is None:
        missing = GitAnswer(code=128, out=b"", err=f"fatal: {rev} is not a commit")
        raise failure(("merge-tree", rev), missing)
    return commit
