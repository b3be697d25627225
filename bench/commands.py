"""(c) The CPU time of `crew ps`, of `crew list` over many tasks, and of `crew mcp`.

Each is run several times in turn and the minimum counts, since everything else on the machine can
only add. The index of tasks is warm: `crew list` has run once before.
"""

import json
import sys
import time
from pathlib import Path

from bench.processes import cpu_s, least_cpu_s
from bench.scene import Scene, ScriptedTask, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.tasks.source import NewTask

CREW = str(Path(sys.executable).with_name("crew"))


def measure(size: Size) -> list[Figure]:
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
