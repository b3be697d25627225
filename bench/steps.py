"""(h) What crew adds to a step of the real Claude Code: `python -m bench.steps [--quick]`.

Claude Code plays a script on loopback, so no model is waited for. The first figures are CPU time.
On one side crew: its own Python, its git and its bubblewrap, as the difference between tasks of one
step and of ten, so that what a task costs apart from its steps (worktree, gate, merge) is left out.
On the other side the CLI, by the very command line that crew gives it: started for each step in a
session that goes on, and kept open, which saves its start. The last figure is wall time: from the
start of a step's process to the start of the next one, without what the same CLI takes by itself.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any, NamedTuple

from bench.scene import PROJECT, Scene, ScriptedTask, made_scene
from bench.sizes import FULL, QUICK, Size
from bench.tables import Figure, say, summary, table, title
from crew.agents.adapter import AgentSpec, StepOrder
from crew.agents.claude.claude import claude_argv
from crew.agents.claude.claude_dialogue import user_message
from crew.store.fact_log import facts_after

sys.path.insert(0, str(PROJECT / "tests"))
from real_clis.scripted_model import Say, ScriptedModel, Tool

STEPS = 10
COMMIT = "echo x > $CREW_TASK_ID.txt && git add -A && git commit -qm work"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def measure(size: Size) -> list[Figure]:
    tasks, turns = max(2, size.tasks // 40), 2 * size.repeats
    title(f"(h) A step of the real Claude Code, {tasks} tasks of 1 and of {STEPS} steps")
    program = find_claude()
    if program is None:
        say("left out: claude is not installed (tests/real_clis/install.sh installs it)")
        return []
    with ScriptedModel() as model:
        short, long = (_crew_ms_per_task(model, program, tasks, steps) for steps in (1, STEPS))
        crew = (long.cpu - short.cpu) / (STEPS - 1)
        started, alone = _claude_ms(model, program, turns, keep_open=False)
        kept, _ = _claude_ms(model, program, turns, keep_open=True)
    table(
        ("CPU of a step", "", "crew / CLI"),
        [
            ("crew: Python, git, bubblewrap", f"{crew:.1f} ms", ""),
            ("claude, started for it", f"{started:.1f} ms", f"{crew / started:.3f}"),
            ("claude, kept open", f"{kept:.1f} ms", f"{crew / kept:.3f}"),
        ],
    )
    table(
        ("wall time of a step", ""),
        [
            ("with crew, to the start of the next", f"{long.wall:.0f} ms"),
            ("claude alone, from its start to its end", f"{alone:.0f} ms"),
        ],
    )
    return [
        Figure(name="crew's CPU of a claude step", measured=crew, unit="ms", aim=10),
        Figure(
            name="wall time that crew adds to it", measured=long.wall - alone, unit="ms", aim=50
        ),
        Figure(
            name="crew's share of a claude step",
            measured=100 * crew / (crew + started),
            unit="%",
            aim=5,
        ),
        Figure(name="crew's CPU by that of a warm turn", measured=crew / kept),
        Figure(name="a warm turn's CPU by that of a started one", measured=kept / started),
    ]


def find_claude() -> str | None:
    return which("claude", path=f"{Path(sys.prefix, 'clis/node_modules/.bin')}:{os.defpath}")


class Spent(NamedTuple):
    """Milliseconds: CPU of crew for each task, and wall time of a step that another one follows."""

    cpu: float
    wall: float


def _crew_ms_per_task(model: ScriptedModel, program: str, tasks: int, steps: int) -> Spent:
    work = Tool(name="Bash", input={"command": COMMIT, "description": "work"})
    play = [*(Say("I go on.") for _ in range(steps - 1)), Say(tools=(work,)), Say("DONE")]
    base_url = model.play(f"steps-{steps}", play * tasks)
    with made_scene([ScriptedTask(title=f"task{n}", steps=[]) for n in range(tasks)]) as scene:
        _let_claude_work(scene, program, environment(model, base_url))
        used = scene.run(1)
        wall_s = _between_starts_s(scene)
    # What runs within a namespace is not counted with the bubblewrap that made it.
    helpers = sum(used["children_s"].get(name, 0.0) for name in ("git", "bwrap"))
    cpu_s = (float(used["python_s"]) + helpers) / tasks
    return Spent(cpu=1000 * cpu_s, wall=1000 * median(wall_s or [0.0]))


def _between_starts_s(scene: Scene) -> list[float]:
    """The seconds between the starts of two steps of one task."""
    started_at: dict[str, list[float]] = {}
    for _, fact in facts_after(scene.workplace.db):
        if (fact.kind, fact.trigger) == ("run", "step_started"):
            started_at.setdefault(fact.subject, []).append(fact.at)
    return [b - a for at in started_at.values() for a, b in pairwise(at)]


def _let_claude_work(scene: Scene, program: str, env: dict[str, str]) -> None:
    """The driver of all benchmarks takes agents by the name `scripted`: here that is Claude."""
    values = "".join(f"{name} = {json.dumps(value)}\n" for name, value in env.items())
    (scene.repo / ".crew" / "config.toml").write_text(
        f'[agents]\nworker_default = "scripted"\n'
        f'[agents.scripted]\nadapter = "claude"\ncommand = {json.dumps(program)}\n'
        f"[agents.scripted.env]\n{values}"
        '[complete]\ncommand = "true"\n'
    )


def environment(model: ScriptedModel, base_url: str) -> dict[str, str]:
    """Nothing of the caller's account, and nobody else to be reached."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), model.address)
    account = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "ANTHROPIC_AUTH_TOKEN": ""}
    others = {"CLAUDE_CODE_OAUTH_TOKEN": "", "NO_PROXY": "127.0.0.1"}
    return {**QUIET, **proxies, **account, **others, "ANTHROPIC_BASE_URL": base_url}


