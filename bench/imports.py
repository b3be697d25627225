"""(m) How long a step's commits take from a task's own repository into the main one.

An agent commits in a folder with a repository of its own. crew takes the commit in and moves the
task's branch; `git fetch` from the same repository does the same work without crew's checks. A
plain commit needs no git process. A name beyond ASCII is checked by git itself.
"""

import subprocess
import time
from pathlib import Path
from statistics import median

from bench.scene import Scene, made_scene
from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.git.worktrees.worktrees import ensure_worktree, follow

KINDS = (("1 file", ("file{}.txt",)), ("20 files", tuple(f"f{n}-{{}}.txt" for n in range(20))))
CHECKED_BY_GIT = ("1 file, its name beyond ASCII", ("fïle{}.txt",))


def measure(size: Size) -> list[Figure]:
    title(f"(m) A step's commits taken in, median of {size.repeats}")
    rows, figures = [], []
    with made_scene([]) as scene:
        for task, (name, files) in enumerate((*KINDS, CHECKED_BY_GIT), start=1):
            taken_s, fetched_s = _measured(scene, str(task), files, times=size.repeats)
            ratio = taken_s / fetched_s
            rows.append(
                (name, f"{1000 * taken_s:.1f} ms", f"{1000 * fetched_s:.1f} ms", f"{ratio:.2f}")
            )
            figures.append(
                Figure(name=f"import of {name}", measured=1000 * taken_s, unit="ms", aim=20)
            )
    table(("a commit of", "crew", "git fetch", "ratio"), rows)
    return figures


def _measured(
    scene: Scene, task: str, files: tuple[str, ...], *, times: int
) -> tuple[float, float]:
    repo, tree = scene.workplace.repo, scene.repo.parent / "trees" / task
    ensure_worktree(repo, tree, branch=f"crew-{task}", base="main")
    both = [_pair(scene, tree, [name.format(number) for name in files]) for number in range(times)]
    return median(taken for taken, _ in both), median(fetched for _, fetched in both)


def _pair(scene: Scene, tree: Path, files: list[str]) -> tuple[float, float]:
    """The times of crew and of `git fetch` for one commit each."""
    _commit(scene, tree, files, "first\n")
    began = time.perf_counter()
    follow(scene.workplace.repo, tree)
    taken_s = time.perf_counter() - began
    _commit(scene, tree, files, "second\n")
    agent_git = scene.git("rev-parse", "--git-dir", at=tree)
    began = time.perf_counter()
    scene.git("fetch", "-q", "--no-write-fetch-head", agent_git, "+HEAD:refs/bench/fetched")
    fetched_s = time.perf_counter() - began
    follow(scene.workplace.repo, tree)
    return taken_s, fetched_s


def _commit(scene: Scene, tree: Path, files: list[str], text: str) -> None:
    for name in files:
        (tree / name).write_text(text + name)
    subprocess.run(
        "git add -A && git commit -q -m step", cwd=tree, env=dict(scene.env), shell=True, check=True
    )
