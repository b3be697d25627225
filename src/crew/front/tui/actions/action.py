"""One action of the view: its name, its key, and what it does."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from crew.domain.kernel.frozen import frozen

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView


@frozen
class Action:
    """An action; `states` are the task states for which the menu offers it, empty for all.

    `in_menu` is False for an action that leads to others itself. `needs_task` actions do nothing
    but say so while no task is chosen. `in_other_namespaces`: it changes nothing, so it is allowed
    for the tasks of a namespace that this crew does not work on.
    """

    name: str
    key: str
    title: str
    act: "Callable[[CrewView], Awaitable[None]]"
    section: str = "Task"
    states: frozenset[str] = frozenset()
    in_menu: bool = True
    needs_task: bool = True
    in_other_namespaces: bool = False
