"""`crew prune`: the worktrees and branches of tasks that are over go; their content is kept."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import is_task_id, landed_ref, made_ref, task_of_branch
from crew.domain.requests import Request
from crew.domain.rows.task import FINISHED
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, yes_option
from crew.front.cli.tasks.namespaces import namespaces, snapshot_of
from crew.git.git_command import git
from crew.git.merges.merges import contains
from crew.git.refs import delete_ref
from crew.git.repository import commit_of
from crew.git.worktrees.worktree_admin import READY, git_dir_for, lock_reason
from crew.git.worktrees.worktrees import delete_branch, remove_worktree, state_of, worktree_paths
from crew.runner.requests.ask_crew import ask
from crew.runner.writer_lock import holding_the_lock
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

LABEL = "before prune"


@frozen
class Worktree:
    """A worktree of a task that is over."""

    task: str
    path: Path
    is_dirty: bool


@frozen
class Branch:
    """A branch that crew made for a task that is over."""

    task: str
    name: str
    head: str
    is_merged: bool


@frozen
class Remains:
    """What tasks that are over left behind; `marks` say that crew made branches that are gone."""

    worktrees: tuple[Worktree, ...]
    branches: tuple[Branch, ...]
    kept: tuple[Branch, ...]
    marks: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        return not (self.worktrees or self.branches or self.marks)


@command("prune", example="crew prune --dry-run\ncrew prune --yes\ncrew prune --branches")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed.")
@click.option("--branches", is_flag=True, help="Also remove branches that are not merged.")
@yes_option
@pass_call
def prune(call: Call, *, dry_run: bool, branches: bool, yes: bool) -> None:
    """Remove the worktrees and branches of finished tasks.

    This concerns merged, closed and deleted tasks, and only what crew made. A checkpoint keeps
    every worktree and every unmerged branch first. While a runner is up, branches stay.
    """
    workplace = call.workplace()
    found = remains(workplace, unmerged=branches)
    if find_runner(workplace.lock_file) is not None:
        found = _beside_a_runner(call, workplace, found)
    for words in _told(found):
        narrate(call, words)
    if dry_run or found.is_nothing or not confirm("Remove all this?", yes=yes):
        narrate(call, "nothing was removed")
        _tell(call, found, removed=False)
        return
    _have_removed(workplace, [one.task for one in found.worktrees])
    if found.branches or found.marks or _unknown(workplace, found):
        with holding_the_lock(workplace):
            _remove(workplace, _still(found, remains(workplace, unmerged=branches)))
        names = [one.name for one in found.branches]
        ask(workplace, Request(verb="pruned", args={"branches": names}))
    _tell(call, found, removed=True)


def _beside_a_runner(call: Call, workplace: "Workplace", found: Remains) -> Remains:
    """The runner removes the worktrees of tasks that it knows; all else waits until none is up."""
    unknown = _unknown(workplace, found)
    if found.branches or found.marks or unknown:
        narrate(call, "a runner is up: branches, and worktrees of unknown tasks, stay for now")
    return replace(
        found,
        worktrees=tuple(one for one in found.worktrees if one not in unknown),
        branches=(),
        kept=(*found.kept, *found.branches),
        marks=(),
    )


def _unknown(workplace: "Workplace", found: Remains) -> list[Worktree]:
    """Worktrees that no row names, as after `crew clean`."""
    tasks = load_world(workplace.db).tasks
    return [one for one in found.worktrees if one.task not in tasks]


def _have_removed(workplace: "Workplace", tasks: list[str]) -> None:
    """Through the runner, or here without one: what goes is recorded as it goes."""

    def settled(world: World) -> bool:
        return not any(world.tasks[task].cleaning for task in tasks if task in world.tasks)

    ask(workplace, Request(verb="prune", args={"tasks": tasks}), settled=settled)


def remains(workplace: "Workplace", *, unmerged: bool) -> Remains:
    """`unmerged` branches go only if that is asked for."""
    world = load_world(workplace.db)
    live = _live_tasks(workplace, world)
    made, heads = _refs(workplace, made_ref("crew-*"), "refs/heads/crew-*")
    over = {name: head for name, head in heads.items() if name in made and _is_over(name, live)}
    branches = [_branch(workplace, world, name, head) for name, head in over.items()]
    checked_out = worktree_paths(workplace.repo)
    busy = {branch for path, branch in checked_out.items() if path.parent != workplace.worktrees}
    goes = [one for one in branches if (one.is_merged or unmerged) and one.name not in busy]
    return Remains(
        worktrees=tuple(_worktrees(workplace, checked_out, live)),
        branches=tuple(goes),
        kept=tuple(one for one in branches if one not in goes),
        marks=tuple(name for name in made if name not in heads and _is_over(name, live)),
    )


def _live_tasks(workplace: "Workplace", world: World) -> frozenset[str]:
    """Every task that is or may be under way, in any namespace: one that cannot be read may be."""
    live = {agent.task for agent in world.agents.values() if agent.task}
    live |= {run.task for run in world.runs.values() if run.is_live or run.is_pane_open}
    live |= {row.id for row in world.tasks.values() if not row.gone and row.state not in FINISHED}
    for name in namespaces(workplace):
        items = snapshot_of(workplace, name).items
        live |= {item.id for item in items if item.status not in FINISHED}
    return frozenset(live)


def _is_over(branch: str, live: frozenset[str]) -> bool:
    task = task_of_branch(branch)
    # `crew-1-gh-7` may also be the branch of a task that is itself called `1-gh-7`.
    return task is not None and task not in live and branch.removeprefix("crew-") not in live


def _refs(workplace: "Workplace", *patterns: str) -> list[dict[str, str]]:
    """For each pattern, the last part of each ref's name and the commit it is at."""
    listed = git(
        workplace.repo.common_dir, "for-each-ref", "--format=%(refname) %(objectname)", *patterns
    )
    pairs = [line.split(" ") for line in listed.splitlines()]
    return [
        {ref.rpartition("/")[2]: at for ref, at in pairs if ref.startswith(one.rstrip("*"))}
        for one in patterns
    ]


