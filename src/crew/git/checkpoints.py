"""Checkpoints: everything in a worktree, untracked files included, as a commit in a hidden ref."""

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crew.domain.effects import effect
from crew.domain.errors import Conflict, NotFound
from crew.domain.frozen import frozen
from crew.domain.names import branch_name, checkpoint_ref
from crew.git import linked
from crew.git.command import Answer, ask, failure, git
from crew.git.merges import MergeConflict, identity, merged_tree
from crew.git.refs import Moved, advance
from crew.git.repository import Repository, commit_of, ref_tip
from crew.git.status import WorktreeState, load_status, read_status

_FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(subject)"
_RESTORING = "crew-restoring"
LONG_S = 1800.0

_taken: dict[tuple[Path, str], "Checkpoint"] = {}


@frozen
class Checkpoint:
    """One kept state of a task's worktree; `parent` is the HEAD it stood on, if there was one."""

    number: int
    commit: str
    tree: str
    parent: str | None
    label: str
    at: float


@frozen
class _Place:
    """A worktree, the git dir that knows it, and the variables that tie git to the two."""

    path: Path
    git_dir: Path
    is_own: bool  # whether the git dir's HEAD and index are this worktree's
    env: Mapping[str, str]


def take_checkpoint(
    repo: Repository, worktree: Path, task: str, *, label: str, at: float
) -> Checkpoint | None:
    """Keep what a worktree holds; None when all of it is kept already.

    Neither the files nor the index of the worktree change.
    """
    worktree = worktree.absolute()
    if not worktree.is_dir():
        return None
    place = _place(repo, worktree)
    status = read_status(worktree, place.git_dir, env=place.env)
    if isinstance(status, WorktreeState) and not status.changed and _is_kept(repo, status):
        return None
    head = _head_of(repo, place, status, task)
    tree = _write_tree(place, head=head, status=status)
    return _keep(repo, task, tree=tree, parent=head, label=label, at=at)


def keep_commit(
    repo: Repository, task: str, commit: str, *, label: str, at: float
) -> Checkpoint | None:
    """Keep a commit with all its history, for a branch that is about to go; None when it is."""
    tree = git(repo.common_dir, "rev-parse", "--verify", f"{commit}^{{tree}}")
    return _keep(repo, task, tree=tree, parent=commit, label=label, at=at)


def checkpoints(repo: Repository, task: str) -> list[Checkpoint]:
    """A task's checkpoints, oldest first."""
    return sorted(_listed(repo, f"refs/crew/checkpoints/{task}/"), key=lambda kept: kept.number)


def restore(repo: Repository, task: str, number: int | None, into: Path) -> Checkpoint:
    """Write a checkpoint's files (the last one by default) to a directory that is new or empty."""
    chosen = _chosen(repo, task, number)
    into = into.absolute()
    if into.is_symlink() or (into.exists() and (not into.is_dir() or any(into.iterdir()))):
        raise Conflict(f"{into} is not empty", hint="name a folder that is empty or new")
    into.parent.mkdir(parents=True, exist_ok=True)
    partial = into.with_name(f".{into.name}.crew-restore-{chosen.commit[:12]}")
    _write_files(repo, chosen.commit, partial)
    _put_in_place(partial, into)
    return chosen


def restore_into_worktree(repo: Repository, path: Path, commit: str) -> None:
    """Bring a checkpoint's files back into a clean worktree, as uncommitted changes."""
    place = _place(repo, path.absolute())
    mark = place.git_dir / _RESTORING
    if place.git_dir == repo.common_dir:
        raise Conflict(f"{path} is not a worktree of crew", hint="restore into a new folder")
    if not (mark.exists() and mark.read_text() == commit):
        state = load_status(place.path, place.git_dir, env=place.env)
        if state.changed:
            raise Conflict(
                f"{path} has uncommitted changes", hint="restore into a new folder instead"
            )
        _mark_restoring(mark, commit)
    head = git(place.path, "rev-parse", "--verify", "HEAD", env=place.env)
    _bring_back(place, _tree_on(repo, head, commit))
    _unstage(place)
    mark.unlink(missing_ok=True)


