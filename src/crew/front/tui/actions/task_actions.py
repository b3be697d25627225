"""The actions on one task: start, stop, attach, merge, close and the like."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView


async def start(view: "CrewView") -> None:
    await view.command("start", "--", view.chosen_task)


async def stop(view: "CrewView") -> None:
    await view.command("stop", "--", view.chosen_task)


async def merge(view: "CrewView") -> None:
    if await view.confirm(f"Merge task {view.chosen_task} now?"):
        await view.command("merge", "--", view.chosen_task)
