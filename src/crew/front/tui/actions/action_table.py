"""All actions of the view with their keys; the help, the menu and the palette are made from it."""

from crew.front.tui.actions import task_actions
from crew.front.tui.actions.action import Action

ACTIONS: tuple[Action, ...] = (
    Action(name="start", key="s", title="Start", act=task_actions.start),
    Action(name="stop", key="S", title="Stop", act=task_actions.stop),
    Action(name="merge", key="m", title="Merge", act=task_actions.merge),
)

BY_NAME = {action.name: action for action in ACTIONS}
