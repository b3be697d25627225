"""The plan for agents: which task each free agent gets next, by priority, kind and provider."""

from crew.domain.clock import Clock
from crew.domain.commands import CommandKind
from crew.domain.kernel.fact import Fact
from crew.domain.lead import Leads
from crew.domain.provider_limits import all_open_at, programs_gone
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.run_outcomes import assigned
from crew.domain.scope import Scope
from crew.domain.tasks.readiness import in_turn, is_ready
from crew.domain.world import FactDraft, World


def assign(world: World, clock: Clock, *, leads: Leads, rules: Rules, scope: Scope) -> list[Fact]:
    """Give every free agent the first waiting task that it may take."""
    draft = FactDraft(world)
    kinds = frozenset(agent.agent_kind for agent in world.crew.values())
    free = [agent for agent in world.agents.values() if agent.is_free]
    if not free or not scope.takes_work:
        return []
    for task in _waiting_tasks(world, clock, leads, scope):
        world = draft.world
        lead = leads.of_task(world, task.id)
        if not lead.has_room(world, task):
            continue
        may = [a for a in free if _may_take(world, a, task, kinds, leads)]
        agent = next((a for a in may if rules.can_use(kind_for(world, a, task, leads))), None)
        if agent is None:
            idle = (kind_for(world, a, task, leads) for a in may)
            draft.add(*programs_gone(world, idle, rules, at=clock.now))
            continue
        awaited = kinds_awaited(world, task, leads=leads, rules=rules, agent=agent)
        if not clock.has_come(all_open_at(world, awaited, rules), CommandKind.RUN):
            continue
        free.remove(agent)
        draft.add(*assigned(world, agent, task, lead=lead, rules=rules, at=clock.now))
        if not free:
            break
    return draft.facts


def starting_next(world: World, clock: Clock, *, leads: Leads, scope: Scope) -> tuple[str, ...]:
    """The targets of the new tasks that wait only for an agent, in their order."""
    waiting = _waiting_tasks(world, clock, leads, scope)
    return tuple(task.target for task in waiting if not (task.branch or task.worktree))


def _waiting_tasks(world: World, clock: Clock, leads: Leads, scope: Scope) -> list[Task]:
    """The waiting tasks: those sent back first, whose dependents wait longest, then the others."""
    tasks = [task for task in world.tasks.values() if scope.has_task(task.id)]
    back = [task for task in tasks if is_sent_back(world, task, leads)]
    ready = [task for task in tasks if is_ready(world, task, leads)]
    ready = [task for task in ready if clock.has_come(task.not_before, CommandKind.RUN)]
    ready = in_turn(world, ready, leads)
    return [*back, *ready]


def is_sent_back(world: World, task: Task, leads: Leads) -> bool:
    """Whether its run waits for an agent that continues it."""
    run = world.runs.get(task.run or "")
    waits = task.state == TaskState.IN_PROGRESS and run is not None and is_waiting(world, run)
    return waits and leads.of_task(world, task.id).may_take_up(world, task)


def _may_take(world: World, agent: Agent, task: Task, kinds: frozenset[str], leads: Leads) -> bool:
    """Whether this agent may take the task; if no slot has the wanted kind, any slot may."""
    wanted = _wanted_kind(world, task, leads)
    return wanted is None or wanted == agent.agent_kind or wanted not in kinds


def kind_for(world: World, agent: Agent, task: Task, leads: Leads) -> str:
    """The agent kind that would work on this task in this agent's slot."""
    return _wanted_kind(world, task, leads) or agent.agent_kind


def kinds_awaited(
    world: World, task: Task, *, leads: Leads, rules: Rules, agent: Agent | None = None
) -> tuple[str, ...]:
    """The agent kinds that an open task needs next: the worker's, or in a review the reviewers'."""
    run = world.runs.get(task.run or "")
    if task.state == TaskState.IN_PROGRESS and run is not None and run.is_live:
        if run.state == RunState.REVIEWING:
            return leads.of_run(world, run).reviewers(world, run, rules=rules)
        return (run.agent_kind,)
    wanted = leads.of_task(world, task.id).wanted_kind(world, task)
    kind = wanted or (agent.agent_kind if agent is not None else rules.default_kind)
    return (kind,) if task.state == TaskState.TODO else ()


def _wanted_kind(world: World, task: Task, leads: Leads) -> str | None:
    run = world.runs.get(task.run or "") if is_sent_back(world, task, leads) else None
    return run.agent_kind if run else leads.of_task(world, task.id).wanted_kind(world, task)
