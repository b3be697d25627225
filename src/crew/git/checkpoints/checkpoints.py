"""Takes, lists and restores checkpoints: commits under a hidden ref, with untracked files.

The first parent is the HEAD of the worktree. The other parents are commits that would be lost
otherwise: commits that were reset away, and the history of nested repositories. The message names
them.
"""

import shutil
import uuid
from collections.abc import Container
from pathlib import Path

from crew.domain.kernel.errors import Conflict, NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import branch_name, checkpoint_ref
from crew.domain.kernel.text import commit_line
from crew.git import lfs
from crew.git.checkpoints.checkpoint_notes import NO_NOTES, Notes, read_notes
from crew.git.checkpoints.nested_history import bring_back_history
from crew.git.checkpoints.reflogs import left_behind, left_in_own
from crew.git.checkpoints.refused_files import LONG_S
from crew.git.checkpoints.snapshots import (
    Holding,
    SnapshotPlace,
    keep_histories,
    look,
    place_of,
    write_tree,
)
from crew.git.git_command import GitAnswer, ask, git
from crew.git.merges.merges import MergeConflict, identity, merged_tree
from crew.git.refs import Moved, advance, delete_refs
from crew.git.repository import Repository, commit_of, ref_tip, refs_like
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktree_status import WorktreeState, load_status
from crew.system.crash_points import effect

_FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(contents)"
_END = "%1e"  # after each checkpoint, since a message has several lines
_RESTORING = "crew-restoring"

_taken: dict[tuple[Path, str], "Checkpoint"] = {}


@frozen
class Checkpoint:
    """One saved state of a task's worktree. `parent` is its HEAD, if it had one."""

    number: int
    commit: str
    tree: str
    parent: str | None
    label: str
    at: float
    notes: Notes = NO_NOTES


def take_checkpoint(
    repo: Repository,
    worktree: Path,
    task: str,
    *,
    label: str,
    at: float,
    with_ignored: bool = False,
    max_bytes: int | None = None,
    is_taken_in: bool = False,
) -> Checkpoint | None:
    """Save the content of a worktree; None if all of it is saved already.

    Neither the files nor the index of the worktree change; closed files and folders are opened.
    Ignored files are kept on request, for a worktree that will be removed. In one that stays, they
    may change with every step, and so may large files without a commit: above `max_bytes` they are
    only named in the notes.
    """
    worktree = worktree.absolute()
    if worktree.is_symlink() or not worktree.is_dir():
        return None
    place = place_of(repo, worktree)
    if not is_taken_in:
        place.take_in_commits(repo)
    holding = look(place, with_ignored=with_ignored, max_bytes=max_bytes)
    lost = _left_behind(repo, place, holding)
    if holding.is_clean and not lost and _is_kept(repo, holding):
        return None
    head = _head_of(repo, place, holding.status, task)
    tree, refused = write_tree(place, holding, head=head)
    histories, failed = keep_histories(repo, holding)
    left_out = (*holding.left_out, *refused, *failed)
    notes = Notes(reset_away=lost, nested=histories, left_out=left_out, has_no_head=head is None)
    return _keep(repo, task, tree=tree, parent=head, label=label, at=at, notes=notes)


def keep_commit(
    repo: Repository, task: str, commit: str, *, label: str, at: float
) -> Checkpoint | None:
    """Keep a commit with its history before its branch is deleted; None if it is kept already."""
    tree = git(repo.common_dir, "rev-parse", "--verify", f"{commit}^{{tree}}")
    return _keep(repo, task, tree=tree, parent=commit, label=label, at=at)


def checkpoints(repo: Repository, task: str) -> list[Checkpoint]:
    """A task's checkpoints, oldest first."""
    return sorted(
        _list_checkpoints(repo, f"refs/crew/checkpoints/{task}/"), key=lambda kept: kept.number
    )


def restore(repo: Repository, task: str, number: int | None, into: Path) -> Checkpoint:
    """Write a checkpoint's files (by default the last one) to a new or empty directory."""
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
    """Restore a checkpoint's files to a clean worktree, as uncommitted changes."""
    place = place_of(repo, path.absolute())
    place.take_in_commits(repo)
    mark = place.git_dir / _RESTORING
    if place.git_dir == repo.common_dir:
        raise Conflict(f"{path} is the main checkout", hint="restore into a new folder")
    if not (mark.exists() and mark.read_text() == commit):
        state = load_status(place.path, place.git_dir, env=place.env)
        if state.changed:
            raise Conflict(
                f"{path} has uncommitted changes", hint="restore into a new folder instead"
            )
        _mark_restoring(mark, commit)
    head = git(place.path, "rev-parse", "--verify", "HEAD", env=place.env)
    _bring_back(place, _tree_on(repo, head, commit))
    lfs.settle(place.path, place.git_dir, fills=True)
    _unstage(place)
    _bring_back_nested(repo, commit, place.path)
    mark.unlink(missing_ok=True)


