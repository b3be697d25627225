"""Repositories of tests: each is built once in a process, and every test gets a copy of it."""

import atexit
import functools
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_numbers = itertools.count(1)


@functools.cache
def _shelf() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="crew-templates-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def new_template() -> Path:
    """A place for something that is built once and copied."""
    return _shelf() / str(next(_numbers))


def lay_repository(path: Path, files: Mapping[str, str]) -> None:
    """A repository with one commit, called `first`, of these files."""
    shutil.copytree(_template(tuple(files.items())), path)
    _git(path, "update-index", "-q", "--refresh")  # the files have other inodes now


@functools.cache
def _template(files: tuple[tuple[str, str], ...]) -> Path:
    path = new_template()
    for name, text in files:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    _git(path, "init", "-q")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "first")
    return path


def _git(path: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=path, check=True)
