"""Makes a sample repository to try crew in, and draws its history."""

from collections.abc import Mapping
from pathlib import Path

from crew.git.git_command import git

BRANCH = "main"
AUTHOR = {"user.name": "Demo", "user.email": "demo@localhost"}


def make_repository(root: Path, files: Mapping[str, str], *, message: str) -> None:
    """Make a new folder with these files, committed."""
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text.lstrip("\n"))
    git(root, "init", "--quiet", f"--initial-branch={BRANCH}")
    for name, value in AUTHOR.items():
        git(root, "config", name, value)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)


def drawn_history(root: Path) -> str:
    return git(root, "log", "--graph", "--format=%h %s", BRANCH)
