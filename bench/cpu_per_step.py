"""(b) How much CPU time crew itself spends on a step.

The CPU time of the runner's own process (`getrusage`) plus that of every git process it started
(`wait4`, by program name): agents and gates are other programs and do not count. The same number
of tasks runs once with one step each and once with ten; the difference is the cost of nine more
steps, the rest is what a task costs however many steps it has: worktree, gate, merge, delivery.
Each step writes and commits its task's file, as agents do; with a file of its own for each step
the worktrees of later tasks would have more files, and their making would count as steps. The same
CPU time costs more on a busy machine, so `python -c pass` is measured beside it.
"""

import sys
from typing import Any, NamedTuple

from bench.processes import least_cpu_s
from bench.scene import ScriptedTask, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, table, title

AGENTS = 4
FEWEST_TASKS = 30
STEPS = 10


class Cost(NamedTuple):
    """Milliseconds of CPU, and git processes."""

    python: float
    git: float
    processes: float

    @property
    def cpu(self) -> float:
        return self.python + self.git

    def row(self, name: str) -> tuple[str, ...]:
        values = (self.cpu, self.python, self.git)
        return (name, *(f"{value:.1f} ms" for value in values), f"{self.processes:.1f}")


def measure(size: Size) -> list[Figure]:
    tasks = max(FEWEST_TASKS, size.tasks // 5)
    title(f"(b) CPU of orchestration, {tasks} tasks of 1 and of {STEPS} steps")
    short, long = _cost_per_task(tasks, 1), _cost_per_task(tasks, STEPS)
    step = Cost(*((b - a) / (STEPS - 1) for a, b in zip(short, long, strict=True)))
    fixed = Cost(*(a - b for a, b in zip(short, step, strict=True)))
    overall = Cost(*(value / STEPS for value in long))
    start = 1000 * least_cpu_s([sys.executable, "-c", "pass"], times=size.repeats)
    table(
        ("", "CPU", "Python", "git", "git processes"),
        [
            step.row("a step"),
            fixed.row("a task besides its steps"),
            overall.row(f"a step of {STEPS}, its share of the task included"),
            Cost(python=start, git=0.0, processes=0.0).row("beside it: python -c pass"),
        ],
    )
    return [
        Figure(name="CPU of a step", measured=step.cpu, unit="ms", aim=20),
        Figure(name="CPU of a task besides its steps", measured=fixed.cpu, unit="ms"),
    ]


def _cost_per_task(count: int, steps: int) -> Cost:
    tasks = [ScriptedTask(title=f"task{n}", steps=_steps(f"task{n}", steps)) for n in range(count)]
    with made_scene(tasks) as scene:
        used = scene.run(AGENTS)
    return Cost(
        python=1000 * used["python_s"] / count,
        git=1000 * used["children_s"]["git"] / count,
        processes=used["children"]["git"] / count,
    )


def _steps(task: str, count: int) -> list[list[dict[str, Any]]]:
    return [
        working(task, sleep_s=0.0, done=number == count, text=f"step {number}\n")
        for number in range(1, count + 1)
    ]
