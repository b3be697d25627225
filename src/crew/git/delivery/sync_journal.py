"""The journal of a sync, written to disk before a person's checkout is touched."""

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.delivery.checkout import Checkout
from crew.git.repository import Repository
from crew.system.atomic_files import put_in_place, write_file
from crew.system.crash_points import effect

JOURNAL = "crew-sync.json"
LAST = "crew-sync-last.json"


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
    try:
        return Journal(**json.loads((repo.common_dir / name).read_text()))
    except FileNotFoundError:
        return None


@effect("git.sync_forget")
def forget_journal(repo: Repository) -> None:
    """End the sync. The journal stays for a later check of writes by other programs."""
    with suppress(FileNotFoundError):
        put_in_place(repo.common_dir / JOURNAL, repo.common_dir / LAST)
        os.utime(repo.common_dir / LAST)