def _claude_ms(model: ScriptedModel, program: str, turns: int, *, keep_open: bool) -> Spent:
    """Milliseconds of one more turn of a session; its first turn is left out."""
    base_url = model.play("turns", [Say("I go on.") for _ in range(turns + 1)])
    with made_scene([]) as scene:
        session = _Session(program, scene, environment(model, base_url))
        return session.kept_open_ms(turns) if keep_open else session.started_ms(turns)


class _Session:
    """One session of Claude Code, driven by hand, in a repository like that of the crew.

    Claude looks at a repository with git at each start, so elsewhere it would have less to do.
    """

    def __init__(self, program: str, scene: Scene, env: dict[str, str]) -> None:
        self._spec = AgentSpec(name="claude", adapter="claude", command=program)
        self._env = {"PATH": os.environ["PATH"], "HOME": scene.env["HOME"], **env}
        self._order = StepOrder(
            key="bench",
            agent="A",
            kind="claude",
            worktree=scene.repo,
            prompt="",
            session=str(uuid.uuid4()),
            resume=False,
            log=scene.repo.parent / "log",
        )

    def kept_open_ms(self, turns: int) -> Spent:
        claude = self._start(resume=False)
        _take_turn(claude)
        before, began = _cpu_s(claude.pid), time.perf_counter()
        for _ in range(turns):
            _take_turn(claude)
        used_s, wall_s = _cpu_s(claude.pid) - before, time.perf_counter() - began
        _end(claude)
        return Spent(cpu=1000 * used_s / turns, wall=1000 * wall_s / turns)

    def started_ms(self, turns: int) -> Spent:
        used_s, wall_s = [], []
        for number in range(turns + 1):
            began = time.perf_counter()
            claude = self._start(resume=number > 0)
            _take_turn(claude)
            used_s.append(_end(claude))
            wall_s.append(time.perf_counter() - began)
        return Spent(cpu=1000 * sum(used_s[1:]) / turns, wall=1000 * median(wall_s[1:]))

    def _start(self, *, resume: bool) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            claude_argv(self._spec, replace(self._order, resume=resume)),
            cwd=self._order.worktree,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )


def _end(claude: "subprocess.Popen[bytes]") -> float:
    """Let it go; the CPU time of its whole life."""
    assert claude.stdin
    assert claude.stdout
    claude.stdin.close()
    claude.stdout.read()
    claude.stdout.close()
    _, status, used = os.wait4(claude.pid, 0)
    claude.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def _take_turn(claude: "subprocess.Popen[bytes]") -> None:
    assert claude.stdin
    assert claude.stdout
    claude.stdin.write(json.dumps(user_message("go on")).encode() + b"\n")
    claude.stdin.flush()
    for line in claude.stdout:
        event: dict[str, Any] = json.loads(line)
        if event["type"] == "result":
            if event["is_error"]:
                raise RuntimeError(f"claude failed: {event}")
            return
    raise RuntimeError("claude ended in the middle of a turn")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.steps", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    summary(measure(QUICK if parser.parse_args().quick else FULL))
