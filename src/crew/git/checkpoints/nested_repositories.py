"""Finds repositories inside a worktree that a commit cannot carry, and their content.

An agent made them, so they are not trusted: git reads them as data, through a git dir of crew's.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.checkpoints.ignored_files import is_cache, repositories_in
from crew.git.git_command import GitAnswer, ask
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import is_folder
from crew.git.worktrees.nested_view import (
    Surroundings,
    config_in,
    headless_git_dir,
    own_git_dir,
    surroundings,
    view_of,
)
from crew.git.worktrees.submodules import is_cloned
from crew.git.worktrees.worktree_admin import environment_for
from crew.git.worktrees.worktree_status import WorktreeState

_LISTED = ("ls-files", "-z", "--others", "--exclude-standard")
_MOST_FOLDERS = 20_000


@frozen
class Nested:
    """A repository at `path` in a worktree. Without a git dir, crew reads only its files.

    `is_overlaid`: the worktree's own repository also tracks files in its folder.
    """

    around: Surroundings
    path: str
    git_dir: Path | None
    is_overlaid: bool = False

    @property
    def folder(self) -> Path:
        return self.around.root / self.path

    def ask(self, *args: str) -> GitAnswer:
        """Let git read it. Without a git dir that crew reads, git fails."""
        if self.git_dir is None:
            return NOT_READ
        with view_of(self.git_dir, self.folder, self.around) as env:
            return NOT_READ if env is None else ask(self.folder, *args, env=env)


NOT_READ = GitAnswer(code=128, out=b"", err="crew does not read this repository")


def strays(
    repo: Repository, worktree: Path, state: WorktreeState, *, git_dir: Path, landed: str
) -> tuple[str, ...]:
    """The paths of repositories that are not submodules: a merge would add a dangling link.

    Links that landed earlier do not count, nor do clones in ignored folders, which belong to the
    tools that made them.
    """
    untracked = [path.removesuffix("/") for path in state.changed if path.endswith("/")]
    found = [path for path in untracked if own_git_dir(worktree / path) and not is_cache(path)]
    found += [path for path in state.overlaid if own_git_dir(worktree / path)]
    found += [
        nested.path
        for nested in _ignored_repositories(surroundings(worktree, git_dir), state)
        if not has_remote(nested)
    ]
    if state.links:
        real, old = submodules(worktree, git_dir), _links_in(repo, landed, state.links)
        new = {path for path, commit in state.links.items() if old.get(path) != commit}
        found += sorted(new - real)
    return tuple(sorted(dict.fromkeys(found)))


def unpushed(
    repo: Repository, worktree: Path, state: WorktreeState, *, git_dir: Path, landed: str
) -> tuple[str, ...]:
    """The submodules at a commit of this worktree alone, each with that commit.

    It is in no clone of the person, and in no branch that the agent got from a remote.
    """
    if not state.links:
        return ()
    around, old = surroundings(worktree, git_dir), _links_in(repo, landed, state.links)
    new = {path: commit for path, commit in state.links.items() if old.get(path) != commit}
    return tuple(
        f"{path}: {commit}"
        for path, commit in sorted(new.items())
        if _is_of_no_remote(nested_at(around, path), commit) and not is_cloned(repo, commit)
    )


def _is_of_no_remote(nested: Nested, commit: str) -> bool:
    answer = nested.ask("rev-list", "--max-count=1", commit, "--not", "--remotes")
    return answer.code == 0 and answer.out != b""


def submodules(worktree: Path, git_dir: Path) -> set[str]:
    """The paths that the staged `.gitmodules` names with a URL from which others can clone."""
    args = (
        "config",
        "--blob",
        ":.gitmodules",
        "-z",
        "--get-regexp",
        r"^submodule\..*\.(path|url)$",
    )
    answer = ask(worktree, *args, env=environment_for(git_dir, worktree))
    entries = os.fsdecode(answer.out).split("\0")
    values = dict(entry.split("\n", 1) for entry in entries if "\n" in entry)
    return {
        path
        for key, path in values.items()
        if key.endswith(".path")
        and _is_elsewhere(worktree, values.get(key.removesuffix("path") + "url", ""))
    }


def has_remote(nested: Nested) -> bool:
    """Whether it is a clone that can be cloned again."""
    if nested.git_dir is None:
        return False
    with view_of(nested.git_dir, nested.folder, nested.around) as env:
        if env is None:
            return False
        args = ("--file", config_in(env), "--no-includes", "--get-regexp", r"^remote\..*\.url$")
        return ask(nested.folder, "config", *args, env=env).code == 0


def found_in(around: Surroundings, state: WorktreeState | GitAnswer) -> list[Nested]:
    """The repositories whose files and commits exist nowhere else, without ignored ones.

    A submodule counts if it has changes, or commits that none of its remotes has.
    """
    if isinstance(state, GitAnswer):
        return list(_walk_repositories(around))
    changed = set(state.changed)
    untracked = (path.removesuffix("/") for path in state.changed if path.endswith("/"))
    found = [nested_at(around, path) for path in untracked]
    for path in state.links:
        one = nested_at(around, path)
        if _holds_anything(one.folder) and (path in changed or _has_own_commits(one)):
            found.append(one)
    mixed = dict.fromkeys((*state.overlaid, *_headless(around, state)))
    overlaid = (replace(nested_at(around, path), is_overlaid=True) for path in mixed)
    return [*found, *(one for one in overlaid if one.git_dir)]


def _headless(around: Surroundings, state: WorktreeState) -> Iterator[str]:
    """The repositories without a HEAD: git takes their files for those of the worktree."""
    for path in state.repositories:
        is_ignored = f"{path}/".startswith(state.ignored) or is_cache(path)
        if not is_ignored and headless_git_dir(around.root / path):
            yield path


def with_inner(nested: Nested) -> Iterator[tuple[Nested, list[str]]]:
    """A repository and its nested ones, each with the paths of its files, without ignored ones."""
    names = [] if nested.is_overlaid else list(dict.fromkeys(_names(nested)))
    folder = nested.folder
    yield nested, [f"{nested.path}/{name}" for name in names if _is_file(folder / name)]
    for name in names:
        if is_folder(folder / name):
            yield from with_inner(nested_at(nested.around, f"{nested.path}/{name}"))


def ignored_in(nested: Nested) -> list[str]:
    """The ignored paths of a repository. A folder ends in /."""
    if nested.git_dir is None:
        return []
    listed = nested.ask(*_LISTED, "--ignored", "--directory")
    return [f"{nested.path}/{name}" for name in _split(listed)]


def _ignored_repositories(around: Surroundings, state: WorktreeState) -> Iterator[Nested]:
    for path in repositories_in(around.root, state.ignored):
        if own_git_dir(around.root / path) and (nested := nested_at(around, path)).git_dir:
            yield nested


def nested_at(around: Surroundings, path: str) -> Nested:
    """The repository there. A git dir outside of the worktree is not read."""
    folder = around.root / path
    git_dir = own_git_dir(folder) or headless_git_dir(folder)
    is_inside = git_dir is not None and around.holds(git_dir)
    return Nested(around=around, path=path, git_dir=git_dir if is_inside else None)


def _names(nested: Nested) -> Iterable[str]:
    """Tracked and untracked files; all files if git cannot read the repository."""
    if nested.git_dir is not None:
        listed = nested.ask(*_LISTED, "--cached")
        if listed.code == 0:
            names = (name.removesuffix("/") for name in _split(listed))
            return [name for name in names if _is_below(name)]
    return _all_names(nested.folder)


def _all_names(folder: Path) -> Iterator[str]:
    """The files of a folder, and the repositories in it, which are not entered."""
    for top, folders, names in os.walk(folder):
        inner = os.path.relpath(top, folder)
        if inner != "." and ".git" in (*folders, *names):
            folders.clear()
            yield inner
            continue
        folders[:] = [name for name in folders if name != ".git"]
        links = (name for name in folders if (Path(top) / name).is_symlink())
        yield from (
            os.path.normpath(f"{inner}/{name}") for name in (*names, *links) if name != ".git"
        )


def _is_below(name: str) -> bool:
    """Whether a name of a nested index stays in its folder. Git itself does not check that."""
    return not {"", ".", "..", ".git"} & set(name.split("/"))


def _split(answer: GitAnswer) -> list[str]:
    return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]


def _is_file(file: Path) -> bool:
    return file.is_symlink() or os.path.isfile(file)  # noqa: PTH113 - a closed folder has none


def _holds_anything(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and any(folder.iterdir())


def _has_own_commits(nested: Nested) -> bool:
    if nested.git_dir is None:
        return True
    answer = nested.ask("rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes")
    return answer.code != 0 or answer.out != b""


def _walk_repositories(around: Surroundings) -> Iterator[Nested]:
    """All repositories up to a limit, for an index that cannot be read."""
    for count, (top, folders, names) in enumerate(os.walk(around.root)):
        if count > _MOST_FOLDERS:
            return
        path = str(Path(top).relative_to(around.root))
        if path != "." and ".git" in (*folders, *names):
            nested = nested_at(around, path)
            if nested.git_dir is not None:
                folders.clear()
                yield nested
        folders[:] = [name for name in folders if name != ".git" and not is_cache(name)]


def _links_in(repo: Repository, commit: str, paths: Iterable[str]) -> Mapping[str, str]:
    listed = ask(repo.common_dir, "ls-tree", "-z", "--full-tree", commit, "--", *paths)
    entries = (entry.split("\t", 1) for entry in _split(listed))
    return {path: meta.split(" ")[2] for meta, path in entries}


def _is_elsewhere(worktree: Path, url: str) -> bool:
    """Whether a URL points into the worktree, with which it would disappear."""
    local = url.removeprefix("file://")
    if ":" in local.partition("/")[0]:
        return True
    place = Path(os.path.normpath(worktree / local))
    return url != "" and not place.is_relative_to(worktree)
