"""(l) How long a delivery holds a person's index.lock at a time, and six `crew merge` at once.

While deliveries are made, `git add` is called beside them without a second try; how often it was
refused is reported.
"""

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.scene import Scene, ScriptedTask, made_scene
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.domain.kernel.names import landed_ref
from crew.domain.rows.task import TaskState
from crew.domain.world import moved
from crew.git.delivery import checkout_sync
from crew.git.delivery.checkout import Checkout
from crew.git.delivery.delivery import deliver
from crew.git.delivery.landed_refs import integration_tip
from crew.git.delivery.sync_journal import Journal
from crew.git.git_command import git
from crew.git.repository import Repository
from crew.runner.run_crew import make_runner

CREW = str(Path(sys.executable).with_name("crew"))
MERGES = 6


def measure(size: Size) -> list[Figure]:
    title("(l) Deliveries: index.lock, `git add` beside them, and six merges at once")
    with made_scene([]) as scene:
        held, refused = _hold_times(scene, 4 * size.repeats)
    ordered = sorted(held)
    p50, p99 = statistics.median(ordered), ordered[int(0.99 * (len(ordered) - 1))]
    together_s = min(_merge_together() for _ in range(3))
    table(
        ("what", "measured"),
        [
            (f"index.lock held, {len(held)} deliveries, p50", f"{1000 * p50:.1f} ms"),
            (f"index.lock held, {len(held)} deliveries, p99", f"{1000 * p99:.1f} ms"),
            ("`git add` beside them, one every 50 ms: refused", str(refused)),
            (f"{MERGES} `crew merge` at once, wall clock", f"{together_s:.2f} s"),
        ],
    )
    return [
        Figure(name="index.lock held by a delivery, p50", measured=1000 * p50, unit="ms", aim=50),
        Figure(name="index.lock held by a delivery, p99", measured=1000 * p99, unit="ms"),
        Figure(name=f"{MERGES} `crew merge` at once", measured=together_s, unit="s", aim=3),
    ]


def _hold_times(scene: Scene, count: int) -> tuple[list[float], int]:
    repo = scene.workplace.repo
    integration_tip(repo, "main")
    longest = []
    with _timed() as held, _adding(scene.repo) as refused:
        for number in range(count):
            _land(repo, number)
            while deliver(repo, "main").state != "delivered":
                time.sleep(0.01)
            longest.append(max(held))
            held.clear()
    return longest, len(refused)


def _land(repo: Repository, number: int) -> None:
    tip = integration_tip(repo, "main")
    commit = _small_commit(repo, tip, f"landed-{number}")
    git(repo.common_dir, "update-ref", landed_ref("main"), commit, tip)


def _small_commit(repo: Repository, base: str, name: str) -> str:
    """One new file, as a small task makes it."""
    blob = git(repo.common_dir, "hash-object", "-w", "--stdin", stdin=b"small\n")
    entries = git(repo.common_dir, "ls-tree", base) + f"\n100644 blob {blob}\t{name}\n"
    tree = git(repo.common_dir, "mktree", stdin=entries.encode())
    return git(repo.common_dir, "commit-tree", "-p", base, tree, stdin=b"small")


@contextmanager
def _timed() -> Iterator[list[float]]:
    """The seconds between the taking and the giving back of the lock, each time."""
    held: list[float] = []
    began: list[float] = []
    take, leave = checkout_sync._take_index_lock, checkout_sync._unlock_index  # noqa: SLF001 - the measured ones

    def taken(journal: Journal) -> None:
        take(journal)
        began.append(time.perf_counter())

    def left(checkout: Checkout) -> None:
        leave(checkout)
        held.append(time.perf_counter() - began[-1])

    checkout_sync._take_index_lock, checkout_sync._unlock_index = taken, left  # noqa: SLF001
    try:
        yield held
    finally:
        checkout_sync._take_index_lock, checkout_sync._unlock_index = take, leave  # noqa: SLF001


@contextmanager
def _adding(place: Path) -> Iterator[list[str]]:
    """Calls `git add` all the time; yields what the refused ones said."""
    refused: list[str] = []
    # A process of its own: what this one starts would count as a command of crew's.
    loop = 'while [ ! -e "$1" ]; do date >mine; git add mine 2>&1 || echo REFUSED; sleep 0.05; done'
    stop = place.parent / "stop-adding"
    adding = subprocess.Popen(
        ["setsid", "--fork", "sh", "-c", loop, "sh", str(stop)],
        cwd=place,
        stdout=subprocess.PIPE,
        text=True,
    )
    listening = threading.Thread(
        target=lambda: refused.extend(line for line in adding.stdout or () if "REFUSED" in line)
    )
    listening.start()
    try:
        yield refused
    finally:
        stop.touch()
        listening.join()
        adding.wait()


def _merge_together() -> float:
    tasks = [ScriptedTask(title=f"task {number}", steps=[]) for number in range(MERGES)]
    with made_scene(tasks) as scene:
        _complete(scene)
        began = time.perf_counter()
        merges = [
            subprocess.Popen([CREW, "-q", "merge", task], cwd=scene.repo, env=dict(scene.env))
            for task in scene.ids.values()
        ]
        codes = [merge.wait() for merge in merges]
        took_s = time.perf_counter() - began
    if any(codes):
        raise RuntimeError(f"not everything was merged: {codes}")
    return took_s


def _complete(scene: Scene) -> None:
    """Every task is done with a commit of its own, and in no merge queue."""
    workplace = scene.workplace
    runner = make_runner(workplace)
    runner.take_in()
    for task in scene.ids.values():
        row = runner.engine.world.tasks[task]
        commit = _small_commit(workplace.repo, "main", f"work-{task}")
        begun = moved(row, "started", to=TaskState.IN_PROGRESS, at=time.time())
        row = replace(row, state=TaskState.IN_PROGRESS)
        done = moved(row, "completed", to=TaskState.DONE, at=time.time(), head=commit)
        runner.engine.record([begun, done])
    workplace.db.close()
