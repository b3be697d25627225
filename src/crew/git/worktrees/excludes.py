"""Excludes paths from git in one worktree, without a change to `.gitignore`.

For a worktree with a repository of its own, crew's git dir of it has the list. Git has no
`info/exclude` for a single linked worktree. But a conditional include can set another
`core.excludesFile` for it. The files of that are in `.git/info`, which agents in a sandbox cannot
write. The reasons are in `docs/decisions/005-excludes-per-worktree.md`.
"""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from crew.git.git_command import EXCLUDES, ask, git
from crew.git.repository import Repository
from crew.git.task_repository.lay_repository import write_excludes
from crew.git.worktrees import worktree_admin
from crew.system.atomic_files import has_content, write_file
from crew.system.crash_points import effect
from crew.system.file_locks import held

_INCLUDED = "info/crew.config"
_FOLDER = "info/crew"


def exclude_in_worktree(repo: Repository, path: Path, patterns: Iterable[str]) -> None:
    """Make every git call ignore these patterns in the worktree at `path` only. Safe to repeat.

    There can be only one `core.excludesFile`, so ours starts with the patterns of the user's own.
    """
    git_dir = worktree_admin.git_dir_for(repo, path.absolute())
    patterns = tuple(dict.fromkeys(patterns))
    if git_dir is not None and worktree_admin.is_own(git_dir):
        _exclude_in_own(repo, patterns, git_dir)
        return
    own = repo.common_dir / _FOLDER / git_dir.name if git_dir is not None else None
    if own is None or git_dir == repo.common_dir or not (patterns or own.exists()):
        return
    with held(repo.common_dir / "crew.lock") as lock:
        lines = b"".join(os.fsencode(pattern) + b"\n" for pattern in patterns)
        _write(own / "exclude", _ignored_everywhere(repo) + lines)
        _write(own / "config", _setting("core", "excludesFile", own / "exclude"))
        _write(repo.common_dir / _INCLUDED, _conditions(repo))
        _ensure_included(repo, lock=lock)


def renew_excludes(repo: Repository) -> None:
    """Write the paths in the files of linked worktrees again, after the repository moved."""
    if not (repo.common_dir / _FOLDER).is_dir():
        return
    with held(repo.common_dir / "crew.lock"):
        for own in sorted((repo.common_dir / _FOLDER).iterdir()):
            _write(own / "config", _setting("core", "excludesFile", own / "exclude"))
        _write(repo.common_dir / _INCLUDED, _conditions(repo))


def _exclude_in_own(repo: Repository, patterns: tuple[str, ...], git_dir: Path) -> None:
    """Record the patterns for crew's git calls, and for those of the agent."""
    if patterns or (git_dir / EXCLUDES).exists():
        lines = b"".join(os.fsencode(pattern) + b"\n" for pattern in patterns)
        with held(git_dir / "crew.lock"):
            _write(git_dir / EXCLUDES, _ignored_everywhere(repo) + lines)
            write_excludes(repo, git_dir)


def pattern_for(name: str) -> str:
    """The pattern that matches exactly this path from the top of a worktree."""
    escaped = re.sub(r"([\\*?\[])", r"\\\1", name).replace("\n", "?")
    return "/" + re.sub(r" (?= *$)", r"\\ ", escaped)


def _ignored_everywhere(repo: Repository) -> bytes:
    """The patterns of the user's `core.excludesFile`, or of git's default file."""
    named = ask(repo.root, "config", "--type=path", "core.excludesFile")
    if named.code == 0:
        file = repo.root / os.fsdecode(named.out).removesuffix("\n")
    else:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        file = home / "git" / "ignore"
    try:
        text = file.read_bytes()
    except OSError:
        return b""
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _conditions(repo: Repository) -> bytes:
    """Write one conditional include for each existing worktree, and delete the others' files."""
    text = b""
    for own in sorted((repo.common_dir / _FOLDER).iterdir()):
        git_dir = repo.common_dir / "worktrees" / own.name
        if git_dir.is_dir():
            where = re.sub(r"([\\*?\[])", r"\\\1", str(git_dir.resolve()))
            text += _setting(f"includeIf {_quoted(f'gitdir:{where}')}", "path", own / "config")
        else:
            _delete(own)
    return text


def _setting(section: str, key: str, value: Path) -> bytes:
    return os.fsencode(f"[{section}]\n\t{key} = {_quoted(str(value))}\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _ensure_included(repo: Repository, *, lock: int) -> None:
    config = str(repo.common_dir / "config")
    present = ask(repo.common_dir, "config", "--file", config, "--get-all", "include.path")
    if _INCLUDED not in present.out.decode(errors="replace").splitlines():
        _include(repo, config, lock=lock)


@effect("git.include_excludes")
def _include(repo: Repository, config: str, *, lock: int) -> None:
    add = ("config", "--file", config, "--add", "include.path", _INCLUDED)
    git(repo.common_dir, *add, keep_open=lock)


@effect("git.write_excludes")
def _write(file: Path, content: bytes) -> None:
    if not has_content(file, content):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content, unfinished=file.with_name(f"{file.name}.crew-new"))


@effect("git.delete_excludes")
def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
