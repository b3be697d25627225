"""(d) The memory of the runner while many agents work, and (e) while one prints a gigabyte.

Memory is the resident size of the runner's process alone. Its share of common pages (PSS) would
flatter it: the more agents run Python, the less of Python would be the runner's. For the flood,
growth is the highest resident size ever (VmHWM), looked at until the runner ends, less that from
just before the flood.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.processes import MB, peak_mb, resident_mb
from bench.scene import Scene, ScriptedTask, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, say, title
from crew.store.fact_log import facts_after

PATIENCE_S = 300.0
POLL_S = 0.05
REST_S = 2.0


def measure_agents(size: Size) -> list[Figure]:
    count = size.working_agents
    title(f"(d) Memory of the runner with {count} working agents")
    tasks = [
        ScriptedTask(title=f"task{n}", steps=[[{"say": "at work"}, {"sleep_s": 3600}]])
        for n in range(count)
    ]
    with made_scene(tasks) as scene, _running(scene, agents=count) as runner:
        _until(lambda: _working(scene) == count, runner)
        time.sleep(2.0)  # what starting them took is given back, or it is part of the figure
        figure = resident_mb(runner.pid)
    say(f"{figure:.1f} MB, {figure / count:.2f} MB an agent\n")
    return [Figure(name=f"runner's memory, {count} agents", measured=figure, unit="MB", aim=100)]


def measure_flood(size: Size) -> list[Figure]:
    title(f"(e) {size.flood_bytes / 1e9:g} GB of output from one agent")
    flood = [{"sleep_s": REST_S}, {"flood": size.flood_bytes}, *working("flood", sleep_s=0.0)]
    with made_scene([ScriptedTask(title="flood", steps=[flood])]) as scene:
        with _running(scene, agents=1) as runner:
            _until(lambda: _working(scene) == 1, runner)
            before = peak_mb(runner.pid)
            peak = _peak_until_it_ends(runner)
            scene.result(runner)
        rate = size.flood_bytes / MB / (_step_s(scene) - REST_S)
        by_cat = size.flood_bytes / MB / _cat_s(scene.repo.parent / "flood", size.flood_bytes)
    say(
        f"{before:.1f} MB before, {peak:.1f} MB at most; {rate:.0f} MB/s are read"
        f" (`cat > file`: {by_cat:.0f} MB/s)\n"
    )
    return [
        Figure(name="growth by a flood of output", measured=peak - before, unit="MB", aim=50),
        Figure(name="speed of a flood", measured=rate, unit="MB/s", aim=100, at_least=True),
        Figure(name="speed of a flood into `cat`", measured=by_cat, unit="MB/s"),
    ]


def _step_s(scene: Scene) -> float:
    """How long the step with the flood took, as its facts tell."""
    facts = [fact for _, fact in facts_after(scene.workplace.db) if fact.kind == "agent"]
    began = next(fact.at for fact in facts if fact.trigger == "step_started")
    return (
        next(fact.at for fact in facts if fact.at > began and fact.trigger != "process_started")
        - began
    )


def _cat_s(file: Path, count: int) -> float:
    flood = (
        f"yes 'a line of the flood that is as long as the lines of most programs' | head -c {count}"
    )
    began = time.monotonic()
    subprocess.run(["sh", "-c", f"{flood} | cat > '{file}'"], check=True)
    return time.monotonic() - began


def _peak_until_it_ends(runner: "subprocess.Popen[str]") -> float:
    peak = 0.0
    with suppress(OSError):  # it has ended
        while runner.poll() is None:
            peak = peak_mb(runner.pid)
            time.sleep(POLL_S)
    return peak


@contextmanager
def _running(scene: Scene, *, agents: int) -> Iterator["subprocess.Popen[str]"]:
    """A crew that is told to end, and ends all its agents with it."""
    runner = scene.start(agents)
    try:
        yield runner
    finally:
        if runner.returncode is None:
            runner.kill()  # its agents die with it
            runner.communicate()


def _until(condition: Callable[[], bool], runner: "subprocess.Popen[str]") -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        if runner.poll() is not None or time.monotonic() > give_up_at:
            raise RuntimeError("the crew never came so far")
        time.sleep(POLL_S)


def _working(scene: Scene) -> int:
    """How many agents have a process, as `state.json` tells it."""
    try:
        document = json.loads((scene.repo / ".crew" / "state.json").read_text())
    except FileNotFoundError:
        return 0
    return sum(1 for agent in document["agents"] if agent["pid"])
