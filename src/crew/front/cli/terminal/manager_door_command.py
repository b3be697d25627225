"""The hidden command that starts runners for the manager of a terminal."""

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.runner.background.manager_door import serve
from crew.runner.by_hand.task_access import has_terminal
from crew.runner.manager import TERMINAL


@command("_manager-door", example="")
@pass_call
def manager_door(call: Call) -> None:
    """Start runners for the manager, until its terminal ends; only `crew manager` calls this."""
    workplace = call.workplace()
    serve(workplace, lambda: has_terminal(workplace, TERMINAL), every_s=2.0)
