"""What people ask of agents: spawn, dismiss, assign, kill, change their kind, clean up, retry."""

from collections.abc import Mapping

from crew.domain.agents.agent_kinds import followed, refuse_unusable
from crew.domain.agents.agent_plan import kind_for
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import agent_name, next_agent_names
from crew.domain.provider_limits import retried
from crew.domain.requests import Answer, Asked, Verb, find_agent, find_task, typed
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.provider import Outage
from crew.domain.rows.task import TaskState
from crew.domain.runs.run_outcomes import assigned
from crew.domain.tasks.readiness import refuse_waiting
from crew.domain.world import FIELDS, FactDraft, born, moved, noted


@frozen
class SpawnAgents:
    """New agents, by name or by number; `at_least` makes only the missing ones."""

    kind: str
    chosen: bool = False
    name: str = ""
    count: int = 0
    at_least: int = 0


@frozen
class NamedAgent:
    agent: str


@frozen
class SetKind:
    agent: str
    kind: str


@frozen
class AssignTask:
    agent: str
    task: str


@frozen
class CleanUp:
    """`idle` means that nothing runs in the worktree, as without a runner."""

    agent: str
    idle: bool = False


@frozen
class Retry:
    """`subject` is an agent, a task or an agent kind."""

    subject: str


def spawn(asked: Asked[SpawnAgents]) -> Answer:
    """Make new idle agents."""
    wanted, taken = asked.request, frozenset(asked.world.crew)
    if name := wanted.name:
        if name in taken:
            raise Conflict(f"agent {name} exists", hint="`crew ps` shows it; choose another name")
        names: tuple[str, ...] = (agent_name(name),)
    else:
        missing = max(0, wanted.at_least - len(taken))
        names = next_agent_names(taken, missing if wanted.at_least else wanted.count)
    agents = [
        Agent(id=name, agent_kind=wanted.kind, kind_chosen=wanted.chosen, started_at=asked.at)
        for name in names
    ]
    return Answer(facts=tuple(_spawned(asked, agent) for agent in agents), reply=list(names))


def _spawned(asked: Asked[SpawnAgents], agent: Agent) -> Fact:
    """A new agent; it takes over only the name of a dismissed one."""
    old = asked.world.agents.get(agent.id)
    if old is None:
        return born(agent, "spawned", at=asked.at)
    values = {name: getattr(agent, name) for name in FIELDS["agent"] if name not in ("id", "state")}
    return noted(old, "spawned", at=asked.at, **values)


def dismiss(asked: Asked[NamedAgent]) -> Answer:
    agent = find_agent(asked.world, asked.request.agent)
    if not agent.is_free:
        raise Conflict(
            f"agent {agent.id} is {agent.state} with task {agent.task}",
            hint=f"`crew kill {agent.id}` puts its task back first; the work is kept",
            code="agent_busy",
        )
    gone = noted(agent, "dismissed", at=asked.at, dismissed=True)
    return Answer(facts=(gone,), reply=agent.id)


def set_kind(asked: Asked[SetKind]) -> Answer:
    """Set the agent kind from the next task on; the current task keeps the kind that began it."""
    agent = find_agent(asked.world, asked.request.agent)
    kind = asked.request.kind
    known = noted(agent, "kind_set", at=asked.at, agent_kind=kind, kind_chosen=True)
    return Answer(facts=(known,), reply=agent.task)


def assign(asked: Asked[AssignTask]) -> Answer:
    agent = find_agent(asked.world, asked.request.agent)
    task = find_task(asked.world, asked.request.task)
    if not agent.is_free:
        raise Conflict(
            f"agent {agent.id} is {agent.state} with task {agent.task}",
            hint="assign takes an idle agent: `crew ps` shows them, `crew spawn` makes one",
            code="agent_busy",
        )
    refuse_waiting(asked, task, takes_slot=True)
    lead = asked.leads.of_task(asked.world, task.id)
    draft = FactDraft(asked.world)
    draft.add(*followed(agent, asked.rules, at=asked.at))
    agent = draft.world.agents[agent.id]
    refuse_unusable(
        kind_for(draft.world, agent, task, asked.leads),
        asked.rules,
        instead=f"`crew agents set {agent.id} KIND` (`crew agents` lists them)",
    )
    draft.add(*assigned(draft.world, agent, task, lead=lead, rules=asked.rules, at=asked.at))
    return Answer(facts=tuple(draft.facts))


