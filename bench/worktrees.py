"""How long the start of a task waits for its worktree, as a ratio to plain `git worktree add`.

The repository has 50,000 small files, made with `git fast-import`. crew's way is the runner's own:
claim the branch, make and check out the worktree, furnish it with a copy and a link. The two ways
take turns, each time the other one first, since the disk and whoever else is on the machine change
from one second to the next; the ratios are those of neighbours in time, and the median counts.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from statistics import median
from unittest.mock import patch

from bench.scene import Scene, made_scene
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.domain.rows.task import Task
from crew.runner.outside.local_machine import LocalOutside

FILES_A_TASK = 250
"""Makes 50,000 files of the 200 tasks of the other benchmarks."""
FILES_A_FOLDER = 50
TEXT = b"a line of some length, as there are many\n" * 15
CONFIG = '[worktree]\ncopy = [".env"]\nlink = ["modules"]\n'


def measure(size: Size) -> list[Figure]:
    files, starts = FILES_A_TASK * size.tasks, max(3, size.repeats // 4)
    title(f"(h) A task's worktree in a repository of {files:,} files, {starts} starts")
    with made_scene([]) as scene:
        _fill(scene, files)
        with patch.dict(os.environ, {"HOME": scene.env["HOME"]}):
            pairs = [_pair(scene, number) for number in range(1, starts + 1)]
    ratios = [crew_s / plain_s for plain_s, crew_s in pairs]
    rows = [
        (f"start {number}", f"{plain_s:.2f} s", f"{crew_s:.2f} s", f"{crew_s / plain_s:.2f}")
        for number, (plain_s, crew_s) in enumerate(pairs, start=1)
    ]
    table(("", "git worktree add", "crew", "ratio"), rows)
    return [
        Figure(name="1st worktree, by plain git", measured=ratios[0], unit="x"),
        Figure(name="2nd to last worktree, by plain git", measured=median(ratios[1:]), unit="x"),
    ]


def _fill(scene: Scene, files: int) -> None:
    """One commit on top of the scene's own, then the checkout that a person would have."""
    stream = bytearray()
    for number in range(files):
        content = b"file %d\n%b" % (number, TEXT)
        stream += b"blob\nmark :%d\ndata %d\n%b\n" % (number + 1, len(content), content)
    stream += b"commit refs/heads/main\ncommitter Bench <bench@example.org> 1700000000 +0000\n"
    stream += b"data 4\nmany\nfrom refs/heads/main^0\n"
    for number in range(files):
        folder = number // FILES_A_FOLDER
        stream += b"M 100644 :%d many/%d/%d/%d.txt\n" % (number + 1, folder % 50, folder, number)
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=scene.repo,
        env=dict(scene.env),
        input=bytes(stream),
        check=True,
    )
    scene.git("reset", "-q", "--hard")
    with (scene.repo / ".crew" / "config.toml").open("a") as config:
        config.write(CONFIG)
    (scene.repo / ".env").write_text("KEY=1\n")
    (scene.repo / "modules").mkdir()


def _pair(scene: Scene, number: int) -> tuple[float, float]:
    """Plain git and crew, in seconds; who is first changes from pair to pair."""
    ways: list[Callable[[Scene, int], None]] = [_plain, _crew]
    turns = ways if number % 2 else ways[::-1]
    taken = {way: _taken_s(way, scene, number) for way in turns}
    return taken[_plain], taken[_crew]


def _taken_s(way: Callable[[Scene, int], None], scene: Scene, number: int) -> float:
    os.sync()  # what the last one wrote is not this one's to wait for
    began = time.monotonic()
    way(scene, number)
    return time.monotonic() - began


def _plain(scene: Scene, number: int) -> None:
    path = scene.workplace.worktrees / f"plain-{number}"  # beside crew's: places on a disk differ
    scene.git("worktree", "add", "-q", "--no-track", "-b", f"plain-{number}", str(path))


def _crew(scene: Scene, number: int) -> None:
    workplace = scene.workplace
    task = Task(id=str(number), target="main")
    base = scene.git("rev-parse", "main")
    outside = LocalOutside(workplace)
    asyncio.run(outside.ensure_worktree(task, branch=f"crew-{number}", base=base))
    workplace.db.close()
