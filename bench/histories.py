"""(f) How many whole histories a second the simulator of `tests/simulation` plays.

A history is a crew with faults, crashes and restarts on a virtual clock, from its first task to its
last delivery, with the invariants checked after every event.
"""

import re
import subprocess
import sys

from bench.scene import PROJECT
from bench.sizes import Size
from bench.tables import Figure, say, title


def measure(size: Size) -> list[Figure]:
    title(f"(f) Simulated histories, seeds 1 to {size.histories}")
    done = subprocess.run(
        [sys.executable, "-m", "simulation", "1", str(size.histories)],
        cwd=PROJECT / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    say(done.stdout)
    found = re.search(r"(\d+) histories/s", done.stdout)
    assert found
    return [Figure(name="simulated histories", measured=float(found[1]), unit="per s of CPU")]
