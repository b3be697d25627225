"""A run of twenty tasks whose runner is killed again and again at moments nobody chose."""

import contextlib
import os
import random
import subprocess
import time

import pytest

from crew.store.fact_log import facts_after
from crew.store.runner_lock import find_runner
from runner.scene import DriverScene, check_the_end, until
from runner.stories import BOTH, done, work

TASKS = 20


def _script(*, pause_s: float) -> dict:
    """Every fourth task writes to one shared file, two break the gate first."""
    tasks = {}
    for number in range(1, TASKS + 1):
        pause = {"sleep_s": pause_s}
        steps = [[pause, *work(f"part-{number}.txt")], [pause, {"say": "nearly"}]]
        if number % 4 == 0:
            steps.append([{"append": {"path": "shared.txt", "text": f"line-{number}\n"}}])
            steps.append([{"commit": f"shared {number}"}])
        if number in {3, 11}:
            steps.append(work("broken.txt", f"BROKEN {number}\n"))
        tasks[f"task {number}"] = {
            "steps": [*steps, done(pause)],
            "on_conflict": BOTH,
            "on_red_gate": [done({"run": "git rm -q broken.txt"}, {"commit": "mended"})],
        }
    return {"tasks": tasks}


def _tasks() -> list[dict]:
    """Each fifth task waits for the two before it."""
    return [
        {
            "title": f"task {number}",
            "deps": [f"task {number - 1}", f"task {number - 2}"] if number % 5 == 0 else [],
        }
        for number in range(1, TASKS + 1)
    ]


def _merged(scene: DriverScene) -> int:
    return sum(task.state == "merged" for task in scene.world.tasks.values())


def _is_up(scene: DriverScene) -> bool:
    return find_runner(scene.path / ".crew" / "lock") is not None


def _kill_at_random(scene: DriverScene, kills: int, chance: random.Random, longest_s: float) -> int:
    """Kill the runner so many times, or fewer if everything is merged before; how many."""
    for killed in range(kills):
        running = scene.start()
        until(lambda run=running: _is_up(scene) or run.poll() is not None, what="a runner")
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=chance.uniform(0.0, longest_s))
        if running.poll() is not None:
            assert running.returncode == 0, scene.said()
            return killed
        running.kill()
        running.wait()
    return kills


def _repeated_steps(scene: DriverScene) -> int:
    """Steps that were started more than once because their runner died."""
    started = [
        (fact.subject, fact.changes["steps"])
        for _, fact in facts_after(scene.workplace.db)
        if fact.trigger == "step_started" and fact.kind == "run"
    ]
    return len(started) - len(set(started))


def _survived(make_scene, *, kills: int, pause_s: float, longest_s: float) -> int:
    """Histories of twenty tasks until there were enough kills; each must end as it should."""
    seed = int(os.environ.get("CREW_SEED", time.time()))
    print(f"CREW_SEED={seed}")
    chance = random.Random(seed)
    left = kills
    while left > 0:
        scene = make_scene(_script(pause_s=pause_s), tasks=_tasks(), agents=4)
        base = scene.git("rev-parse", "HEAD")
        killed = _kill_at_random(scene, left, chance, longest_s)
        before = _merged(scene)
        assert scene.start().wait(timeout=200) == 0, scene.said()
        _check(scene, base)
        print(
            f"{killed} kills, {killed} restarts, {before} of {TASKS} merged at the last one, "
            f"{_repeated_steps(scene)} steps repeated"
        )
        left -= killed
    return kills - left


def _check(scene: DriverScene, base: str) -> None:
    check_the_end(scene, base=base, merged=TASKS)
    lines = (scene.path / "shared.txt").read_text().split()
    assert sorted(lines) == sorted(["top", *(f"line-{n}" for n in range(4, TASKS + 1, 4))])


@pytest.mark.timeout(300)
def test_ten_kills_lose_nothing(make_scene):
    assert _survived(make_scene, kills=10, pause_s=0.1, longest_s=1.6) == 10


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_hundred_kills_lose_nothing(make_scene):
    assert _survived(make_scene, kills=100, pause_s=0.2, longest_s=2.0) == 100
