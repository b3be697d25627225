"""The locked sync: a checkout follows its branch, and not one uncommitted byte of it changes.

We hold `index.lock` in somebody's checkout for a moment, so all is written down before it is done,
and a killed sync is undone, or finished if the branch has moved already.
"""

import json
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from crew.domain.effects import effect
from crew.domain.frozen import frozen
from crew.git.attributes import attributes_worktree
from crew.git.changes import (
    Change,
    Checkout,
    Waiting,
    arriving_submodules,
    changed_paths,
    check_free,
    file_changes,
    leaving_submodules,
    wait_for,
)
from crew.git.command import ask, git
from crew.git.linked import environment_for
from crew.git.placing import (
    has_begun,
    load_moves,
    place_all,
    plan_moves,
    rescue_edited,
    take_back_all,
)
from crew.git.refs import advance, clear_own_lock
from crew.git.repository import Repository, commit_of
from crew.git.status import unfinished_in

SYNC_LOCK = "crew-sync.lock"
JOURNAL = "crew-sync.json"


@frozen
class Journal:
    """All that is needed to undo or finish a sync; on disk before anything is touched."""

    token: str
    path: str
    git_dir: str
    target: str
    old: str
    new: str

    @property
    def checkout(self) -> Checkout:
        return Checkout(path=Path(self.path), git_dir=Path(self.git_dir), target=self.target)

    @property
    def home(self) -> Path:
        return Path(self.git_dir) / "crew-sync" / self.token

    @property
    def staging(self) -> Path:
        """Where files wait: on the checkout's own file system, or they could not be renamed."""
        is_same = Path(self.path).stat().st_dev == Path(self.git_dir).stat().st_dev
        return self.home if is_same else Path(self.path) / ".crew-sync" / self.token


def sync_checkout(
    repo: Repository, checkout: Checkout, *, old: str, new: str, hold_s: float, lock: int
) -> tuple[str, ...]:
    """Move the branch and its checkout from `old` to `new`, or say what stands in the way.

    Returns the submodules whose own files the person has to bring along.
    """
    _refuse_busy(checkout)
    changes = changed_paths(repo, old, new)
    check_free(repo, checkout, changes, old=old, new=new)
    journal = Journal(
        token=uuid.uuid4().hex,
        path=str(checkout.path),
        git_dir=str(checkout.git_dir),
        target=checkout.target,
        old=old,
        new=new,
    )
    _write_journal(repo, journal)
    try:
        _sync(repo, journal, changes, hold_s=hold_s, lock=lock)
    except BaseException:
        repair(repo, lock=lock)
        raise
    _release(repo, journal, changes)
    return arriving_submodules(changes)


def repair(repo: Repository, *, lock: int) -> None:
    """Undo a sync that was killed, or finish it if the branch has moved; repeatable."""
    journal = _read_journal(repo)
    if journal is None:
        return
    checkout = journal.checkout
    if not checkout.path.is_dir() or not checkout.git_dir.is_dir():
        _forget(repo)
        return
    changes = changed_paths(repo, journal.old, journal.new)
    clear_own_lock(repo, f"refs/heads/{checkout.target}", to=journal.new)
    at = commit_of(repo, f"refs/heads/{checkout.target}")
    is_begun = has_begun(journal.staging)
    if is_begun and at in {journal.old, journal.new} and not _is_ours(journal):
        _take_index_lock(journal)
    if is_begun and _is_ours(journal):
        if at == journal.new:
            _finish(journal, changes, lock=lock)
        else:
            take_back_all(checkout, load_moves(checkout, journal.staging, file_changes(changes)))
    _release(repo, journal, changes)


def _sync(
    repo: Repository, journal: Journal, changes: Sequence[Change], *, hold_s: float, lock: int
) -> None:
    checkout = journal.checkout
    _take_index_lock(journal)
    # A commit that read the index before our lock has failed on the lock before we look.
    time.sleep(hold_s)
    _refuse_moved(repo, journal)
    seen = check_free(repo, checkout, changes, old=journal.old, new=journal.new)
    index = _next_index(journal, lock=lock)
    files = file_changes(changes)
    _stage_files(repo, journal, files, index)
    place_all(checkout, plan_moves(checkout, journal.staging, files, seen))
    branch = f"refs/heads/{checkout.target}"
    advance(repo, branch, to=journal.new, expected=journal.old, keep_open=lock)
    _refresh(checkout, index, lock=lock)
    _install_index(index, checkout)
    _place_folders(checkout, changes)


def _finish(journal: Journal, changes: Sequence[Change], *, lock: int) -> None:
    """Let the index follow the branch; one that somebody went on with by hand stays as it is."""
    if not _has_target(journal.checkout):
        return
    with suppress(Waiting):
        index = _next_index(journal, lock=lock)
        _refresh(journal.checkout, index, lock=lock)
        _install_index(index, journal.checkout)
        _place_folders(journal.checkout, changes)


