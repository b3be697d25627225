"""The parts of a person's home that a sandbox keeps: what an agent kind declares, and programs."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import crew
from crew.agents.first_run import make_folder
from crew.config.model import AgentSettings
from crew.domain.kernel.frozen import frozen

_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")

_SETTINGS_OF_GIT = (".gitconfig", ".config/git")

_TOOLS = (
    *(".nvm", ".volta", ".fnm", ".asdf", ".pyenv", ".rbenv", ".sdkman", ".rustup", ".bun", ".deno"),
    *(".local/bin", ".local/lib", ".local/pipx", ".local/share/uv", ".local/share/pipx"),
    *(".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".local/share/claude"),
    *(".npm-global", ".nix-profile", ".local/state/nix", "miniconda3", "anaconda3", "go/bin"),
    *(".cargo/bin", ".cargo/env", ".cargo/config.toml", ".cargo/registry", ".cargo/git"),
)
"""Where programs are installed below a home. None of them holds a credential."""


@frozen
class HomeParts:
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    copied: tuple[Path, ...]


def declared(settings: AgentSettings, environ: Mapping[str, str], *, root: Path) -> HomeParts:
    """What the agent kind declares. A writable folder (`name/`) is made if it is missing."""
    home = environ.get("HOME")
    writable = tuple(_path(name, home, environ) for name in settings.home_write)
    for name, path in zip(settings.home_write, writable, strict=True):
        if name.endswith("/"):
            make_folder(path)
    templates = (
        settings.command_template,
        settings.interactive_template,
        settings.interactive_resume,
    )
    commands = [(one or "").replace("{{.RepoRoot}}", shlex.quote(str(root))) for one in templates]
    words = (settings.command, settings.script, *commands, *settings.args, *settings.env.values())
    return HomeParts(
        readable=(
            *(_path(name, home, environ) for name in settings.home_read),
            *files_named_in(words, environ),
        ),
        writable=writable,
        copied=tuple(_path(name, home, environ) for name in settings.home_copy),
    )


def files_named_in(commands: Iterable[str | None], environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that a configured command names by a full path: a person wants it to read them."""
    home = environ.get("HOME")
    named = _full_paths(tuple(command for command in commands if command))
    files = [path for path in (_path(word, home, environ) for word in named) if path.is_file()]
    return (*files, *_virtual_environments(files))


@lru_cache(maxsize=256)
def _full_paths(commands: tuple[str, ...]) -> tuple[str, ...]:
    """The words of commands that are full paths. A command itself may be a path with spaces."""
    words = (word for command in commands for word in (command, *_words(command)))
    return tuple(dict.fromkeys(word for word in words if word.startswith(("/", "~/"))))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a shell would refuse it too
        return []


def _virtual_environments(files: Iterable[Path]) -> tuple[Path, ...]:
    """The virtual environments of Python whose programs are named: each needs its whole folder."""
    marks = (_mark_around(file) for file in files)
    return tuple(mark.parent for mark in marks if mark is not None and mark.is_file())


@lru_cache(maxsize=1024)
def _mark_around(file: Path) -> Path | None:
    """The file that marks a virtual environment, if this file is one of its programs."""
    return file.parents[1] / "pyvenv.cfg" if len(file.parents) > 1 else None


def program_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where programs and their settings are: crew's own, those of the PATH, and git's settings."""
    return _program_folders(_home(environ), environ.get("PATH", os.defpath))


@lru_cache(maxsize=16)
def _program_folders(home: Path, search: str) -> tuple[Path, ...]:
    own = (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent))
    names = (*_TOOLS, *_SETTINGS_OF_GIT)
    return (
        *map(Path, own),
        Path(crew.__file__).parent,
        *(home / name for name in names),
        *_on_the_path(home, search),
    )


def _on_the_path(home: Path, search: str) -> Iterator[Path]:
    """The folders of the PATH; for a `bin`, the whole installation around it."""
    shared = {home, home / ".local", home / ".cargo", Path("/")}
    for name in search.split(":"):
        folder = Path(name)
        if not folder.is_absolute():
            continue
        is_part = folder.name in {"bin", "sbin"} and folder.parent not in shared
        if is_part:
            yield folder.parent
        elif folder not in shared:
            yield folder


def _path(name: str, home: str | None, environ: Mapping[str, str]) -> Path:
    """A path below the home; `${VARIABLE:-path}` is the variable's value, if it is set."""
    if "$" in name:
        name = _VARIABLE.sub(lambda found: environ.get(found[1]) or found[2], name)
    return _below(home, name.removeprefix("~/"))


@lru_cache(maxsize=1024)
def _below(home: str | None, name: str) -> Path:
    """The same paths for every step: each is slow to make, and its hash is kept."""
    return Path(home or Path.home()) / name


def _home(environ: Mapping[str, str]) -> Path:
    return _below(environ.get("HOME"), "")
