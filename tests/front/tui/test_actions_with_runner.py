"""Actions while a runner works: kill, retry, stop, send, and the runner itself from the palette."""

from front.conftest import until
from front.tui.seats import sit
from front.tui.terminal_desk import desk  # noqa: F401 - a fixture


def test_the_agents_of_a_runner_are_started_killed_and_retried(scene):
    scene.ok("new", "--title", "First")
    scene.ok("new", "--title", "Second")
    scene.plan("1", "wait")
    scene.plan("2", "fail")

    async def story(seat):
        await seat.sees("Second")
        await seat.press("K")
        await seat.hears("no agent works on this task")
        await seat.press(":")
        await seat.paste("run --agents 2")
        await seat.press("enter")
        await seat.until(lambda: scene.runner_pid() is not None)
        await seat.sees("● runner")
        await seat.until(lambda: "stuck" in {a.state for a in agents(seat)})
        seat.view.page.move_to_key("1")

        await seat.press("t")
        await seat.paste("mind the tests")
        await seat.press("ctrl+s")
        await seat.hears("the message is sent")
        assert "mind the tests" in scene.ok("show", "1", "--json").out

        await seat.press("enter")  # without a terminal: it is looked at
        await seat.until(lambda: seat.view.pane.has_focus)
        await seat.press("escape", "a")
        await seat.sees("runs without a terminal")
        await seat.press("n")

        await seat.press("K")
        await seat.sees("End the step of agent A")
        await seat.press("y")
        await seat.hears("agent A is idle")
        facts = scene.ok("events", "--json", "--subject", "task:1").out
        assert "killed" in facts

        seat.view.page.move_to_key("2")
        scene.plan("2", "wait")
        await seat.press("tab", "down")  # the agents: B is stuck
        await seat.until(lambda: seat.view.page.chosen_agent() == "B")
        await seat.press("u")
        await seat.hears("B is tried again")
        await seat.until(lambda: "stuck" not in {a.state for a in agents(seat)})
        await seat.press("shift+tab")
        seat.view.page.move_to_key("2")
        await seat.press("S")
        await seat.sees("Stop task 2?")
        await seat.press("y")
        await seat.until(lambda: scene.status("2") == "error")
        scene.let_go()
        await seat.press(":")
        await seat.paste("stop --now")
        await seat.press("enter")
        await seat.sees("no runner")

    sit(scene.root, story)
    until(lambda: scene.runner_pid() is None)


def agents(seat):
    return seat.view.picture.world.agents.values()


def test_a_done_task_is_sent_back_and_merged_while_a_runner_is_up(desk):  # noqa: F811
    desk.new("First")
    process = desk.start("run")
    until(lambda: desk.runner_pid() == process.pid)

    async def story(seat):
        await seat.sees("First")
        await seat.press("s", "enter")
        await seat.hears("task 1 is started")
        desk.commit("made")
        desk.ok("complete", "1")
        await seat.sees("Done (awaits merge)")
        await seat.press("R")
        await seat.paste("one more")
        await seat.press("ctrl+s")
        await seat.hears("task 1 is sent back")
        assert desk.status("1") == "in_progress"
        await seat.until(lambda: "one more" in (desk.folder / "told-1").read_text())
        desk.ok("complete", "1")
        await seat.sees("Done (awaits merge)")
        await seat.press("m", "y")
        await seat.until(lambda: desk.status("1") == "merged")

    sit(desk.root, story)
    assert desk.git("show", "main:made") == "x"
