"""The view follows the crew by its facts: through the death of a runner, and a new database."""

import signal

from crew.store.fact_log import last_fact, load_world
from crew.workplace import find_workplace
from front.conftest import until
from front.tui.seats import sit


def test_a_runner_that_is_killed_and_comes_back_costs_no_fact(scene, running):
    scene.ok("new", "--title", "First")
    scene.ok("new", "--title", "Second", "--after", "1")
    scene.plan("1", "wait")
    runner = running("--agents", "1")
    until(lambda: scene.agent()["pid"] is not None)

    async def story(seat):
        await seat.sees(f"runner {runner.pid}")
        runner.send_signal(signal.SIGKILL)
        runner.wait()
        await seat.sees("no runner")
        again = running("--agents", "1")
        await seat.sees(f"runner {again.pid}")
        scene.let_go()
        await seat.until(lambda: scene.status("2") == "merged")
        again.terminate()
        again.wait()
        db = find_workplace(scene.root).db
        await seat.until(lambda: seat.view.picture.number == last_fact(db))
        assert seat.view.picture.world == load_world(db)
        db.close()

    sit(scene.root, story)


def test_a_crew_that_is_cleaned_away_is_read_anew(scene):
    scene.ok("new", "--title", "First")
    scene.ok("spawn", "Bea")

    async def story(seat):
        await seat.sees("Bea")
        scene.ok("clean", "--yes")
        await seat.until(lambda: "Bea" not in seat.text())
        await seat.sees("First")

    sit(scene.root, story)
