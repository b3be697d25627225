"""Finds, checks and repairs the git dir of a worktree without starting git.

A worktree is of one of two kinds. An own one has a repository of its own, which its `.git` file
names, and crew's git dir for it, where no agent can write: both are in `.git/crew/folders` of the
main repository. A linked one
is a plain `git worktree`, which shares everything with the main repository.
"""

import contextlib
import itertools
import os
import shutil
import uuid
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

from crew.domain.kernel.names import is_task_id
from crew.git.git_command import handed_on_settings
from crew.git.hardening import common_dir_of, linked_git_dir
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import agent_git_of, is_folder, read_bytes, remove
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.deep_folders import delete_folder

READY = "crew-ready"
"""In a worktree's git dir: crew created it, and its first checkout is complete."""
REFILL = "crew-refill"
"""In a worktree's git dir: its directory was lost, and its files are being restored."""

Kind = Literal["own", "linked"]
_OWN = Path("crew", "folders")
_OWN_PARTS = list(_OWN.parts)
_LINKED = Path("worktrees")
_WHOLE = ("HEAD", "commondir", "gitdir")
_LONGEST_PATH = 10_000
_SPARSE = ("core.sparsecheckout", "core.sparsecheckoutcone")


def git_dir_for(repo: Repository, path: Path) -> Path | None:
    """The git dir of a worktree, even if the worktree's own `.git` is missing or wrong.

    An agent can point its `.git` file at another repository, so the repository's files decide.
    """
    if path == repo.root:
        return repo.common_dir
    own, file, named = _usual_place(repo.common_dir, path)
    if path.is_absolute() and read_bytes(file, most=_LONGEST_PATH) == named:
        return own  # as crew wrote it, so no link needs to be resolved
    dot_git = path / ".git"
    wanted = _real(dot_git)
    if _named_in(own) == wanted or (_git_dir_named(path) == own and _is_half(own)):
        return own
    pointed = linked_git_dir(dot_git)
    if pointed is not None and not _is_entry(repo, pointed):
        pointed = None
    if pointed is not None and _named_in(pointed) == wanted:
        return Path(os.path.realpath(pointed))
    found = next((entry for entry in _entries(repo) if _named_in(entry) == wanted), None)
    if found is None and pointed is not None and pointed.is_dir() and _named_in(pointed) is None:
        return Path(os.path.realpath(pointed))  # partly deleted
    return found


@lru_cache(maxsize=1000)
def _usual_place(common_dir: Path, path: Path) -> tuple[Path, str, bytes]:
    """The git dir of a worktree of the own kind, and its file with the worktree's name."""
    own = common_dir / _OWN / path.name
    return own, f"{own}/gitdir", os.fsencode(f"{path}/.git\n")


def _is_half(git_dir: Path) -> bool:
    """Whether crew's git dir lost the name of its worktree, but not the task's repository."""
    return not (git_dir / "gitdir").exists() and agent_git_of(git_dir).is_dir()


def is_own(git_dir: Path) -> bool:
    """Whether the worktree has a repository of its own, and this git dir is crew's."""
    *above, name = git_dir.parts[-3:]
    return above == _OWN_PARTS and not name.endswith(".git")


@lru_cache(maxsize=1000)
def _main_of(git_dir: Path) -> Path:
    return git_dir.parents[len(_OWN_PARTS)]


def main_git_dir(git_dir: Path) -> Path:
    """The git dir of the main repository, always under the same name for worktrees of crew."""
    return _main_of(git_dir) if is_own(git_dir) else common_dir_of(git_dir)


def environment_for(git_dir: Path, path: Path) -> dict[str, str]:
    """Bind git to this git dir and these files, whatever the worktree's `.git` names."""
    return {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(path)}


def is_ready(git_dir: Path) -> bool:
    """Whether crew finished making the worktree, so that it is crew's own."""
    return os.path.lexists(f"{git_dir}/{READY}")


def is_whole(git_dir: Path) -> bool:
    """Whether `git worktree add` wrote all its files."""
    return all(os.path.isfile(f"{git_dir}/{name}") for name in _WHOLE)  # noqa: PTH113 - often


def is_simple(repo: Repository, path: Path) -> bool:
    """Whether a new worktree needs only three small files that name each other."""
    return is_task_id(path.name) and has_plain_refs(repo)


def has_plain_refs(repo: Repository) -> bool:
    """Whether HEAD is a plain file, and all worktrees share their settings."""
    special = ("config.worktree", "reftable")
    return not any((repo.common_dir / name).exists() for name in special)


def git_dirs(repo: Repository) -> Iterator[Path]:
    """The repository's own git dir, and those of its worktrees."""
    yield repo.common_dir
    yield from _entries(repo)


