"""What `crew run --drain` leaves unfinished: each task with its reason, and the exit code."""

import sys
from typing import Any

from crew.domain.kernel.errors import CheckFailed, CrewError, Interrupted, TryLater
from crew.domain.quests.position import is_held, waits_for_steps
from crew.domain.rows.agent import AgentState
from crew.domain.rows.provider import Outage
from crew.domain.rows.task import Task, TaskState
from crew.domain.tasks.readiness import no_commit, not_begun, not_read, open_deps
from crew.domain.world import World
from crew.front.cli.call import Call
from crew.front.cli.exit_codes import INTERRUPTED, error_document
from crew.front.cli.output import line, narrate
from crew.front.cli.watching.ps import deliveries, waits_for_merge
from crew.runner.views.row_views import moment

GO_ON = "`crew run` continues where it stopped"
CHECK_FAILED = 6
TRY_LATER = 75


def unfinished(before: World, after: World) -> list[Task]:
    """The tasks that have neither landed nor been closed.

    Without those that had failed before, and done ones that wait for a person to merge them.
    """
    left = []
    for task in after.tasks.values():
        if task.gone or task.is_over or task.awaits_merge:
            continue
        old = before.tasks.get(task.id)
        failed_before = old is not None and old.state == task.state == TaskState.ERROR
        if not (failed_before and old is not None and old.run == task.run and not task.corrupt):
            left.append(task)
    return left


def unmerged(world: World) -> list[Task]:
    """The tasks that are done and in no merge queue."""
    return [task for task in world.tasks.values() if task.awaits_merge]


def drained_code(world: World, left: list[Task]) -> int:
    if left:
        return CHECK_FAILED
    is_late = any(queue.waiting for queue in world.queues.values())
    is_late = is_late or any(task.awaits_delivery for task in world.tasks.values())
    return TRY_LATER if is_late else 0


def why_not(world: World, task: Task) -> str:
    """Why a task is not merged, in one sentence."""
    if task.corrupt or not task.is_there:
        return not_read(task)
    run = world.runs.get(task.run or "")
    agent = next((a for a in world.agents.values() if a.task == task.id), None)
    if task.state == TaskState.ERROR:
        return (run.error if run else "") or "it failed"
    if agent is not None and agent.state == AgentState.STUCK:
        return f"agent {agent.id} is stuck: {agent.last_error}"
    if agent is not None and agent.last_error:
        return f"agent {agent.id}: {agent.last_error}"
    if question := world.questions.get(run.question if run else ""):
        return f'it asks: {line(question.question)} (crew answer {question.id} "…")'
    if task.state == TaskState.TODO and task.quest and task.id not in world.positions:
        return not_begun(world, task)
    is_early = task.state == TaskState.TODO or waits_for_steps(world, task.id)
    if is_early and (waits_for := open_deps(world, task)):
        return f"blocked by {', '.join(_blocker(world, dep) for dep in waits_for)}"
    return _by_state(world, task)


def _outage(world: World, task: Task) -> Outage | None:
    """The outage that keeps this task from its next step, of its own kind or of a reviewer."""
    run = world.runs.get(task.run or "")
    broken = [one for one in world.outages.values() if one.is_open]
    own = run.agent_kind if run is not None and run.is_live else task.wants_agent
    mine = [one for one in broken if one.id == own]
    return next(iter(mine or broken), None)


def _blocker(world: World, dep: str) -> str:
    awaits_merge = dep in world.tasks and world.tasks[dep].awaits_merge
    return f"{dep} (crew merge {dep})" if awaits_merge else dep


def _by_state(world: World, task: Task) -> str:
    if task.awaits_delivery:
        return f"it has landed and waits for its delivery to {task.target}"
    if task.state == TaskState.DONE:
        return _in_the_queue(world, task) if task.is_queued else no_commit(task)
    if task.state == TaskState.IN_PROGRESS and is_held(world, task.id):
        return f"its items are not finished (crew quest show {task.id})"
    if outage := _outage(world, task):
        return f"the agent kind {outage.id} is paused: {outage.reason} ({outage.remedy})"
    if task.state == TaskState.IN_PROGRESS:
        return "it is not finished"
    return "no agent took it" if world.crew else "there are no agents"


def _in_the_queue(world: World, task: Task) -> str:
    queue = world.queues.get(task.target)
    why = f": {queue.waiting}" if queue is not None and queue.waiting else ""
    return f"it waits in the merge queue{why}"


def tell_leftovers(call: Call, world: World, left: list[Task]) -> None:
    """Print the unfinished tasks to stderr, even with --quiet: they explain the exit code."""
    if call.json:
        return
    for task in left:
        why = line(why_not(world, task))
        print(f"not merged: {task.id} {line(task.title)} ({task.state}): {why}", file=sys.stderr)
    for task in unmerged(world):
        narrate(call, f"{task.id} {line(task.title)} is {waits_for_merge(task.id)}")
    for words in deliveries(world, runner_up=False):
        print(words, file=sys.stderr)


def summary(world: World, left: list[Task], code: int) -> dict[str, Any]:
    """The one document of `crew run --json`."""
    merged = [t for t in world.tasks.values() if t.state == TaskState.MERGED and not t.gone]
    views = [
        {"id": t.id, "title": t.title, "status": str(t.state), "reason": why_not(world, t)}
        for t in left
    ]
    waiting = [
        {
            "target": one.id,
            "reason": one.waiting,
            "remedy": one.remedy,
            "since": moment(one.delivered_at),
        }
        for one in world.queues.values()
        if one.waiting
    ]
    landed = [task.id for task in world.tasks.values() if task.awaits_delivery]
    document = {
        "merged": [task.id for task in merged],
        "landed": landed,
        "not_merged": views,
        "awaits_merge": [task.id for task in unmerged(world)],
        "waiting": waiting,
    }
    return {**error_document(_error(code, len(left))), **document} if code else document


def _error(code: int, count: int) -> CrewError:
    if code == CHECK_FAILED:
        return CheckFailed(
            f"{count} task{'s are' if count > 1 else ' is'} not merged",
            hint="`crew show ID` shows more of each",
        )
    if code == INTERRUPTED:
        return interrupted()
    return TryLater("a delivery waits", hint="`waiting` names what blocks it")


def interrupted() -> Interrupted:
    return Interrupted("interrupted", hint=GO_ON)