def _branch(workplace: "Workplace", world: World, name: str, head: str) -> Branch:
    return Branch(
        task=str(task_of_branch(name)),
        name=name,
        head=head,
        is_merged=_is_merged(workplace, world, name, head),
    )


def _is_merged(workplace: "Workplace", world: World, branch: str, head: str) -> bool:
    """Whether all of it is in a target, or in what landed and still has to be delivered."""
    row = world.tasks.get(str(task_of_branch(branch)))
    targets = {workplace.target, (row.target if row else "") or workplace.target}
    refs = [ref for target in targets for ref in (landed_ref(target), f"refs/heads/{target}")]
    tips = [tip for ref in refs if (tip := commit_of(workplace.repo, ref)) is not None]
    return any(contains(workplace.repo, ancestor=head, descendant=tip) for tip in tips)


def _worktrees(
    workplace: "Workplace", paths: Iterable[Path], live: frozenset[str]
) -> list[Worktree]:
    found = []
    for path in paths:
        task = path.name
        if path.parent != workplace.worktrees or not is_task_id(task) or task in live:
            continue
        git_dir = git_dir_for(workplace.repo, path)
        if git_dir is None or not (git_dir / READY).exists() or lock_reason(git_dir) is not None:
            continue
        is_dirty = path.is_dir() and bool(state_of(path).changed)
        found.append(Worktree(task=task, path=path, is_dirty=is_dirty))
    return found


def _still(asked: Remains, now: Remains) -> Remains:
    """What was shown and is still over: the answer to the question is for no more than that."""
    paths = {one.path for one in asked.worktrees}
    return Remains(
        worktrees=tuple(one for one in now.worktrees if one.path in paths),
        branches=tuple(one for one in now.branches if one in asked.branches),
        kept=now.kept,
        marks=tuple(one for one in now.marks if one in asked.marks),
    )


def _remove(workplace: "Workplace", found: Remains) -> None:
    """Each part may be repeated; a branch goes after its worktree, its mark after the branch."""
    from crew.git.checkpoints.checkpoints import keep_commit, take_checkpoint  # noqa: PLC0415 - slow

    repo = workplace.repo
    for one in found.worktrees:
        take_checkpoint(repo, one.path, one.task, label=LABEL, at=time.time(), with_ignored=True)
        remove_worktree(repo, one.path)
    for branch in found.branches:
        if not branch.is_merged:
            keep_commit(repo, branch.task, branch.head, label=LABEL, at=time.time())
        delete_branch(repo, branch.name, expected=branch.head)
    for name in (*(branch.name for branch in found.branches), *found.marks):
        if made := commit_of(repo, made_ref(name)):
            delete_ref(repo, made_ref(name), expected=made)


def _told(found: Remains) -> list[str]:
    words = [
        f"removes the worktree {one.path}, after a checkpoint"
        + (" of its uncommitted changes" if one.is_dirty else "")
        for one in found.worktrees
    ]
    words += [
        f"removes the branch {one.name}, "
        + ("which is merged" if one.is_merged else "which is not merged, after a checkpoint")
        for one in found.branches
    ]
    return words + [
        f"keeps the branch {one.name}, which is "
        + ("checked out" if one.is_merged else "not merged (--branches removes it)")
        for one in found.kept
    ]


def _tell(call: Call, found: Remains, *, removed: bool) -> None:
    document: dict[str, Any] = {
        "removed": removed,
        "worktrees": [str(one.path) for one in found.worktrees],
        "branches": [one.name for one in found.branches],
        "kept_branches": [one.name for one in found.kept],
    }
    if call.json:
        print_json(document)
    elif removed:
        narrate(call, "removed; `crew checkpoints TASK` lists its checkpoints")
