"""The naive way: a loop that looks once a second, assigns, starts, tests and merges one by one.

It has the same worktrees, the same agent processes, the same gate and the same order of tasks as
crew, merges with `git merge --no-ff` in a worktree of its own, and records nothing.
"""

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.scene import Scene, ScriptedTask
from crew.agents.scripted import script_player

LOOP_S = 1.0


@dataclass(slots=True, kw_only=True)
class PollingCrew:
    """`waiting`, `running` and `merged` hold titles of tasks."""

    scene: Scene
    tasks: dict[str, ScriptedTask]
    agents: int
    waiting: list[str] = field(init=False)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.waiting = list(self.tasks)

    @property
    def place(self) -> Path:
        return self.scene.repo.parent / "polling"

    def run(self) -> float:
        """Seconds until the last task is merged."""
        began = time.monotonic()
        self.scene.git("worktree", "add", "-q", "--detach", str(self.place / "merging"), "main")
        while len(self.merged) < len(self.tasks):
            self._take_ended()
            self._assign()
            if len(self.merged) < len(self.tasks):
                time.sleep(LOOP_S)
        return time.monotonic() - began

    def _take_ended(self) -> None:
        for title in [t for t, agent in self.running.items() if agent.poll() is not None]:
            if self.running.pop(title).returncode != 0:
                raise RuntimeError(f"the agent of {title} failed")
            subprocess.run(["sh", "-c", "true"], cwd=self.place / title, check=True)
            self._merge(title)
            self.merged.add(title)

    def _merge(self, title: str) -> None:
        merging = self.place / "merging"
        self.scene.git("merge", "-q", "--no-ff", "--no-edit", f"polling-{title}", at=merging)
        self.scene.git("worktree", "remove", "--force", str(self.place / title))
        self.scene.git("branch", "-q", "-D", f"polling-{title}")

    def _assign(self) -> None:
        for title in list(self.waiting):
            if len(self.running) == self.agents:
                return
            if self.merged.issuperset(self.tasks[title].deps):
                self.waiting.remove(title)
                self.running[title] = self._started(title)

    def _started(self, title: str) -> "subprocess.Popen[bytes]":
        worktree, scene = self.place / title, self.scene
        base = scene.git("rev-parse", "HEAD", at=self.place / "merging")
        scene.git("worktree", "add", "-q", "-b", f"polling-{title}", str(worktree), base)
        env = {
            **scene.env,
            "CREW_SCRIPT": str(scene.script),
            "CREW_TASK_ID": scene.ids[title],
            "CREW_STATE_DIR": str(self.place / "state"),
        }
        log = (self.place / f"{title}.log").open("wb")
        with log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", script_player.__file__],
                cwd=worktree,
                env=env,
                stdout=log,
                stderr=log,
            )


def polled_makespan_s(scene: Scene, tasks: list[ScriptedTask], *, agents: int) -> float:
    crew = PollingCrew(scene=scene, tasks={task.title: task for task in tasks}, agents=agents)
    try:
        return crew.run()
    finally:
        for agent in crew.running.values():
            agent.kill()
            agent.wait()
