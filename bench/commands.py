"""(c) The CPU time of short commands, of `crew list` over many tasks, and of `crew mcp`.

Each is run several times in turn and the minimum counts, since everything else on the machine can
only add. The index of tasks is warm: `crew list` has run once before.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from bench.processes import cpu_s, least_cpu_s
from bench.scene import Scene, ScriptedTask, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, say, table, title
from crew.store.runner_lock import find_runner
from crew.tasks.task_source import BatchSource, NewTask

CREW = str(Path(sys.executable).with_name("crew"))

SHORT = (
    "new --title x",
    "edit 20 --title y",
    "comment 20 hello",
    "spawn",
    "retry A",
    "kill A",
    "merge 1",
    "inbox",
    "quest list",
    "channel list",
    "prune --dry-run",
    "prune --yes",
    "peek 1",
    "logs 1",
)
"""On an ordinary crew: 50 tasks, three agents, six of the tasks merged. Agents that are idle refuse
`retry` and `kill`, after the same work as otherwise, up to what is done outside."""

SHORT_AIM_MS = 120
ORDINARY, MERGED = 50, 6
BLOCKS = (300, 3_000)
PER_TASK_AIM_MS = 2
LONG_LOG_LINES = 4_000_000
LOGS_AIM_S = 2


def measure(size: Size) -> list[Figure]:
    return [*_short(size), *_files(), *_long_log(size), *_lists(size)]


def _short(size: Size) -> list[Figure]:
    title("(c) CPU of short commands, without a runner and with one, children included")
    tasks = [
        ScriptedTask(title=f"task {n}", steps=[working(f"task{n}", sleep_s=0.0)])
        for n in range(MERGED)
    ]
    with made_scene(tasks) as scene:
        scene.run(3)
        source = scene.workplace.source
        assert isinstance(source, BatchSource)
        source.add_all(
            ORDINARY - MERGED, lambda ids: [NewTask(title=one) for one in ids], at=time.time()
        )
        alone = _each(scene, size)
        runner = subprocess.Popen(
            [CREW, "run", "--agents", "0", "-q"],
            cwd=scene.repo,
            env=dict(scene.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while find_runner(scene.repo / ".crew" / "lock") is None and runner.poll() is None:
                time.sleep(0.05)
            beside = _each(scene, size)
        finally:
            runner.terminate()
            runner.wait()
    head = ("crew …", "no runner", "a runner", "at most")
    rows = [
        (one, f"{alone[one]:.0f} ms", f"{beside[one]:.0f} ms", f"{SHORT_AIM_MS} ms")
        for one in SHORT
    ]
    table(head, rows)
    return [
        Figure(name=f"crew {one}", measured=max(alone[one], beside[one]), unit="ms", aim=aim)
        for one, aim in dict.fromkeys(SHORT, SHORT_AIM_MS).items()
    ]


def _each(scene: Scene, size: Size) -> dict[str, float]:
    """The least of each in ms; a refusal costs what the deed does."""
    where = {"cwd": scene.repo, "env": dict(scene.env)}
    return {
        one: 1000 * least_cpu_s([CREW, *one.split()], times=size.repeats, codes=(0, 5), **where)
        for one in SHORT
    }


def _files() -> list[Figure]:
    title("(c) `crew new --from`: ms a task, wall clock and CPU")
    rows, figures = [], []
    for count in BLOCKS:
        with made_scene([]) as scene:
            file = scene.repo.parent / "tasks.md"
            file.write_text("".join(_block(number) for number in range(1, count + 1)))
            began = time.monotonic()
            used = cpu_s([CREW, "new", "--from", str(file)], cwd=scene.repo, env=dict(scene.env))
            took_ms = 1000 * (time.monotonic() - began) / count
            taken_in = cpu_s([CREW, "spawn"], cwd=scene.repo, env=dict(scene.env))
        cpu_ms = 1000 * used / count
        rows.append(
            (f"{count:,}", f"{took_ms:.2f}", f"{cpu_ms:.2f}", f"{1000 * taken_in / count:.2f}")
        )
        name = f"crew new --from, {count:,} blocks, a task"
        figures.append(Figure(name=name, measured=took_ms, unit="ms", aim=PER_TASK_AIM_MS))
    table(("blocks", "made in", "CPU", "taken in, CPU"), rows)
    return figures


def _block(number: int) -> str:
    waits = f"after: {number - 1}\n" if number % 3 == 2 else ""
    return f"---\ntitle: task {number}\n{waits}---\nDo it.\n\n"


def _long_log(size: Size) -> list[Figure]:
    title(f"(c) `crew peek` and `crew logs` of a log of {LONG_LOG_LINES:,} lines")
    with made_scene([ScriptedTask(title="one", steps=[])]) as scene:
        log = scene.workplace.task_log("1")
        log.parent.mkdir(exist_ok=True)
        log.write_text("a line of an agent that says much\n" * LONG_LOG_LINES)
        peek = 1000 * _least(scene, size, CREW, "peek", "1")
        logs = _least(scene, size, CREW, "logs", "1") * 1_000_000 / LONG_LOG_LINES
    say(f"peek {peek:.0f} ms, logs {logs:.2f} s for a million lines\n")
    return [
        Figure(name="crew peek, a long log", measured=peek, unit="ms", aim=SHORT_AIM_MS),
        Figure(name="crew logs, a million lines", measured=logs, unit="s", aim=LOGS_AIM_S),
    ]


def _lists(size: Size) -> list[Figure]:
    title(f"(c) CPU of `crew ps`, and of `crew list` over {size.listed_tasks:,} tasks")
    with made_scene([ScriptedTask(title="one", steps=[working("one", sleep_s=0.0)])]) as scene:
        scene.run(3)
        ps = _least(scene, size, CREW, "ps")
        _add_many(scene, size.listed_tasks)
        commands = {
            "python -c pass": (sys.executable, "-c", "pass"),
            "crew --help": (CREW, "--help"),
            "crew list": (CREW, "list"),
            "crew list --json": (CREW, "list", "--json"),
            "crew ps, many tasks": (CREW, "ps"),
        }
        cpu_s([CREW, "list"], cwd=scene.repo, env=dict(scene.env))
        found = {name: _least(scene, size, *argv) for name, argv in commands.items()}
        found["crew mcp"] = _mcp(scene, size)
    found["crew ps"] = ps
    pure = found["python -c pass"]
    table(
        ("command", "CPU", "times `python -c pass`"),
        [(name, f"{1000 * s:.0f} ms", f"{s / pure:.1f}") for name, s in found.items()],
    )
    return [
        Figure(name="crew ps", measured=1000 * ps, unit="ms", aim=100),
        Figure(
            name=f"crew list, {size.listed_tasks:,} tasks",
            measured=1000 * found["crew list"],
            unit="ms",
            aim=300,
        ),
        Figure(
            name="crew mcp, initialize and tools/list",
            measured=1000 * found["crew mcp"],
            unit="ms",
            aim=60,
        ),
    ]


def _mcp(scene: Scene, size: Size) -> float:
    """What an agent's CLI waits for: from the start to the list of tools."""
    asked = scene.repo / ".crew" / "asked.jsonl"
    methods = enumerate(("initialize", "tools/list"))
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": name}) for n, name in methods]
    asked.write_text("\n".join(lines) + "\n")
    return least_cpu_s(
        [CREW, "mcp"], times=size.repeats, cwd=scene.repo, env=dict(scene.env), stdin=str(asked)
    )


def _least(scene: Scene, size: Size, *argv: str) -> float:
    return least_cpu_s(list(argv), times=size.repeats, cwd=scene.repo, env=dict(scene.env))


def _add_many(scene: Scene, count: int) -> None:
    """Three real tasks, one of them with a dependency, then copies of their files."""
    source = scene.workplace.source
    folder = scene.repo / ".crew" / "tasks" / "default"
    made = [
        source.add(NewTask(title="a task", body="What to do.\n" * 5, deps=deps), at=time.time())
        for deps in ((), (), ("1",))
    ]
    patterns = [[(f.name, f.read_bytes()) for f in folder.glob(f"{task}.*")] for task in made]
    for number in range(count - 1 - len(made)):
        for name, content in patterns[number % len(patterns)]:
            (folder / f"{number + 100}.{name.partition('.')[2]}").write_bytes(content)
