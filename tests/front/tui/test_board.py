"""The board: tasks by state, wave and quest, as they change."""

from front.tui.seats import SMALL, sit


def test_the_board_groups_the_tasks_by_state(scene):
    scene.ok("new", "--title", "First")
    scene.ok("new", "--title", "Second", "--after", "1")

    async def story(seat):
        await seat.sees("Todo (2)")
        lines = seat.lines()
        assert any("1" in line and "First" in line for line in lines)
        assert any("[BLOCKED] Second" in line for line in lines)

    sit(scene.root, story)


def test_a_task_that_is_made_meanwhile_appears(scene):
    scene.ok("new", "--title", "First")

    async def story(seat):
        await seat.sees("First")
        scene.ok("new", "--title", "Second")
        await seat.sees("Second")

    sit(scene.root, story, size=SMALL)
