"""Gives worktrees the content of submodules: from the person's own clones of them, without network.

Git keeps these clones in `modules` of the git dir. Each submodule of a worktree gets a repository
of its own, as the worktree itself has: private refs and settings, no remotes, and the objects of
the person's clone to read. It is found by the commit that it must have: names, paths and addresses
in `.gitmodules`, which an agent can write, decide nothing.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, failure, forget_settings
from crew.git.repository import Repository
from crew.git.task_repository.agent_refs import PACKED, agent_git_of, is_folder, remove
from crew.git.task_repository.lay_repository import lay_repository
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.index_file import load_marks, read_index
from crew.git.worktrees.worktree_admin import environment_for
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect

MODULES = "modules"
"""In a git dir: the repositories of submodules, by path."""

_MAKING = "crew-module"
_NO_REPOSITORIES = frozenset({"objects", "refs", "logs", "hooks", "info", "worktrees", "lfs"})
_DEEPEST = 20
_LONG_S = 1800.0


def module_dirs(common_dir: Path) -> Iterator[Path]:
    """The git dirs of the submodules that a person has cloned, in any of their worktrees.

    An agent can write to those in a linked worktree of crew's.
    """
    tops = [common_dir / MODULES]
    worktrees = common_dir / "worktrees"
    if is_folder(worktrees):
        entries = (one for one in sorted(worktrees.iterdir()) if not worktree_admin.is_ready(one))
        tops += [entry / MODULES for entry in entries]
    for top in tops:
        yield from _git_dirs_below(top)


def _git_dirs_below(top: Path, depth: int = 0) -> Iterator[Path]:
    """A name with a slash is a folder in a folder; a submodule has its own ones in `modules`."""
    if depth > _DEEPEST or not is_folder(top):
        return
    is_repository = (top / "HEAD").is_file() and is_folder(top / "objects")
    if is_repository:
        yield top
    inner = [top / MODULES] if is_repository else sorted(top.iterdir())
    for entry in inner:
        if entry.name not in _NO_REPOSITORIES:
            yield from _git_dirs_below(entry, depth + 1)


def missing_content(repo: Repository, commit: str) -> tuple[str, ...]:
    """The submodules of a commit, and those in them, whose content nobody has cloned here."""
    return tuple(_missing(tuple(module_dirs(repo.common_dir)), repo.common_dir, commit, above=""))


def _missing(modules: tuple[Path, ...], git_dir: Path, commit: str, *, above: str) -> Iterator[str]:
    args = ("ls-tree", "-r", "-z", "--full-tree", commit)
    for entry in os.fsdecode(ask(git_dir, *args).out).split("\0"):
        meta, _, path = entry.partition("\t")
        if not meta.startswith("160000 "):
            continue
        at = meta.split(" ")[2]
        module = _with_commit(modules, at)
        if module is None:
            yield above + path
        elif above.count("/") < _DEEPEST:
            yield from _missing(modules, module, at, above=f"{above}{path}/")


def _with_commit(modules: tuple[Path, ...], commit: str) -> Path | None:
    """The clone that has this commit with its files."""
    return next((one for one in modules if _has(one, commit)), None)


def _has(module: Path, commit: str) -> bool:
    return ask(module, "cat-file", "-e", f"{commit}^{{tree}}").code == 0


def is_cloned(repo: Repository, commit: str) -> bool:
    """Whether a clone of the person has this commit of a submodule."""
    return _with_commit(tuple(module_dirs(repo.common_dir)), commit) is not None


@frozen
class _Site:
    """A folder with submodules, where their repositories are made, and where they will be."""

    modules: tuple[Path, ...]
    folder: Path
    home: Path
    named: Path
    making: Path
    is_confined: bool
    depth: int = 0


def fill_submodules(repo: Repository, git_dir: Path, path: Path, *, is_anew: bool = False) -> None:
    """Write the submodules of a worktree that crew has just made. Safe to repeat after a kill.

    One whose repository is there already stays as it is: it may hold commits of an agent. With
    `is_anew` all are made again, as for each gate. Only while no program runs there.
    """
    home = worktree_admin.named_by_worktree(git_dir)
    if is_anew:
        remove(home / MODULES)
    modules = tuple(module_dirs(repo.common_dir))
    if not modules:
        return
    links = load_marks(path, read_index(git_dir), environment_for(git_dir, path)).links
    site = _Site(
        modules=modules,
        folder=path,
        home=home,
        named=home,
        making=git_dir / _MAKING,
        is_confined=repo.is_confined,
    )
    _fill(site, links)


def _fill(site: _Site, links: Mapping[str, str]) -> None:
    for name, commit in links.items():
        above, _, last = f"{MODULES}/{name}".rpartition("/")
        home, folder = _entered(site.home, above), _entered(site.folder, name)
        module = _with_commit(site.modules, commit)
        if home is None or folder is None or module is None or os.path.lexists(home / last):
            continue
        inner = replace(
            site,
            folder=folder,
            home=home / last,
            named=site.named / above / last,
            depth=site.depth + 1,
        )
        _write_module(inner, module, commit)


def _entered(top: Path, name: str) -> Path | None:
    """The folder of this name, made if it is missing; None if a link or a file is in the way."""
    for part in name.split("/"):
        top = top / part
        if not os.path.lexists(top):
            top.mkdir()
        if not is_folder(top):
            return None
    return top


@effect("git.write_submodule")
def _write_module(site: _Site, module: Path, commit: str) -> None:
    """Write the files of a submodule, its own submodules, and then its repository.

    Its last move puts the repository in place: until then a repetition begins anew.
    """
    folder, making = site.folder, site.making
    remove(making)
    making.mkdir()
    (making / "HEAD").write_text(f"{commit}\n")
    (making / "commondir").write_bytes(os.fsencode(module) + b"\n")
    env = environment_for(making, folder)
    args = ("read-tree", "--reset", "-u", commit)
    try:
        answer = ask(folder, *args, env=env, timeout_s=_LONG_S)
        if answer.code != 0:
            raise failure(args, answer)
        links = load_marks(folder, read_index(making), env).links
    finally:
        forget_settings(making)
    theirs = Repository(root=module, common_dir=module, is_confined=site.is_confined)
    lay_repository(theirs, making, commit=commit, branch=None)
    made = agent_git_of(making)
    _keep_remote_refs(made, commit)
    if site.depth < _DEEPEST:
        _fill(replace(site, home=made, making=making / _MAKING), links)
    write_file(folder / ".git", b"gitdir: " + os.fsencode(site.named) + b"\n")
    made.rename(site.home)
    remove(making)


def _keep_remote_refs(made: Path, commit: str) -> None:
    """Leave the refs of remotes alone, among them the commit that the submodule begins with.

    What is in none of them is an agent's work.
    """
    lines = (made / PACKED).read_bytes().splitlines(keepends=True)
    (made / PACKED).write_bytes(b"".join(one for one in lines if b" refs/remotes/" in one))
    (made / "refs" / "remotes" / "crew").mkdir(parents=True)
    (made / "refs" / "remotes" / "crew" / "recorded").write_text(f"{commit}\n")