@effect("git.drop_checkpoints")
def drop_checkpoints(
    repo: Repository, *, older_than: float, tasks: Container[str] | None = None
) -> int:
    """Delete the checkpoints (of these tasks) taken before this time; their number."""
    old = old_checkpoints(repo, older_than=older_than, tasks=tasks)
    if old:
        delete_refs(repo, {ref: kept.commit for ref, kept in old})
    return len(old)


def old_checkpoints(
    repo: Repository, *, older_than: float, tasks: Container[str] | None = None
) -> list[tuple[str, Checkpoint]]:
    """The checkpoints (of these tasks) taken before this time, each with its ref."""
    return [
        (ref, kept)
        for ref, kept in _listed_with_refs(repo)
        if kept.at < older_than and (tasks is None or ref.split("/")[-2] in tasks)
    ]


def _left_behind(repo: Repository, place: SnapshotPlace, holding: Holding) -> tuple[str, ...]:
    status = holding.status
    if not place.is_bound or place.git_dir == repo.common_dir or isinstance(status, GitAnswer):
        return ()
    if worktree_admin.is_own(place.git_dir):
        lost = left_in_own(repo, place.git_dir, head=status.head)
        for commit in lost:
            lfs.keep_contents(repo, agent_git_of(place.git_dir), commit, known=status.head)
        return lost
    return left_behind(repo, place.git_dir, head=status.head, branch=status.branch)


