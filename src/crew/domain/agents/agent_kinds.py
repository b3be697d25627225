"""The agent kind of a slot: when it follows the default, and what to do if it cannot run."""

from collections.abc import Iterator

from crew.domain.kernel.errors import CrewError, NotFound, NotInstalled
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.agent import Agent
from crew.domain.rows.channel import ChannelState
from crew.domain.rows.quest import QuestState
from crew.domain.rows.task import TaskState
from crew.domain.rows.workflow import from_text
from crew.domain.rules import Rules
from crew.domain.world import World, noted


def next_kind(agent: Agent, rules: Rules) -> str:
    """The agent kind of this agent's next task: the default, unless a person chose one."""
    if agent.kind_chosen or not rules.default_kind:
        return agent.agent_kind
    return rules.default_kind


def follow_default(world: World, now: float, *, rules: Rules) -> list[Fact]:
    """Give idle agents the default kind; an agent with a task keeps its kind until the end."""
    free = (agent for agent in world.agents.values() if agent.is_free)
    return [fact for agent in free for fact in followed(agent, rules, at=now)]


def followed(agent: Agent, rules: Rules, *, at: float) -> list[Fact]:
    """The fact that gives an agent its next kind; none if it has that kind already."""
    kind = next_kind(agent, rules)
    if kind == agent.agent_kind:
        return []
    return [noted(agent, "kind_followed", at=at, agent_kind=kind)]


def refuse_unusable(kind: str, rules: Rules, *, instead: str) -> None:
    """Raise if no step of this kind can be started; the hint names `instead`."""
    problem = unusable(kind, rules, instead=instead)
    if problem is not None:
        raise problem


def unusable(kind: str, rules: Rules, *, instead: str) -> CrewError | None:
    if program := rules.missing.get(kind):
        return NotInstalled(
            f"{program} is not installed, and the agent {kind} needs it",
            hint=f"install {program}, or choose another agent: {instead}",
        )
    if not rules.is_configured(kind):
        return NotFound(
            f"no agent is configured as {kind!r}",
            hint=f"add [agents.{kind}] to .crew/config.toml, or choose another agent: {instead}",
        )
    return None


@frozen
class Need:
    """An agent kind that the crew needs: for these agents, for these tasks, or as a reviewer."""

    kind: str
    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    reviews: bool = False


@frozen
class LeftOut:
    """The needs that cannot be met now, and whether no other work is left."""

    needs: tuple[Need, ...] = ()
    is_all: bool = False


def left_out(world: World, rules: Rules, *, new_agents: int = 0) -> LeftOut:
    """The needs that cannot be met; `new_agents` are about to be made, of the default kind.

    Without a reviewer that every task needs, no task can be finished.
    """
    found = needs(world, rules, new_agents=new_agents)
    out = tuple(need for need in found if not rules.can_use(need.kind))
    is_all = len(out) == len(found) and not _has_other_work(world)
    return LeftOut(needs=out, is_all=bool(out) and (is_all or any(need.reviews for need in out)))


def needs(world: World, rules: Rules, *, new_agents: int = 0) -> tuple[Need, ...]:
    found: dict[str, Need] = {}
    for need in _all_needs(world, rules, new_agents):
        known = found.get(need.kind, Need(kind=need.kind))
        found[need.kind] = Need(
            kind=need.kind,
            agents=(*known.agents, *need.agents),
            tasks=(*known.tasks, *(task for task in need.tasks if task not in known.tasks)),
            reviews=known.reviews or need.reviews,
        )
    return tuple(found.values())


def _all_needs(world: World, rules: Rules, new_agents: int) -> Iterator[Need]:
    for agent in world.crew.values():
        run = world.runs.get(agent.run or "")
        kind = run.agent_kind if run is not None else next_kind(agent, rules)
        yield Need(kind=kind, agents=(agent.id,))
    if new_agents:
        yield Need(kind=rules.default_kind)
    yield from _of_tasks(world)
    for quest in world.quests.values():
        roles = from_text(quest.definition).roles.values() if quest.state == QuestState.OPEN else ()
        yield from (Need(kind=role.agent, tasks=(quest.id,)) for role in roles if role.agent)
    if rules.reviews_needed(skip=None):
        yield from (Need(kind=kind, reviews=True) for kind in rules.reviewers)


def _of_tasks(world: World) -> Iterator[Need]:
    """The kinds of tasks that ask for one, and of runs that wait for a slot to continue."""
    for task in world.tasks.values():
        if task.state == TaskState.TODO and task.wants_agent and task.is_there:
            yield Need(kind=task.wants_agent, tasks=(task.id,))
    for run in world.runs.values():
        if run.is_live and run.agent is None and world.terminal_of(run.id) is None:
            yield Need(kind=run.agent_kind, tasks=(run.task,))


def _has_other_work(world: World) -> bool:
    """Whether there is work without agent slots: merges, deliveries, terminals, channels."""
    return (
        any(task.is_queued for task in world.tasks.values())
        or any(queue.integration != queue.delivered for queue in world.queues.values())
        or any(terminal.is_up for terminal in world.terminals.values())
        or any(one.state != ChannelState.CLOSED for one in world.channels.values())
    )
