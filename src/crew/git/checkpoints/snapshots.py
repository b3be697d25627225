"""Builds one tree of a worktree's tracked, untracked, nested and some ignored files.

Neither the files nor the index of the worktree change.
"""

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.git.checkpoints.ignored_files import Chosen, choose, file_size
from crew.git.checkpoints.nested_history import History, keep_history
from crew.git.checkpoints.nested_repositories import (
    Nested,
    found_in,
    has_remote,
    ignored_in,
    nested_at,
    with_inner,
)
from crew.git.delivery.uncommitted_edits import quoted_name
from crew.git.git_command import GitAnswer, ask, failure, git
from crew.git.repository import Repository
from crew.git.task_repository.crew_index import settle_index
from crew.git.task_repository.special_files import drop_special_files
from crew.git.task_repository.take_in import NotTakenIn, follow_agent
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.nested_view import surroundings
from crew.git.worktrees.worktree_status import WorktreeState, private_index, read_status, reveal

LONG_S = 1800.0

R = TypeVar("R")


@frozen
class SnapshotPlace:
    """A worktree, its git dir, and the variables that bind git to both."""

    path: Path
    git_dir: Path
    is_bound: bool  # whether the git dir's HEAD and index are this worktree's
    env: Mapping[str, str]

    def take_in_commits(self, repo: Repository) -> None:
        """Take in what an agent committed in a repository of its own.

        If git refuses that, the files are kept all the same.
        """
        if self.is_bound and worktree_admin.is_own(self.git_dir):
            with suppress(NotTakenIn, Conflict):
                self.without_special(lambda: follow_agent(repo, self.git_dir))

    def without_special(self, read: Callable[[], R]) -> R:
        """Read; if git would wait for a pipe, delete that first: no process of the task uses it."""
        try:
            return read()
        except NotTakenIn:
            if not drop_special_files(self.path, self.git_dir):
                raise
            return read()


@frozen
class Holding:
    """What a worktree contains besides its last commit. `left_out` is not kept.

    `large` are the files among it that are above the limit of a file without a commit.
    """

    status: WorktreeState | GitAnswer
    nested: tuple[tuple[Nested, tuple[str, ...]], ...] = ()
    ignored: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    large: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        is_committed = isinstance(self.status, WorktreeState) and not self.status.changed
        return is_committed and not self.nested and not self.ignored


def place_of(repo: Repository, worktree: Path) -> SnapshotPlace:
    """The place of a worktree. If its git dir is lost, the repository's own is used."""
    git_dir = worktree_admin.git_dir_for(repo, worktree) or repo.common_dir
    if git_dir != repo.common_dir and not worktree_admin.is_whole(git_dir):
        git_dir = repo.common_dir
    return SnapshotPlace(
        path=worktree,
        git_dir=git_dir,
        is_bound=git_dir != repo.common_dir or worktree == repo.root,
        env=worktree_admin.environment_for(git_dir, worktree),
    )


def look(place: SnapshotPlace, *, with_ignored: bool, max_bytes: int | None = None) -> Holding:
    """List the content to keep; above `max_bytes`, no file that HEAD does not have."""
    status = place.without_special(lambda: read_status(place.path, place.git_dir, env=place.env))
    if isinstance(status, WorktreeState) and status.is_untouched:
        return Holding(status=status)
    outer = found_in(surroundings(place.path, place.git_dir), status)
    paths = [*status.ignored] if isinstance(status, WorktreeState) and with_ignored else []
    chosen = choose(place.path, paths)
    clones, own = _sorted_out(place, chosen)
    nested = [(one, tuple(files)) for each in (*outer, *own) for one, files in with_inner(each)]
    if with_ignored and nested:
        paths += [path for one, _ in nested for path in ignored_in(one)]
        chosen = choose(place.path, paths)
    large = _large(place, status, max_bytes) if max_bytes is not None else {}
    sizes = (f"{path} ({size / 1e6:.1f} MB)" for path, size in large.items())
    return Holding(
        status=status,
        nested=tuple(nested),
        ignored=chosen.kept,
        left_out=(*chosen.left_out, *clones, *sizes),
        large=tuple(large),
    )


def _large(
    place: SnapshotPlace, status: WorktreeState | GitAnswer, max_bytes: int
) -> dict[str, int]:
    """The changed files above this size that HEAD does not have, with their sizes."""
    if isinstance(status, GitAnswer):
        return {}
    sizes = {path: size for name in status.changed for path, size in file_size(place.path, name)}
    return {
        path: size
        for path, size in sizes.items()
        if size > max_bytes and not _is_in(place, status.head, path)
    }


