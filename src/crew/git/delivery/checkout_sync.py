"""Syncs a checkout with its branch under git's lock, without changing uncommitted content.

crew holds `index.lock` in a person's checkout for some milliseconds, so everything possible is
prepared before. Each change is recorded in a journal before it is made. A killed sync is undone, or
finished if the branch has already moved.
"""

import os
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crew.git import lfs
from crew.git.delivery.checkout import Checkout, Signature, Waiting, signature_of, wait_for
from crew.git.delivery.commit_diff import (
    FileChange,
    arriving_submodules,
    changed_paths,
    file_changes,
    leaving_submodules,
)
from crew.git.delivery.file_moves import (
    has_begun,
    load_moves,
    place_all,
    plan_moves,
    rescue_edited,
    take_back_all,
)
from crew.git.delivery.lost_journal import found_journal
from crew.git.delivery.running_gits import await_quiet, can_look, outlive
from crew.git.delivery.sync_journal import (
    JOURNAL,
    LAST,
    Journal,
    forget_journal,
    log_move_of_head,
    read_journal,
    write_journal,
)
from crew.git.delivery.uncommitted_edits import check_free, is_index_behind
from crew.git.git_command import ask, git
from crew.git.killed_git import clear_ref_lock
from crew.git.merges.attributes import attributes_worktree
from crew.git.refs import Moved, advance, begun_advance, is_prepared
from crew.git.repository import Repository, commit_of
from crew.git.spawn_git import StartedGit
from crew.git.worktrees.worktree_admin import environment_for
from crew.git.worktrees.worktree_status import unfinished_in
from crew.system.atomic_files import put_in_place, sync_to_disk
from crew.system.crash_points import effect

SYNC_LOCK = "crew-sync.lock"

STALE_AFTER_S = 60.0
"""No program takes longer between reading the index and writing it back."""

TRIES = 5
"""How often the index may change while the next one is built from it."""

LOCK_PATIENCE_S = 2.0
QUIET_PATIENCE_S = 1.0


def sync_checkout(
    repo: Repository, checkout: Checkout, *, old: str, new: str, hold_s: float, lock: int
) -> tuple[str, ...]:
    """Move the branch and its checkout from `old` to `new`, or raise with the obstacle.

    Returns the submodules whose files the person has to update.
    """
    changes = changed_paths(repo, old, new)
    journal = Journal(
        token=uuid.uuid4().hex,
        path=str(checkout.path),
        git_dir=str(checkout.git_dir),
        target=checkout.target,
        old=old,
        new=new,
    )
    _refuse_unfinished(checkout)
    check_free(repo, checkout, changes, old=old, new=new)
    write_journal(repo, journal)
    try:
        _sync(repo, journal, changes, hold_s=hold_s, lock=lock)
    except BaseException:
        repair(repo, lock=lock)
        raise
    _release(repo, journal, changes)
    return arriving_submodules(changes)


def repair_stale_index(repo: Repository, *, lock: int) -> None:
    """Repair the index if another program wrote back the one from before the last sync.

    The next commit would then undo that sync. The files show that it was not a person's intent.
    """
    last = read_journal(repo, LAST)
    if last is None or not _may_be_stale(repo, last.checkout) or not _is_known(repo, last):
        return
    changes = changed_paths(repo, last.old, last.new)
    at = commit_of(repo, f"refs/heads/{last.target}")
    if at == last.new and _has_target(last.checkout) and is_index_behind(last.checkout, changes):
        write_journal(repo, last)
        repair(repo, lock=lock)


def _is_known(repo: Repository, journal: Journal) -> bool:
    """Whether its commits exist; a forged journal may name any."""
    return None not in (commit_of(repo, journal.old), commit_of(repo, journal.new))


def _may_be_stale(repo: Repository, checkout: Checkout) -> bool:
    """Whether the index was written soon after the last sync."""
    try:
        written = (checkout.git_dir / "index").stat().st_mtime
        synced = (repo.common_dir / LAST).stat().st_mtime
    except OSError:
        return False
    return synced <= written < synced + STALE_AFTER_S


def repair(repo: Repository, *, lock: int) -> None:
    """Undo a killed sync, or finish it if the branch has moved. Safe to repeat."""
    is_left = os.path.lexists(repo.common_dir / JOURNAL)
    journal = read_journal(repo) or (found_journal(repo) if is_left else None)
    if journal is None:
        return
    checkout = journal.checkout
    if not checkout.path.is_dir() or not checkout.git_dir.is_dir():
        forget_journal(repo)
        return
    if not _is_known(repo, journal):
        forget_journal(repo)
        return
    changes = changed_paths(repo, journal.old, journal.new)
    clear_ref_lock(repo.common_dir, f"refs/heads/{checkout.target}", to=journal.new)
    at = commit_of(repo, f"refs/heads/{checkout.target}")
    is_begun = at == journal.new or has_begun(journal.staging)
    if is_begun and at in {journal.old, journal.new} and not _is_ours(journal):
        _await_index_lock(journal)
    if is_begun and _is_ours(journal):
        if at == journal.new:
            _finish(journal, changes, lock=lock)
        else:
            take_back_all(checkout, load_moves(checkout, journal.staging, file_changes(changes)))
    _release(repo, journal, changes)


