"""Reads a nested repository as data, through a temporary git dir that is crew's own.

An agent made the repository. Its settings, hooks and attributes could run programs, and its files
could lead git elsewhere. So git sees a copy of its HEAD, refs and index, and reads its objects.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, forget_settings
from crew.git.hardening import common_dir_of, linked_git_dir
from crew.git.task_repository.agent_index import LARGEST_INDEX
from crew.git.task_repository.agent_refs import (
    agent_git_of,
    all_refs,
    is_folder,
    read_bytes,
    read_text,
)
from crew.git.task_repository.store_objects import quoted
from crew.git.task_repository.take_in import special_in
from crew.git.worktrees.index_file import load_marks, read_index
from crew.git.worktrees.submodules import module_dirs
from crew.git.worktrees.worktree_admin import environment_for, is_own

_LARGEST = 1_000_000
_STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z")
_HEAD = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?|ref: refs/[^\x00-\x20~^:?*\[\\\x7f]+")
_NO_HEAD = "ref: refs/heads/main"
_SUBMODULE = re.compile(r"^\s*\[submodule \"(.*)\"\]", re.MULTILINE)
_SHA256 = re.compile(rb"objectformat\s*=\s*\"?sha256", re.IGNORECASE)
_FORMATS = {
    False: b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    True: b"[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
    b"[extensions]\n\tobjectformat = sha256\n",
}


@frozen
class Surroundings:
    """A worktree, the git dir that its agent uses, and the objects of the main repository.

    Git dirs of nested repositories are in the first two, or crew does not read them.
    """

    root: Path
    home: Path
    store: Path

    def holds(self, path: Path) -> bool:
        real = _real(path)
        return any(real.is_relative_to(_real(place)) for place in (self.root, self.home))

    def is_known(self, objects: Path) -> bool:
        """Whether git may read these objects: plain files here, and no list of other folders."""
        if not is_folder(objects) or special_in(objects) is not None:
            return False
        others = objects / "info" / "alternates"
        if not os.path.lexists(others):
            return True
        named = (read_text(others, most=_LARGEST) or "?").splitlines()
        return not any("\0" in one for one in named) and all(
            self._is_allowed(Path(os.path.normpath(objects / one))) for one in named
        )

    def _is_allowed(self, objects: Path) -> bool:
        if _real(objects) in {_real(one) for one in self._persons()}:
            return True
        is_home = _real(objects) == _real(self.home / "objects")
        return is_home and self.is_known(objects)

    def _persons(self) -> Iterator[Path]:
        """The objects of the main repository, and of the submodules that a person has cloned."""
        yield self.store
        yield from (module / "objects" for module in module_dirs(self.store.parent))


def surroundings(worktree: Path, git_dir: Path) -> Surroundings:
    """The surroundings of a worktree with this git dir, which is crew's or git's own."""
    common = Path(os.path.normpath(common_dir_of(git_dir)))
    home = agent_git_of(git_dir) if is_own(git_dir) else common
    return Surroundings(root=worktree, home=home, store=common / "objects")


def own_git_dir(folder: Path) -> Path | None:
    """The git dir of a repository whose top is this folder; None if it is not one."""
    dot_git = folder / ".git"
    if folder.is_symlink():
        return None
    git_dir = dot_git if is_folder(dot_git) else linked_git_dir(dot_git)
    return git_dir if git_dir is not None and os.path.lexists(git_dir / "HEAD") else None


def headless_git_dir(folder: Path) -> Path | None:
    """The `.git` folder of a repository that lost its HEAD: git sees none, but it has commits."""
    git_dir = folder / ".git"
    is_headless = is_folder(git_dir / "objects") and not os.path.lexists(git_dir / "HEAD")
    return git_dir if is_headless and is_folder(git_dir) else None


def changed_links(around: Surroundings, links: Mapping[str, str]) -> list[str]:
    """The submodules with other commits or files than their links name.

    Git itself would start another git in each of them, with the settings that it has there.
    """
    return [path for path, commit in links.items() if _is_changed(around, path, commit)]


def _is_changed(around: Surroundings, path: str, commit: str) -> bool:
    folder = around.root / path
    git_dir = own_git_dir(folder)
    if git_dir is None or not around.holds(git_dir):
        return git_dir is not None or not is_folder(folder)
    with view_of(git_dir, folder, around) as env:
        if env is None:
            return True
        answer = ask(folder, *_STATUS, env=env)
        inner = load_marks(folder, read_index(Path(env["GIT_DIR"])), env).links
    found = [line for line in answer.out.split(b"\0") if line]
    changed = [line for line in found if not line.startswith(b"# ")]
    if answer.code != 0 or changed or b"# branch.oid " + commit.encode() not in found:
        return True
    return any(_is_changed(around, f"{path}/{name}", at) for name, at in inner.items())


def without_dirty_links(worktree: Path) -> dict[str, str]:
    """Variables for a person's `git diff`: it starts no other git in a submodule.

    That git would use the settings which the agent made there. `.gitmodules` can ask for it. The
    variables follow those of the caller's environment; crew's own git calls set others.
    """
    text = read_text(worktree / ".gitmodules", most=_LARGEST) or ""
    names = [f"submodule.{name}.ignore" for name in _SUBMODULE.findall(text)]
    first = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    keys = dict(enumerate(["diff.ignoreSubmodules", *dict.fromkeys(names)], first))
    env = {f"GIT_CONFIG_KEY_{number}": key for number, key in keys.items()}
    env |= {f"GIT_CONFIG_VALUE_{number}": "dirty" for number in keys}
    return {**env, "GIT_CONFIG_COUNT": str(first + len(keys))}


def _real(path: Path) -> Path:
    """Where the links of a path lead; those of a loop stay, with which `resolve` fails."""
    return Path(os.path.realpath(path))


def objects_of(git_dir: Path) -> Path:
    return common_dir_of(git_dir) / "objects"


@contextmanager
def view_of(
    git_dir: Path, folder: Path, around: Surroundings
) -> Iterator[Mapping[str, str] | None]:
    """The variables with which git reads the repository; None if crew does not read it."""
    common, head = common_dir_of(git_dir), read_text(git_dir / "HEAD", most=_LARGEST) or _NO_HEAD
    if not (around.holds(common) and around.is_known(common / "objects") and _HEAD.fullmatch(head)):
        yield None
        return
    import tempfile  # noqa: PLC0415 - slow to load, and few worktrees have nested ones

    with tempfile.TemporaryDirectory(prefix="crew-view-") as made:
        view = Path(made)
        for inner in ("objects", "refs", "info"):
            (view / inner).mkdir()
        for name, content in _files(git_dir, common, head).items():
            (view / name).write_bytes(content)
        other = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted((common / "objects").resolve())}
        try:
            yield {**environment_for(view, folder), **other}
        finally:
            forget_settings(view)


def _files(git_dir: Path, common: Path, head: str) -> dict[str, bytes]:
    config = read_bytes(common / "config", most=_LARGEST) or b""
    index = read_bytes(git_dir / "index", most=LARGEST_INDEX)
    refs = "".join(f"{at} {ref}\n" for ref, at in sorted(all_refs(common).items()))
    files = {
        "HEAD": os.fsencode(f"{head}\n"),
        "config": _FORMATS[_SHA256.search(config) is not None],
        "packed-refs": os.fsencode(refs),
        "info/exclude": read_bytes(common / "info" / "exclude", most=_LARGEST) or b"",
        _CONFIG: config,
    }
    return files if index is None else {**files, "index": index}


_CONFIG = "crew-its-config"
"""In the view: the settings of the repository, to be read as data."""


def config_in(env: Mapping[str, str]) -> str:
    return str(Path(env["GIT_DIR"], _CONFIG))
