"""`crew workspace`: the list of repositories that one view shows together."""

from pathlib import Path
from typing import Any

import click

from crew.config.workspaces import (
    Workspace,
    add_workspace,
    load_workspaces,
    remove_workspace,
)
from crew.domain.kernel.errors import NotFound
from crew.find_crew import find_folder, load_folder
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import narrate, print_json, table

HEAD = ("NAME", "PATH", "STATE")


@click.group(
    "workspace", cls=CrewGroup, example="crew workspace add ~/src/shop\ncrew workspace list"
)
def workspace() -> None:
    """List the repositories that one view shows together.

    Outside a repository, `crew tui` opens that view.
    """


@command("add", example="crew workspace add\ncrew workspace add ~/src/shop --name shop")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--name", default="", metavar="NAME", help="Its name.  [default: the folder's name]")
@pass_call
def add(call: Call, path: Path | None, name: str) -> None:
    """Add a repository that has a crew; without a path, this one."""
    root = load_folder(_folder(call.directory, path)).parent
    added = add_workspace(root.resolve(), name=name)
    if call.json:
        print_json(_view(added))
    else:
        narrate(call, f"{added.name} is {added.path}; `crew tui` outside a repository shows it")


def _folder(here: Path, named: Path | None) -> Path:
    folder = here / named.expanduser() if named else here
    if not folder.is_dir():
        raise NotFound(
            f"the folder {folder} does not exist",
            hint="create it, or name another folder",
            code="folder_not_found",
        )
    return folder


@command("remove", example="crew workspace remove shop")
@click.argument("name")
@pass_call
def remove(call: Call, name: str) -> None:
    """Take a repository off the list; nothing in it changes."""
    removed = remove_workspace(name)
    if call.json:
        print_json(_view(removed))
    else:
        narrate(call, f"{removed.name} is no longer listed; {removed.path} stays as it is")


@command("list", example="crew workspace list\ncrew workspace list --json")
@pass_call
def list_workspaces(call: Call) -> None:
    """List the repositories, and whether each has a crew now."""
    views = [_view(one) for one in load_workspaces()]
    if call.json:
        print_json(views)
    elif views:
        table(HEAD, [(view["name"], view["path"], view["state"]) for view in views], call)
    else:
        narrate(call, "no repositories yet: `crew workspace add` adds the one you are in")


def _view(one: Workspace) -> dict[str, Any]:
    return {"name": one.name, "path": str(one.path), "state": _state(one.path)}


def _state(path: Path) -> str:
    if not path.is_dir():
        return "missing"
    folder = find_folder(path)
    return "ready" if folder is not None and folder.parent == path else "no crew"


for _command in (add, remove, list_workspaces):
    workspace.add_command(_command)
