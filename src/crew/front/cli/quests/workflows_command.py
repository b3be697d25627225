"""`crew workflows`: lists the workflows of quests, or draws one."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from crew.config.workflow_files import BUILT_IN, find_workflow, load_workflow, workflow_files
from crew.domain.kernel.errors import CrewError
from crew.domain.rows.workflow import Workflow, session_count
from crew.find_crew import find_folder
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.exit_codes import error_document
from crew.front.cli.output import line, narrate, print_json, say, table
from crew.front.cli.quests.workflow_drawing import drawing

HEAD = ("NAME", "WHERE", "STAGES", "ROLES", "DESCRIPTION")


def complete_workflows(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - click's signature
    start: str,
) -> list[CompletionItem]:
    names = workflow_files(_root(ctx.find_object(Call) or Call()))
    return [CompletionItem(name) for name in names if name.startswith(start)]


@command("workflows", example="crew workflows\ncrew workflows quest\ncrew workflows --json")
@click.argument("name", required=False, shell_complete=complete_workflows)
@pass_call
def workflows(call: Call, name: str | None) -> int:
    """List the workflows of quests, or draw one.

    Workflows in .crew/workflows belong to the repository and replace built-in ones of the same
    name. A file that cannot be used is listed with its error, and the exit code is 1.
    """
    root = _root(call)
    if name is None:
        return _list(call, workflow_files(root))
    found = find_workflow(root, name)
    if call.json:
        print_json(workflow_view(found, workflow_files(root)[name]))
    else:
        say("\n".join(drawing(found)))
    return 0


def _root(call: Call) -> Path | None:
    """The repository if it has a crew; without one, built-in workflows can still be listed."""
    folder = find_folder(call.directory.resolve())
    return folder.parent if folder else None


def _list(call: Call, files: dict[str, Path]) -> int:
    usable: dict[str, Workflow] = {}
    broken: dict[str, CrewError] = {}
    for name, file in files.items():
        try:
            usable[name] = load_workflow(file)
        except CrewError as fault:
            broken[name] = fault
    if call.json:
        print_json([_listed(file, usable.get(n), broken.get(n)) for n, file in files.items()])
    else:
        table(HEAD, [_row(one, files[name]) for name, one in usable.items()], call)
        for error in broken.values():
            narrate(call, f"cannot be used: {line(error.message)}\n  hint: {line(error.hint)}")
    return 1 if broken else 0


def _row(workflow: Workflow, file: Path) -> tuple[str, ...]:
    stages = len(workflow.stages) + len(workflow.step_stages)
    return (
        workflow.name,
        _where(file),
        str(stages),
        str(len(workflow.roles)),
        workflow.description,
    )


def _listed(file: Path, workflow: Workflow | None, error: CrewError | None) -> dict[str, Any]:
    if workflow is not None:
        return workflow_view(workflow, file)
    assert error is not None
    told = error_document(error)
    return {"name": file.stem, "where": _where(file), **told}


def workflow_view(workflow: Workflow, file: Path) -> dict[str, Any]:
    """The data of a workflow; stages and roles are in the order of the file."""
    values = asdict(workflow)
    roles = list(values.pop("roles").values())
    sessions = session_count(workflow)._asdict()
    return {**values, "roles": roles, "sessions": sessions, "where": _where(file), "error": None}


def _where(file: Path) -> str:
    return "built in" if file.parent == BUILT_IN else f".crew/workflows/{file.name}"
