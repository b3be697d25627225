"""A repository with a crew in it, and the installed `crew` to call there."""

import functools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crew.domain.rows.run import Run
from crew.store.fact_log import load_world
from crew.workplace import find_workplace
from front.screen import PATIENCE_S, Screen
from repositories import lay_repository, new_template
from surroundings import own_home
from warm import READ_AT_START, Piped, warm_python

CREW = Path(sys.executable).with_name("crew")
FILES = {"readme": "hello\n"}

AGENT = """\
case "$(cat "$SCENE/plan-$CREW_TASK_ID" 2>/dev/null)" in
  fail) echo "I cannot"; exit 1 ;;
  wait) touch "$SCENE/waits-$CREW_TASK_ID"; while [ ! -e "$SCENE/go" ]; do sleep 0.05; done ;;
  nothing) echo DONE; exit 0 ;;
  clash) echo "$CREW_TASK_ID" > shared ;;
esac
echo "working on $CREW_TASK_ID"
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""

CONFIG = """\
[run]
agents = 1
backoff_s = 0.05
max_backoff_s = 0.1
stuck_after = 2
[agents]
worker_default = "sh"
[agents.sh]
command_template = "sh {agent}"
env = {{ SCENE = "{scene}" }}
"""


@pytest.fixture(autouse=True)
def lonely(tmp_path_factory):
    with own_home(tmp_path_factory):
        yield


@dataclass(frozen=True)
class Said:
    """What one call of crew answered."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return self.out.splitlines()


@dataclass(frozen=True)
class Refusal:
    """The error of a refused call. Tests ask for names in it; `messages.txt` pins its wording."""

    code: str
    message: str
    hint: str


def called(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Call `crew`, in a new process only where that could make a difference."""
    args = [str(arg) for arg in args]
    if not _needs_new(env):
        argv = ["crew", *args]
        return warm_python().run(argv, cwd=cwd, env=env, stdin=stdin, limit_s=PATIENCE_S)
    return subprocess.run(
        [CREW, *args],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env=env,
        timeout=PATIENCE_S,
        check=False,
    )


def _needs_new(env: Mapping[str, str]) -> bool:
    """Whether a variable that Python reads when it starts differs from ours."""
    return any(env[name] != os.environ.get(name) for name in env if name.startswith(READ_AT_START))


@dataclass
class CliScene:
    """A repository, and what the agents in it will do."""

    root: Path
    folder: Path
    started: "list[Piped | subprocess.Popen[str]]" = field(default_factory=list)

    def crew(self, *args: str, stdin: str = "", cwd: Path | None = None, **env: str) -> Said:
        done = called(args, cwd=cwd or self.root, env={**os.environ, **env}, stdin=stdin)
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: str, **more: str) -> Said:
        said = self.crew(*args, **more)
        assert said.code == 0, said
        return said

    def refused(self, exit_code: int, code: str, *args: str, **more: str) -> Refusal:
        """A call that must be refused: with this exit code, and this code in its document."""
        said = self.crew("--json", *args, **more)
        assert (said.code, said.json["error"]["code"]) == (exit_code, code), said
        return Refusal(**said.json["error"])

    def start(self, *args: str, **env: str) -> Piped:
        """Call `crew` and go on; it ends with the scene."""
        assert not _needs_new(env), "start it anew"
        process = warm_python().start_piped(
            ["crew", *args], cwd=self.root, env={**os.environ, **env}
        )
        self.started.append(process)
        return process

    def start_anew(self, *args: str, **env: str) -> "subprocess.Popen[str]":
        """The same as a program of its own, for what a fork of a warm process would change."""
        process = subprocess.Popen(
            [CREW, *args],
            env={**os.environ, **env},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Agents that wait go on, and no process that was started outlives the test."""
        self.let_go()
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            _wait_or_kill(process)

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def plan(self, task: str, what: str) -> None:
        """What the agent does with this task instead of simply doing it."""
        (self.folder / f"plan-{task}").write_text(what)

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def configure(self, text: str) -> None:
        with (self.root / ".crew" / "config.toml").open("a") as file:
            file.write(text)

    def runner_pid(self) -> int | None:
        try:
            holder = json.loads((self.root / ".crew" / "lock").read_text() or "{}")
        except (FileNotFoundError, ValueError):
            return None
        return holder.get("pid") if holder.get("role") == "runner" else None

    def status(self, task: str) -> str:
        """As its file tells it, which costs less than a call."""
        file = self.root / ".crew/tasks/default" / f"{task}.meta.json"
        return str(json.loads(file.read_text())["status"])

    def agent(self, name: str = "A"):
        """As `state.json` tells it; an empty one before it exists."""
        return next((a for a in self.agents() if a["name"] == name), {"status": "", "pid": None})

    def agents(self):
        try:
            return json.loads((self.root / ".crew/state.json").read_text())["agents"]
        except FileNotFoundError:
            return []


def _wait_or_kill(process: "Piped | subprocess.Popen[str]") -> None:
    try:
        process.communicate(timeout=PATIENCE_S)
    except (subprocess.TimeoutExpired, ValueError):  # it hangs, or the test has read it all
        process.kill()
        process.wait()


def until(is_true: Callable[[], bool], *, limit_s: float = PATIENCE_S) -> None:
    """Look until it is so; far longer than it should ever take."""
    give_up_at = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.05)


