"""A repository with a crew in it, and what must be true of it whatever happened."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crew.domain.world import World
from crew.git.checkpoints.checkpoints import checkpoints
from crew.store.fact_log import load_world
from crew.store.row_repair import differences
from crew.system.processes.ownership import owned_processes
from crew.workplace import Workplace, find_workplace, make_workplace
from warm import PATIENCE_S, Forked, warm_python

DRIVER = Path(__file__).with_name("driver.py")
GATE = "! grep -rqs BROKEN --exclude-dir=.git --exclude=gate.sh . && test -f readme.txt"
"""Red as long as any file has the word in it."""

NOT_DELIVERED = (".crew/tasks/", ".tickets/", ".before-crew-")
"""The task store, and edits that were rescued: all that may be untracked in the checkout."""


@dataclass(frozen=True)
class DriverScene:
    """`path` is somebody's checkout; `tasks` are made by the driver in this order."""

    path: Path
    tasks: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    started: list[Forked] = field(default_factory=list)

    def git(self, *args: str, at: Path | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *args], cwd=at or self.path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, (args, done.stderr)
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)

    def commit(self, files: Mapping[str, str], message: str = "by a person") -> str:
        self.write(files)
        self.git("add", "--", *files)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    @property
    def worktrees(self) -> Path:
        return self.path.parent / f"{self.path.name}-worktrees"

    @property
    def workplace(self) -> Workplace:
        """Opened anew, so that nothing is remembered."""
        return find_workplace(self.path)

    @property
    def world(self) -> World:
        db = self.workplace.db
        try:
            return load_world(db)
        finally:
            db.close()

    def make(self) -> Workplace:
        return make_workplace(self.path)

    def start(self, **env: str) -> Forked:
        """The driver, running; its two streams go to files beside the repository."""
        place = self.path.parent
        scene = place / "scene.json"
        scene.write_text(json.dumps({"tasks": self.tasks, **self.options}))
        argv = [str(DRIVER), str(self.path), str(scene)]
        with (
            Path(os.devnull).open() as nothing,
            (place / "out.txt").open("w") as out,
            (place / "err.txt").open("a") as err,
        ):
            streams = [file.fileno() for file in (nothing, out, err)]
            running = warm_python().start(
                argv, cwd=Path.cwd(), env={**os.environ, **env}, streams=streams
            )
        self.started.append(running)
        return running

    def end(self) -> None:
        """Nobody who was started outlives the test."""
        for running in self.started:
            running.kill()
            running.wait()

    def run(self, *, code: int = 0, **env: str) -> dict[str, Any]:
        """The driver, to its end; its answer."""
        running = self.start(**env)
        try:
            ended = running.wait(timeout=PATIENCE_S)
        finally:
            running.kill()
            running.wait()
        assert ended == code, f"exit {ended}\n{self.said()}"
        out = (self.path.parent / "out.txt").read_text()
        answer: dict[str, Any] = json.loads(out.splitlines()[-1]) if out else {}
        return answer

    def said(self) -> str:
        return (self.path.parent / "err.txt").read_text()[-6000:]

    def log_of(self, task: str) -> str:
        return (self.path / ".crew" / "logs" / f"task-{task}.log").read_text()

    def kept(self, task: str) -> dict[str, str]:
        """Every file of every checkpoint of a task, newest last, by name."""
        found: dict[str, str] = {}
        for one in checkpoints(self.workplace.repo, task):
            for name in self.git("ls-tree", "-r", "--name-only", one.commit).splitlines():
                found[name] = self.git("show", f"{one.commit}:{name}")
        return found


def until(condition: Callable[[], Any], *, what: str) -> Any:
    """Poll with a long limit; returns what the condition returned."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < give_up_at, f"it never came to: {what}"
        time.sleep(0.02)
    return found


def merges_on(scene: DriverScene, branch: str = "main") -> list[str]:
    """The subjects of the first-parent history, newest first."""
    return scene.git("log", "--first-parent", "--format=%s", branch).splitlines()


def check_the_end(
    scene: DriverScene, *, base: str, merged: int, last: str = "refs/heads/main"
) -> None:
    """All tasks merged exactly once, every commit green, and nothing of crew left behind.

    `last` is the last commit of crew on the branch: a person may have committed after it.
    """
    states = {task.id: task.state for task in scene.world.tasks.values()}
    assert list(states.values()) == ["merged"] * merged, states
    _check_history(scene, base, sorted(states))
    _check_traces(scene)
    _check_checkout(scene, last)
    _check_store(scene)


def _check_history(scene: DriverScene, base: str, tasks: list[str]) -> None:
    subjects = scene.git("log", "--first-parent", "--format=%s", f"{base}..main").splitlines()
    merges = [subject.partition(":")[0] for subject in subjects if subject.startswith("Merge crew")]
    assert sorted(merges) == sorted(f"Merge crew-{task}" for task in tasks)
    for commit in scene.git("rev-list", "--first-parent", f"{base}..main").split():
        broken = scene.git("grep", "-l", "BROKEN", commit, check=False)
        assert broken == "", f"{commit} on main is red: {broken}"


def _check_traces(scene: DriverScene) -> None:
    fsck = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling"],
        cwd=scene.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert fsck.returncode == 0, fsck.stderr
    branches = scene.git("for-each-ref", "--format=%(refname)", "refs/heads").split()
    assert branches == ["refs/heads/main"]
    worktrees = scene.git("worktree", "list", "--porcelain")
    assert worktrees.count("worktree ") == 1, worktrees
    left = [entry.name for entry in scene.worktrees.iterdir()] if scene.worktrees.exists() else []
    assert left == []
    git_dir = scene.path / ".git"
    locks = [str(found) for found in git_dir.rglob("*.lock") if found.stat().st_size]
    assert [lock for lock in locks if "objects" not in lock] == []
    assert not (git_dir / "index.lock").exists()
    assert not (git_dir / "crew-sync.json").exists()
    assert not list((git_dir / "crew-sync").glob("*"))
    assert owned_processes(scene.workplace.repo_id) == ()


def _check_checkout(scene: DriverScene, last: str) -> None:
    """The person's checkout is exactly the commit that was delivered."""
    changed = scene.git("status", "--porcelain", "--untracked-files=all").splitlines()
    assert [line for line in changed if not any(own in line for own in NOT_DELIVERED)] == []
    assert scene.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert scene.git("rev-parse", last) == scene.git("rev-parse", "refs/crew/landed/main")


def _check_store(scene: DriverScene) -> None:
    workplace = scene.workplace
    assert differences(workplace.db) == []
    items = workplace.source.scan(None).items
    assert {item.id: str(item.status) for item in items} == {
        task.id: task.state for task in scene.world.tasks.values()
    }
    state = json.loads((scene.path / ".crew" / "state.json").read_text())
    assert {agent["status"] for agent in state["agents"]} == {"idle"}
    workplace.db.close()
