"""What `crew loop` and `crew resume` ask: continue a task from its point, on its terms."""

from collections.abc import Mapping
from dataclasses import replace

from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.agents.agent_requests import spawn, unstuck
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.merging.merge_requests import merge
from crew.domain.requests import Answer, Asked, Verb
from crew.domain.rows.agent import AgentState
from crew.domain.rows.run import Run
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.runs.run_outcomes import new_run
from crew.domain.terminals.terminal_requests import begin


def go_on(asked: Asked) -> Answer:
    """Continue a task from any point; a task under way or finished stays as it is.

    A repeat is safe and gets the same run as its answer.
    """
    task = asked.task()
    run = asked.world.runs.get(task.run or "")
    if task.state in FINISHED or task.conflict:
        return Answer(reply=task.run)
    if task.state == TaskState.DONE:
        return merge(asked)
    if run is not None and asked.world.terminal_of(run.id):
        raise Conflict(
            f"task {task.id} is at a terminal",
            hint=f"`crew attach {task.id}` shows it, `crew start {task.id} --headless` takes it",
            code="has_terminal",
        )
    if run is not None and run.is_live:
        return Answer(facts=(*_tried_again(asked, run), *_agent(asked, task)), reply=run.id)
    new = _next_run(asked, task, run)
    return Answer(facts=(*begin(asked, task, new), *_agent(asked, task)), reply=new.id)


def _tried_again(asked: Asked, run: Run) -> tuple[Fact, ...]:
    agent = asked.world.agents.get(run.agent or "")
    is_stuck = agent is not None and agent.state == AgentState.STUCK
    return unstuck(agent, at=asked.at).facts if agent is not None and is_stuck else ()


def _agent(asked: Asked, task: Task) -> tuple[Fact, ...]:
    """A new agent for the task, if the runner is for single tasks and has no free agent."""
    agents = asked.world.agents.values()
    if not asked.scope.tasks or any(one.is_free or one.task == task.id for one in agents):
        return ()
    kind = task.wants_agent or asked.args["default_kind"]
    return spawn(replace(asked, args={"kind": kind, "count": 1})).facts


def _next_run(asked: Asked, task: Task, last: Run | None) -> Run:
    """The next run of a task, as its lead begins it."""
    kind = last.agent_kind if last else task.wants_agent or str(asked.args["default_kind"])
    refuse_unusable(kind, asked.rules, instead=f"`crew start {task.id} KIND --headless`")
    run = new_run(task, kind=kind, rules=asked.rules, at=asked.at)
    lead = asked.leads.of_task(asked.world, task.id)
    return lead.begin_again(asked.world, run, last) if last else lead.begin(asked.world, run)


VERBS: Mapping[str, Verb] = {"go_on": go_on}