@pytest.fixture
def bare_scene(tmp_path) -> Iterator[CliScene]:
    """A repository without a crew."""
    root = tmp_path / "my repo"
    folder = tmp_path / "scene"
    folder.mkdir()
    lay_repository(root, FILES)
    scene = CliScene(root, folder)
    yield scene
    scene.end()


@functools.cache
def _initialised() -> Path:
    """A repository after `crew init`; its named pipe cannot be copied."""
    path = new_template()
    lay_repository(path, FILES)
    CliScene(path, path).ok("init")
    (path / ".crew" / "wake").unlink()
    return path


def lay_crew(root: Path) -> None:
    """What `crew init` makes in a repository, with an id of its own."""
    made = _initialised()
    shutil.copytree(made / ".crew", root / ".crew")
    os.mkfifo(root / ".crew" / "wake", 0o600)
    shutil.copy2(made / ".git" / "info" / "exclude", root / ".git" / "info" / "exclude")
    with closing(sqlite3.connect(root / ".crew" / "crew.db")) as db, db:
        db.execute("UPDATE settings SET value = ? WHERE name = 'repo_id'", (str(uuid.uuid4()),))


@pytest.fixture
def scene(bare_scene) -> CliScene:
    """A repository with a crew whose agent is a small shell script."""
    agent = bare_scene.folder / "agent.sh"
    agent.write_text(AGENT)
    lay_crew(bare_scene.root)
    config = CONFIG.format(agent=agent, scene=bare_scene.folder)
    (bare_scene.root / ".crew" / "config.toml").write_text(config)
    return bare_scene


@pytest.fixture
def on_screen():
    """Starts a program on a terminal of its own, and ends it with the test."""
    screens: list[Screen] = []

    def start(argv: Sequence[str | Path], *, cwd: Path, **env: str) -> Screen:
        screens.append(Screen(argv, cwd=cwd, **env))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
def running(scene):
    """Starts `crew run`, and waits until it is up; it ends with the scene."""

    def start(*args: str) -> Piped:
        process = scene.start("run", *args)
        until(lambda: scene.runner_pid() == process.pid)
        return process

    return start


def last_run(scene: CliScene, task: str = "1") -> Run:
    """The run of a task as the store has it, with what no command prints."""
    workplace = find_workplace(scene.root)
    with closing(workplace.db):
        world = load_world(workplace.db)
        return world.runs[world.tasks[task].run or ""]


KEEP = "[worktree]\nkeep = true\n"


def worktree(scene, task="1"):
    return scene.root.parent / f"{scene.root.name}-worktrees" / task


def commit_in(folder, name, text):
    (folder / name).write_text(text)
    for args in (["add", name], ["commit", "-q", "-m", f"write {name}"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


def refs(scene, pattern):
    return scene.git("for-each-ref", "--format=%(refname)", pattern).splitlines()


@pytest.fixture
def stuck(scene):
    """Task 1 was begun: its worktree has a commit and a file that is not committed."""
    scene.configure(KEEP)
    scene.ok("new", "--title", "first")
    scene.plan("1", "fail")
    assert scene.crew("run", "--drain").code == 6
    commit_in(worktree(scene), "made", "hello\n")
    (worktree(scene) / "loose").write_text("not committed\n")
    return scene


@pytest.fixture
def closed(stuck):
    """The same, given up; its worktree and its branch are still there."""
    stuck.ok("kill", "A")
    assert "`crew checkpoints 1` lists what was kept" in stuck.ok("close", "1").err
    assert worktree(stuck).is_dir()
    return stuck
