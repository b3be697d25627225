"""Copies the commits of a nested repository to the main one, and restores them from it.

Objects are read in place, so that only the objects of the other repository matter. Each one is
checked before it is stored.
"""

import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.checkpoints.nested_repositories import Nested
from crew.git.git_command import git
from crew.git.repository import Repository, is_object_id
from crew.git.task_repository.agent_refs import read_text
from crew.git.task_repository.store_objects import reading
from crew.git.task_repository.take_in import NotTakenIn, take_from
from crew.git.worktrees.nested_view import objects_of, own_git_dir
from crew.git.worktrees.worktree_admin import environment_for
from crew.system.crash_points import effect

HISTORY_LIMIT = 100_000_000
"""In bytes. The history of a larger repository is not copied, but its files are kept."""
MOST_REFS = 500
_LONGEST_LIST = 1_000_000
COPY_TIMEOUT_S = 1800.0

_KEPT = ("refs/heads", "refs/tags", "refs/stash")
_FORMAT = "%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)"


@frozen
class History:
    """The data to restore a nested repository. `head` is a branch (full name) or an id."""

    path: str
    head: str
    refs: Mapping[str, str] = field(default_factory=dict)

    @property
    def commits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.refs.values(), *filter(is_object_id, (self.head,)))))


def keep_history(repo: Repository, nested: Nested) -> History | None:
    """Copy all commits of a repository to the main one; None if that is not possible."""
    history = _read(nested) if nested.git_dir is not None else None
    if history is None or nested.git_dir is None:
        return None
    objects = objects_of(nested.git_dir).resolve()
    is_here = objects == (repo.common_dir / "objects").resolve()
    if not history.commits or is_here:
        return history
    borrowed = _borrowed(objects)
    if len(history.refs) > MOST_REFS or _is_large(objects, *borrowed):
        return None
    try:
        _take(repo, history.commits, objects=objects, is_all=bool(borrowed))
    except NotTakenIn:
        return None
    return history


@effect("git.copy_history")
def _take(repo: Repository, commits: tuple[str, ...], *, objects: Path, is_all: bool) -> None:
    """Store the commits in the main repository. Git checks every object of them.

    `is_all`: with what the repository borrows, as a submodule does from the person's clone.
    """
    env = reading(repo, repo.common_dir, objects)
    import tempfile  # noqa: PLC0415 - slow to load, and few worktrees have nested ones

    with tempfile.TemporaryDirectory(prefix="crew-in-") as scratch:
        take_from(repo, list(commits), env=env, scratch=Path(scratch), is_all=is_all)


def bring_back_history(repo: Repository, history: History, root: Path) -> None:
    """Restore a nested repository around its files, unless one exists there."""
    folder = root / history.path
    is_inside = folder.resolve().is_relative_to(root.resolve())
    if is_inside and own_git_dir(folder) is None:
        folder.mkdir(parents=True, exist_ok=True)
        _make(repo, history, folder)


def _read(nested: Nested) -> History | None:
    """The refs of a repository. Those of a linked worktree belong to another repository."""
    assert nested.git_dir is not None
    if nested.ask("rev-parse", "--git-dir").code != 0:
        return None
    branch = nested.ask("symbolic-ref", "--quiet", "HEAD").out.decode("utf-8", "replace").strip()
    commit = nested.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}").out.decode().strip()
    if (nested.git_dir / "commondir").exists():
        return History(path=nested.path, head=commit)
    listed = nested.ask("for-each-ref", f"--format={_FORMAT}", *_KEPT)
    if listed.code != 0:
        return None
    refs = dict(_commits_of(os.fsdecode(listed.out).splitlines()))
    is_branch = branch.startswith("refs/heads/")
    return History(path=nested.path, head=branch if is_branch else commit, refs=refs)


def _commits_of(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each ref with its commit, even of an annotated tag. Refs to other objects have none."""
    for line in lines:
        ref, *pairs = line.rstrip().split(" ")
        named = dict(zip(pairs[::2], pairs[1::2], strict=False))
        if "commit" in named:
            yield ref, named["commit"]


def _borrowed(objects: Path) -> tuple[Path, ...]:
    """The object folders that it reads besides its own; they are known to be harmless."""
    text = read_text(objects / "info" / "alternates", most=_LONGEST_LIST) or ""
    return tuple(objects / line for line in text.splitlines())


def _is_large(*folders: Path) -> bool:
    room = HISTORY_LIMIT
    for top, _, names in itertools.chain.from_iterable(map(os.walk, folders)):
        room -= sum((Path(top) / name).lstat().st_size for name in names)
        if room < 0:
            return True
    return False


@effect("git.copy_history")
def _copy(repo: Repository, commits: Iterable[str], *, into: Path) -> None:
    """Write the commits, and all they need, as one pack. The same commits give the same name."""
    pack = into / "objects" / "pack" / "pack"
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    args = ("pack-objects", "-q", "--revs", "--non-empty", str(pack))
    git(repo.common_dir, *args, stdin=stdin, timeout_s=COPY_TIMEOUT_S)


@effect("git.make_nested")
def _make(repo: Repository, history: History, folder: Path) -> None:
    """Build it under another name first, so that an existing `.git` is complete."""
    making = folder / ".git.crew-new"
    shutil.rmtree(making, ignore_errors=True)
    env = environment_for(making, folder)
    kind = git(repo.common_dir, "rev-parse", "--show-object-format")
    git(folder, "init", "-q", "--bare", "--template=", f"--object-format={kind}", str(making))
    _copy(repo, history.commits, into=making)
    _point_refs(history, folder, env)
    git(folder, "config", "--file", str(making / "config"), "core.bare", "false")
    making.rename(folder / ".git")


def _point_refs(history: History, folder: Path, env: Mapping[str, str]) -> None:
    lines = "".join(f"create {ref} {commit}\n" for ref, commit in history.refs.items())
    git(folder, "update-ref", "--stdin", stdin=lines.encode("utf-8", "surrogateescape"), env=env)
    if is_object_id(history.head):
        git(folder, "update-ref", "--no-deref", "HEAD", history.head, env=env)
    elif history.head:
        git(folder, "symbolic-ref", "HEAD", history.head, env=env)
    if is_object_id(history.head) or history.head in history.refs:
        git(folder, "read-tree", "HEAD", env=env)
