"""The repositories that a person watches together: `~/.config/crew/workspaces.toml`."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from crew.config.layers.layer_files import user_folder
from crew.config.toml.toml_edit import make_config_folder, write_config
from crew.config.toml.toml_reader import Table, Wrong
from crew.config.toml.toml_spans import written_value
from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.suggest import nearest
from crew.system.file_locks import folder_held

FILE = "workspaces.toml"
HEAD = "# The repositories that `crew tui` shows together outside a repository: `crew workspace`.\n"


@frozen
class Workspace:
    """A repository with a crew, under a name that no other one has."""

    name: str
    path: Path


def workspaces_file(environ: Mapping[str, str] | None = None) -> Path:
    folder = user_folder(os.environ if environ is None else environ)
    if folder is None:
        raise UsageError(
            "crew does not know where your own configuration is",
            hint="set HOME, or XDG_CONFIG_HOME, to a full path",
            code="no_home",
        )
    return folder / FILE


def load_workspaces(environ: Mapping[str, str] | None = None) -> tuple[Workspace, ...]:
    """All of them in the order in which they were added; none without the file."""
    file = workspaces_file(environ)
    try:
        values = tomllib.loads(file.read_text())
        return tuple(_workspace(one) for one in _tables(values))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, Wrong) as error:
        raise UsageError(
            f"the list of workspaces {file} cannot be read: {error}",
            hint="correct it by hand, or delete it and add the repositories again",
            code="bad_workspaces",
        ) from error


def _tables(values: Mapping[str, object]) -> list[dict[str, object]]:
    whole = Table("the file", values)
    whole.only(("workspace",))
    return whole.tables("workspace")


def _workspace(values: Mapping[str, object]) -> Workspace:
    table = Table("workspace", values)
    table.only(("name", "path"))
    name, path = table.text("name"), table.text("path")
    if not name or not path:
        raise Wrong("each [[workspace]] has a name and a path")
    return Workspace(name=name, path=Path(path))


def add_workspace(path: Path, *, name: str = "") -> Workspace:
    """Add a repository; one that is listed already stays as it is, unless another name is given."""
    file = workspaces_file()
    make_config_folder(file.parent)
    with folder_held(file.parent):
        known = load_workspaces()
        listed = next((one for one in known if one.path == path), None)
        if listed is not None and name in {"", listed.name}:
            return listed
        new = _checked(Workspace(name=name or path.name, path=path))
        others = [one for one in known if one.path != path]
        if taken := next((one for one in others if one.name == new.name), None):
            raise Conflict(
                f"{new.name!r} is the name of {taken.path}",
                hint="give this one another name: crew workspace add --name NAME",
                code="workspace_taken",
            )
        kept = [new if one is listed else one for one in known]
        _write(file, kept if listed else [*known, new])
    return new


def _checked(one: Workspace) -> Workspace:
    """The file is text: a name or a path that is none cannot be listed."""
    if one.name.isprintable() and str(one.path).isprintable():
        return one
    raise UsageError(
        "a workspace needs a name and a path of printable characters",
        hint="rename the folder, or give a name: crew workspace add --name NAME",
        code="bad_name",
    )


def remove_workspace(name: str) -> Workspace:
    """Take a repository off the list; nothing in it changes."""
    file = workspaces_file()
    if not file.parent.is_dir():
        raise _unknown(name, ())
    with folder_held(file.parent):
        known = load_workspaces()
        found = next((one for one in known if one.name == name), None)
        if found is None:
            raise _unknown(name, [one.name for one in known])
        _write(file, [one for one in known if one is not found])
    return found


def _unknown(name: str, known: Iterable[str]) -> NotFound:
    known = tuple(known)
    near = nearest(name, known)
    there = f"there are: {', '.join(known)}" if known else "`crew workspace add` adds one"
    hint = f"did you mean {near}?" if near else there
    return NotFound(f"there is no workspace {name!r}", hint=hint)


def _write(file: Path, found: Iterable[Workspace]) -> None:
    write_config(file, HEAD + "".join(map(_written, found)))


def _written(one: Workspace) -> str:
    name, path = written_value(one.name), written_value(str(one.path))
    return f"\n[[workspace]]\nname = {name}\npath = {path}\n"
