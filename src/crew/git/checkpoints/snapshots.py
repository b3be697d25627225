"""Builds one tree of a worktree's tracked, untracked, nested and some ignored files.

Neither the files nor the index of the worktree change; closed files and folders are opened.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.git import lfs
from crew.git.checkpoints.ignored_files import Chosen, choose, file_size, is_cache
from crew.git.checkpoints.nested_history import History, keep_history
from crew.git.checkpoints.nested_repositories import (
    Nested,
    found_in,
    has_remote,
    ignored_in,
    nested_at,
    with_inner,
)
from crew.git.checkpoints.refused_files import (
    LONG_S,
    add_named,
    add_rest,
    enter,
    is_closed,
    open_closed,
    update,
)
from crew.git.git_command import GitAnswer, ask, git
from crew.git.repository import Repository
from crew.git.task_repository.crew_index import settle_index
from crew.git.task_repository.special_files import drop_special_files, walk
from crew.git.task_repository.take_in import NotTakenIn, follow_agent
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.nested_view import surroundings
from crew.git.worktrees.worktree_status import WorktreeState, private_index, read_status, reveal

_DEEPEST_CLOSED = 100
"""Closed folders, one inside the other, that crew opens. A program may close them again."""

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

    def read_status(self) -> WorktreeState | GitAnswer:
        return self.without_special(lambda: read_status(self.path, self.git_dir, env=self.env))


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
        if isinstance(self.status, GitAnswer) or self.status.changed or self.status.closed:
            return False
        return not self.nested and not self.ignored


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
    status = place.read_status()
    for _ in range(_DEEPEST_CLOSED):
        if not open_closed(place.path, _closed(place, status)):
            break
        status = place.read_status()
    if isinstance(status, WorktreeState) and status.is_untouched:
        return Holding(status=status)
    outer = found_in(surroundings(place.path, place.git_dir), status)
    nested = [(one, tuple(files)) for each in outer for one, files in with_inner(each)]
    ignored = status.ignored if isinstance(status, WorktreeState) and with_ignored else ()
    chosen, clones = _chosen(place, ignored, nested) if with_ignored else (Chosen(), ())
    large = _large(place, status, max_bytes) if max_bytes is not None else {}
    closed = (f"{path} (not readable)" for path in _closed(place, status) if not is_cache(path))
    sizes = (f"{path} ({size / 1e6:.1f} MB)" for path, size in large.items())
    return Holding(
        status=status,
        nested=tuple(nested),
        ignored=chosen.kept,
        left_out=(*chosen.left_out, *clones, *sizes, *closed),
        large=tuple(large),
    )


def _closed(place: SnapshotPlace, status: WorktreeState | GitAnswer) -> tuple[str, ...]:
    """The folders into which crew cannot look, also those of repositories inside."""
    seen = walk(place.path) if isinstance(status, GitAnswer) else status
    inner = (f"{path}/.git" for path in seen.repositories)
    return (*seen.closed, *(path for path in inner if is_closed(place.path / path)))


def _chosen(
    place: SnapshotPlace, ignored: Iterable[str], nested: list[tuple[Nested, tuple[str, ...]]]
) -> tuple[Chosen, list[str]]:
    """The ignored files to keep, and the clones. Repositories that count are added to `nested`."""
    around = surroundings(place.path, place.git_dir)
    paths, new = [*ignored], nested[:]
    while True:
        paths += [path for one, _ in new for path in ignored_in(one)]
        chosen = choose(
            place.path,
            paths,
            is_repository=lambda path: nested_at(around, path).git_dir is not None,
        )
        clones, own = _sorted_out(place, chosen)
        known = {one.path for one, _ in nested}
        found = (each for each in own if each.path not in known)
        new = [(one, tuple(files)) for each in found for one, files in with_inner(each)]
        if not new:
            return chosen, clones
        nested += new


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


def write_tree(
    place: SnapshotPlace, holding: Holding, *, head: str | None
) -> tuple[str, tuple[str, ...]]:
    """The tree of this content, and what has no place of its own there.

    The tree has the files of nested repositories instead of links.
    """
    status = holding.status
    is_sound = place.is_bound and isinstance(status, WorktreeState)
    with _index_of(place, head, copy=is_sound) as env:
        staged: tuple[str, ...] = ()
        if isinstance(status, WorktreeState) and is_sound:
            reveal(place.path, status.hidden, env)
            update(place.path, ("--skip-worktree",), status.left_out, env)
            staged = tuple(name for name in status.staged if name not in holding.large)
        folders = [nested.path for nested, _ in holding.nested if not nested.is_overlaid]
        update(place.path, ("--force-remove",), folders, env)
        kept = _kept_as_pointers(place, status, Path(env["GIT_INDEX_FILE"]))
        refused = _add_all(place, (*folders, *holding.large, *kept), env)
        enter(place.path, kept, env)
        inner = (file for _, files in holding.nested for file in files)
        refused += add_named(place.path, (*inner, *holding.ignored, *staged), env)
        return git(place.path, "write-tree", env=env), refused


def _kept_as_pointers(
    place: SnapshotPlace, status: WorktreeState | GitAnswer, index: Path
) -> Mapping[str, str]:
    """Files of git-lfs whose content is kept in its store, and the pointers in their place."""
    changed = () if isinstance(status, GitAnswer) else status.changed
    return lfs.kept_as_pointers(place.path, place.git_dir, index=index, changed=changed)


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
    found = [nested_at(around, path) for path in chosen.nested]
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


def _add_all(
    place: SnapshotPlace, besides: Iterable[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Add all changes besides these. The answer names files that have no place of their own."""
    excluded = [f":(top,exclude,literal){path}" for path in besides]
    pathspecs = "\0".join([":/", *excluded])
    # An unreadable file must not prevent the others from being kept.
    args = ("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    added = ask(place.path, *args, env=env, stdin=os.fsencode(pathspecs), timeout_s=LONG_S)
    if added.code == 0 and not added.err:
        return ()
    return add_rest(place.path, frozenset(besides), env)
