"""Keeps the files that git does not add: as they are, or under a name that git takes.

Git refuses some names (`.GIT/x`, `git~1`, a `.gitmodules` that is a link), and it cannot read a
closed file or convert every encoding. The work of an agent must not be lost for that.
"""

import os
import stat
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from crew.git.delivery.uncommitted_edits import quoted_name
from crew.git.git_command import ask, failure, git
from crew.git.task_repository.agent_refs import is_folder
from crew.system.crash_points import effect
from crew.system.foreign_files import NotBelieved, open_foreign

LONG_S = 1800.0
ASIDE = "not-added-by-git"
"""The folder in a checkpoint for files whose names git refuses."""

_LONGEST_NAME = 250
_LONGEST_PATH = 2000
_NOT_ADDED = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")
_HASH = ("hash-object", "-w", "--no-filters", "--stdin-paths")


def open_closed(worktree: Path, folders: Iterable[str]) -> bool:
    """Let crew look into these folders; whether it can look into at least one now."""
    opened = [_is_opened(worktree / folder) for folder in folders]
    return True in opened


def is_closed(folder: Path) -> bool:
    try:
        os.stat(f"{folder}/.")  # noqa: PTH116 - a `Path` drops the dot
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def _is_opened(folder: Path) -> bool:
    with suppress(OSError):
        _allow(folder, 0o700)
        os.scandir(f"{folder}/.").close()
        return True
    return False


@effect("git.open_closed")
def _allow(path: Path, mode: int) -> None:
    """Allow the owner more. Only while no process of the task runs."""
    found = path.lstat().st_mode
    if not stat.S_ISLNK(found):
        path.chmod(stat.S_IMODE(found) | mode)


def add_rest(worktree: Path, besides: Container[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Add the changed files that git did not add; the same answer as from `add_as_they_are`."""
    names = (name.removesuffix("/") for name in _listed(worktree, _NOT_ADDED, env))
    return add_as_they_are(worktree, (name for name in names if name not in besides), env)


def add_as_they_are(
    worktree: Path, names: Iterable[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Add these files byte for byte. The answer names those that have no place of their own."""
    named = [name for name in dict.fromkeys(names) if not is_folder(worktree / name)]
    gone = {name for name in named if _is_gone(worktree, name)}
    wanted = [name for name in named if name not in gone]
    update(worktree, ("--force-remove",), gone, env)
    entries = _stored(worktree, wanted, env)
    enter(worktree, entries, env)
    there = {*_listed(worktree, ("ls-files", "-z"), env)}
    refused = [name for name in entries if name not in there]
    aside = dict(zip(refused, _names_aside(worktree, refused), strict=True))
    enter(worktree, {aside[name]: entries[name] for name in refused}, env)
    return (
        *(f"{name} (not readable)" for name in wanted if name not in entries),
        *(f"{name} (its content is in {aside[name]})" for name in refused),
    )


def update(
    worktree: Path, how: tuple[str, ...], paths: Iterable[str], env: Mapping[str, str]
) -> None:
    stdin = b"\0".join(os.fsencode(path) for path in paths)
    if stdin:
        args = ("update-index", *how, "-z", "--stdin")
        git(worktree, *args, stdin=stdin, env=env, timeout_s=LONG_S)


def add_named(worktree: Path, paths: Iterable[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Add these files, and name those that the index has not under their name."""
    names = list(dict.fromkeys(paths))
    if not names:
        return ()
    args = ("update-index", "--add", "--replace", "-z", "--stdin")
    stdin = b"\0".join(os.fsencode(path) for path in names)
    answer = ask(worktree, *args, stdin=stdin, env=env, timeout_s=LONG_S)
    if answer.code == 0 and not answer.err:
        return ()
    there = {*_listed(worktree, ("ls-files", "-z"), env)} if answer.code == 0 else set[str]()
    return add_as_they_are(worktree, (name for name in names if name not in there), env)


def _listed(worktree: Path, args: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
    answer = ask(worktree, *args, env=env, timeout_s=LONG_S)
    if answer.code != 0:
        raise failure(args, answer)
    return [name for name in os.fsdecode(answer.out).split("\0") if name]


def _is_gone(worktree: Path, name: str) -> bool:
    """Whether nothing is there, or a link on the way, which could lead out of the worktree."""
    for folder in list(Path(name).parents)[-2::-1]:
        if not is_folder(worktree / folder):
            return True
        if is_closed(worktree / folder) and not _is_opened(worktree / folder):
            return False
    return not os.path.lexists(worktree / name)


def _stored(worktree: Path, names: list[str], env: Mapping[str, str]) -> dict[str, str]:
    """The mode and the object of each file and link that crew can read."""
    import tempfile  # noqa: PLC0415 - slow to load, and git adds most files itself

    files = [name for name in names if _is_readable(worktree / name)]
    links = [name for name in names if os.path.islink(worktree / name)]  # noqa: PTH114
    with tempfile.TemporaryDirectory(prefix="crew-links-") as made:
        targets = [Path(made) / str(number) for number in range(len(links))]
        for name, target in zip(links, targets, strict=True):
            target.write_bytes(os.fsencode((worktree / name).readlink()))
        paths = [*(str(worktree / name) for name in files), *map(str, targets)]
        stdin = b"".join(quoted_name(path) + b"\n" for path in paths)
        hashed = ask(worktree, *_HASH, stdin=stdin, env=env, timeout_s=LONG_S)
    if hashed.code != 0:
        raise failure(_HASH, hashed)
    modes = (*(_mode(worktree / name) for name in files), *("120000" for _ in links))
    found = zip((*files, *links), modes, hashed.out.decode().split(), strict=True)
    return {name: f"{mode} {blob}" for name, mode, blob in found}


def enter(worktree: Path, entries: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Enter a mode and an object for each into the index. Git leaves out names that it refuses."""
    stdin = b"".join(os.fsencode(f"{entry}\t{name}\0") for name, entry in entries.items())
    if stdin:
        args = ("update-index", "-z", "--index-info")
        git(worktree, *args, stdin=stdin, env=env, timeout_s=LONG_S)


def _is_readable(file: Path) -> bool:
    """Whether it is a file that crew can read, if need be after it has allowed that."""
    for _ in range(2):
        try:
            open_foreign(file).close()
        except PermissionError:
            with suppress(OSError):
                _allow(file, 0o400)
        except (OSError, NotBelieved):
            return False
        else:
            return True
    return False


def _mode(file: Path) -> str:
    return "100755" if file.stat().st_mode & stat.S_IXUSR else "100644"


def _names_aside(worktree: Path, names: list[str]) -> list[str]:
    """Names that git takes, and every file system: each part begins with an underscore."""
    folders = (ASIDE, *(f"{ASIDE}-{number}" for number in range(2, 10_000)))
    folder = next(one for one in folders if not os.path.lexists(worktree / one))
    return [f"{folder}/{_plain(name)}" for name in names]


def _plain(name: str) -> str:
    if len(os.fsencode(name)) > _LONGEST_PATH:
        return _short(name)
    parts = name.split("/")
    return "/".join(f"_{one}" if len(one) < _LONGEST_NAME // 4 else _short(one) for one in parts)


def _short(name: str) -> str:
    import hashlib  # noqa: PLC0415 - slow to load, and there is seldom one

    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f"_{name[: _LONGEST_NAME // 5].replace('/', '_')}-{digest}"