def _is_in(place: SnapshotPlace, head: str | None, path: str) -> bool:
    return (
        head is not None
        and ask(place.path, "cat-file", "-e", f"{head}:{path}", env=place.env).code == 0
    )


def write_tree(place: SnapshotPlace, holding: Holding, *, head: str | None) -> str:
    """The tree of this content. It has the files of nested repositories instead of links."""
    status = holding.status
    is_sound = place.is_bound and isinstance(status, WorktreeState)
    with _index_of(place, head, copy=is_sound) as env:
        staged: tuple[str, ...] = ()
        if isinstance(status, WorktreeState) and is_sound:
            reveal(place.path, status.hidden, env)
            _update(place, ("--skip-worktree",), status.left_out, env)
            staged = tuple(name for name in status.staged if name not in holding.large)
        folders = [nested.path for nested, _ in holding.nested if not nested.is_overlaid]
        _update(place, ("--force-remove",), folders, env)
        _update(place, ("--add", "--replace"), (f for _, fs in holding.nested for f in fs), env)
        _add_all(place, (*folders, *holding.large), env)
        _update(place, ("--add", "--replace"), (*holding.ignored, *staged), env)
        return git(place.path, "write-tree", env=env)


def keep_histories(
    repo: Repository, holding: Holding
) -> tuple[tuple[History, ...], tuple[str, ...]]:
    """Copy the commits of nested repositories, and list those for which it failed."""
    tried = [(nested, keep_history(repo, nested)) for nested, _ in holding.nested]
    failed = (nested.path for nested, history in tried if nested.git_dir and history is None)
    return (
        tuple(history for _, history in tried if history is not None),
        tuple(f"the history of {path}" for path in failed),
    )


def _sorted_out(place: SnapshotPlace, chosen: Chosen) -> tuple[list[str], list[Nested]]:
    """Keep the repositories in ignored folders, except clones, which can be cloned again."""
    around = surroundings(place.path, place.git_dir)
    found = [one for path in chosen.nested if (one := nested_at(around, path)).git_dir]
    own = [one for one in found if not has_remote(one)]
    return [f"{one.path}/ (a clone)" for one in found if one not in own], own


@contextmanager
def _index_of(place: SnapshotPlace, head: str | None, *, copy: bool) -> Iterator[Mapping[str, str]]:
    if copy and worktree_admin.is_own(place.git_dir):
        settle_index(place.path, place.git_dir)
    with private_index(place.git_dir, copy=copy) as index:
        env = {**place.env, "GIT_INDEX_FILE": str(index)}
        if not index.exists() and head is not None:
            git(place.path, "read-tree", head, env=env)
        yield env


def _update(
    place: SnapshotPlace, how: tuple[str, ...], paths: Iterable[str], env: Mapping[str, str]
) -> None:
    stdin = b"\0".join(os.fsencode(path) for path in paths)
    if stdin:
        args = ("update-index", *how, "-z", "--stdin")
        git(place.path, *args, stdin=stdin, env=env, timeout_s=LONG_S)


def _add_all(place: SnapshotPlace, besides: Iterable[str], env: Mapping[str, str]) -> None:
    excluded = [f":(top,exclude,literal){path}" for path in besides]
    pathspecs = "\0".join([":/", *excluded])
    # An unreadable file must not prevent the others from being kept.
    args = ("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    added = ask(place.path, *args, env=env, stdin=os.fsencode(pathspecs), timeout_s=LONG_S)
    if added.code not in {0, 1} and not _add_as_they_are(place, frozenset(besides), env):
        raise failure(args, added)


def _add_as_they_are(place: SnapshotPlace, besides: Container[str], env: Mapping[str, str]) -> bool:
    """Add the changed files byte for byte: an attribute may ask for a conversion that fails."""
    args = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")
    listed = ask(place.path, *args, env=env)
    found = os.fsdecode(listed.out).split("\0")
    names = [name for name in dict.fromkeys(found) if name and name not in besides]
    files = [name for name in names if _is_plain_file(place.path / name)]
    stdin = b"".join(quoted_name(name) + b"\n" for name in files)
    hashed = ask(
        place.path,
        *("hash-object", "-w", "--no-filters", "--stdin-paths"),
        stdin=stdin,
        env=env,
        timeout_s=LONG_S,
    )
    if listed.code != 0 or hashed.code != 0:
        return False
    entries = zip(files, hashed.out.decode().split(), strict=True)
    lines = (f"{_mode(place.path / name)} {blob}\t{name}\0" for name, blob in entries)
    git(
        place.path, "update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)), env=env
    )
    _update(place, ("--add", "--remove"), (name for name in names if name not in files), env)
    return True


def _is_plain_file(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _mode(file: Path) -> str:
    return "100755" if file.stat().st_mode & stat.S_IXUSR else "100644"
