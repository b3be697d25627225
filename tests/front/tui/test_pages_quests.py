"""Quests on the board: trees of items, with the role that acts and what it does."""

import pytest

from crew.front.tui.board.view_choices import ViewChoices
from front.quest_scene import asked, questing, step, written
from front.tui.seats import SMALL, WIDE, sit


@pytest.mark.parametrize("size", [SMALL, WIDE, (250, 50)], ids=["small", "wide", "widest"])
def test_a_quest_is_a_tree_with_the_acting_role(scene, size):
    roles = {"a": {"writer": [written("a.txt")]}, "b": {"writer": [asked("Which?")]}}
    questing(scene, roles, step("a"), step("b", "a"), step("c", "b"))
    scene.ok("quest", "new", "Request", "--workflow", "small")
    scene.ok("new", "--title", "Something else")
    scene.ok("close", "2")
    scene.ok("new", "--title", "An open one")

    async def story(seat):
        await seat.sees("Quests (1)")
        await seat.sees("no plan yet, at plan")
        scene.start("run")
        await seat.until(lambda: seat.view.picture.world.questions)
        await seat.sees("1 of 3 items done")
        await seat.sees("Step c")
        await seat.sees("Merged")
        lines = [line[: seat.view.page.size.width] for line in seat.lines()]
        request = next(place for place, line in enumerate(lines) if "Request" in line)
        tree = lines[request : request + 4]
        indent = [len(line) - len(line.lstrip()) for line in tree]
        assert indent == [0, 2, 2, 2]
        assert "Step a" in tree[1]
        assert "Merged" in tree[1]  # an item of an open quest stays, also when it is finished
        assert "Step b" in tree[2]
        assert "awaiting_user" in tree[2]
        assert "Step c" in tree[3]
        assert "Something else" not in seat.text()
        if size != SMALL:
            assert "writer, writes the text" in tree[2]
        below = seat.text().partition("Other tasks (")[2]
        assert "An open one" in below

    sit(scene.root, story, size=size, choices=ViewChoices(group="quest"))


def test_agents_are_shown_with_their_role(scene):
    hold = scene.folder / "hold"
    hold.touch()
    wait = {"run": f"while [ -e '{hold}' ]; do sleep 0.05; done"}
    questing(scene, {"a": {"writer": [[wait, *written("a.txt")]]}}, step("a"))
    scene.ok("quest", "new", "Request", "--workflow", "small")

    async def story(seat):
        scene.start("run")
        await seat.sees("writer, writes the text: ")
        before = seat.lines()
        await seat.until(lambda: seat.lines() != before)  # its age advances by itself
        hold.unlink()
        await seat.until(lambda: seat.view.picture.world.quests["1"].state == "complete")

    sit(scene.root, story, size=WIDE)
