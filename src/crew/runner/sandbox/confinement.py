"""Describes what each program of an agent may reach: a step, a review, a gate, a setup, a terminal.

The disk is read-only. The person's checkout, `.crew`, other worktrees, the person's home, temporary
folders and sockets do not exist in the sandbox, except for what is listed here.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from crew.agents.adapter import StepOrder
from crew.agents.environment import prompt_file, shim_folder
from crew.agents.own_home import own_home
from crew.config.model import AgentSettings
from crew.domain.kernel.frozen import frozen
from crew.git.hardening import standard_files
from crew.git.shown_settings import shown_settings
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.submodules import module_dirs
from crew.runner.outside.worktree_files import linked_folders
from crew.runner.sandbox.home_parts import declared, files_named_in, program_folders
from crew.runner.sandbox.listed_hosts import by_proxy
from crew.system.atomic_files import has_content, write_file
from crew.system.private_files import make_private_folder
from crew.system.sandbox.allowed import Allowed
from crew.trusted_config import unapproved_project_files
from crew.workplace import Workplace

DOOR = "CREW_DOOR"
"""The variable that names the socket through which a step sends its requests to crew."""

MCP_URL = "CREW_MCP_URL"
"""The variable with the address of crew's own tools."""

SHOWN_SETTINGS = "gitconfig"
"""In `.crew`: the git settings of the person that programs in a sandbox see."""

_TEMPORARY = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/run")))  # noqa: S108
"""Each program gets its own."""
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR", "TMUX_TMPDIR")
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX")
_OF_THE_SYSTEM = tuple(
    Path(name)
    for name in ("/etc/resolv.conf", "/run/current-system", "/run/wrappers", "/run/opengl-driver")
)
_HELD_GIT_FILES = ("config", "hooks", "info")
"""What decides how git works: an agent may commit, but not change that."""


@frozen
class _Place:
    """A folder in which a program runs, and what it needs besides."""

    folder: Path
    environ: Mapping[str, str]
    may_write: bool = True
    may_commit: bool = True
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    copied: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()
    has_terminal: bool = False
    mcp_url: str = ""


def with_rights(workplace: Workplace, order: StepOrder, settings: AgentSettings) -> StepOrder:
    """The order with what its agent may reach, and whether it loads the repository's settings."""
    waits = unapproved_project_files(workplace.root, order.worktree, settings.adapter)
    return replace(
        order,
        allowed=for_step(workplace, order, settings),
        trusts_project=not waits,
        unapproved=waits,
    )


def for_step(
    workplace: Workplace,
    order: StepOrder,
    settings: AgentSettings,
    *,
    terminal_prompt: Path | None = None,
) -> Allowed:
    """What the agent of a step, a review, a turn or a terminal may reach.

    Of all prompts it reads its own: those of reviewers and other tasks are not meant for it.
    """
    environ = _environ(settings)
    home = declared(settings, environ, root=workplace.root)
    door = order.env.get(DOOR)
    files = (terminal_prompt or prompt_file(order), shim_folder(order))
    progress = _progress(workplace) if settings.adapter == "scripted" else ()
    place = _Place(
        folder=order.worktree,
        environ=environ,
        may_write=not order.looks_only,
        readable=(*home.readable, *(files if door else ())),
        # Without the door, a step's `crew` needs the database.
        writable=(
            *home.writable,
            own_home(order),
            *(progress if door else (workplace.folder,)),
        ),
        copied=home.copied,
        sockets=(Path(door),) if door else (),
        has_terminal=terminal_prompt is not None,
        mcp_url=order.env.get(MCP_URL, ""),
    )
    return _allowed(workplace, place)


def _environ(settings: AgentSettings) -> Mapping[str, str]:
    return {**os.environ, **settings.env} if settings.env else os.environ


def _progress(workplace: Workplace) -> tuple[Path, ...]:
    """The folder in which scripted agents keep the numbers of their steps."""
    folder = workplace.folder / "sessions"
    if not folder.is_dir():
        make_private_folder(folder)
    return (folder,)


def for_command(
    workplace: Workplace,
    argv: Sequence[str],
    folder: Path,
    *,
    may_commit: bool = False,
    may_write: bool = True,
    door: Path | None = None,
) -> Allowed:
    """What a gate, a proof or a setup command may reach; `door` is the agent door's socket."""
    place = _Place(
        folder=folder,
        environ=os.environ,
        may_write=may_write,
        may_commit=may_commit,
        readable=files_named_in(argv, os.environ),
        sockets=(door,) if door else (),
    )
    return _allowed(workplace, place)


def for_manager(workplace: Workplace, settings: AgentSettings) -> Allowed:
    """What the manager may reach: it reads the person's checkout and works with crew alone."""
    environ = _environ(settings)
    home = declared(settings, environ, root=workplace.root)
    place = _Place(
        folder=workplace.root,
        environ=environ,
        may_write=False,
        readable=home.readable,
        writable=(*home.writable, workplace.folder),
        copied=home.copied,
    )
    return _allowed(workplace, place)


def limits_of(workplace: Workplace, *, mcp_url: str = "") -> Allowed:
    """The limits that the configuration sets, without any rule about paths."""
    settings = workplace.settings.sandbox
    return Allowed(
        has_network=settings.network is True,
        by_proxy=by_proxy(workplace, mcp_url=mcp_url),
        memory_mb=settings.memory_mb,
        max_processes=settings.max_processes,
    )


