"""A repository in a temporary folder with scripted tasks, and a crew that works through them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crew.tasks.task_source import NewTask
from crew.workplace import Workplace, find_workplace, make_workplace

GATE = "true"
PROJECT = Path(__file__).parents[1]
FILES = 20
"""How many files the repository of a benchmark has: few, since on some disks making a file takes a
millisecond of CPU, and the figures are to tell of crew, not of the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTask:
    """A task whose agent plays these steps; each step is a list of the player's actions."""

    title: str
    steps: list[list[dict[str, Any]]]
    deps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    repo: Path
    env: Mapping[str, str]
    ids: dict[str, str] = field(default_factory=dict)  # a task's id by its title

    @property
    def script(self) -> Path:
        return self.repo.parent / "script.json"

    @property
    def workplace(self) -> Workplace:
        return find_workplace(self.repo)

    def git(self, *args: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=at or self.repo,
            env=dict(self.env),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def start(self, agents: int) -> "subprocess.Popen[str]":
        """The crew, running in a process of its own."""
        with (self.repo.parent / "err.txt").open("w") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "bench.driver", str(self.repo), str(agents)],
                cwd=PROJECT,
                env=dict(self.env),
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def run(self, agents: int) -> dict[str, Any]:
        """The crew, to its end; what the driver measured."""
        return self.result(self.start(agents))

    def result(self, running: "subprocess.Popen[str]") -> dict[str, Any]:
        said, _ = running.communicate()
        if running.returncode:
            raise RuntimeError((self.repo.parent / "err.txt").read_text()[-4000:])
        measured: dict[str, Any] = json.loads(said.splitlines()[-1])
        if set(measured["states"]) != {"merged"}:
            raise RuntimeError(f"not everything was merged: {measured['states']}")
        return measured


@contextmanager
def made_scene(tasks: list[ScriptedTask]) -> Iterator[Scene]:
    """A repository with a crew and these tasks; the gate is `true`. Removed afterwards."""
    place = Path(tempfile.mkdtemp(prefix="crew-bench-"))
    try:
        scene = Scene(repo=place / "repo", env=_environment(place))
        _make_repository(scene)
        _add_tasks(scene, tasks)
        yield scene
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _environment(place: Path) -> dict[str, str]:
    """Nothing of the caller's configuration of git, crew or Python."""
    (place / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.org\n")
    theirs = ("GIT_", "CREW_", "XDG_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, "HOME": str(place)}


def _make_repository(scene: Scene) -> None:
    scene.repo.mkdir()
    scene.git("init", "-q", "-b", "main")
    for number in range(FILES):
        file = scene.repo / f"folder{number % 10}" / f"file{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"line of file {number}\n" * 50)
    scene.git("add", "--all")
    scene.git("commit", "-q", "-m", "first")
    (scene.repo / ".crew").mkdir()
    (scene.repo / ".crew" / "config.toml").write_text(
        f"[agents.scripted]\nscript = {json.dumps(str(scene.script))}\n"
        '[agents]\nworker_default = "scripted"\n[complete]\ncommand = "' + GATE + '"\n'
    )


def _add_tasks(scene: Scene, tasks: list[ScriptedTask]) -> None:
    workplace = make_workplace(scene.repo)
    for task in tasks:
        deps = tuple(scene.ids[title] for title in task.deps)
        scene.ids[task.title] = workplace.source.add(
            NewTask(title=task.title, deps=deps), at=time.time()
        )
    workplace.db.close()
    parts = {scene.ids[task.title]: {"steps": task.steps} for task in tasks}
    scene.script.write_text(json.dumps({"tasks": parts}))


def working(
    task: str, *, sleep_s: float, done: bool = True, text: str = ""
) -> list[dict[str, Any]]:
    """A step that takes this long, then writes and commits its task's file."""
    end: list[dict[str, Any]] = [{"done": True}] if done else []
    return [
        {"sleep_s": sleep_s},
        {"write": {"path": f"work/{task}.txt", "text": text or f"{task}\n"}},
        {"commit": f"work on {task}"},
        *end,
    ]
