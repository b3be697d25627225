"""What people ask of tasks: close one, and remove the worktrees and branches of ended ones."""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.runs.run_ends import abandoned
from crew.domain.world import moved, noted


@frozen
class CloseTask:
    task: str
    reason: str = ""


@frozen
class Retarget:
    """Another branch for the work of a task that has a branch of its own already."""

    task: str
    target: str


@frozen
class PruneTasks:
    tasks: tuple[str, ...]


@frozen
class ForgetBranches:
    branches: tuple[str, ...]


def close(asked: Asked[CloseTask]) -> Answer:
    task = find_task(asked.world, asked.request.task)
    refuse_landed(task)
    if task.state in FINISHED:
        how = f"`crew show {task.id}` shows how it ended"
        raise Conflict(f"task {task.id} is {task.state} already", hint=how)
    reason = asked.request.reason
    closed = moved(
        task, "closed", to=TaskState.CLOSED, at=asked.at, close_reason=reason, queued_at=None
    )
    return Answer(facts=(closed, *abandoned(asked.world, task, at=asked.at)), reply=task.id)


def retarget(asked: Asked[Retarget]) -> Answer:
    """Change the branch that a task lands on; a queued task moves to the queue of that branch.

    What a conflict with the old branch asked of a person is settled by that. A task without a
    branch needs no request: it follows its source.
    """
    task, target = find_task(asked.world, asked.request.task), asked.request.target
    refuse_landed(task)
    if task.state in FINISHED:
        raise Conflict(
            f"task {task.id} is {task.state}, so its branch cannot change any more",
            hint="`git cherry-pick` or `git merge` brings its commits to another branch",
            code="task_over",
        )
    position = asked.world.positions.get(task.id)
    if position is not None and position.key:
        raise Conflict(
            f"task {task.id} is an item of quest {position.quest} and lands on the quest's branch",
            hint=f"`crew edit {position.quest} --base BRANCH` moves the whole quest",
            code="item_of_quest",
        )
    if not task.branch or task.target == target:
        return Answer(reply=task.target)
    moved_to = noted(task, "retargeted", at=asked.at, target=target, conflict="", favours="")
    return Answer(facts=(moved_to,), reply=target)


def refuse_landed(task: Task) -> None:
    """Raise if the task has landed, because only a rewrite of the target takes landed work back."""
    if task.awaits_delivery:
        raise Conflict(
            f"task {task.id} has landed and waits for its delivery to {task.target}",
            hint=f"`crew merge {task.id}` delivers it; `crew new` makes a task for more work",
            code="awaits_delivery",
        )


def prune(asked: Asked[PruneTasks]) -> Answer:
    """Request the removal of the worktrees of these tasks, if they have ended."""
    over = [task for task in map(asked.world.tasks.get, asked.request.tasks) if _is_over(task)]
    facts = [
        noted(task, "prune_asked", at=asked.at, cleaning=True)
        for task in over
        if task is not None and task.worktree
    ]
    return Answer(facts=tuple(facts), reply=[fact.subject for fact in facts])


def pruned(asked: Asked[ForgetBranches]) -> Answer:
    """Record that these branches were deleted, so that no ended task names them."""
    names = set(asked.request.branches)
    found = [task for task in asked.world.tasks.values() if task.branch in names and _is_over(task)]
    facts = [noted(task, "branch_removed", at=asked.at, branch="") for task in found]
    return Answer(facts=tuple(facts), reply=[task.id for task in found])


def _is_over(task: Task | None) -> bool:
    return task is not None and (task.gone or task.state in FINISHED)


VERBS: Mapping[str, Verb] = {
    "close": typed(CloseTask, close),
    "retarget": typed(Retarget, retarget),
    "prune": typed(PruneTasks, prune),
    "pruned": typed(ForgetBranches, pruned),
}