def _refuse_busy(checkout: Checkout) -> None:
    unfinished = unfinished_in(checkout.git_dir)
    if unfinished is not None:
        raise wait_for(checkout, f"a {unfinished} is unfinished")
    if checkout.index_lock.exists():
        raise _locked(checkout)


def _refuse_moved(repo: Repository, journal: Journal) -> None:
    checkout = journal.checkout
    at = commit_of(repo, f"refs/heads/{checkout.target}")
    if at not in {journal.old, journal.new} or not _has_target(checkout):
        raise wait_for(checkout, f"{checkout.target} moves at this moment")
    unfinished = unfinished_in(checkout.git_dir)
    if unfinished is not None:
        raise wait_for(checkout, f"a {unfinished} is unfinished")


def _has_target(checkout: Checkout) -> bool:
    head = (checkout.git_dir / "HEAD").read_text().strip()
    return head == f"ref: refs/heads/{checkout.target}"


def _is_ours(journal: Journal) -> bool:
    """Only a lock that holds our token is ours; git's own locks never do."""
    lock = journal.checkout.index_lock
    try:
        return lock.stat().st_size == len(journal.token) and lock.read_text() == journal.token
    except (OSError, UnicodeDecodeError):
        return False


def _locked(checkout: Checkout) -> Waiting:
    return Waiting(
        f"another git command holds {checkout.index_lock}",
        hint="let it end; if none is running there, remove that file",
    )


@effect("git.sync_journal")
def _write_journal(repo: Repository, journal: Journal) -> None:
    fresh = repo.common_dir / (JOURNAL + ".new")
    with fresh.open("w") as file:
        json.dump(asdict(journal), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(repo.common_dir / JOURNAL)


def _read_journal(repo: Repository) -> Journal | None:
    try:
        return Journal(**json.loads((repo.common_dir / JOURNAL).read_text()))
    except FileNotFoundError:
        return None


@effect("git.sync_lock_index")
def _take_index_lock(journal: Journal) -> None:
    """The lock appears with our token in it, so that it can be proven ours at any moment."""
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
    index = journal.home / "index"
    shutil.copy2(checkout.git_dir / "index", index)
    env = checkout.env | {"GIT_INDEX_FILE": str(index)}
    args = ("read-tree", "-i", "-m", journal.old, journal.new)
    if ask(checkout.path, *args, env=env, keep_open=lock).code != 0:
        raise wait_for(checkout, "something staged clashes with the landed work")
    return index


@effect("git.sync_stage_files")
def _stage_files(
    repo: Repository, journal: Journal, changes: Sequence[Change], index: Path
) -> None:
    """Write the new files beside the checkout, with the line ends that `new` wants."""
    staging = journal.staging
    (staging / "new").mkdir(parents=True, exist_ok=True)
    place = attributes_worktree(repo, journal.new)
    env = environment_for(journal.checkout.git_dir, place) | {"GIT_INDEX_FILE": str(index)}
    names = [os.fsencode(change.path) for change in changes if change.new_mode is not None]
    git(
        place,
        "checkout-index",
        "-z",
        "--stdin",
        f"--prefix={staging / 'new'}/",
        stdin=b"".join(name + b"\0" for name in names),
        env=env,
    )


@effect("git.sync_refresh")
def _refresh(checkout: Checkout, index: Path, *, lock: int) -> None:
    env = checkout.env | {"GIT_INDEX_FILE": str(index)}
    ask(checkout.path, "update-index", "-q", "--refresh", env=env, keep_open=lock)


@effect("git.sync_install_index")
def _install_index(index: Path, checkout: Checkout) -> None:
    index.replace(checkout.git_dir / "index")


@effect("git.sync_place_folders")
def _place_folders(checkout: Checkout, changes: Sequence[Change]) -> None:
    """A submodule is an empty folder until the person has git fill it; one with files stays."""
    for path in leaving_submodules(changes):
        with suppress(OSError):
            (checkout.path / path).rmdir()
    for path in arriving_submodules(changes):
        with suppress(OSError):
            (checkout.path / path).mkdir(parents=True, exist_ok=True)


def _release(repo: Repository, journal: Journal, changes: Sequence[Change]) -> None:
    rescue_edited(load_moves(journal.checkout, journal.staging, file_changes(changes)))
    if _is_ours(journal):
        _unlock_index(journal.checkout)
    _delete_staging(journal)
    _forget(repo)


@effect("git.sync_unlock_index")
def _unlock_index(checkout: Checkout) -> None:
    checkout.index_lock.unlink(missing_ok=True)


@effect("git.sync_delete_staging")
def _delete_staging(journal: Journal) -> None:
    for folder in (journal.staging, journal.home):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


@effect("git.sync_forget")
def _forget(repo: Repository) -> None:
    (repo.common_dir / JOURNAL).unlink(missing_ok=True)
