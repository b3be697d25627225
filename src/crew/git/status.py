"""What a worktree holds that is not committed, and what git was in the middle of there."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from crew.domain.frozen import frozen
from crew.git.command import Answer, ask, failure
from crew.git.untouched import untouched_head

_STATUS = (
    "--no-pager",
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=all",
    "--ignored=no",
    "--no-renames",
    "--no-ahead-behind",
    "-z",
)
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}


@frozen
class WorktreeState:
    """`changed` are the uncommitted paths, also untracked ones; a nested repository ends in /."""

    head: str | None
    branch: str | None
    changed: tuple[str, ...]
    unfinished: str | None


def read_status(
    worktree: Path, git_dir: Path, *, env: Mapping[str, str] | None = None
) -> WorktreeState | Answer:
    """One git process at most; its answer itself when it could not tell, e.g. a broken index."""
    if untouched := untouched_head(worktree, git_dir):
        commit, on_branch = untouched
        unfinished = unfinished_in(git_dir)
        return WorktreeState(head=commit, branch=on_branch, changed=(), unfinished=unfinished)
    answer = ask(worktree, *_STATUS, env=env, allow_lfs=True)
    if answer.code != 0:
        return answer
    entries = os.fsdecode(answer.out).split("\0")
    head = _header(entries, "# branch.oid ")
    branch = _header(entries, "# branch.head ")
    return WorktreeState(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        changed=tuple(_paths(entries)),
        unfinished=unfinished_in(git_dir),
    )


def load_status(
    worktree: Path, git_dir: Path, *, env: Mapping[str, str] | None = None
) -> WorktreeState:
    status = read_status(worktree, git_dir, env=env)
    if isinstance(status, Answer):
        raise failure(_STATUS[1:], status)
    return status


def unfinished_in(git_dir: Path) -> str | None:
    """The operation that a person or an agent has begun there and not ended."""
    return next((name for file, name in _UNFINISHED.items() if (git_dir / file).exists()), None)


def _header(entries: list[str], prefix: str) -> str | None:
    return next((e.removeprefix(prefix) for e in entries if e.startswith(prefix)), None)


def _paths(entries: list[str]) -> Iterator[str]:
    for entry in entries:
        if entry.startswith("? "):
            yield entry[2:]
        elif entry[:2] in {"1 ", "u "}:
            yield entry.split(" ", _FIELDS_BEFORE_PATH[entry[0]])[-1]