@effect("git.drop_checkpoints")
def drop_checkpoints(repo: Repository, *, older_than: float) -> int:
    """Forget the checkpoints taken before a moment; returns how many."""
    old = [kept for kept in _listed_with_refs(repo) if kept[1].at < older_than]
    if old:
        lines = "".join(f"delete {ref} {kept.commit}\n" for ref, kept in old)
        git(repo.common_dir, "update-ref", "--stdin", stdin=lines.encode())
    return len(old)


def _place(repo: Repository, worktree: Path) -> _Place:
    """Files whose git dir is gone are kept through the repository's own one."""
    git_dir = linked.git_dir_for(repo, worktree) or repo.common_dir
    if git_dir != repo.common_dir and not linked.is_whole(git_dir):
        git_dir = repo.common_dir
    return _Place(
        path=worktree,
        git_dir=git_dir,
        is_own=git_dir != repo.common_dir or worktree == repo.root,
        env=linked.environment_for(git_dir, worktree),
    )


def _is_kept(repo: Repository, status: WorktreeState) -> bool:
    """A clean worktree is kept by its branch; a detached one only if some ref holds its HEAD."""
    if status.head is None or status.branch is not None:
        return True
    holders = git(
        repo.common_dir,
        "for-each-ref",
        "--count=1",
        f"--contains={status.head}",
        "refs/heads",
        "refs/crew",
    )
    return holders != ""