def _sync(
    repo: Repository, journal: Journal, changes: Sequence[FileChange], *, hold_s: float, lock: int
) -> None:
    checkout, files = journal.checkout, file_changes(changes)
    _stage_files(repo, journal, files, _next_index(journal, lock=lock))
    branch, old, new = f"refs/heads/{checkout.target}", journal.old, journal.new
    seen = check_free(repo, checkout, changes, old=old, new=new)
    with begun_advance(repo, branch, to=new, expected=old, keep_open=lock) as begun:
        index = _lock_and_copy_index(journal, hold_s=hold_s, lock=lock)
        _refuse_moved(checkout)
        _lock_branch(repo, journal, begun)
        place_all(checkout, plan_moves(checkout, journal.staging, files, seen))
        advance(repo, branch, to=new, expected=old, keep_open=lock, begun=begun)
        _install_index(index, checkout)
        log_move_of_head(journal)
        if can_look():
            outlive(checkout.path, until=time.monotonic() + hold_s)
        _unlock_index(checkout)
    _refresh_installed(journal, files, lock=lock)
    _place_folders(checkout, changes)


def _lock_and_copy_index(journal: Journal, *, hold_s: float, lock: int) -> Path:
    """The next index, built from the current index while we hold its lock.

    A git command that read the index earlier must not write it back: it fails if we hold the lock
    long enough. Where such commands are visible, we wait until none is left. A command that starts
    after the last check takes about as long to reach the lock as we hold it.
    """
    checkout = journal.checkout
    for _ in range(TRIES):
        _await_quiet(checkout)
        before = _index_signature(checkout)
        index = _next_index(journal, lock=lock)
        _await_quiet(checkout)
        if _index_signature(checkout) != before:
            continue
        _await_index_lock(journal)
        if not can_look():
            time.sleep(hold_s)
        if _index_signature(checkout) == before:
            return index
        _unlock_index(checkout)
    raise wait_for(checkout, "other git commands change the index again and again")


def _refresh_installed(journal: Journal, files: Sequence[FileChange], *, lock: int) -> None:
    """Refresh a copy and put it in place, since git would lock the index while it reads files."""
    checkout = journal.checkout
    for _ in range(TRIES):
        before = _index_signature(checkout)
        index = _copied_index(journal)
        _refresh(checkout, index, files, lock=lock)
        sync_to_disk(index)  # or the disk might be waited for later, under the lock
        with suppress(Waiting):
            _take_index_lock(journal)
            is_same = _index_signature(checkout) == before
            if is_same:
                _install_index(index, checkout)
            _unlock_index(checkout)
            if is_same:
                return
    _refresh(checkout, checkout.git_dir / "index", files, lock=lock)


def _copied_index(journal: Journal) -> Path:
    index = journal.home / "index"
    journal.home.mkdir(parents=True, exist_ok=True)
    shutil.copy2(journal.checkout.git_dir / "index", index)
    return index


def _await_quiet(checkout: Checkout) -> None:
    if can_look():
        await_quiet(checkout.path, until=time.monotonic() + QUIET_PATIENCE_S)


def _await_index_lock(journal: Journal) -> None:
    """Wait for the lock. Most git commands hold it only for a moment."""
    give_up_at = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            return _take_index_lock(journal)
        except Waiting:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(0.01)


def _index_signature(checkout: Checkout) -> Signature:
    return signature_of(checkout.git_dir / "index")


def _finish(journal: Journal, changes: Sequence[FileChange], *, lock: int) -> None:
    """Update the index to the branch, unless a person has changed it since."""
    if not _has_target(journal.checkout):
        return
    with suppress(Waiting):
        index = _next_index(journal, lock=lock)
        _refresh(journal.checkout, index, file_changes(changes), lock=lock)
        _install_index(index, journal.checkout)
        _place_folders(journal.checkout, changes)


def _refuse_unfinished(checkout: Checkout) -> None:
    unfinished = unfinished_in(checkout.git_dir)
    if unfinished is not None:
        raise wait_for(checkout, f"a {unfinished} is unfinished")


def _refuse_moved(checkout: Checkout) -> None:
    """Refuse if another branch is checked out now. A moved target is noticed when we move it."""
    if not _has_target(checkout):
        raise wait_for(checkout, f"{checkout.target} is no longer checked out")
    _refuse_unfinished(checkout)