def _allowed(workplace: Workplace, place: _Place) -> Allowed:
    settings = workplace.settings.sandbox
    limits = limits_of(workplace, mcp_url=place.mcp_url)
    if settings.mode == "off":
        return replace(limits, has_terminal=place.has_terminal)
    own = (place.folder,) if place.may_write else ()
    seen = () if place.may_write else (place.folder,)
    git = _git_folders(workplace, place)
    persons = _persons_settings(workplace, place.environ, is_linked=bool(git.held))
    return replace(
        limits,
        has_terminal=place.has_terminal,
        may_write_anywhere=False,
        has_own_devices=True,
        empty=_hidden(workplace, place.environ),
        readable=(
            *_OF_THE_SYSTEM,
            *program_folders(place.environ),
            *place.readable,
            *git.readable,
            *persons.readable,
            *_named(workplace, settings.allow_read),
        ),
        writable=(
            *place.writable,
            *own,
            *git.writable,
            *_named(workplace, settings.allow_write),
        ),
        held=(*seen, *git.held, *linked_folders(workplace.root, workplace.settings.worktree)),
        copied=place.copied,
        stand_ins=persons.stand_ins,
        sockets=place.sockets,
    )


@frozen
class _PersonsSettings:
    """What programs see of the person's git settings: a file of crew in place of each of theirs."""

    readable: tuple[Path, ...] = ()
    stand_ins: tuple[tuple[Path, Path], ...] = ()


def _persons_settings(
    workplace: Workplace, environ: Mapping[str, str], *, is_linked: bool
) -> _PersonsSettings:
    """Nothing stands in for a file that `allow_read` names, nor on macOS, which has no mounts."""
    shown = shown_settings(workplace.repo)
    home = Path(environ.get("HOME") or "/")
    readable = tuple(home / Path(name).expanduser() for name in shown.text_files)
    if sys.platform == "darwin" or not workplace.folder.is_dir():
        return _PersonsSettings(readable=readable)
    file = _written(workplace.folder / SHOWN_SETTINGS, shown.content)
    stand_ins = [(path, file) for path in standard_files(None)]
    if is_linked:
        own = _written(workplace.folder / f"{SHOWN_SETTINGS}-linked", shown.own)
        stand_ins.append((workplace.repo.common_dir / "config", own))
    allowed = {*_named(workplace, workplace.settings.sandbox.allow_read)}
    wanted = tuple(pair for pair in stand_ins if pair[0] not in allowed)
    return _PersonsSettings(readable=readable, stand_ins=wanted)


def _written(file: Path, content: bytes) -> Path:
    if not has_content(file, content):
        write_file(file, content, mode=0o600)
    return file


def _hidden(workplace: Workplace, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders and sockets of the person, which do not exist in the sandbox."""
    homes = (environ.get("HOME"), os.environ.get("HOME"))
    folders = (*homes, *(environ.get(name) for name in _TEMPORARY_VARIABLES))
    addresses = (os.environ.get(name) for name in _SOCKET_VARIABLES)
    return (
        *_TEMPORARY,
        *_absolute(folders),
        *(workplace.root, workplace.repo.common_dir, workplace.worktrees),
        *_absolute(tuple(_socket_path(address) for address in addresses if address)),
    )


@lru_cache(maxsize=64)
def _absolute(paths: tuple[str | None, ...]) -> tuple[Path, ...]:
    """The paths that can be hidden: absolute ones, but not the root of the disk."""
    return tuple(Path(path) for path in paths if path and path.startswith("/") and path != "/")


def _socket_path(address: str) -> str:
    """The path in `/a/socket`, `unix:///a/socket`, `unix:path=/a/socket,guid=…` or tmux's form."""
    for prefix in ("unix://", "unix:path="):
        address = address.removeprefix(prefix)
    return address.split(",")[0]


@frozen
class _GitFolders:
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    held: tuple[Path, ...] = ()


def _git_folders(workplace: Workplace, place: _Place) -> _GitFolders:
    """The folders of the person's repository that git needs in this place.

    A folder with a repository of its own reads only the objects and the hooks of the main one, and
    the contents of git-lfs. A commit in a linked worktree writes into the main repository.
    """
    common = workplace.repo.common_dir
    modules = tuple(module_dirs(common))
    borrowed = (one for git_dir in (common, *modules) for one in _alternates(git_dir))
    shared = (*_shared(common), *(module / "objects" for module in modules), *borrowed)
    git_dir = worktree_admin.git_dir_for(workplace.repo, place.folder)
    if git_dir is None:
        return _GitFolders(readable=shared)
    if worktree_admin.is_own(git_dir):
        return _GitFolders(readable=shared, writable=(agent_git_of(git_dir),))
    if not place.may_commit:
        return _GitFolders(readable=(common,))
    held = tuple(common / name for name in _HELD_GIT_FILES)
    return _GitFolders(writable=(common,), held=held)


@lru_cache(maxsize=16)
def _shared(common: Path) -> tuple[Path, ...]:
    return (common / "objects", common / "hooks", common / "lfs")


def _alternates(common: Path) -> tuple[Path, ...]:
    """The object stores that the main one borrows from."""
    try:
        with open(f"{common}/objects/info/alternates", encoding="utf-8") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(common / "objects" / line for line in lines if line and not line.startswith("#"))


def _named(workplace: Workplace, names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(workplace.root / Path(name).expanduser() for name in names)
