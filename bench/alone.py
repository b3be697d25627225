"""What the agent and the gate of a task take by themselves, one after the other, without any crew.

The scripted agent is started in a worktree with nothing to sleep for: the start of its Python, the
writing of its file and its commit. The gate is its shell. Both would run whoever coordinates them.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from bench.scene import GATE, Scene, ScriptedTask, made_scene, working
from crew.agents.scripted import script_player

TIMES = 15


class Alone(NamedTuple):
    """Seconds of wall time; the median of several."""

    agent_s: float
    gate_s: float


def measured_alone() -> Alone:
    tasks = [
        ScriptedTask(title=f"task{n}", steps=[working(f"task{n}", sleep_s=0.0)])
        for n in range(TIMES)
    ]
    with made_scene(tasks) as scene:
        worktree = scene.repo.parent / "alone"
        scene.git("worktree", "add", "-q", "-b", "alone", str(worktree))
        agent_s = [_taken_s(lambda task=task: _play(scene, task.title)) for task in tasks]
        gate_s = [_taken_s(lambda: _run_gate(scene)) for _ in range(TIMES)]
    return Alone(agent_s=median(agent_s), gate_s=median(gate_s))


def _taken_s(action: Callable[[], None]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def _play(scene: Scene, title: str) -> None:
    env = {
        **scene.env,
        "CREW_SCRIPT": str(scene.script),
        "CREW_TASK_ID": scene.ids[title],
        "CREW_STATE_DIR": str(scene.repo.parent / "state"),
    }
    _run(scene, [sys.executable, "-I", "-S", script_player.__file__], env)


def _run_gate(scene: Scene) -> None:
    _run(scene, ["sh", "-c", GATE], dict(scene.env))


def _run(scene: Scene, argv: list[str], env: dict[str, str]) -> None:
    cwd = scene.repo.parent / "alone"
    subprocess.run(argv, cwd=cwd, env=env, stdout=subprocess.DEVNULL, check=True)
