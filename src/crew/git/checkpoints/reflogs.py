"""Finds commits of a worktree that no ref holds any more: reset away, amended or stashed.

If HEAD only moved from commits to their children, this needs no git process.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.commit_files import MOST_READ, read_commit
from crew.git.git_command import ask, git
from crew.git.hardening import stamp_of
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import (
    agent_git_of,
    all_refs,
    other_tips,
    read_bytes,
    read_head,
)
from crew.git.task_repository.take_in import NotTakenIn, existing, take_in
from crew.git.worktrees.folder_removal import REPLACED

MOST_MOVES = 1000
"""Of a longer reflog only the end is read."""

_LARGEST = 100_000_000
_MOST_ALONE = 100
"""At most this number of commits is taken in one by one, if git refuses them together."""
_MOVE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^\n]*)")
_ID = re.compile(rb"[0-9a-f]{40}([0-9a-f]{24})?")

_INDEX = "index on "
"""The subject of a stash's second parent, the commit of the index."""

_checked: dict[Path, tuple[object, ...]] = {}


@frozen
class _Line:
    """A reflog whose commits are all ancestors of its HEAD. Agents mostly add to it."""

    log: bytes
    head: str | None
    ancestors: frozenset[str]


_lines: dict[Path, _Line] = {}
_LONGEST_LINE = 100_000  # bytes of a reflog
_MOST_LINES = 200


def left_behind(
    repo: Repository, git_dir: Path, *, head: str | None, branch: str | None
) -> tuple[str, ...]:
    """The newest commits that a reset, an amended commit or a stash left behind.

    Commits of other branches and checkpoints do not count. All worktrees share their stashes: only
    those that were made on this branch count.
    """
    logs = repo.common_dir / "logs"
    own = git_dir / "logs" / "HEAD"
    of_branch = logs / "refs" / "heads" / (branch or "-")
    files = (own, of_branch, logs / "refs" / "stash", git_dir / "ORIG_HEAD")
    stamp = (head, *stamp_of(files))
    if _checked.get(git_dir) == stamp:
        return ()
    moves = [(old, new) for old, new, _ in _moves(_read(own))]
    ids = {commit for move in moves for commit in move}
    ids |= {commit for old, new, _ in _moves(_read(of_branch)) for commit in (old, new)}
    ids |= {new for _, new, why in _moves(_read(files[2])) if f"n {branch}: ".encode() in why}
    ids |= {found[0] for found in (_ID.match(_read(files[3])),) if found}
    known = _ancestors(repo, moves, head)
    doubtful = _commits(ids) - known
    tips = _held_by_none(repo, doubtful, head) if doubtful else ()
    if not tips:
        _checked[git_dir] = stamp
    return tips


def left_in_own(repo: Repository, crew_git: Path, *, head: str | None) -> tuple[str, ...]:
    """The same for a repository of its own, with its other branches, its tags and its stash.

    Commits of a repository that the agent made in its place count too. All of them exist only
    there, so they are taken in before git compares them with the refs.
    """
    agent_git = agent_git_of(crew_git)
    files = [f"{agent_git}/{name}" for name in ("logs/HEAD", "logs/refs/stash", "ORIG_HEAD")]
    tips = other_tips(crew_git)
    replaced = tuple(sorted(name for name in os.listdir(crew_git) if name.startswith(REPLACED)))  # noqa: PTH208
    stamps = stamp_of(files)
    stamp = (head, tuple(sorted(tips.items())), replaced, *stamps)
    if _checked.get(crew_git) == stamp:
        return ()
    read = (_read(file) if seen else b"" for file, seen in zip(files, stamps, strict=True))
    log, stash, origin = read
    moved, known = _moved_since(repo, crew_git, log, head)
    ids = {new for _, new, _ in _moves(stash)} | moved
    ids |= {found[0] for found in (_ID.match(origin),) if found}
    doubtful = _commits(ids) | set(tips.values())
    doubtful |= {at.commit for at in (read_head(agent_git),) if at is not None and at.commit}
    doubtful -= known
    found = _taken_in(repo, crew_git, doubtful, head) if doubtful else []
    for git_dir in (crew_git / name for name in replaced):
        if commits := _tips_of(git_dir):
            found += _taken_in(repo, crew_git, commits, head, objects=git_dir / "objects")
    kept = _held_by_none(repo, set(found), head) if found else ()
    if not kept:
        _checked[crew_git] = stamp
    return kept


