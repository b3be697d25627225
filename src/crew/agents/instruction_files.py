"""Finds and reads the instructions of a repository, for CLIs whose project settings are off.

An agent can commit a link, and crew reads more than a sandbox does: a link must not lead outside.
"""

import os
from pathlib import Path

from crew.system.foreign_files import open_foreign

LONGEST = 100_000


def instruction_file(worktree: Path, name: str) -> Path | None:
    """This file of the repository, or the one to which it is a link; None for anything else."""
    path = worktree / name
    if path.is_symlink():
        return _linked_file(path, worktree)
    return path if path.is_file() else None


def instruction_text(file: Path) -> str:
    """The content, of which a long file gives whole lines of the beginning, and says so."""
    with open_foreign(file) as opened:
        content = opened.read(LONGEST + 1)
    if len(content) <= LONGEST:
        return content.decode(errors="replace").strip()
    begin = content[:LONGEST].rpartition(b"\n")[0] or content[:LONGEST]
    text = begin.decode(errors="replace").strip()
    return f"{text}\n\n(This file is too long to be quoted as a whole. The rest is in {file}.)"


def _linked_file(link: Path, worktree: Path) -> Path | None:
    try:
        found = Path(os.path.realpath(link, strict=True))
    except OSError:  # it leads nowhere, or in a circle
        return None
    is_inside = found.is_relative_to(os.path.realpath(worktree))
    return found if is_inside and found.is_file() else None
