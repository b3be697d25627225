"""All actions of the view with their keys; the help, the menu and the palette are made from it."""

from crew.front.tui.actions import board_actions, change_actions, session_actions, view_actions
from crew.front.tui.actions.action import Action

_OPEN = frozenset({"todo", "in_progress", "done", "error"})
_AT_WORK = frozenset({"in_progress"})
_WITH_WORK = frozenset({"in_progress", "done", "error"})
_TO_START = frozenset({"todo", "error"})

_TASK = (
    Action(
        name="default",
        key="enter",
        title="Start, attach, merge or look at it, by its status",
        act=view_actions.default,
        in_menu=False,
    ),
    Action(
        name="menu",
        key="space",
        title="Menu of what is possible",
        act=view_actions.menu,
        in_menu=False,
    ),
    Action(
        name="start",
        key="s",
        title="Start it with an agent",
        act=session_actions.start,
        states=_TO_START | _AT_WORK,
    ),
    Action(name="stop", key="S", title="Stop it", act=session_actions.stop, states=_AT_WORK),
    Action(
        name="attach",
        key="a",
        title="Attach to its terminal (ctrl+g comes back)",
        act=session_actions.attach,
        states=_AT_WORK,
    ),
    Action(
        name="send",
        key="t",
        title="Send a message to its agent",
        act=session_actions.send,
        states=_AT_WORK,
    ),
    Action(
        name="exec",
        key="x",
        title="Run a command in its worktree",
        act=session_actions.execute,
        states=_WITH_WORK,
    ),
    Action(
        name="merge",
        key="m",
        title="Merge it",
        act=change_actions.merge,
        states=frozenset({"done"}),
    ),
    Action(
        name="changes",
        key="R",
        title="Request changes",
        act=change_actions.request_changes,
        states=frozenset({"done"}),
    ),
    Action(
        name="pull_request",
        key="p",
        title="Open a pull request",
        act=change_actions.pull_request,
        states=_WITH_WORK,
    ),
    Action(
        name="retry",
        key="u",
        title="Retry it, or its stuck agent",
        act=session_actions.retry,
        states=frozenset({"error", "in_progress"}),
        needs_task=False,
    ),
    Action(
        name="kill",
        key="K",
        title="Kill the step of its agent",
        act=session_actions.kill,
        states=_AT_WORK,
        needs_task=False,
    ),
    Action(name="edit", key="E", title="Edit it in $EDITOR", act=change_actions.edit),
    Action(
        name="status",
        key="e",
        title="Set its status",
        act=change_actions.status,
        states=_OPEN,
    ),
    Action(
        name="block",
        key="B",
        title="Block it: let it wait for another task",
        act=change_actions.block,
        states=_TO_START,
    ),
    Action(name="close", key="c", title="Close it", act=change_actions.close, states=_OPEN),
    Action(name="delete", key="d", title="Delete it", act=change_actions.delete),
    Action(
        name="copy",
        key="y",
        title="Copy its id and title",
        act=view_actions.copy,
        in_other_namespaces=True,
    ),
    Action(
        name="copy_all",
        key="Y",
        title="Copy all of it as text",
        act=view_actions.copy_all,
        in_other_namespaces=True,
    ),
)


def _of_board(name: str, key: str, title: str) -> Action:
    act = {"filter": board_actions.filter_tasks}.get(name) or getattr(board_actions, name)
    return Action(
        name=name,
        key=key,
        title=title,
        act=act,
        section="Board",
        needs_task=False,
        in_other_namespaces=True,
    )


_BOARD = (
    _of_board("filter", "/", "Filter: words, status:, label:, agent:, parent:"),
    _of_board("sort", "o", "Sort by the next column"),
    _of_board("group", "w", "Group by state, wave or quest"),
    _of_board("everything", "A", "All tasks, or open ones only"),
    _of_board("namespace", "N", "Look at another namespace"),
    _of_board("refresh", "r", "Read everything again"),
)

_CREW = (
    Action(
        name="new",
        key="n",
        title="New task",
        act=change_actions.new,
        section="Crew",
        needs_task=False,
    ),
    Action(
        name="inbox",
        key="i",
        title="Inbox: open questions",
        act=view_actions.inbox,
        section="Crew",
        needs_task=False,
        in_other_namespaces=True,
    ),
    Action(
        name="manager",
        key="M",
        title="Manager: talk to the agent that manages the tasks",
        act=view_actions.manager,
        section="Crew",
        needs_task=False,
        in_other_namespaces=True,
    ),
    Action(
        name="palette",
        key=":",
        title="Command palette: every action and command",
        act=view_actions.palette,
        section="View",
        needs_task=False,
        in_other_namespaces=True,
    ),
    Action(
        name="help",
        key="?",
        title="This help",
        act=view_actions.show_help,
        section="View",
        needs_task=False,
        in_other_namespaces=True,
    ),
    Action(
        name="quit",
        key="q",
        title="Quit",
        act=view_actions.leave,
        section="View",
        needs_task=False,
        in_other_namespaces=True,
    ),
)

ACTIONS: tuple[Action, ...] = (*_TASK, *_BOARD, *_CREW)

BY_NAME = {action.name: action for action in ACTIONS}
