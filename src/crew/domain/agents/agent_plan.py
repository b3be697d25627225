"""Which task goes to which agent: who is ready, who comes first, and whose provider is open."""

from crew.domain.kernel.fact import Fact
from crew.domain.quests.position import (
    has_slot,
    is_held,
    waits_for_steps,
    wanted_kind,
)
from crew.domain.quests.quest_plan import chains_behind
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.run_outcomes import assigned
from crew.domain.tasks.readiness import is_ready
from crew.domain.world import FactDraft, World


def assign(world: World, now: float, *, rules: Rules) -> list[Fact]:
    """Every free agent gets the first of the waiting tasks that it may take."""
    draft = FactDraft(world)
    kinds = frozenset(agent.agent_kind for agent in world.crew.values())
    free = [agent for agent in world.agents.values() if agent.is_free]
    if not free:
        return []
    for task in _waiting_tasks(world, now):
        world = draft.world
        if not rules.means(task.id) or not has_slot(world, task.id):
            continue
        able = (a for a in free if rules.can_use(kind_for(world, a, task)))
        agent = next((a for a in able if _may_take(world, a, task, kinds)), None)
        if agent is None or is_shut(world, kind_for(world, agent, task), now, rules):
            continue
        free.remove(agent)
        draft.add(*assigned(world, agent, task, rules=rules, at=now))
        if not free:
            break
    return draft.facts


def starting_next(world: World, now: float, *, rules: Rules) -> tuple[str, ...]:
    """The targets of the tasks that wait for nothing but an agent and are new, the first first."""
    waiting = _waiting_tasks(world, now)
    return tuple(t.target for t in waiting if rules.means(t.id) and not (t.branch or t.worktree))


def _waiting_tasks(world: World, now: float) -> list[Task]:
    """Tasks sent back first: their dependents wait longest; then by priority and age.

    Of a quest's steps those go first that the longest chain of others waits for.
    """
    back = [task for task in world.tasks.values() if _is_sent_back(world, task)]
    rested = [t for t in world.tasks.values() if t.not_before is None or t.not_before <= now]
    ready = [task for task in rested if is_ready(world, task)]
    behind = chains_behind(world)
    ready.sort(key=lambda t: (t.priority, -behind.get(t.id, 0), t.created_at, len(t.id), t.id))
    return [*back, *ready]


def _is_sent_back(world: World, task: Task) -> bool:
    run = world.runs.get(task.run or "")
    waits = task.state == TaskState.IN_PROGRESS and run is not None and run.is_waiting
    return waits and not is_held(world, task.id) and not waits_for_steps(world, task.id)


def _may_take(world: World, agent: Agent, task: Task, kinds: frozenset[str]) -> bool:
    """A task that asks for a kind nobody is may go to anybody: a slot can run any agent."""
    run = world.runs.get(task.run or "") if _is_sent_back(world, task) else None
    wanted = run.agent_kind if run else wanted_kind(world, task)
    return wanted is None or wanted == agent.agent_kind or wanted not in kinds


def kind_for(world: World, agent: Agent, task: Task) -> str:
    """The kind that would work on this task in this agent's slot."""
    run = world.runs.get(task.run or "") if _is_sent_back(world, task) else None
    return run.agent_kind if run else wanted_kind(world, task) or agent.agent_kind


def is_shut(world: World, kind: str, now: float, rules: Rules) -> bool:
    """Whether the provider of this kind of agent takes nobody at the moment."""
    provider = world.providers.get(rules.provider(kind))
    return provider is not None and provider.is_shut(now)
