"""What `crew loop` and `crew resume` ask: continue a task from its point, on its terms."""

from collections.abc import Mapping

from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.agents.agent_requests import SpawnAgents, spawn, unstuck
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.merge_requests import MergeTask, merge
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.agent import AgentState
from crew.domain.rows.run import Run
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.runs.run_outcomes import new_run
from crew.domain.terminals.terminal_requests import begin


@frozen
class ContinueTask:
    """`default_kind` works on a task that names no agent of its own."""

    task: str
    default_kind: str


def go_on(asked: Asked[ContinueTask]) -> Answer:
    """Continue a task from any point; a task under way or finished stays as it is.

    A repeat is safe and gets the same run as its answer.
    """
    task = find_task(asked.world, asked.request.task)
    run = asked.world.runs.get(task.run or "")
    if task.state in FINISHED or task.conflict:
        return Answer(reply=task.run)
    if task.state == TaskState.DONE:
        return merge(asked.instead(MergeTask(task=task.id)))
    if run is not None and asked.world.terminal_of(run.id):
        raise Conflict(
            f"task {task.id} already has a terminal",
            hint=f"`crew attach {task.id}` shows it, `crew start {task.id} --headless` takes it",
            code="has_terminal",
        )
    if run is not None and run.is_live:
        return Answer(facts=(*_tried_again(asked, run), *_agent(asked, task)), reply=run.id)
    new = _next_run(asked, task, run)
    return Answer(facts=(*begin(asked, task, new), *_agent(asked, task)), reply=new.id)


def _tried_again(asked: Asked[object], run: Run) -> tuple[Fact, ...]:
    agent = asked.world.agents.get(run.agent or "")
    is_stuck = agent is not None and agent.state == AgentState.STUCK
    return unstuck(agent, at=asked.at).facts if agent is not None and is_stuck else ()


def _agent(asked: Asked[ContinueTask], task: Task) -> tuple[Fact, ...]:
    """A new agent for the task, if the runner is for single tasks and has no free agent."""
    agents = asked.world.agents.values()
    if not asked.scope.tasks or any(one.is_free or one.task == task.id for one in agents):
        return ()
    kind = task.wants_agent or asked.request.default_kind
    return spawn(asked.instead(SpawnAgents(kind=kind, count=1))).facts


def _next_run(asked: Asked[ContinueTask], task: Task, last: Run | None) -> Run:
    """The next run of a task, as its lead begins it."""
    kind = last.agent_kind if last else task.wants_agent or asked.request.default_kind
    refuse_unusable(kind, asked.rules, instead=f"`crew start {task.id} KIND --headless`")
    run = new_run(task, kind=kind, rules=asked.rules, at=asked.at)
    lead = asked.leads.of_task(asked.world, task.id)
    return lead.begin_again(asked.world, run, last) if last else lead.begin(asked.world, run)


VERBS: Mapping[str, Verb] = {"go_on": typed(ContinueTask, go_on)}
