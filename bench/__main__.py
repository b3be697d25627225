"""Runs the benchmarks and ends with a summary: `python -m bench [--quick] [NAME...]`.

With `--beside COMMIT` they run in that commit too, in turn, and the figures stand side by side.
`TMPDIR` chooses the disk. Without it, what measures crew's own CPU (`cpu`, `steps`) makes its files
in memory, and all else where temporary files are.
"""

import argparse
import os
import platform
from collections.abc import Callable

from bench import (
    beside,
    channels,
    commands,
    cpu_per_step,
    deliveries,
    disk,
    histories,
    imports,
    makespan,
    memory,
    merge_queue,
    quests,
    sandbox,
    sessions,
    steps,
    strangers,
    terminal_view,
    worktrees,
)
from bench.sizes import FULL, QUICK, Size
from bench.tables import Figure, say, summary

BENCHMARKS: dict[str, Callable[[Size], list[Figure]]] = {
    "makespan": makespan.measure,
    "cpu": cpu_per_step.measure,
    "commands": commands.measure,
    "memory": memory.measure_agents,
    "flood": memory.measure_flood,
    "histories": histories.measure,
    "queue": merge_queue.measure,
    "worktrees": worktrees.measure,
    "imports": imports.measure,
    "steps": steps.measure,
    "channels": channels.measure,
    "quests": quests.measure,
    "sessions": sessions.measure,
    "sandbox": sandbox.measure,
    "deliveries": deliveries.measure,
    "strangers": strangers.measure,
    "tui": terminal_view.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--beside", metavar="COMMIT", help="compare with this commit")
    parser.add_argument(
        "--times", type=int, default=3, help="how often each runs with --beside [default: 3]"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - BENCHMARKS.keys()):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if given.beside:
        names = given.names or list(BENCHMARKS)
        beside.compare(given.beside, names, times=given.times, is_quick=given.quick)
        return
    size = QUICK if given.quick else FULL
    figures: list[Figure] = []
    for name in given.names or BENCHMARKS:
        with disk.chosen(name) as folder:
            say(f"\n{_machine()}, files in {folder}")
            figures += BENCHMARKS[name](size)
    summary(figures)


def _machine() -> str:
    """Whoever else is at work on this machine is part of every figure."""
    busy, _, _ = os.getloadavg()
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {busy:.1f} before"


if __name__ == "__main__":
    main()
