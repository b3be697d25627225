"""The journal of a sync, written to disk before a person's checkout is touched."""

import json
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.delivery.checkout import Checkout
from crew.git.repository import Repository, is_object_id
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.system.atomic_files import put_in_place, write_file
from crew.system.crash_points import effect
from crew.system.foreign_files import NotBelieved, read_foreign, set_aside

log = logging.getLogger(__name__)

JOURNAL = "crew-sync.json"
LAST = "crew-sync-last.json"
MAX_JOURNAL_BYTES = 65_536
TOKEN = re.compile(r"[0-9a-f]{32}")


@frozen
class Journal:
    """Everything that is needed to undo or finish a sync."""

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
        """The folder of prepared files, on the checkout's file system so that renames work."""
        is_same = Path(self.path).stat().st_dev == Path(self.git_dir).stat().st_dev
        return self.home if is_same else Path(self.path) / ".crew-sync" / self.token


@effect("git.sync_journal")
def write_journal(repo: Repository, journal: Journal) -> None:
    content = json.dumps(asdict(journal)).encode()
    fresh = repo.common_dir / (JOURNAL + ".new")
    write_file(repo.common_dir / JOURNAL, content, is_durable=True, unfinished=fresh)


def read_journal(repo: Repository, name: str = JOURNAL) -> Journal | None:
    """The journal, if there is one and it can be true; any other is set aside.

    Whatever can write in the git directory can write a journal, and crew deletes what one names.
    """
    file = repo.common_dir / name
    try:
        content = read_foreign(file, max_bytes=MAX_JOURNAL_BYTES, is_own=True)
        journal = _parsed(content)
        _check_places(repo, journal)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        log.warning("%s is set aside as %s: %s", file, set_aside(file), error)
        return None
    return journal


def move_journal(repo: Repository, *, old: Path) -> None:
    """Let a delivery that was killed be finished or undone after the repository was moved."""
    for name in (JOURNAL, LAST):
        with suppress(OSError, ValueError):
            found = _parsed(read_foreign(repo.common_dir / name, max_bytes=MAX_JOURNAL_BYTES))
            was = (found.git_dir, found.path)
            if was == (str(old), str(old.parent)):
                moved = replace(found, git_dir=str(repo.common_dir), path=str(repo.root))
                _move(repo, name, json.dumps(asdict(moved)).encode())


@effect("git.move_journal")
def _move(repo: Repository, name: str, content: bytes) -> None:
    write_file(repo.common_dir / name, content, is_durable=True)


def _parsed(content: bytes) -> Journal:
    values = json.loads(content)
    if not isinstance(values, dict) or values.keys() != Journal.__dataclass_fields__.keys():
        raise NotBelieved("is no journal")
    if not all(isinstance(value, str) and "\0" not in value for value in values.values()):
        raise NotBelieved("has a value that is no text")
    if not TOKEN.fullmatch(values["token"]):
        raise NotBelieved("has a token that crew did not make")
    if not (is_object_id(values["old"]) and is_object_id(values["new"])):
        raise NotBelieved("names no commits")
    return Journal(**values)


def _check_places(repo: Repository, journal: Journal) -> None:
    """Refuse a folder that is no checkout of this repository, and links below it."""
    path = Path(journal.path)
    if not path.is_dir():
        return  # a checkout that is gone; nothing is deleted for it
    if git_dir_for(repo, path) != Path(journal.git_dir):
        raise NotBelieved("names a folder that is no checkout of this repository")
    if any(folder.is_symlink() for folder in (journal.home.parent, path / ".crew-sync")):
        raise NotBelieved("leads through a link")


@effect("git.sync_forget")
def forget_journal(repo: Repository) -> None:
    """End the sync. The journal stays for a later check of writes by other programs."""
    with suppress(FileNotFoundError):
        put_in_place(repo.common_dir / JOURNAL, repo.common_dir / LAST)
        os.utime(repo.common_dir / LAST)


@effect("git.sync_log_head")
def log_move_of_head(journal: Journal) -> None:
    """Add the move to the log of the checkout's HEAD, since git saw only that of the branch."""
    line = f"{journal.old} {journal.new} crew <crew@localhost> {int(time.time())} +0000\tcrew\n"
    with suppress(OSError):
        handle = os.open(journal.checkout.git_dir / "logs" / "HEAD", os.O_WRONLY | os.O_APPEND)
        with os.fdopen(handle, "ab") as file:
            file.write(line.encode())
