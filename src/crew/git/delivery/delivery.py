"""Moves the target branch, and the checkout that shows it, to the landed work."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Literal

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref
from crew.git.delivery.checkout import Checkout, Waiting
from crew.git.delivery.checkout_sync import (
    LOCK_PATIENCE_S,
    SYNC_LOCK,
    repair,
    repair_stale_index,
    sync_checkout,
)
from crew.git.delivery.deleted_targets import is_persons, keep_command
from crew.git.delivery.rewrites import is_renamed, newest_delivered
from crew.git.git_command import git
from crew.git.merges.merges import contains
from crew.git.refs import Moved, advance, delete_ref
from crew.git.repository import Repository, ref_tip
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktree_list import worktree_paths
from crew.system.file_locks import held

State = Literal["current", "delivered", "waiting", "diverged", "over", "rewritten"]


@frozen
class Delivery:
    """The result of a delivery. `commit` is the current commit of the target.

    It is `over` if the target was deleted and other branches of the person have all that landed.
    It is `rewritten` if a person has removed what was delivered; `commit` is what the target had.
    It is so too if the target has another name now; then `commit` is empty.
    `remedy` is the next command for the person, even after a success.
    `is_shown` means that the files of a checkout changed too.
    """

    state: State
    commit: str
    is_shown: bool = True
    reason: str = ""
    remedy: str = ""


def deliver(
    repo: Repository,
    target: str,
    *,
    landed: frozenset[str] | None = None,
    last_seen: str | None = None,
    hold_s: float = 0.3,
) -> Delivery:
    """Move the target branch, and the checkout that shows it, to the integration ref.

    A delivery that would have to change uncommitted content waits. It also waits if the ref is at
    another commit than `landed` names: the record of landings counts, not the ref. `last_seen` is
    the target as crew saw it last: a target without it has been rewritten. None: the branch is
    crew's own, and nobody else rewrites it.
    """
    try:
        with held(repo.common_dir / SYNC_LOCK, patience_s=LOCK_PATIENCE_S) as lock:
            repair(repo, lock=lock)
            repair_stale_index(repo, lock=lock)
            tip = ref_tip(repo, f"refs/heads/{target}")
            if removed := _removed(repo, target, tip, last_seen):
                return Delivery(state="rewritten", commit=removed)
            if tip is None and last_seen and is_renamed(repo, target, last_seen):
                return Delivery(state="rewritten", commit="")
            return _deliver(repo, target, tip, believed=landed, hold_s=hold_s, lock=lock)
    except Moved as moved:
        return _diverged(target, moved.at or "")
    except Conflict as conflict:
        commit = ref_tip(repo, f"refs/heads/{target}") or ""
        return Delivery(
            state="waiting", commit=commit, reason=conflict.message, remedy=conflict.hint
        )


def _removed(repo: Repository, target: str, tip: str | None, last_seen: str | None) -> str:
    """What a person has removed from the target: the newest commit that it had; empty if nothing.

    A delivery that was killed before it was recorded is found in the reflog.
    """
    landed = ref_tip(repo, landed_ref(target))
    if tip is None or last_seen is None:
        return ""
    if last_seen and not contains(repo, ancestor=last_seen, descendant=tip):
        return last_seen
    if landed is None or contains(repo, ancestor=landed, descendant=tip):
        return ""
    line = git(repo.common_dir, "rev-list", "--first-parent", landed, "--not", tip).split()
    return newest_delivered(repo, target, line)


def repair_sync(repo: Repository) -> None:
    """Finish or undo a delivery that was killed."""
    with held(repo.common_dir / SYNC_LOCK) as lock:
        repair(repo, lock=lock)


def _deliver(
    repo: Repository,
    target: str,
    tip: str | None,
    *,
    believed: frozenset[str] | None,
    hold_s: float,
    lock: int,
) -> Delivery:
    """Deliver to a branch that is at `tip`: if it has moved since, it is left alone."""
    branch, landed = f"refs/heads/{target}", ref_tip(repo, landed_ref(target))
    if tip is None:
        return _without_target(repo, target, landed, believed or frozenset())
    if landed is None or contains(repo, ancestor=landed, descendant=tip):
        return Delivery(state="current", commit=tip)
    if believed and landed not in believed:
        raise Waiting(
            f"{landed_ref(target)} is at {landed[:12]}, where crew did not put it",
            hint=f"git update-ref {landed_ref(target)} {min(believed)}",
            code="landed_ref_moved",
        )
    if not contains(repo, ancestor=tip, descendant=landed):
        return _diverged(target, tip)
    checkout = _checkout_of(repo, target)
    if checkout is None:
        advance(repo, branch, to=landed, expected=tip, keep_open=lock)
        _catch_up(repo, target, old=tip, new=landed, hold_s=hold_s, lock=lock)
        return Delivery(state="delivered", commit=landed, is_shown=False)
    moved = sync_checkout(repo, checkout, old=tip, new=landed, hold_s=hold_s, lock=lock)
    return Delivery(state="delivered", commit=landed, remedy=_update_command(checkout.path, moved))


def _without_target(
    repo: Repository, target: str, landed: str | None, believed: frozenset[str]
) -> Delivery:
    """The delivery to a branch that a person deleted, also after a kill between ref and record."""
    commits = believed | {landed} if landed else believed
    if not all(is_persons(repo, commit) for commit in commits):
        raise Waiting(
            f"the branch {target} no longer exists",
            hint=f"make a branch of what landed: {keep_command(repo, target)}",
        )
    if landed:
        delete_ref(repo, landed_ref(target), expected=landed)
    return Delivery(state="over", commit=landed or "", is_shown=False)


def _diverged(target: str, tip: str) -> Delivery:
    return Delivery(
        state="diverged",
        commit=tip,
        reason=f"{target} has commits that have not been merged with the landed work",
        remedy="crew merges them first and then delivers",
    )


def _update_command(path: Path, submodules: tuple[str, ...]) -> str:
    """The command that updates the files of submodules. crew does not fetch them."""
    if not submodules:
        return ""
    return shlex.join(("git", "-C", str(path), "submodule", "update", "--init", "--", *submodules))


def _catch_up(
    repo: Repository, target: str, *, old: str, new: str, hold_s: float, lock: int
) -> None:
    """Sync a checkout that a person switched to the target while it moved."""
    with suppress(Waiting):
        checkout = _checkout_of(repo, target)
        if checkout is not None:
            sync_checkout(repo, checkout, old=old, new=new, hold_s=hold_s, lock=lock)


def _checkout_of(repo: Repository, target: str) -> Checkout | None:
    """The only worktree that has the target checked out, even during a rebase."""
    found = []
    places = worktree_paths(repo)
    _check_main(repo, target, branch=places.get(repo.root))
    for path, branch in places.items():
        git_dir = worktree_admin.git_dir_for(repo, path)
        if git_dir is None or not (branch == target or _is_rebasing(git_dir, target)):
            continue
        if path == repo.common_dir:
            continue  # the HEAD of a bare repository is not a checkout
        if not path.is_dir():
            raise Waiting(
                f"the worktree {path} has {target} checked out and cannot be found",
                hint="if it is gone for good: git worktree prune",
            )
        found.append(Checkout(path=path, git_dir=git_dir, target=target))
    if len(found) > 1:
        both = " and ".join(str(checkout.path) for checkout in found)
        raise Waiting(
            f"{target} is checked out in {both}", hint="switch one of them to another branch"
        )
    return found[0] if found else None


def _check_main(repo: Repository, target: str, *, branch: str | None) -> None:
    """Refuse a wrong `core.bare`, which would hide the person's checkout from us."""
    head = (repo.common_dir / "HEAD").read_text().strip()
    is_hidden = not branch and head == f"ref: refs/heads/{target}"
    if is_hidden and repo.root != repo.common_dir:
        raise Waiting(
            f"{repo.common_dir} is marked as bare, but {repo.root} is a checkout of it",
            hint=f"git config --file {repo.common_dir / 'config'} core.bare false",
        )


def _is_rebasing(git_dir: Path, target: str) -> bool:
    for state in ("rebase-merge", "rebase-apply"):
        name = git_dir / state / "head-name"
        if name.is_file() and name.read_text().strip() == f"refs/heads/{target}":
            return True
    return False
