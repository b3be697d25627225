"""`crew prune`: removes the worktrees and branches of finished tasks; content is kept first.

What rows name is removed by requests, so that facts record it: `prune` for worktrees, which the
runner removes if one is up, and `pruned` for branches. The rules are in `domain/upkeep`.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.names import landed_ref, made_ref, task_of_branch
from crew.domain.requests import Request
from crew.domain.rows.task import TaskState
from crew.domain.upkeep.prune_plan import (
    Branch,
    Remains,
    Worktree,
    beside_a_runner,
    is_over,
    is_worktree_over,
    live_tasks,
    sorted_out,
    still_over,
    unknown_worktrees,
)
from crew.domain.world import World
from crew.git.merges.merges import contains
from crew.git.refs import delete_ref
from crew.git.repository import commit_of, refs_like
from crew.git.worktrees.worktree_admin import git_dir_for, is_ready, lock_reason
from crew.git.worktrees.worktree_list import delete_branch, worktree_paths
from crew.git.worktrees.worktrees import state_of
from crew.runner.requests.ask_crew import ask
from crew.runner.upkeep.keep_and_remove import keep_and_remove
from crew.runner.views.task_namespaces import all_items
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

LABEL = "before prune"
DAY_S = 86_400.0


def find_remains(workplace: "Workplace", *, unmerged: bool) -> Remains:
    """What can be removed now; unmerged branches only with `unmerged`."""
    world = load_world(workplace.db)
    old = _count_old(workplace, world)
    found = replace(_left_behind(workplace, world, unmerged=unmerged), old_checkpoints=old)
    if find_runner(workplace.lock_file) is None:
        return found
    return beside_a_runner(found, world.tasks)


def remove_remains(workplace: "Workplace", shown: Remains, *, unmerged: bool) -> None:
    """Remove what was listed, if its task is still finished; repeatable after a kill."""
    _have_worktrees_removed(workplace, [one.task for one in shown.worktrees])
    world = load_world(workplace.db)
    if shown.old_checkpoints:
        from crew.git.checkpoints.checkpoints import drop_checkpoints  # noqa: PLC0415 - slow

        drop_checkpoints(workplace.repo, **_old(workplace, world))
    if not (shown.branches or shown.marks or unknown_worktrees(shown, world.tasks)):
        return
    with holding_the_lock(workplace):
        now = _left_behind(workplace, load_world(workplace.db), unmerged=unmerged)
        _remove(workplace, still_over(shown, now))
    names = [one.name for one in shown.branches]
    ask(workplace, Request(verb="pruned", args={"branches": names}))


def _count_old(workplace: "Workplace", world: World) -> int:
    which = _old(workplace, world)
    if not which["tasks"]:
        return 0
    from crew.git.checkpoints.checkpoints import old_checkpoints  # noqa: PLC0415 - slow to load

    return len(old_checkpoints(workplace.repo, **which))


def _old(workplace: "Workplace", world: World) -> dict[str, Any]:
    """Which checkpoints are old: those of merged tasks, after `[worktree] checkpoint_days`."""
    days = workplace.settings.worktree.checkpoint_days
    merged = {row.id for row in world.tasks.values() if row.state == TaskState.MERGED}
    return {"older_than": time.time() - days * DAY_S, "tasks": merged}


def _have_worktrees_removed(workplace: "Workplace", tasks: list[str]) -> None:
    """Have the runner remove the worktrees, or do it here without one; each is recorded."""

    def settled(world: World) -> bool:
        return not any(world.tasks[task].cleaning for task in tasks if task in world.tasks)

    ask(workplace, Request(verb="prune", args={"tasks": tasks}), settled=settled)


def _left_behind(workplace: "Workplace", world: World, *, unmerged: bool) -> Remains:
    live = live_tasks(world, all_items(workplace))
    made, heads = _crew_branches(workplace)
    over = {name: head for name, head in heads.items() if name in made and is_over(name, live)}
    paths = worktree_paths(workplace.repo)
    elsewhere = {branch for path, branch in paths.items() if path.parent != workplace.worktrees}
    return sorted_out(
        _worktrees(workplace, paths, live),
        [_branch(workplace, world, name, head) for name, head in over.items()],
        [name for name in made if name not in heads and is_over(name, live)],
        checked_out=elsewhere,
        unmerged=unmerged,
    )


def _crew_branches(workplace: "Workplace") -> tuple[dict[str, str], dict[str, str]]:
    """By name: the marks of branches that crew made, and the existing branches."""
    mark, branch = made_ref("crew-*"), "refs/heads/crew-*"
    found = refs_like(workplace.repo, mark, branch)
    made, heads = (
        {ref.rpartition("/")[2]: at for ref, at in found.items() if ref.startswith(one[:-1])}
        for one in (mark, branch)
    )
    return made, heads


def _branch(workplace: "Workplace", world: World, name: str, head: str) -> Branch:
    return Branch(
        task=str(task_of_branch(name)),
        name=name,
        head=head,
        is_merged=_is_merged(workplace, world, name, head),
    )


def _is_merged(workplace: "Workplace", world: World, branch: str, head: str) -> bool:
    """Whether all its commits are in a target, or have landed and wait for delivery."""
    row = world.tasks.get(str(task_of_branch(branch)))
    targets = {workplace.target, (row.target if row else "") or workplace.target}
    return any(is_contained(workplace, head, target) for target in targets)


def is_contained(workplace: "Workplace", head: str, target: str) -> bool:
    """Whether a target branch contains this commit, or work that landed for it does."""
    refs = (landed_ref(target), f"refs/heads/{target}")
    tips = [tip for ref in refs if (tip := commit_of(workplace.repo, ref)) is not None]
    return any(contains(workplace.repo, ancestor=head, descendant=tip) for tip in tips)


def _worktrees(
    workplace: "Workplace", paths: Iterable[Path], live: frozenset[str]
) -> list[Worktree]:
    found = []
    for path in paths:
        if path.parent != workplace.worktrees or not is_worktree_over(path.name, live):
            continue
        git_dir = git_dir_for(workplace.repo, path)
        if git_dir is None or not is_ready(git_dir) or lock_reason(git_dir) is not None:
            continue
        is_dirty = path.is_dir() and bool(state_of(workplace.repo, path).changed)
        found.append(Worktree(task=path.name, path=str(path), is_dirty=is_dirty))
    return found


def _remove(workplace: "Workplace", found: Remains) -> None:
    """Each part may be repeated: the worktree first, then the branch, then its mark."""
    from crew.git.checkpoints.checkpoints import keep_commit  # noqa: PLC0415 - slow

    repo = workplace.repo
    for one in found.worktrees:
        keep_and_remove(workplace, Path(one.path), label=LABEL)
    for branch in found.branches:
        if not branch.is_merged:
            keep_commit(repo, branch.task, branch.head, label=LABEL, at=time.time())
        delete_branch(repo, branch.name, expected=branch.head)
    for name in (*(branch.name for branch in found.branches), *found.marks):
        if made := commit_of(repo, made_ref(name)):
            delete_ref(repo, made_ref(name), expected=made)