def _head_of(
    repo: Repository, place: _Place, status: WorktreeState | Answer, task: str
) -> str | None:
    if not place.is_own:
        return commit_of(repo, f"refs/heads/{branch_name(task)}")
    if isinstance(status, WorktreeState):
        return status.head
    answer = ask(place.path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", env=place.env)
    return answer.out.decode().strip() or None


def _nested(status: WorktreeState | Answer) -> tuple[str, ...]:
    """Repositories inside the worktree; git would keep of them no more than a commit id."""
    if isinstance(status, Answer):
        return ()
    return tuple(path for path in status.changed if path.endswith("/"))


def _write_tree(place: _Place, *, head: str | None, status: WorktreeState | Answer) -> str:
    nested = _nested(status)
    is_sound = place.is_own and isinstance(status, WorktreeState)
    with _private_index(place, head, copy=is_sound) as index:
        env = {**place.env, "GIT_INDEX_FILE": str(index)}
        for folder in nested:
            _add_nested(place, folder, env)
        excluded = [f":(top,exclude,literal){folder.rstrip('/')}" for folder in nested]
        pathspecs = "\0".join([":/", *excluded])
        # An unreadable file must not keep all the others from being kept.
        args = (
            "add",
            "--all",
            "--ignore-errors",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        )
        added = ask(place.path, *args, env=env, stdin=os.fsencode(pathspecs), timeout_s=LONG_S)
        if added.code not in {0, 1}:
            raise failure(args, added)
        return git(place.path, "write-tree", env=env)


@contextmanager
def _private_index(place: _Place, head: str | None, *, copy: bool) -> Iterator[Path]:
    """An index to add to; a copy of the worktree's keeps what git knows of unchanged files."""
    index = place.git_dir / f"crew-index-{uuid.uuid4().hex}"
    try:
        if copy and (place.git_dir / "index").is_file():
            shutil.copy2(place.git_dir / "index", index)
        elif head is not None:
            env = {**place.env, "GIT_INDEX_FILE": str(index)}
            git(place.path, "read-tree", head, env=env)
        yield index
    finally:
        index.unlink(missing_ok=True)
        index.with_name(index.name + ".lock").unlink(missing_ok=True)


def _add_nested(place: _Place, folder: str, env: Mapping[str, str]) -> None:
    inside = place.path / folder
    listed = ask(inside, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = [name for name in listed.out.split(b"\0") if name]
    prefix = os.fsencode(folder)
    present = [prefix + name for name in dict.fromkeys(names) if _is_file(inside, name)]
    git(
        place.path,
        "update-index",
        "--add",
        "-z",
        "--stdin",
        stdin=b"\0".join(present),
        env=env,
        timeout_s=LONG_S,
    )


def _is_file(folder: Path, name: bytes) -> bool:
    file = folder / os.fsdecode(name)
    return file.is_symlink() or file.is_file()


def _keep(
    repo: Repository, task: str, *, tree: str, parent: str | None, label: str, at: float
) -> Checkpoint | None:
    while True:
        last = _last(repo, task)
        if last is not None and (last.tree, last.parent) == (tree, parent):
            return None
        number = last.number + 1 if last is not None else 1
        subject = " ".join(label.split()) or "checkpoint"
        commit = _commit(repo, tree, parent, subject, at)
        try:
            advance(repo, checkpoint_ref(task, number), to=commit, expected=None)
        except Moved:
            _taken.pop((repo.common_dir, task), None)
            continue
        kept = Checkpoint(
            number=number, commit=commit, tree=tree, parent=parent, label=subject, at=float(int(at))
        )
        _taken[repo.common_dir, task] = kept
        return kept


def _last(repo: Repository, task: str) -> Checkpoint | None:
    """The newest checkpoint; remembered, but only believed while its ref is there to be seen."""
    known = _taken.get((repo.common_dir, task))
    if known is not None and ref_tip(repo, checkpoint_ref(task, known.number)) == known.commit:
        return known
    return max(checkpoints(repo, task), key=lambda kept: kept.number, default=None)


@effect("git.commit_checkpoint")
def _commit(repo: Repository, tree: str, parent: str | None, subject: str, at: float) -> str:
    parents = ("-p", parent) if parent is not None else ()
    return git(
        repo.common_dir,
        "commit-tree",
        *parents,
        tree,
        stdin=subject.encode("utf-8", "surrogateescape"),
        env=identity(at),
    )


def _chosen(repo: Repository, task: str, number: int | None) -> Checkpoint:
    kept = checkpoints(repo, task)
    chosen = [one for one in kept if number is None or one.number == number]
    if not chosen:
        have = ", ".join(str(one.number) for one in kept)
        raise NotFound(
            f"task {task} has no checkpoint {number or ''}".rstrip(),
            hint=f"it has: {have}"
            if have
            else f"what it committed is on its branch: `crew diff {task}` shows it",
        )
    return chosen[-1]


def _listed(repo: Repository, prefix: str) -> list[Checkpoint]:
    return [kept for _, kept in _listed_with_refs(repo, prefix)]


def _listed_with_refs(
    repo: Repository, prefix: str = "refs/crew/checkpoints/"
) -> list[tuple[str, Checkpoint]]:
    text = git(repo.common_dir, "for-each-ref", f"--format={_FORMAT}", prefix)
    return [_parsed(line) for line in text.split("\n") if line]


def _parsed(line: str) -> tuple[str, Checkpoint]:
    ref, commit, tree, parent, at, label = line.split("\0", 5)
    return ref, Checkpoint(
        number=int(ref.rpartition("/")[2]),
        commit=commit,
        tree=tree,
        parent=parent or None,
        label=label,
        at=float(at),
    )


@effect("git.restore_files")
def _write_files(repo: Repository, commit: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index = repo.common_dir / f"crew-index-{uuid.uuid4().hex}"
    env = {**linked.environment_for(repo.common_dir, folder), "GIT_INDEX_FILE": str(index)}
    try:
        git(folder, "read-tree", commit, env=env)
        git(folder, "checkout-index", "--all", env=env, timeout_s=LONG_S)
    finally:
        index.unlink(missing_ok=True)


@effect("git.place_restored")
def _put_in_place(partial: Path, into: Path) -> None:
    partial.rename(into)


def _tree_on(repo: Repository, head: str, commit: str) -> str:
    """The checkpoint's files on top of HEAD, which may have moved on since it was taken."""
    if commit_of(repo, f"{commit}^1") == head:
        return f"{commit}^{{tree}}"
    merged = merged_tree(repo, onto=head, head=commit)
    if isinstance(merged, MergeConflict):
        raise Conflict(
            f"the checkpoint clashes with the branch in {', '.join(merged.paths)}",
            hint="restore into a new folder instead",
        )
    return merged


@effect("git.mark_restoring")
def _mark_restoring(mark: Path, commit: str) -> None:
    mark.write_text(commit)


@effect("git.bring_back")
def _bring_back(place: _Place, tree: str) -> None:
    git(place.path, "read-tree", "-u", "--reset", tree, env=place.env, timeout_s=LONG_S)


@effect("git.unstage")
def _unstage(place: _Place) -> None:
    ask(place.path, "reset", "-q", "--mixed", env=place.env)
