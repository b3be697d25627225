"""Reads the uncommitted content of a worktree, and its unfinished git operation."""

import os
import shutil
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git import lfs
from crew.git.git_command import GitAnswer, ask, failure
from crew.git.task_repository.agent_index import missing, staged_in
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.task_repository.crew_index import confirm_index, settle_index
from crew.git.task_repository.take_in import refuse_special
from crew.git.worktrees.clean_check import untouched_head
from crew.git.worktrees.index_file import load_marks, read_index
from crew.git.worktrees.nested_view import changed_links, surroundings
from crew.git.worktrees.worktree_admin import is_own

_STATUS = (
    "--no-pager",
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=all",
    "--ignored=matching",
    "--ignore-submodules=all",
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
_CHANGED_IN_FOLDER = "1 .M "


@frozen
class WorktreeState:
    """`changed` are the uncommitted and untracked paths. A nested repository ends in /.

    `ignored`: the ignored paths; a folder ends in /. `hidden`: the files that the index marks as
    assumed unchanged or skipped, which are checked all the same. `links`: the commits of
    submodules by path. `overlaid`: the folders that contain tracked files and a `.git`. `staged`:
    ignored files that an agent staged in a repository of its own; `left_out`: the files that it
    leaves out of a sparse checkout. `repositories`: the folders that contain a `.git`. `closed`:
    the folders whose mode forbids to look into them.
    """

    head: str | None
    branch: str | None
    changed: tuple[str, ...]
    unfinished: str | None
    ignored: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    overlaid: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    @property
    def is_untouched(self) -> bool:
        """Whether there are only files of HEAD, and no repository among them."""
        is_plain = not (self.links or self.overlaid or self.repositories or self.closed)
        return is_plain and not (self.changed or self.ignored)


def read_status(
    worktree: Path, git_dir: Path, *, env: Mapping[str, str] | None = None
) -> WorktreeState | GitAnswer:
    """The state, or git's own answer if it failed, e.g. because of a broken index."""
    if at := untouched_head(worktree, git_dir):
        unfinished = unfinished_in(git_dir)
        return WorktreeState(head=at.commit, branch=at.branch, changed=(), unfinished=unfinished)
    walked = refuse_special(worktree, git_dir)
    began_ns = time.time_ns()
    if is_own(git_dir):
        settle_index(worktree, git_dir)
    marks = load_marks(worktree, read_index(git_dir), env)
    found = (path for path in marks.skipped if os.path.lexists(worktree / path))
    hidden = (*marks.assumed, *found)
    with _revealing(worktree, git_dir, hidden, env or {}) as seeing:
        same = lfs.settle(worktree, git_dir, index=_index_of(git_dir, seeing)).same
        answer = ask(worktree, *_STATUS, env=seeing)
    if answer.code != 0:
        return answer
    entries = os.fsdecode(answer.out).split("\0")
    head = _header(entries, "# branch.oid ")
    branch = _header(entries, "# branch.head ")
    state = WorktreeState(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        changed=(
            *_paths(entries, same),
            *changed_links(surroundings(worktree, git_dir), marks.links),
        ),
        unfinished=unfinished_in(git_dir),
        ignored=tuple(entry[2:] for entry in entries if entry.startswith("! ")),
        hidden=hidden,
        links=marks.links,
        overlaid=tuple(
            sorted(path for path in marks.folders if os.path.lexists(worktree / path / ".git"))
        ),
        repositories=walked.repositories,
        closed=walked.closed,
    )
    if not is_own(git_dir):
        return state
    if state.is_untouched and not hidden:
        confirm_index(worktree, git_dir, at_ns=began_ns)
    return _with_staged(state, worktree, git_dir)


def _index_of(git_dir: Path, env: Mapping[str, str]) -> Path:
    return Path(env.get("GIT_INDEX_FILE") or git_dir / "index")


def _with_staged(state: WorktreeState, worktree: Path, git_dir: Path) -> WorktreeState:
    """Add what the index of the agent's own repository has: crew's own has only HEAD."""
    found, changed = staged_in(worktree, git_dir), set(state.changed)
    gone = missing(worktree, found.skipped) & changed
    more = tuple(name for name in found.changed if not {name, f"{name}/"} & changed)
    return replace(
        state,
        changed=(*(name for name in state.changed if name not in gone), *more),
        staged=tuple(name for name in more if _is_file(worktree / name)),
        left_out=tuple(sorted(gone)),
    )


def _is_file(file: Path) -> bool:
    return file.is_symlink() or file.is_file()


@contextmanager
def private_index(git_dir: Path, *, copy: bool) -> Iterator[Path]:
    """A temporary index. A copy of the worktree's index keeps git's cached file data."""
    index = git_dir / f"crew-index-{uuid.uuid4().hex}"
    try:
        if copy and (git_dir / "index").is_file():
            shutil.copy2(git_dir / "index", index)
        yield index
    finally:
        index.unlink(missing_ok=True)
        index.with_name(index.name + ".lock").unlink(missing_ok=True)


def reveal(worktree: Path, hidden: Iterable[str], env: Mapping[str, str]) -> None:
    """Make git check these files again. `env` names a temporary index."""
    stdin = b"\0".join(os.fsencode(path) for path in hidden)
    if stdin:
        for mark in ("--no-assume-unchanged", "--no-skip-worktree"):
            ask(worktree, "update-index", mark, "-z", "--stdin", stdin=stdin, env=env)


@contextmanager
def _revealing(
    worktree: Path, git_dir: Path, hidden: tuple[str, ...], env: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    if not hidden:
        yield env
        return
    with private_index(git_dir, copy=True) as index:
        seeing = {**env, "GIT_INDEX_FILE": str(index)}
        reveal(worktree, hidden, seeing)
        yield seeing


def load_status(
    worktree: Path, git_dir: Path, *, env: Mapping[str, str] | None = None
) -> WorktreeState:
    status = read_status(worktree, git_dir, env=env)
    if isinstance(status, GitAnswer):
        raise failure(_STATUS[1:], status)
    return status


def unfinished_in(git_dir: Path) -> str | None:
    """The git operation that a person or an agent started there and did not finish."""
    if is_own(git_dir):
        git_dir = agent_git_of(git_dir)
    try:
        there = os.listdir(git_dir)  # noqa: PTH208 - names are enough, for every step
    except OSError:
        return None
    return next((name for file, name in _UNFINISHED.items() if file in there), None)


def _header(entries: list[str], prefix: str) -> str | None:
    return next((e.removeprefix(prefix) for e in entries if e.startswith(prefix)), None)


def _paths(entries: list[str], same: Container[str]) -> Iterator[str]:
    """The changed paths, without the files that have the `same` content: git sees no pointers."""
    for entry in entries:
        if entry.startswith("? "):
            yield entry[2:]
        elif entry[:2] in {"1 ", "u "}:
            path = entry.split(" ", _FIELDS_BEFORE_PATH[entry[0]])[-1]
            if not (path in same and entry.startswith(_CHANGED_IN_FOLDER)):
                yield path
