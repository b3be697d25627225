"""A run of many tasks in which everything is killed or stopped again and again."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from e2e.killed_gits import DELAYS_S, KilledGits
from fault_table import KINDS, Survived
from front.conftest import PATIENCE_S, CliScene

AGENT = """\
file="part-$CREW_TASK_ID"
for n in 1 2 3; do
  if ! grep -qs "^line $n$" "$file"; then
    { cat "$file" 2>/dev/null; echo "line $n"; } > "$SCENE/$file" || exit 1
    cp "$SCENE/$file" "$file" || exit 1
  fi
  git add "$file" || exit 1
  git diff --cached --quiet || git commit -q -m "line $n of $CREW_TASK_ID" || exit 1
  sleep {pause_s}
done
echo DONE
"""

GATE = 'for f in part-*; do [ "$(wc -l < "$f")" = 3 ] || exit 1; done; sleep 0.1'

CONFIG = """\
[run]
agents = 4
backoff_s = 0.05
max_backoff_s = 0.2
[agents]
worker_default = "sh"
[agents.sh]
command_template = "sh {agent}"
env = {{ SCENE = "{scene}" }}
[complete]
command = '''{gate}'''
[sandbox]
allow_write = ["{scene}/aim"]
"""

CONTENT = "line 1\nline 2\nline 3"
CLOCK = """\
import time
real = time.time
def jumped():
    with open({file!r}) as file:
        return real() + float(file.read() or 0)
time.time = jumped
"""
"""For Python's own clock in crew; the clocks of git and the disk stay."""

OWN_LOCKS = {"crew.lock", "crew-sync.lock"}
"""Files that crew locks and never removes."""
MOST_RUNS = 20
STOPPED_S = 0.2
TAKEN_S = 3.0
MOST_ERRORS = 3
"""An agent is stuck after five errors in a row."""
MOST_TICKETS = 3
"""Fewer than crew tries one call, so that no call must fail."""