def _lock_branch(repo: Repository, journal: Journal, begun: StartedGit) -> None:
    """Before the first file is touched: a move that failed afterwards would have to be undone.

    A person who edits a file in that moment would keep landed lines in it, and commit them.
    """
    if is_prepared(begun):
        return
    begun.end()
    branch = f"refs/heads/{journal.target}"
    at = commit_of(repo, branch)
    if at == journal.new:  # a person switched to the branch after it moved
        return
    if at != journal.old:
        raise Moved(branch, at=at, expected=journal.old)
    raise wait_for(journal.checkout, f"another git command locks {journal.target}")


def _has_target(checkout: Checkout) -> bool:
    head = (checkout.git_dir / "HEAD").read_text().strip()
    return head == f"ref: refs/heads/{checkout.target}"


def _is_ours(journal: Journal) -> bool:
    """Whether the lock contains our token. Git's own locks never do."""
    lock = journal.checkout.index_lock
    try:
        return lock.stat().st_size == len(journal.token) and lock.read_text() == journal.token
    except (OSError, UnicodeDecodeError):
        return False


def _locked(checkout: Checkout) -> Waiting:
    return Waiting(
        f"another git command holds {checkout.index_lock}",
        hint="wait until it ends; if no git command is running there, remove that file",
    )


@effect("git.sync_lock_index")
def _take_index_lock(journal: Journal) -> None:
    """Create the lock with our token in it, so that it is provably ours at any moment."""
    journal.home.mkdir(parents=True, exist_ok=True)
    proof = journal.home / "lock"
    proof.write_text(journal.token)
    try:
        os.link(proof, journal.checkout.index_lock)
    except FileExistsError:
        raise _locked(journal.checkout) from None


@effect("git.sync_next_index")
def _next_index(journal: Journal, *, lock: int) -> Path:
    """A copy of the index in which the unchanged entries of `old` are those of `new`."""
    checkout = journal.checkout
    index = _copied_index(journal)
    env = checkout.env | {"GIT_INDEX_FILE": str(index)}
    args = ("read-tree", "-i", "-m", journal.old, journal.new)
    if ask(checkout.path, *args, env=env, keep_open=lock).code != 0:
        raise wait_for(checkout, "a staged change conflicts with the landed work")
    sync_to_disk(index)  # or the disk might be waited for later, under the lock
    return index


@effect("git.sync_stage_files")
def _stage_files(
    repo: Repository, journal: Journal, changes: Sequence[FileChange], index: Path
) -> None:
    """Write the new files next to the checkout, with the line ends that `new` requires."""
    staging = journal.staging
    (staging / "new").mkdir(parents=True, exist_ok=True)
    place = attributes_worktree(repo, journal.new)
    env = environment_for(journal.checkout.git_dir, place) | {"GIT_INDEX_FILE": str(index)}
    names = [os.fsencode(change.path) for change in changes if change.new_mode is not None]
    git(
        place,
        "checkout-index",
        "-fz",  # even over the partial file of a killed git process
        "--stdin",
        f"--prefix={staging / 'new'}/",
        stdin=b"".join(name + b"\0" for name in names),
        env=env,
    )
    lfs.settle(
        staging / "new",
        journal.checkout.git_dir,
        index=index,
        fills=True,
        attributes=place,
        only={change.path for change in changes},
    )


@effect("git.sync_refresh")
def _refresh(checkout: Checkout, index: Path, changes: Sequence[FileChange], *, lock: int) -> None:
    """Record the file data of the placed files in the index."""
    names = [os.fsencode(change.path) for change in changes if change.new_mode is not None]
    if not names:
        return
    env = checkout.env | {"GIT_INDEX_FILE": str(index), "GIT_LITERAL_PATHSPECS": "1"}
    args = ("add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
    stdin = b"".join(name + b"\0" for name in names)
    ask(checkout.path, *args, env=env, stdin=stdin, keep_open=lock)
    only = {change.path for change in changes}
    lfs.settle(checkout.path, checkout.git_dir, index=index, only=only)


@effect("git.sync_install_index")
def _install_index(index: Path, checkout: Checkout) -> None:
    put_in_place(index, checkout.git_dir / "index")


@effect("git.sync_place_folders")
def _place_folders(checkout: Checkout, changes: Sequence[FileChange]) -> None:
    """Create empty folders for submodules, which the person fills with git. Files stay."""
    for path in leaving_submodules(changes):
        with suppress(OSError):
            (checkout.path / path).rmdir()
    for path in arriving_submodules(changes):
        with suppress(OSError):
            (checkout.path / path).mkdir(parents=True)


def _release(repo: Repository, journal: Journal, changes: Sequence[FileChange]) -> None:
    rescue_edited(load_moves(journal.checkout, journal.staging, file_changes(changes)))
    if _is_ours(journal):
        _unlock_index(journal.checkout)
    _delete_staging(journal)
    forget_journal(repo)


@effect("git.sync_unlock_index")
def _unlock_index(checkout: Checkout) -> None:
    checkout.index_lock.unlink(missing_ok=True)


@effect("git.sync_delete_staging")
def _delete_staging(journal: Journal) -> None:
    for folder in (journal.staging, journal.home):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
