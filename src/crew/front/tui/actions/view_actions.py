"""The actions on the view: default action, menu, palette, help, copy, inbox, manager, quit."""

from typing import TYPE_CHECKING

from crew.domain.rows.task import TaskState
from crew.front.tui.actions import change_actions, session_actions
from crew.front.tui.actions.custom_keys import run_custom
from crew.front.tui.actions.help_sections import help_sections
from crew.front.tui.actions.typed_command import palette_choices, run_line, starts
from crew.front.tui.board.task_as_text import whole_task
from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.widgets.safe_text import safe

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView

CUSTOM = "key:"


async def default(view: "CrewView") -> None:
    """What enter does for the status of the task."""
    status = view.picture.status_of(view.chosen_task)
    if status in {TaskState.TODO, TaskState.ERROR}:
        await session_actions.start(view)
    elif status == TaskState.IN_PROGRESS and session_actions.has_terminal(view, view.chosen_task):
        await session_actions.attach(view)
    elif status == TaskState.IN_PROGRESS:
        view.action_look_at_task()
        view.show_pane("LogPane")
    elif status == TaskState.DONE and not _is_queued(view):
        await change_actions.merge(view)
    else:
        view.action_look_at_task()


def _is_queued(view: "CrewView") -> bool:
    row = view.picture.world.tasks.get(view.chosen_task)
    return row is not None and row.is_queued


async def menu(view: "CrewView") -> None:
    """What is possible for the task in its status, each with its key."""
    task = view.chosen_task
    state = view.picture.status_of(task)
    choices = [
        Choice(value=action.name, title=action.title, key=action.key)
        for action in view.task_actions(state)
    ]
    choices += [
        Choice(value=f"{CUSTOM}{key}", title=bound.description or bound.command, key=key)
        for key, bound in view.custom_keys.items()
    ]
    chosen = await view.choose(f"Task {task}: {view.picture.title_of(task)}", choices)
    if chosen is None:
        return
    if chosen.startswith(CUSTOM):
        await run_custom(view, view.custom_keys[chosen.removeprefix(CUSTOM)])
    else:
        await view.carry_action(chosen)


async def palette(view: "CrewView") -> None:
    """Run an action or a command of crew that the person finds or types."""
    from crew.front.tui.dialogs.palette_dialog import ACTION, LINE, PaletteDialog  # noqa: PLC0415 - Textual is an extra

    choices = palette_choices(view)
    chosen = await view.push_screen_wait(PaletteDialog(choices, starts=starts(view.chosen_task)))
    if chosen is None:
        return
    if chosen.startswith(LINE):
        await run_line(view, chosen.removeprefix(LINE))
    elif chosen.startswith(ACTION):
        await view.carry_action(chosen.removeprefix(ACTION))


async def show_help(view: "CrewView") -> None:
    from crew.front.tui.dialogs.help_dialog import HelpDialog  # noqa: PLC0415 - Textual is an extra
    from crew.front.tui.part_keys import part_sections  # noqa: PLC0415

    sections = [*help_sections(view.actions, view.custom_keys), *part_sections()]
    await view.push_screen_wait(HelpDialog(sections))


async def copy(view: "CrewView") -> None:
    task = view.chosen_task
    view.copy_to_clipboard(safe(f"{task} {view.picture.title_of(task)}"))
    view.notify(f"copied: task {task} and its title")


async def copy_all(view: "CrewView") -> None:
    item = view.picture.items.get(view.chosen_task)
    if item is not None:
        view.copy_to_clipboard(whole_task(item, view.picture.status_of(item.id)))
        view.notify(f"copied: task {item.id} with its text and comments")


async def inbox(view: "CrewView") -> None:
    if not view.show_page_if_any("InboxPage"):
        view.in_terminal("inbox", waits=True)


async def manager(view: "CrewView") -> None:
    view.in_terminal("manager")


async def leave(view: "CrewView") -> None:
    view.exit()