def _is_kept(repo: Repository, holding: Holding) -> bool:
    """Whether a ref holds the HEAD: a branch does, a detached HEAD needs another ref."""
    status = holding.status
    if isinstance(status, GitAnswer) or status.head is None or status.branch is not None:
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
    repo: Repository, place: SnapshotPlace, status: WorktreeState | GitAnswer, task: str
) -> str | None:
    if not place.is_bound:
        return commit_of(repo, f"refs/heads/{branch_name(task)}")
    if isinstance(status, WorktreeState):
        return status.head
    answer = ask(place.path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", env=place.env)
    return answer.out.decode().strip() or None


def _keep(
    repo: Repository,
    task: str,
    *,
    tree: str,
    parent: str | None,
    label: str,
    at: float,
    notes: Notes = NO_NOTES,
) -> Checkpoint | None:
    subject = commit_line(label) or "checkpoint"
    while True:
        last = _last(repo, task)
        if last is not None and _holds(last, tree, parent, notes):
            return None
        number = last.number + 1 if last is not None else 1
        commit = _commit(repo, tree, (parent, *notes.commits), notes.message(subject), at)
        try:
            advance(repo, checkpoint_ref(task, number), to=commit, expected=None)
        except Moved:
            _taken.pop((repo.common_dir, task), None)
            continue
        kept = Checkpoint(
            number=number,
            commit=commit,
            tree=tree,
            parent=parent,
            label=subject,
            at=float(int(at)),
            notes=notes,
        )
        _taken[repo.common_dir, task] = kept
        return kept


def _holds(last: Checkpoint, tree: str, parent: str | None, notes: Notes) -> bool:
    is_same = (last.tree, last.parent, last.notes.nested) == (tree, parent, notes.nested)
    return is_same and set(notes.reset_away) <= set(last.notes.reset_away)


def _last(repo: Repository, task: str) -> Checkpoint | None:
    """The newest checkpoint. The cached one is used only while its ref exists."""
    known = _taken.get((repo.common_dir, task))
    if known is not None and ref_tip(repo, checkpoint_ref(task, known.number)) == known.commit:
        return known
    return max(checkpoints(repo, task), key=lambda kept: kept.number, default=None)


@effect("git.commit_checkpoint")
def _commit(
    repo: Repository, tree: str, parents: tuple[str | None, ...], message: str, at: float
) -> str:
    arguments = [word for parent in parents if parent for word in ("-p", parent)]
    stdin = message.encode("utf-8", "surrogateescape")
    return git(repo.common_dir, "commit-tree", *arguments, tree, stdin=stdin, env=identity(at))


def _chosen(repo: Repository, task: str, number: int | None) -> Checkpoint:
    kept = checkpoints(repo, task)
    chosen = [one for one in kept if number is None or one.number == number]
    if not chosen:
        have = ", ".join(str(one.number) for one in kept)
        raise NotFound(
            f"task {task} has no checkpoint {number or ''}".rstrip(),
            hint=f"it has: {have}" if have else _without_checkpoint(repo, task),
        )
    return chosen[-1]


def _without_checkpoint(repo: Repository, task: str) -> str:
    """Where the work of a task without checkpoints is, if it has begun."""
    branches = [f"refs/heads/{branch_name(task)}{end}" for end in ("", "-gh-*")]
    if refs_like(repo, *branches):
        return f"what it committed is on its branch: `crew diff {task}` shows it"
    return f"crew takes one after every step; `crew show {task}` shows how far the task is"


def _list_checkpoints(repo: Repository, prefix: str) -> list[Checkpoint]:
    return [kept for _, kept in _listed_with_refs(repo, prefix)]


def _listed_with_refs(
    repo: Repository, prefix: str = "refs/crew/checkpoints/"
) -> list[tuple[str, Checkpoint]]:
    text = git(repo.common_dir, "for-each-ref", f"--format={_FORMAT}{_END}", prefix)
    return [_parse_checkpoint(one.lstrip("\n")) for one in text.split("\x1e") if one.strip()]


def _parse_checkpoint(text: str) -> tuple[str, Checkpoint]:
    ref, commit, tree, parents, at, message = text.split("\0", 5)
    label, _, body = message.partition("\n")
    notes = read_notes(body)
    first = parents.partition(" ")[0]
    return ref, Checkpoint(
        number=int(ref.rpartition("/")[2]),
        commit=commit,
        tree=tree,
        parent=None if notes.has_no_head else first or None,
        label=label,
        at=float(at),
        notes=notes,
    )


@effect("git.restore_files")
def _write_files(repo: Repository, commit: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index = repo.common_dir / f"crew-index-{uuid.uuid4().hex}"
    env = {**worktree_admin.environment_for(repo.common_dir, folder), "GIT_INDEX_FILE": str(index)}
    try:
        git(folder, "read-tree", commit, env=env)
        git(folder, "checkout-index", "--all", "--force", env=env, timeout_s=LONG_S)
        lfs.settle(folder, repo.common_dir, index=index, fills=True)
    finally:
        index.unlink(missing_ok=True)
    _bring_back_nested(repo, commit, folder)


def _bring_back_nested(repo: Repository, commit: str, folder: Path) -> None:
    message = git(repo.common_dir, "log", "-1", "--format=%B", commit)
    for history in read_notes(message.partition("\n")[2]).nested:
        bring_back_history(repo, history, folder)


@effect("git.place_restored")
def _put_in_place(partial: Path, into: Path) -> None:
    partial.rename(into)


def _tree_on(repo: Repository, head: str, commit: str) -> str:
    """The checkpoint's files on top of HEAD, which may have advanced since."""
    if commit_of(repo, f"{commit}^1") == head:
        return f"{commit}^{{tree}}"
    merged = merged_tree(repo, onto=head, head=_with_one_parent(repo, commit))
    if isinstance(merged, MergeConflict):
        raise Conflict(
            f"the checkpoint conflicts with the branch in {', '.join(merged.paths)}",
            hint="restore into a new folder instead",
            code="checkpoint_clashes",
        )
    return merged


def _with_one_parent(repo: Repository, commit: str) -> str:
    """A copy with only its first parent, so that commits that came back are not removed."""
    first = commit_of(repo, f"{commit}^1")
    return _commit(repo, f"{commit}^{{tree}}", (first,), "checkpoint", 0.0)


@effect("git.mark_restoring")
def _mark_restoring(mark: Path, commit: str) -> None:
    mark.write_text(commit)


@effect("git.bring_back")
def _bring_back(place: SnapshotPlace, tree: str) -> None:
    git(place.path, "read-tree", "-u", "--reset", tree, env=place.env, timeout_s=LONG_S)


@effect("git.unstage")
def _unstage(place: SnapshotPlace) -> None:
    ask(place.path, "reset", "-q", "--mixed", env=place.env)