def _moved_since(
    repo: Repository, crew_git: Path, log: bytes, head: str | None
) -> tuple[set[bytes], frozenset[str]]:
    """The commits in the part of a reflog that is new, and ancestors of HEAD in all of it."""
    line = _lines.pop(crew_git, None)
    begin = len(line.log) if line is not None and log.startswith(line.log) else 0
    moves = [(old, new) for old, new, _ in _moves(log[begin:])]
    is_short = len(log) < _LONGEST_LINE  # then all of it is read once, and remembered
    known = _ancestors(repo, moves, head, most=MOST_MOVES if is_short else MOST_READ)
    if line is not None and begin:
        if line.head not in known:
            return _moved_since(repo, crew_git, log, head)
        known |= line.ancestors
    moved = {commit for move in moves for commit in move}
    if is_short and log.endswith(b"\n") and not _commits(moved) - known:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        _lines[crew_git] = _Line(log=log, head=head, ancestors=known)
    return moved, known


def _commits(ids: Iterable[bytes]) -> set[str]:
    """The ids as text, without the one of zeros that stands for no commit."""
    return {commit.decode() for commit in ids if commit.strip(b"0")}


def _tips_of(git_dir: Path) -> set[str]:
    """The commits at the refs and the HEAD of a repository that an agent made."""
    head = read_head(git_dir)
    at = {head.commit} if head is not None and head.commit else set[str]()
    return {*all_refs(git_dir).values(), *at}


def _taken_in(
    repo: Repository,
    crew_git: Path,
    commits: set[str],
    head: str | None,
    *,
    objects: Path | None = None,
) -> list[str]:
    """Those of the commits that are whole. A damaged one must not cost the others."""
    without, found = [head] if head else [], list[str]()
    try:
        found = existing(repo, crew_git, sorted(commits), objects=objects)
        take_in(repo, crew_git, found, without=without, objects=objects)
    except NotTakenIn:
        last = found[-_MOST_ALONE:]
        return [one for one in last if _is_whole(repo, crew_git, one, without, objects)]
    return found


def _is_whole(
    repo: Repository, crew_git: Path, commit: str, without: list[str], objects: Path | None
) -> bool:
    try:
        take_in(repo, crew_git, [commit], without=without, objects=objects)
    except NotTakenIn:
        return False
    return True


def way_back(repo: Repository, commit: str) -> str:
    """The git command that applies a commit that was left behind to a checkout."""
    name, *parents = _text(repo, "%h %P", commit).split()
    if len(parents) <= 1:
        return f"git cherry-pick {name}"
    is_stash = _text(repo, "%s", parents[1]).startswith(_INDEX)
    return f"git stash apply {name}" if is_stash else f"git cherry-pick -m 1 {name}"


def _text(repo: Repository, form: str, commit: str) -> str:
    return git(repo.common_dir, "log", "--no-walk", "--abbrev=12", f"--format={form}", commit)


def _moves(log: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    for line in log.splitlines()[-MOST_MOVES:]:
        if found := _MOVE.match(line):
            yield found[1], found[2], found[3]


def _read(file: Path | str) -> bytes:
    return read_bytes(file, most=_LARGEST) or b""


def _ancestors(
    repo: Repository, moves: list[tuple[bytes, bytes]], head: str | None, *, most: int = MOST_READ
) -> frozenset[str]:
    """HEAD and its ancestors, as far back as every move was to a child."""
    current, known = (head or "").encode(), {head or ""}
    for old, new in moves[: -most - 1 : -1]:
        if new != current or (old != new and not _is_child(repo, new, of=old)):
            break
        current = old
        known.add(old.decode())
    return frozenset(known)


def _is_child(repo: Repository, commit: bytes, *, of: bytes) -> bool:
    found = read_commit(repo.common_dir, commit.decode())
    return found is not None and of.decode() in found.parents


def _held_by_none(repo: Repository, commits: set[str], head: str | None) -> tuple[str, ...]:
    held = ("--exclude=refs/stash", "--all", *((head,) if head else ()))
    args = ("rev-list", "--parents", "--ignore-missing", *sorted(commits), "--not", *held)
    answer = ask(repo.common_dir, *args)
    lines = [line.split() for line in os.fsdecode(answer.out).splitlines()]
    below = {parent for _, *parents in lines for parent in parents}
    return tuple(sorted(commit for commit, *_ in lines if commit not in below))
