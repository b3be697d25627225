"""Runs a crew to the end of its tasks: `python -m bench.driver REPO AGENTS`, in its own process.

The last line it prints is JSON: when it began, wall time, CPU time of crew's own Python, CPU time
and number of the children by program, and how the tasks ended.
"""

import json
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.processes import CpuByProgram
from crew.domain.requests import Request
from crew.runner.run_crew import RunnerOptions, run_crew
from crew.runner.runner import Runner
from crew.workplace import find_workplace


def main(repo: Path, agents: int) -> dict[str, Any]:
    children = CpuByProgram()
    children.install()
    workplace = find_workplace(repo)

    def prepare(runner: Runner) -> None:
        runner.take_in()
        runner.heed(
            Request(verb="spawn", args={"kind": "scripted", "at_least": agents, "chosen": True})
        )

    before, began_at = _own_cpu_s(), time.time()
    runner = run_crew(workplace, prepare, options=RunnerOptions(drain=True))
    return {
        "began_at": began_at,
        "wall_s": time.time() - began_at,
        "python_s": _own_cpu_s() - before,
        "children_s": dict(children.seconds),
        "children": dict(children.starts),
        "states": dict(Counter(task.state for task in runner.engine.world.tasks.values())),
    }


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    result = main(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(result), flush=True)
    os._exit(0)
