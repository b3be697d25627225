"""`crew clean`: removes all worktrees and runtime state; tasks, config and checkpoints stay."""

from typing import TYPE_CHECKING

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, yes_option
from crew.runner.upkeep.clean_state import remove_state, take_inventory

if TYPE_CHECKING:
    from crew.domain.upkeep.clean_plan import Inventory


@command("clean", example="crew clean\ncrew clean --yes")
@yes_option
@pass_call
def clean(call: Call, *, yes: bool) -> None:
    """Remove all worktrees and state; tasks stay.

    It ends all terminals, and a checkpoint keeps every worktree first. Merged branches are
    deleted; the others stay and are listed. Tasks in progress become todo. Refused while a runner
    is up.
    """
    workplace = call.workplace()
    found = take_inventory(workplace)
    for words in _told(found):
        narrate(call, words)
    if not confirm("Remove all this, with all agents, runs, events and logs?", yes=yes):
        _tell(call, found, removed=False)
        return
    remove_state(workplace)
    _tell(call, found, removed=True)


def _told(found: "Inventory") -> list[str]:
    words = [f"ends the terminal {name}" for name in found.terminals]
    words += [f"removes the worktree {path}, after a checkpoint" for path in found.worktrees]
    words += [f"removes the branch {branch}, which is merged" for branch in found.contained]
    words += [f"keeps the branch {branch}, which is not merged" for branch in found.kept]
    words += [f"sets task {task} back to todo" for task in found.tasks]
    return words + [
        f"sets task {task} to merged: its work landed, and the next `crew run` delivers it"
        for task in found.landed
    ]


def _tell(call: Call, found: "Inventory", *, removed: bool) -> None:
    if call.json:
        print_json(
            {
                "removed": removed,
                "terminals": list(found.terminals),
                "worktrees": list(found.worktrees),
                "branches": list(found.contained),
                "kept_branches": list(found.kept),
                "tasks": list(found.tasks),
            }
        )
    elif removed:
        narrate(call, "all clean; `crew checkpoints TASK` lists its checkpoints")
    else:
        narrate(call, "nothing was removed")
