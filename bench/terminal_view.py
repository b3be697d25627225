"""(n) The terminal view: first paint, keys, words, memory, and what it costs while nothing happens.

It runs in a pseudo terminal of 160 by 50 cells, beside a process that records what 50 agents do.
`crew dashboard --once`, which needs no Textual, is measured in the same run.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles

from bench.busy_crew import begin
from bench.processes import resident_mb
from bench.pty_view import CREW, PtyView
from bench.scene import PROJECT, Scene, made_scene
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.tasks.task_source import BatchSource, NewTask

TASKS, AGENTS = 500, 50
KEYS = 60
IDLE_S = 10.0
AIMS = {"paint": 0.8, "key": 60.0, "memory": 90.0, "idle": 1.0, "word": 100.0}


def measure(size: Size) -> list[Figure]:
    title(f"(n) The terminal view: {TASKS} tasks, {AGENTS} agents at work")
    with _crew(TASKS) as scene:
        paint_s, once_s = _first_paints(scene, size.repeats)
        busy = _busy(scene)
        idle = _idle(scene)
    with _crew(size.listed_tasks) as scene:
        many_s, many_once_s = _first_paints(scene, max(3, size.repeats // 3))
        scrolled = _scrolled(scene, size.listed_tasks)
    table(
        ("", "the view", "crew dashboard --once"),
        [
            (f"first paint, {TASKS} tasks", f"{paint_s:.2f} s", f"{once_s:.2f} s"),
            (
                f"first paint, {size.listed_tasks:,} tasks",
                f"{many_s:.2f} s",
                f"{many_once_s:.2f} s",
            ),
        ],
    )
    many = f"{size.listed_tasks:,} tasks"
    return [
        Figure(name="view, first paint", measured=paint_s, unit="s", aim=AIMS["paint"]),
        Figure(name="crew dashboard --once", measured=once_s, unit="s"),
        *_of_keys("view, key to repaint, 50 agents at work", busy["keys"]),
        Figure(name="view, a word on screen, p50", measured=median(busy["words"]), unit="ms"),
        Figure(
            name="view, a word on screen, p95",
            measured=_p95(busy["words"]),
            unit="ms",
            aim=AIMS["word"],
        ),
        Figure(name="view, memory", measured=busy["memory"], unit="MB", aim=AIMS["memory"]),
        Figure(name="view, CPU beside 50 agents", measured=busy["cpu"], unit="%"),
        Figure(name="view, CPU while idle", measured=idle, unit="%", aim=AIMS["idle"]),
        Figure(name=f"view, first paint, {many}", measured=many_s, unit="s"),
        *_of_keys(f"view, scroll, {many}", scrolled["keys"]),
        Figure(name=f"view, memory, {many}", measured=scrolled["memory"], unit="MB"),
        Figure(name=f"view, CPU while idle, {many}", measured=scrolled["idle"], unit="%"),
    ]


def _of_keys(name: str, taken: list[float]) -> list[Figure]:
    return [
        Figure(name=f"{name}, p50", measured=median(taken), unit="ms"),
        Figure(name=f"{name}, p95", measured=_p95(taken), unit="ms", aim=AIMS["key"]),
    ]


def _p95(taken: list[float]) -> float:
    return quantiles(taken, n=20)[-1]


@contextmanager
def _crew(tasks: int) -> Iterator[Scene]:
    """A repository with this many tasks, of which agents work on the first ones."""
    with made_scene([]) as scene:
        workplace = scene.workplace
        source = workplace.source
        assert isinstance(source, BatchSource)
        new = [NewTask(title=f"task {number} does its part") for number in range(1, tasks + 1)]
        source.add_all(tasks, lambda _ids: new, at=time.time())
        begin(workplace, agents=AGENTS, at=time.time())
        workplace.close_database()
        yield scene


def _first_paints(scene: Scene, times: int) -> tuple[float, float]:
    """The least of several, for the view and for the plain frame."""
    _paint_s(scene)  # the index of tasks, and bytecode
    return min(_paint_s(scene) for _ in range(times)), min(_once_s(scene) for _ in range(times))


def _paint_s(scene: Scene) -> float:
    view = PtyView(scene.repo, scene.env)
    try:
        return view.until(rb"task 3 does") - view.began
    finally:
        view.end()


def _once_s(scene: Scene) -> float:
    env = {**scene.env, "PYTHONPATH": str(PROJECT / "src")}
    began = time.perf_counter()
    subprocess.run(
        [*CREW, "dashboard", "--once"], cwd=scene.repo, env=env, stdout=subprocess.PIPE, check=True
    )
    return time.perf_counter() - began


@contextmanager
def _opened(scene: Scene) -> Iterator[PtyView]:
    view = PtyView(scene.repo, scene.env)
    try:
        view.until(rb"task 3 does")
        view.rest()
        yield view
    finally:
        view.end()


@contextmanager
def _at_work(scene: Scene) -> Iterator[None]:
    argv = [sys.executable, "-m", "bench.busy_crew", str(scene.repo)]
    writer = subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout
        writer.stdout.readline()
        yield
    finally:
        writer.kill()
        writer.communicate()


def _busy(scene: Scene) -> dict[str, list[float] | float]:
    with _at_work(scene), _opened(scene) as view:
        view.until(rb"says")
        began, cpu = time.perf_counter(), view.cpu_s()
        keys = [_move(view, number) for number in range(2, KEYS + 2)]
        words = _words(view)
        share = 100 * (view.cpu_s() - cpu) / (time.perf_counter() - began)
        return {"keys": keys, "words": words, "cpu": share, "memory": resident_mb(view.pid)}


def _move(view: PtyView, to: int) -> float:
    """Milliseconds from `j` until the line of this task is painted as the chosen one."""
    time.sleep(0.05)
    return 1000 * view.press(b"j", _chosen(to))


def _chosen(task: int) -> bytes:
    """The id of a task in the line of the cursor: bold, on its blue background."""
    return rb"\x1b\[1;38;2;[\d;]*;48;2;35;74;107m%d[ \x1b]" % task


def _words(view: PtyView, seconds: float = 6.0) -> list[float]:
    """How old the words of agents are when they are painted for the first time."""
    known: set[bytes] = set()
    ages: list[float] = []
    view.rest()
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        view.read(0.5)
        now = time.time()
        for word in set(re.findall(rb"says (\d+\.\d{3})", view.seen)) - known:
            if known:  # the first frame has words of any age
                ages.append(1000 * (now - float(word)))
            known.add(word)
        view.seen = view.seen[-40:]
    return ages[5:]


def _idle(scene: Scene) -> float:
    with _opened(scene) as view:
        return _idle_share(view)


def _idle_share(view: PtyView) -> float:
    time.sleep(1.0)
    before = view.cpu_s()
    time.sleep(IDLE_S)
    return 100 * (view.cpu_s() - before) / IDLE_S


def _scrolled(scene: Scene, tasks: int) -> dict[str, list[float] | float]:
    with _opened(scene) as view:
        keys = [_move(view, number) for number in range(2, KEYS + 2)]
        view.press(b"G", _chosen(tasks))
        keys += [1000 * view.press(b"k", _chosen(tasks - number)) for number in range(1, KEYS)]
        return {"keys": keys, "idle": _idle_share(view), "memory": resident_mb(view.pid)}
