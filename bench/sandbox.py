"""How long the start of a program takes in a step's sandbox, and how many mounts that needs.

A step's sandbox is compared with the pid namespace alone, which every step had before, with no
sandbox at all, and with one that reaches a list of hosts. They take turns. The least time of each
counts, since other work on the machine can only add to it.
"""

import subprocess
import time
from dataclasses import replace
from statistics import median

from bench.scene import made_scene
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.runner.sandbox.confinement import for_command
from crew.system.processes.process import working_bwrap
from crew.system.sandbox.allowed import EVERYTHING, Allowed
from crew.system.sandbox.bubblewrap import bubblewrap
from crew.system.sandbox.by_proxy import ByProxy
from crew.system.sandbox.mounts import mounts_of
from crew.workplace import Workplace

PROGRAM = ("true",)


def measure(size: Size) -> list[Figure]:
    starts = max(20, size.repeats * 4)
    title(f"(s) The start of a program in its sandbox, {starts} starts")
    bwrap = working_bwrap()
    if bwrap is None:
        table(("", "start"), [("bubblewrap does not work here", "-")])
        return []
    with made_scene([]) as scene:
        workplace = Workplace(root=scene.repo)
        confined = for_command(workplace, PROGRAM, scene.repo)
        kinds: dict[str, Allowed | None] = {
            "without": None,
            "pid namespace": replace(EVERYTHING),
            "sandbox": confined,
            "sandbox with listed hosts": replace(
                confined, has_network=False, by_proxy=ByProxy(socket=scene.repo / "proxy")
            ),
        }
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(starts):
            for name, allowed in kinds.items():
                taken[name].append(_start(allowed, bwrap, workplace))
        count = len(mounts_of(confined))
    least = {name: min(times) * 1000 for name, times in taken.items()}
    rows = [
        (name, f"{least[name]:.1f} ms", f"{median(times) * 1000:.1f} ms")
        for name, times in taken.items()
    ]
    table(("", "least", "median"), rows)
    added = least["sandbox"] - least["without"]
    forwarded = least["sandbox with listed hosts"] - least["sandbox"]
    ratio = least["sandbox"] / least["pid namespace"]
    return [
        Figure(name="start added by the sandbox", measured=added, unit="ms", aim=15.0),
        Figure(name="start added by a list of hosts", measured=forwarded, unit="ms"),
        Figure(name="sandbox, by the pid namespace alone", measured=ratio, unit="x"),
        Figure(name="mounts of a sandbox", measured=float(count), unit=""),
    ]


def _start(allowed: Allowed | None, bwrap: str, workplace: Workplace) -> float:
    """The time from the description to the end of a program that does nothing."""
    began = time.perf_counter()
    argv: tuple[str, ...] = PROGRAM
    if allowed is not None:
        mounts = mounts_of(allowed)
        argv = bubblewrap(PROGRAM, allowed, mounts, bwrap=bwrap, cwd=workplace.root)
    subprocess.run(argv, check=True, timeout=60)
    return time.perf_counter() - began