def is_pointed_at(git_dir: Path, path: Path) -> bool:
    """Whether the `.git` file of the worktree names the right git dir."""
    if read_bytes(f"{path}/.git", most=_LONGEST_PATH) == _pointer(git_dir):
        return True  # as crew wrote it, so no link needs to be resolved
    pointed = linked_git_dir(path / ".git")
    if pointed is None or (path / ".git").is_symlink():
        return False
    return os.path.realpath(pointed) == os.path.realpath(named_by_worktree(git_dir))


def named_by_worktree(git_dir: Path) -> Path:
    """The git dir that the `.git` file of the worktree names."""
    return agent_git_of(git_dir) if is_own(git_dir) else git_dir


def is_orphan(repo: Repository, path: Path) -> bool:
    """Whether the directory names this repository, which lost its files about the worktree."""
    pointed = _git_dir_named(path)
    homes = {os.path.realpath(repo.common_dir / kind) for kind in (_OWN, _LINKED)}
    return (
        pointed is not None
        and os.path.realpath(pointed.parent) in homes
        and not is_whole(pointed)
        and _named_in(pointed) in {None, _real(path / ".git")}
    )


def _git_dir_named(path: Path) -> Path | None:
    """Crew's or git's git dir of a worktree, as its `.git` file names it."""
    pointed = linked_git_dir(path / ".git")
    is_repository = pointed is not None and pointed == agent_git_of(pointed.parent)
    return pointed.parent if pointed is not None and is_repository else pointed


def is_bare_of_files(path: Path) -> bool:
    """Whether it contains nothing except perhaps the `.git` file."""
    try:
        return all(name == ".git" for name in os.listdir(path))  # noqa: PTH208 - names are enough
    except FileNotFoundError:
        return True


def lock_reason(git_dir: Path) -> str | None:
    """The reason of a worktree's lock. Git's own mark of a half-made one does not count."""
    try:
        reason = (git_dir / "locked").read_text(errors="replace").strip()
    except OSError:
        return None
    return None if reason == "initializing" else reason or "no reason given"


@effect("git.point_worktree")
def point(git_dir: Path, path: Path) -> None:
    """Write the worktree's `.git` file again.

    The unfinished file has a fixed name: after a kill the next write takes it over, and it never
    counts as work of the task.
    """
    path.mkdir(parents=True, exist_ok=True)
    unfinished = path / ".git.crew-new"
    if is_folder(unfinished):
        remove(unfinished)
    write_file(path / ".git", _pointer(git_dir), unfinished=unfinished)


def _pointer(git_dir: Path) -> bytes:
    return b"gitdir: " + os.fsencode(named_by_worktree(git_dir)) + b"\n"


@effect("git.name_worktree")
def name_worktree(git_dir: Path, path: Path) -> None:
    """Write the path of the worktree to its git dir again."""
    write_file(git_dir / "gitdir", os.fsencode(path / ".git") + b"\n")


@effect("git.register_worktree")
def register(repo: Repository, path: Path, *, branch: str) -> Path:
    """Create a git dir for existing files, atomically."""
    git_dir = _git_dir_named(path) or repo.common_dir / _LINKED / path.name
    kind: Kind = "own" if is_own(git_dir) else "linked"
    making = _written(repo, path, head=f"ref: refs/heads/{branch}", kind=kind)
    (making / READY).touch()
    git_dir.parent.mkdir(parents=True, exist_ok=True)
    making.rename(git_dir)
    return git_dir


@effect("git.rewrite_worktree")
def rewrite(git_dir: Path, path: Path, *, branch: str) -> None:
    """Write the lost files of crew's git dir again. The task's repository in it stays."""
    for name, content in _contents(path, head=f"ref: refs/heads/{branch}", kind="own").items():
        write_file(git_dir / name, content)


@effect("git.lay_worktree")
def lay(
    repo: Repository,
    path: Path,
    *,
    head: str,
    index: Path | None = None,
    kind: Kind = "own",
) -> Path:
    """Create the git dir of a new worktree, five times faster than `git worktree add`.

    `head` is the content of HEAD. For a linked one it names a branch that was just created, which
    no worktree can have checked out. The git dir appears atomically, with the index if there is
    one, under a name that is reserved as git does.
    """
    git_dir = _reserve_name(repo.common_dir / (_OWN if kind == "own" else _LINKED), path.name)
    making = _written(repo, path, head=head, kind=kind)
    if index is not None:
        shutil.move(index, making / "index")  # worktrees may be on another disk
    making.rename(git_dir)
    return git_dir