@dataclass
class Gale:
    """One history. `left` are the faults still to come, by kind; `done` those that were made."""

    scene: CliScene
    chance: random.Random
    tasks: int
    left: Counter[str]
    pause_s: float = 0.2
    longest_s: float = 1.0
    done: Counter[str] = field(default_factory=Counter)
    held_up: set[str] = field(default_factory=set)
    commits: list[str] = field(default_factory=list)
    _process: "subprocess.Popen[str] | None" = None

    def __post_init__(self) -> None:
        self.gits = KilledGits(self.scene.folder)

    def blow(self, name: str) -> Survived:
        """The whole history. If anything is wrong in the end, none of its faults was survived."""
        self._begin()
        while +self.left:
            self._keep_running()
            self._wait()
            self._fault(self.chance.choice(sorted((+self.left).elements())))
        self._calm_down()
        return self._look(name)

    def _begin(self) -> None:
        scene = self.scene
        agent = scene.folder / "agent.sh"
        agent.write_text(AGENT.replace("{pause_s}", str(self.pause_s)))
        scene.ok("init")
        (scene.root / ".crew" / "config.toml").write_text(
            CONFIG.format(agent=agent, gate=GATE, scene=scene.folder)
        )
        (scene.folder / "clock").write_text("0")
        clock = CLOCK.format(file=str(scene.folder / "clock"))
        (scene.folder / "sitecustomize.py").write_text(clock)
        (scene.root / "notes").write_text("a note\n")
        scene.git("add", "notes")
        scene.git("commit", "-q", "-m", "a note")
        (scene.root / "notes").write_text("a note, edited\n")
        (scene.root / "mine").write_text("not even added\n")
        self._add(self.tasks)

    def _add(self, count: int) -> None:
        for _ in range(count):
            self.scene.ok("new", "--title", "a part")

    def _keep_running(self) -> None:
        """A runner with something to do: when all is merged before the last fault, more tasks."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            _close(self._process)
            self._retry()
            if not self._open_tasks():
                self._add(5)
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        path = f"{self.gits.path}:{os.environ['PATH']}"
        return self.scene.start_anew(
            "run", "--drain", "-q", PYTHONPATH=str(self.scene.folder), PATH=path
        )

    def _wait(self) -> None:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=self.chance.uniform(0, self.longest_s))

    def _fault(self, kind: str) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            return
        made = getattr(self, f"_fault_{kind}")(self._process)
        self.left[kind] -= made
        self.done[kind] += made
        if self.chance.random() < 0.05:
            self._commit_by_hand()

    def _fault_runner(self, process: "subprocess.Popen[str]") -> int:
        process.kill()
        process.wait()
        return 1

    def _fault_git(self, _process: "subprocess.Popen[str]") -> int:
        return self._kill_gits("crew", self.left["git"])

    def _fault_agent_git(self, _process: "subprocess.Popen[str]") -> int:
        return 0 if self._is_near_stuck() else self._kill_gits("agent", 1)

    def _kill_gits(self, side: str, most: int) -> int:
        """Kill the next gits of crew or of its agents, each in the middle of its work."""
        before = self.gits.died(side)
        for _ in range(min(MOST_TICKETS, most)):
            self.gits.ask(side, self.chance.choice(DELAYS_S))
        give_up_at = time.monotonic() + TAKEN_S
        while time.monotonic() < give_up_at and not self.gits.is_over():
            time.sleep(0.01)
        self.gits.withdraw()
        while time.monotonic() < give_up_at + TAKEN_S and not self.gits.is_over():
            time.sleep(0.01)
        return self.gits.died(side) - before

    def _fault_stop(self, process: "subprocess.Popen[str]") -> int:
        pid = self.chance.choice([process.pid, *(one for one, _ in self._others(process.pid))])
        stopped = _signal(pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        _signal(pid, signal.SIGCONT)
        return stopped

    def _fault_agent(self, process: "subprocess.Popen[str]") -> int:
        if self._is_near_stuck():
            return 0
        return self._kill_one(process, lambda line: "agent.sh" in line)

    def _is_near_stuck(self) -> bool:
        """Whether an agent failed so often in a row that crew would give it up, as it should."""
        return any(agent["error_count"] >= MOST_ERRORS for agent in self.scene.agents())

    def _fault_gate(self, process: "subprocess.Popen[str]") -> int:
        return self._kill_one(process, lambda line: line.endswith(GATE))

    def _kill_one(self, process: "subprocess.Popen[str]", is_meant: Callable[[str], bool]) -> int:
        """Kill a process with such a command line, as soon as there is one."""
        give_up_at = time.monotonic() + self.longest_s
        while time.monotonic() < give_up_at:
            others = [pid for pid, _ in self._others(process.pid)]
            found = [pid for pid in others if is_meant(_command_line(pid)) and _lives(pid)]
            if found:
                return _signal(self.chance.choice(found), signal.SIGKILL)
            time.sleep(0.01)
        return 0

    def _fault_all(self, process: "subprocess.Popen[str]") -> int:
        for pid in (process.pid, *(pid for pid, _ in self._others(process.pid))):
            _signal(pid, signal.SIGKILL)
        process.wait()
        return 1

    def _fault_disk(self, _process: "subprocess.Popen[str]") -> int:
        """Fill the disk for a moment."""
        filler = self.scene.root.parent / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"x" * 65_536):
                pass
        time.sleep(self.chance.uniform(0.1, 2.0))
        filler.unlink()
        return 1

    def _fault_bytes(self, process: "subprocess.Popen[str]") -> int:
        """Kill the runner, flip bytes of its database, and let doctor repair it."""
        self._fault_runner(process)
        file = self.scene.root / ".crew" / "crew.db"
        content = bytearray(file.read_bytes())
        for _ in range(20):
            content[self.chance.randrange(len(content))] ^= 0xFF
        file.unlink()
        file.write_bytes(content)
        self.scene.crew("doctor", "--repair")
        return 1

    def _fault_clock(self, _process: "subprocess.Popen[str]") -> int:
        days = self.chance.choice([-400, -1, 0, 1, 400])
        fresh = self.scene.folder / "clock.new"
        fresh.write_text(str(days * 86_400))
        fresh.rename(self.scene.folder / "clock")
        return 1

    def _others(self, runner: int) -> list[tuple[int, str]]:
        """Every other process that works in the repository or a worktree."""
        place, found = str(self.scene.root.parent), []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                pid = int(entry.name)
                if pid in (runner, os.getpid()):
                    continue
                if (entry / "cwd").readlink().is_relative_to(place):
                    found.append((pid, _name(pid)))
        return found

    def _commit_by_hand(self) -> None:
        """A person commits in the checkout; crew may hold the index for a moment."""
        name = f"by-hand-{len(self.commits)}"
        (self.scene.root / name).write_text(f"{name}\n")
        give_up_at = time.monotonic() + PATIENCE_S
        for args in (("add", name), ("commit", "-q", "-m", name, "--", name)):
            while subprocess.run(
                ["git", *args], cwd=self.scene.root, capture_output=True, check=False
            ).returncode:
                if time.monotonic() > give_up_at:
                    return
                self._keep_running()
                time.sleep(0.1)
        self.commits.append(name)

    def _calm_down(self) -> None:
        """No more faults: run until everything is merged, as a person would."""
        for _ in range(MOST_RUNS):
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=PATIENCE_S * 3)
                _close(self._process)
                self._process = None
            if not self._open_tasks():
                break
            self._retry()
            self._process = self._start()
        self.scene.crew("run", "--drain", "-q")

    def _open_tasks(self) -> list[str]:
        listed = self.scene.ok("list", "-a", "--json").json
        return [task["id"] for task in listed if task["status"] != "merged"]

    def _retry(self) -> None:
        """Try again what needs a person now; each such task counts as held up."""
        for agent in self.scene.agents():
            if agent["status"] in {"stuck", "error"}:
                self.held_up.add(
                    f"{agent.get('task') or agent['name']} ({agent.get('last_error')})"
                )
                self.scene.crew("retry", agent["name"])
        for task in self.scene.ok("list", "-a", "--json").json:
            if task["status"] in {"error", "failed"}:
                self.held_up.add(task["id"])
                self.scene.crew("retry", task["id"])

    def _look(self, name: str) -> Survived:
        lost, double, orphans = list(self._lost()), list(self._double()), list(self._orphans())
        open_tasks = self._open_tasks()
        doctor = [one for one in self._doctor() if one["state"] == "wrong"]
        held_up = self.held_up | set(open_tasks)
        is_sound = not (lost or double or orphans or open_tasks or doctor)
        detail = [f"{len(self.commits)} commits by a person"]
        detail += [*lost, *double, *orphans, *(f"held up: {task}" for task in sorted(held_up))]
        detail += [f"task {task} is not merged" for task in open_tasks]
        detail += [f"doctor: {one['message']}" for one in doctor]
        return Survived(
            name=name,
            faults={KINDS[kind]: count for kind, count in self.done.items() if count},
            is_sound=is_sound,
            tasks=len(self.scene.ok("list", "-a", "--json").json),
            lost=len(lost),
            double=len(double),
            orphans=len(orphans),
            held_up=len(held_up),
            detail=detail,
        )

    def _doctor(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.scene.crew("doctor", "--json").json
        return found

    def _lost(self) -> Iterator[str]:
        for task in self.scene.ok("list", "-a", "--json").json:
            if self._on_main(f"part-{task['id']}") != CONTENT:
                yield f"the work of {task['id']} is not on main"
        for name in self.commits:
            if self._on_main(name) != name:
                yield f"{name} of the person is not on main"
        if (self.scene.root / "notes").read_text() != "a note, edited\n":
            yield "an edit of the person"
        if (self.scene.root / "mine").read_text() != "not even added\n":
            yield "a file of the person"

    def _on_main(self, path: str) -> str:
        shown = subprocess.run(
            ["git", "show", f"main:{path}"],
            cwd=self.scene.root,
            capture_output=True,
            text=True,
            check=False,
        )
        return shown.stdout.strip()

    def _double(self) -> Iterator[str]:
        subjects = self.scene.git("log", "--first-parent", "--format=%s", "main").splitlines()
        merges = Counter(subject.partition(":")[0] for subject in subjects)
        for merge, count in merges.items():
            if merge.startswith("Merge crew-") and count > 1:
                yield f"{merge} {count} times"

    def _orphans(self) -> Iterator[str]:
        git_dir = self.scene.root / ".git"
        for lock in git_dir.rglob("*.lock"):
            if lock.name not in OWN_LOCKS:
                yield f"the lock {lock.relative_to(git_dir)}"
        yield from self.scene.git(
            "for-each-ref", "--format=%(refname)", "refs/heads/crew-*"
        ).split()
        for folder in (git_dir / "crew" / "folders", git_dir / "worktrees"):
            yield from (f"the repository {one}" for one in _entries(folder))
        worktrees = self.scene.root.parent / f"{self.scene.root.name}-worktrees"
        yield from (f"the worktree {one}" for one in _entries(worktrees))
        yield from (str(one) for kind in ("new", "gone") for one in git_dir.glob(f"crew-{kind}-*"))
        yield from (f"the process {pid} {name}" for pid, name in self._others(0))


def _entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").replace("\0", " ")
    except (OSError, ValueError):
        return ""


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    except OSError:
        return False


def _signal(pid: int, number: signal.Signals) -> int:
    with contextlib.suppress(OSError):
        os.kill(pid, number)
        return 1
    return 0


def _close(process: "subprocess.Popen[str]") -> None:
    with process, contextlib.suppress(ValueError):
        process.communicate()