def kill(asked: Asked[NamedAgent]) -> Answer:
    agent = find_agent(asked.world, asked.request.agent)
    if agent.is_free:
        raise Conflict(f"agent {agent.id} is idle", hint="`crew ps` shows the agents")
    return Answer(facts=(noted(agent, "kill_asked", at=asked.at, killing=True),))


def cleanup(asked: Asked[CleanUp]) -> Answer:
    """Request the removal of the worktree; a checkpoint keeps its content, the state stays.

    The next step makes the worktree again.
    """
    agent = find_agent(asked.world, asked.request.agent)
    run = asked.world.runs.get(agent.run or "")
    is_idle = agent.state == AgentState.STUCK or asked.request.idle
    if run is not None and run.is_live and not is_idle:
        raise Conflict(
            f"agent {agent.id} is {agent.state} in its worktree",
            hint=f"`crew kill {agent.id}` first, or wait until it is idle",
            code="worktree_in_use",
        )
    task = asked.world.tasks.get(agent.task or "")
    if task is None or not task.worktree:
        return Answer(reply=None)
    return Answer(facts=(noted(task, "cleanup_asked", at=asked.at, cleaning=True),), reply=task.id)


def retry(asked: Asked[Retry]) -> Answer:
    """Try again: an agent that is stuck or waits after an error, by its name or its task.

    Also a failed task, a paused agent kind, and a task that is in progress without a live run, as
    in a fresh clone.
    """
    named = asked.request.subject
    agent = asked.world.crew.get(named) or next(
        (a for a in asked.world.crew.values() if a.task == named and _may_retry(a)), None
    )
    if agent is not None:
        return unstuck(agent, at=asked.at)
    outage = asked.world.outages.get(named)
    if outage is not None or named in asked.rules.providers:
        return kind_retried(named, outage, at=asked.at)
    task = find_task(asked.world, named)
    run = asked.world.runs.get(task.run or "")
    forgotten = task.state == TaskState.IN_PROGRESS and (run is None or not run.is_live)
    if not forgotten and task.state != TaskState.ERROR:
        raise Conflict(
            f"task {task.id} is {task.state}, not failed", hint="only what failed is retried"
        )
    trigger = "reset" if forgotten else "reopened"
    return Answer(facts=(moved(task, trigger, to=TaskState.TODO, at=asked.at),), reply=task.id)


def _may_retry(agent: Agent) -> bool:
    return agent.state == AgentState.STUCK or agent.retry_at is not None


def unstuck(agent: Agent, *, at: float) -> Answer:
    """Let a stuck agent try again at once; after more failures its pauses are the longest.

    The same for one that waits after an error, before it is stuck.
    """
    if not _may_retry(agent):
        raise Conflict(
            f"agent {agent.id} is {agent.state}, not stuck", hint="only a stuck agent is retried"
        )
    if agent.state != AgentState.STUCK:
        return Answer(facts=(noted(agent, "retried", at=at, retry_at=None),), reply=agent.id)
    back = moved(agent, "retried", to=AgentState.WORKING, at=at, retry_at=None)
    return Answer(facts=(back,), reply=agent.id)


def kind_retried(kind: str, outage: Outage | None, *, at: float) -> Answer:
    """End the outage; its tasks continue, and one more failure of the same sort opens it again."""
    if outage is None or not outage.is_open:
        raise Conflict(
            f"the agent kind {kind} is not paused",
            hint="`crew ps` shows the agents, and `crew retry ID` tries a failed task again",
            code="not_paused",
        )
    return Answer(facts=(retried(outage, at=at),), reply=outage.id)


VERBS: Mapping[str, Verb] = {
    "spawn": typed(SpawnAgents, spawn),
    "dismiss": typed(NamedAgent, dismiss),
    "set_kind": typed(SetKind, set_kind),
    "assign": typed(AssignTask, assign),
    "retry": typed(Retry, retry),
    "kill": typed(NamedAgent, kill),
    "cleanup": typed(CleanUp, cleanup),
}
