"""The actions on the board: filter, sort, grouping, all or open tasks, namespace, refresh."""

from typing import TYPE_CHECKING

from crew.front.tui.actions.background_thread import in_background
from crew.front.tui.board.view_choices import GROUPINGS, SORTS, following
from crew.front.tui.dialogs.choice import Choice
from crew.runner.views.task_namespaces import namespaces
from crew.workplace import Workplace

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView


async def filter_tasks(view: "CrewView") -> None:
    view.open_filter()


async def sort(view: "CrewView") -> None:
    view.change_choices(sort=following(view.choices.sort, SORTS))


async def group(view: "CrewView") -> None:
    view.change_choices(group=following(view.choices.group, GROUPINGS))


async def everything(view: "CrewView") -> None:
    view.change_choices(everything=not view.choices.everything)


async def namespace(view: "CrewView") -> None:
    """Look at the tasks of another namespace; the crew works on its own one only."""
    own, *others = await in_background(namespaces, Workplace(root=view.root))
    if not others:
        view.notify(f"there is no other namespace than {own}", severity="warning")
        return
    choices = [Choice(value=own, title=own, about="the tasks of this crew")]
    choices += [Choice(value=one, title=one) for one in others]
    chosen = await view.choose("Namespace", choices, searchable=len(choices) > 10)
    if chosen is not None:
        view.look_at_namespace("" if chosen == own else chosen)


async def refresh(view: "CrewView") -> None:
    view.read_anew()
    view.notify("read anew")
