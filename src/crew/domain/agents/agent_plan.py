"""Which task goes to which agent: who is ready, who comes first, and whose provider is open."""

from crew.domain.kernel.fact import Fact
from crew.domain.lead import Leads
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.run_outcomes import assigned
from crew.domain.tasks.readiness import is_ready
from crew.domain.world import FactDraft, World


def assign(world: World, now: float, *, leads: Leads, rules: Rules) -> list[Fact]:
    """Every free agent gets the first of the waiting tasks that it may take."""
    draft = FactDraft(world)
    kinds = frozenset(agent.agent_kind for agent in world.crew.values())
    free = [agent for agent in world.agents.values() if agent.is_free]
    if not free:
        return []
    for task in _waiting_tasks(world, now, leads):
        world = draft.world
        lead = leads.of_task(world, task.id)
        if not rules.means(task.id) or not lead.has_room(world, task):
            continue
        able = (a for a in free if rules.can_use(kind_for(world, a, task, leads)))
        agent = next((a for a in able if _may_take(world, a, task, kinds, leads)), None)
        if agent is None or is_shut(world, kind_for(world, agent, task, leads), now, rules):
            continue
        free.remove(agent)
        draft.add(*assigned(world, agent, task, lead=lead, rules=rules, at=now))
        if not free:
            break
    return draft.facts


def starting_next(world: World, now: float, *, leads: Leads, rules: Rules) -> tuple[str, ...]:
    """The targets of the tasks that wait for nothing but an agent and are new, the first first."""
    waiting = _waiting_tasks(world, now, leads)
    return tuple(t.target for t in waiting if rules.means(t.id) and not (t.branch or t.worktree))


def _waiting_tasks(world: World, now: float, leads: Leads) -> list[Task]:
    """Tasks sent back first: their dependents wait longest; then by priority and age.

    Of tasks with a lead that orders them, those go first that the longest chain waits for.
    """
    back = [task for task in world.tasks.values() if _is_sent_back(world, task, leads)]
    rested = [t for t in world.tasks.values() if t.not_before is None or t.not_before <= now]
    ready = [task for task in rested if is_ready(world, task, leads)]
    behind = leads.chains_behind(world)
    ready.sort(key=lambda t: (t.priority, -behind.get(t.id, 0), t.created_at, len(t.id), t.id))
    return [*back, *ready]


def _is_sent_back(world: World, task: Task, leads: Leads) -> bool:
    run = world.runs.get(task.run or "")
    waits = task.state == TaskState.IN_PROGRESS and run is not None and run.is_waiting
    return waits and leads.of_task(world, task.id).may_take_up(world, task)


def _may_take(world: World, agent: Agent, task: Task, kinds: frozenset[str], leads: Leads) -> bool:
    """A task that asks for a kind that no slot has may go to any slot: each can run any agent."""
    wanted = _wanted_kind(world, task, leads)
    return wanted is None or wanted == agent.agent_kind or wanted not in kinds


def kind_for(world: World, agent: Agent, task: Task, leads: Leads) -> str:
    """The kind that would work on this task in this agent's slot."""
    return _wanted_kind(world, task, leads) or agent.agent_kind


def _wanted_kind(world: World, task: Task, leads: Leads) -> str | None:
    run = world.runs.get(task.run or "") if _is_sent_back(world, task, leads) else None
    return run.agent_kind if run else leads.of_task(world, task.id).wanted_kind(world, task)


def is_shut(world: World, kind: str, now: float, rules: Rules) -> bool:
    """Whether the provider of this kind of agent is paused at the moment."""
    provider = world.providers.get(rules.provider(kind))
    return provider is not None and provider.is_shut(now)
