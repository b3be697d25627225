"""The view over several repositories."""

import asyncio
from pathlib import Path

import pytest

from crew.config.workspaces import Workspace, add_workspace
from crew.front.tui.workspace_view import WorkspaceView, open_workspaces
from front.conftest import CliScene, lay_crew
from front.tui.seats import SMALL, WIDE, Seat
from repositories import lay_repository


@pytest.fixture
def other(tmp_path):
    root = tmp_path / "second"
    lay_repository(root, {"readme": "hello\n"})
    lay_crew(root)
    return CliScene(root, tmp_path)


def looked(workspaces, story, *, size, at=""):
    """Tell a story in front of the view; what the person opened at its end."""
    view = WorkspaceView(workspaces, at=at)

    async def told():
        async with view.run_test(size=size) as pilot:
            await story(Seat(view, pilot))

    asyncio.run(told())
    return view.return_value


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])
def test_all_repositories_are_followed_and_one_is_opened(scene, other, tmp_path, size):
    scene.ok("new", "--title", "First [red]here[/red]", "--body", "All about it")
    other.ok("new", "--title", "Over \x1b[31mthere")
    gone = tmp_path / "gone"
    workspaces = [
        Workspace(name="one", path=scene.root),
        Workspace(name="two", path=other.root),
        Workspace(name="three", path=gone),
    ]

    async def story(seat):
        await seat.sees("3 repositories")
        await seat.sees("First [red]here[/red]")
        await seat.sees("! three")
        await seat.sees("unreach")
        assert "Over" not in seat.text()
        await seat.press("tab", "tab")  # repositories, tasks, detail
        await seat.sees("All about it")
        await seat.press("tab", "j")
        await seat.sees("Over")
        assert "\x1b" not in seat.text()
        other.ok("new", "--title", "Made meanwhile")
        await seat.sees("Made meanwhile")
        await seat.sees("○2")
        await seat.press("j")
        await seat.sees("it cannot be read now")
        await seat.press("enter")  # it says why, and stays
        await seat.until(lambda: seat.view.is_running and seat.view.chosen == "three")
        lay_repository(gone, {"readme": "hello\n"})
        lay_crew(gone)
        await seat.sees("no open tasks here")
        await seat.press("k", "enter")

    assert looked(workspaces, story, size=size) == workspaces[1]


def test_leaving_a_repository_leads_back_to_all_of_them(scene, other):
    for root, name in ((scene.root, "one"), (other.root, "two")):
        add_workspace(root, name=name)
    shown: list[str] = []

    def show(view):
        async def told():
            async with view.run_test(size=SMALL) as pilot:
                seat = Seat(view, pilot)
                await seat.sees("two")
                shown.append(view.chosen)
                await seat.press(*(("j", "enter") if len(shown) == 1 else ("q",)))

        asyncio.run(told())
        return 0

    def show_crew(root: Path) -> int:
        shown.append(root.name)
        return 0

    assert open_workspaces(show, show_crew) == 0
    assert shown == ["one", "second", "two"]
