"""Loops with reviewers, and runs of many tasks: killed at random moments until they end."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents.conftest import need
from e2e.gale import Gale
from fault_table import ROW, Survived
from front.conftest import PATIENCE_S, CliScene

AGENT = """\
if [ "$CREW_ROLE" = reviewer ]; then
  case "$CREW_AGENT-$(cat "round-$CREW_TASK_ID")" in
    bob-1) echo "once more"; echo FAIL;;
    *) echo PASS;;
  esac
  exit
fi
echo "$CREW_ROUND" > "round-$CREW_TASK_ID"
git add -A
git commit -q -a -m "round $CREW_ROUND" || git diff --quiet HEAD || exit 1
echo DONE
"""

CONFIG = """\
[run]
backoff_s = 0.05
max_backoff_s = 0.2
[agents]
worker_default = "ann"
reviewer_default = "bob"
[agents.ann]
command_template = "sh {agent}"
[agents.bob]
inherit = "ann"
[complete]
command = "true"
"""

RED = "gave up after 2 rounds: the gate is red"
MOST_STARTS = 30


@dataclass
class Storm:
    """One repository; `told` counts what happened."""

    scene: CliScene
    chance: random.Random
    longest_s: float
    told: Counter[str] = field(default_factory=Counter)

    def ride(self, number: int, *, kills: int) -> None:
        """One loop, from its start to an end that it comes to by itself."""
        is_red = number % 5 == 0
        proof = (
            "exit 1"
            if is_red
            else f"test -f round-$CREW_TASK_ID && git rev-parse HEAD >> {self.proofs}"
        )
        rounds = "2" if is_red else "20"
        begin = ["loop", f"Loop {number}", "--review", "claudex", "--proof", proof, "--json"]
        begin += ["--max-rounds", rounds]
        for start in range(MOST_STARTS):
            made = self._made_for(number)
            args = ["resume", made, "--json"] if made else begin
            self.told["resumes"] += args[0] == "resume"
            code, out = self._live(args, is_stormy=start < kills)
            self._look()
            if code in (0, 6) and self._is_end(json.loads(out), is_red=is_red):
                self._check(json.loads(out), is_red=is_red)
                return
            self.told["ended early, without a kill"] += code >= 0
        raise AssertionError(f"loop {number} never ends: {code} {out}")

    @property
    def proofs(self) -> str:
        return str(self.scene.folder / "proofs")

    def _made_for(self, number: int) -> str:
        """The task of a loop, if it was made; a kill may have used up a number before that."""
        tasks = self.scene.ok("list", "-a", "--json").json
        return next((one["id"] for one in tasks if one["title"] == f"Loop {number}"), "")

    def _live(self, args: list[str], *, is_stormy: bool) -> tuple[int, str]:
        """Until it ends, by itself or by us; somewhere in between a git or an agent may die."""
        process = self.scene.start_anew(*args)
        for victim in ("another", "crew") if is_stormy else ():
            try:
                out, _ = process.communicate(timeout=self.chance.uniform(0, self.longest_s))
            except subprocess.TimeoutExpired:
                self._kill(process, victim)
            else:
                return process.returncode, out
        out, err = process.communicate(timeout=PATIENCE_S * 3)
        assert process.returncode in (-9, 0, 1, 6), err
        return process.returncode, out

    def _kill(self, process: "subprocess.Popen[str]", victim: str) -> None:
        if victim == "crew":
            self.told["kills of crew"] += 1
            process.kill()
        elif others := self._others(process.pid):
            pid, name = self.chance.choice(others)
            self.told[f"kills of {'git' if name.startswith('git') else 'agents and gates'}"] += 1
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _others(self, crew: int) -> list[tuple[int, str]]:
        """What works for this crew now, wherever it stands in the tree of processes."""
        place, found = str(self.scene.root.parent), []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                pid = int(entry.name)
                if pid not in (crew, os.getpid()) and (entry / "cwd").readlink().is_relative_to(
                    place
                ):
                    found.append((pid, (entry / "comm").read_text().strip()))
        return found

    def _look(self) -> None:
        """`crew doctor` and `crew list` tell what git says, at every stop."""
        said = self.scene.crew("doctor", "--json")
        states = {one["check"]: one["state"] for one in reversed(said.json)}
        assert states["database"] == states["tasks"] == "ok", said.out
        landed = self._git("rev-parse", "--verify", "-q", "refs/crew/landed/main")
        is_late = bool(landed) and self._git("rev-list", "-n1", landed, "^main") != ""
        assert (states["deliveries"] == "wrong") or not is_late, said.out
        self.told["doctor found a delivery missing"] += states["deliveries"] == "wrong"
        self.told["looks"] += 1
        for task in self.scene.ok("list", "-a", "--json").json:
            if task["status"] == "merged":
                assert self._git("ls-tree", "main", f"round-{task['id']}"), (
                    f"{task['id']} is not there"
                )

    def _git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.scene.root, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def _is_end(self, run: dict, *, is_red: bool) -> bool:
        """An agent that is stuck because its processes were killed is no end."""
        return run["status"] == "merged" or (is_red and run["reason"] == RED)

    def _check(self, run: dict, *, is_red: bool) -> None:
        on_main = self._git("show", f"main:round-{run['task']}")
        if is_red:
            assert (run["state"], run["reason"], on_main) == ("failed", RED, "")
            self.told["failed, as scripted"] += 1
            return
        commit = run["verdicts"][-1]["commit"]
        passed = {
            one["reviewer"] for one in run["verdicts"] if one["passed"] and one["commit"] == commit
        }
        assert (run["state"], run["status"], passed) == ("complete", "merged", {"ann", "bob"})
        assert commit in Path(self.proofs).read_text().split()
        assert int(on_main) >= 2
        assert self._git("merge-base", "--is-ancestor", commit, "main") == ""
        self.told["complete and delivered"] += 1


def weather(
    bare_scene: CliScene, *, loops: int, kills: int, longest_s: float | None = None
) -> Counter[str]:
    """Without `longest_s` the first loop is calm, and kills fall within the time it took."""
    seed = int(os.environ.get("CREW_SEED", time.time()))
    print(f"CREW_SEED={seed}")
    agent = bare_scene.folder / "agent.sh"
    agent.write_text(AGENT)
    bare_scene.ok("init")
    (bare_scene.root / ".crew" / "config.toml").write_text(CONFIG.format(agent=agent))
    storm = Storm(bare_scene, random.Random(seed), longest_s or 0.0)
    for number in range(1, loops + 1):
        began = time.monotonic()
        storm.ride(number, kills=storm.chance.randint(1, kills) if storm.longest_s else 0)
        storm.longest_s = storm.longest_s or (time.monotonic() - began) / 2
    for words, count in sorted(storm.told.items()):
        print(f"{count:6}  {words}")
    assert storm.told["complete and delivered"] == loops - loops // 5
    assert storm.told["failed, as scripted"] == loops // 5
    storm.scene.ok("doctor", "--json")
    return storm.told


@pytest.mark.timeout(600)
def test_loops_in_a_small_storm_end_as_they_should(bare_scene):
    told = weather(bare_scene, loops=2, kills=2, longest_s=2.0)
    assert told["complete and delivered"] == 2


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_forty_loops_in_a_storm_end_as_they_should(bare_scene):
    told = weather(bare_scene, loops=40, kills=4)
    assert told["kills of crew"] >= 20, "a storm that kills nothing proves nothing"


# Runs of many tasks, in which everything is killed

SEEDS = (1, 2, 3)
ASKED_FOR = {"runner": 60, "git": 150, "stop": 30, "all": 20}
FULL = ASKED_FOR | {"agent": 20, "agent_git": 20, "gate": 20}
QUICK = {"runner": 2, "git": 8, "stop": 2, "agent": 2, "agent_git": 2, "gate": 2, "all": 1}


def _faults() -> Counter[str]:
    """All of them, a few with `CREW_FAULTS=quick`, or so many: `CREW_FAULTS=git=9,all=2`."""
    chosen = os.environ.get("CREW_FAULTS", "")
    if "=" in chosen:
        pairs = (pair.partition("=") for pair in chosen.split(","))
        return Counter({kind: int(count) for kind, _, count in pairs})
    return Counter(QUICK if chosen == "quick" else FULL)


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_in_which_everything_is_killed_loses_nothing(bare_scene, seed, record_property):
    tasks = int(os.environ.get("CREW_FAULTS_TASKS", "15"))
    found = Gale(bare_scene, random.Random(seed), tasks, _faults()).blow(f"storm, seed {seed}")
    record_property(ROW, found.row)
    assert (found.is_sound, found.held_up) == (True, 0), found.detail


@pytest.fixture
def small_disk(tmp_path):
    """The scene on a disk of its own that is soon full."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    need(not made.returncode, "mount")
    yield
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def _weathered(
    scene: CliScene, name: str, record_property, *, longest_s: float = 1.0, **faults: int
) -> Survived:
    is_quick = os.environ.get("CREW_FAULTS") == "quick"
    chosen = Counter({kind: 2 if is_quick else count for kind, count in faults.items()})
    gale = Gale(scene, random.Random(1), 4 if is_quick else 15, chosen, longest_s=longest_s)
    found = gale.blow(name)
    record_property(ROW, found.row)
    return found


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_run_on_a_disk_that_is_full_again_and_again(small_disk, bare_scene, record_property):
    found = _weathered(bare_scene, "full disk", record_property, disk=20)
    assert (found.is_sound, bool(found.faults)) == (True, True), found.detail


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_run_whose_database_is_damaged_and_repaired(bare_scene, record_property):
    found = _weathered(
        bare_scene, "bytes of the database", record_property, longest_s=5.0, bytes=20
    )
    assert (found.is_sound, bool(found.faults)) == (True, True), found.detail


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_run_while_the_clock_jumps(bare_scene, record_property):
    found = _weathered(bare_scene, "clock", record_property, clock=30, runner=5)
    assert (found.is_sound, bool(found.faults)) == (True, True), found.detail


@pytest.mark.timeout(600)
def test_a_run_in_which_crews_gits_are_killed_holds_up_no_task(bare_scene):
    faults = Counter({"git": 6, "runner": 1})
    found = Gale(bare_scene, random.Random(1), 2, faults, longest_s=3.0).blow("small")
    assert (found.is_sound, found.held_up) == (True, 0), found.detail