def _reserve_name(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        git_dir = folder / f"{name}{number or ''}"
        with contextlib.suppress(FileExistsError):
            git_dir.mkdir()
            break
    return git_dir


def _written(repo: Repository, path: Path, *, head: str, kind: Kind) -> Path:
    making = repo.common_dir / f"crew-new-{uuid.uuid4().hex}"
    making.mkdir()
    for name, content in _contents(path, head=head, kind=kind).items():
        (making / name).write_bytes(content)
    if kind == "own":
        _hand_on_sparse(repo, making)
    return making


def _contents(path: Path, *, head: str, kind: Kind) -> dict[str, bytes]:
    return {
        "HEAD": f"{head}\n".encode(),
        "commondir": b"../../..\n" if kind == "own" else b"../..\n",
        "gitdir": os.fsencode(path / ".git") + b"\n",
    }


def _hand_on_sparse(repo: Repository, making: Path) -> None:
    """Let crew's own git write the same part of the files that the person has."""
    patterns = repo.common_dir / "info" / "sparse-checkout"
    shared = handed_on_settings(repo.common_dir) if patterns.is_file() else {}
    lines = [f"\t{key[5:]} = {value}\n" for key, value in shared.items() if key in _SPARSE]
    if lines:
        (making / "info").mkdir()
        shutil.copyfile(patterns, making / "info" / "sparse-checkout")
        (making / "config.worktree").write_text("[core]\n" + "".join(lines))


def detach(git_dir: Path, commit: str) -> None:
    """Set the HEAD of a worktree to a commit, atomically."""
    write_file(git_dir / "HEAD", f"{commit}\n".encode())


@effect("git.forget_worktree")
def forget(git_dir: Path) -> None:
    """Remove a worktree's git dir: rename it, then delete its files."""
    up = git_dir.parents[2] if is_own(git_dir) else git_dir.parents[1]
    gone = up / f"crew-gone-{uuid.uuid4().hex}"
    git_dir.rename(gone)
    delete_folder(gone)


@effect("git.mark_refill")
def mark_refill(git_dir: Path) -> None:
    (git_dir / REFILL).touch()


@effect("git.finish_making")
def finish_making(git_dir: Path) -> None:
    """Record that the checkout is complete."""
    (git_dir / READY).touch()
    (git_dir / REFILL).unlink(missing_ok=True)
    if lock_reason(git_dir) is None:
        (git_dir / "locked").unlink(missing_ok=True)


def sweep(repo: Repository, name: str) -> None:
    """Delete half-made and half-deleted files of a killed crew. Only under the worktree lock."""
    for left in os.listdir(repo.common_dir):  # noqa: PTH208 - names are enough
        if left.startswith(("crew-new-", "crew-gone-")):
            delete_folder(repo.common_dir / left)
    for entry in _entries(repo):
        if entry.name.rstrip("0123456789") != name.rstrip("0123456789"):
            continue
        if (entry / "locked").exists() and not (entry / "gitdir").exists():
            forget(entry)


def own_folders(repo: Repository) -> Iterator[tuple[Path, Path]]:
    """Each worktree with a repository of its own: its path, and crew's git dir for it."""
    for git_dir in _entries_in(repo.common_dir / _OWN):
        if (named := _named_in(git_dir)) is not None:
            yield Path(named).parent, git_dir


def crews_folders(repo: Repository) -> Iterator[tuple[Path, Path]]:
    """Each worktree of crew, own or linked: its path as it is recorded, and its git dir."""
    for git_dir in _entries(repo):
        named = _text_in(git_dir) if is_own(git_dir) or is_ready(git_dir) else None
        if named is not None:
            yield Path(os.path.normpath(git_dir / named)).parent, git_dir


def own_git_dirs(repo: Repository) -> Iterator[Path]:
    """crew's git dirs of all folders, even half-made ones."""
    yield from (entry for entry in _entries_in(repo.common_dir / _OWN) if entry.is_dir())


def worktree_folders(repo: Repository) -> Iterator[Path]:
    """The folders of all worktrees, as their git dirs name them."""
    yield from (Path(named).parent for entry in _entries(repo) if (named := _named_in(entry)))


def _entries(repo: Repository) -> Iterator[Path]:
    yield from _entries_in(repo.common_dir / _OWN)
    yield from _entries_in(repo.common_dir / _LINKED)


def _entries_in(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names sort much faster than paths
    except OSError:
        return
    yield from (folder / name for name in sorted(names))


def _is_entry(repo: Repository, git_dir: Path) -> bool:
    folder = repo.common_dir / _LINKED
    return git_dir.parent == folder or os.path.realpath(git_dir.parent) == os.path.realpath(folder)


def _named_in(git_dir: Path) -> str | None:
    """The path of the worktree's `.git`, as its git dir records it."""
    named = _text_in(git_dir)
    if named is None:
        return None
    return _real(os.path.join(git_dir, named))  # noqa: PTH118 - for every worktree, at every look


def _text_in(git_dir: Path) -> str | None:
    found = read_bytes(f"{git_dir}/gitdir", most=_LONGEST_PATH)
    return None if found is None else os.fsdecode(found).rstrip("\n")


def _real(dot_git: str | Path) -> str:
    """The path of a `.git` with its folder resolved. The file itself may be missing."""
    folder, name = os.path.split(dot_git)
    return f"{os.path.realpath(folder)}/{name}"
