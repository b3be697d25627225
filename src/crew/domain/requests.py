"""What people ask of agents and tasks: each request becomes facts, or is refused with a hint."""

from collections.abc import Callable, Mapping
from typing import Any

from crew.domain.agents.agent_kinds import followed, following, refuse_unusable
from crew.domain.agents.agent_plan import is_ready, kind_for
from crew.domain.kernel.errors import Conflict, NotFound
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import agent_name, next_agent_names
from crew.domain.quests.position import has_slot, is_held
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.run_outcomes import abandoned, assigned
from crew.domain.world import FIELDS, World, born, moved, noted


@frozen
class Request:
    verb: str
    args: Mapping[str, Any]


@frozen
class Asked:
    """A request together with everything that decides it."""

    args: Mapping[str, Any]
    world: World
    rules: Rules
    at: float

    def agent(self) -> Agent:
        return find_agent(self.world, str(self.args["agent"]))

    def task(self) -> Task:
        return find_task(self.world, str(self.args["task"]))


@frozen
class Answer:
    facts: tuple[Fact, ...] = ()
    reply: Any = None


Verb = Callable[[Asked], Answer]


def spawn(asked: Asked) -> Answer:
    """New idle agents, by name or by number; `at_least` makes sure that so many exist."""
    kind, chosen = str(asked.args["kind"]), bool(asked.args.get("chosen"))
    taken = frozenset(asked.world.crew)
    if name := asked.args.get("name"):
        if name in taken:
            raise Conflict(f"agent {name} exists", hint="`crew ps` shows it; choose another name")
        names: tuple[str, ...] = (agent_name(str(name)),)
    else:
        count = int(asked.args.get("count") or 0)
        if at_least := asked.args.get("at_least"):
            count = max(0, int(at_least) - len(taken))
        names = next_agent_names(taken, count)
    agents = [
        Agent(id=name, agent_kind=kind, kind_chosen=chosen, started_at=asked.at) for name in names
    ]
    return Answer(facts=tuple(_spawned(asked, agent) for agent in agents), reply=list(names))


def _spawned(asked: Asked, agent: Agent) -> Fact:
    """A new agent; one that has the name of a dismissed one takes over nothing but its name."""
    old = asked.world.agents.get(agent.id)
    if old is None:
        return born(agent, "spawned", at=asked.at)
    values = {name: getattr(agent, name) for name in FIELDS["agent"] if name not in ("id", "state")}
    return noted(old, "spawned", at=asked.at, **values)


def dismiss(asked: Asked) -> Answer:
    agent = asked.agent()
    if not agent.is_free:
        raise Conflict(
            f"agent {agent.id} is {agent.state} with task {agent.task}",
            hint=f"`crew kill {agent.id}` puts its task back first; the work is kept",
        )
    gone = noted(agent, "dismissed", at=asked.at, dismissed=True)
    return Answer(facts=(gone,), reply=agent.id)


def set_kind(asked: Asked) -> Answer:
    """From its next task on; the task it has is finished by the kind that began it."""
    agent, kind = asked.agent(), str(asked.args["kind"])
    known = noted(agent, "kind_set", at=asked.at, agent_kind=kind, kind_chosen=True)
    return Answer(facts=(known,), reply=agent.task)


def assign(asked: Asked) -> Answer:
    agent, task = asked.agent(), asked.task()
    if not agent.is_free:
        raise Conflict(
            f"agent {agent.id} is {agent.state} with task {agent.task}",
            hint="assign takes an idle agent: `crew ps` shows them, `crew spawn` makes one",
        )
    if not can_start(asked.world, task):
        raise Conflict(f"task {task.id} cannot start: {why_not(asked.world, task)}", hint=SHOW)
    if not has_slot(asked.world, task.id):
        raise Conflict(
            f"every slot of quest {task.quest} is in use",
            hint="`crew quest show` tells who works at it; the next free slot takes the task",
            code="no_free_slot",
        )
    now = following(agent, asked.rules)
    refuse_unusable(
        kind_for(asked.world, now, task),
        asked.rules,
        instead=f"`crew agents set {agent.id} KIND` (`crew agents` lists them)",
    )
    first = [] if now == agent else [followed(agent, asked.rules, at=asked.at)]
    given = assigned(asked.world, now, task, rules=asked.rules, at=asked.at)
    return Answer(facts=(*first, *given))


def unstuck(agent: Agent, *, at: float) -> Answer:
    """A stuck agent tries again at once; if it fails again, its waits are at the cap."""
    if agent.state != AgentState.STUCK:
        raise Conflict(
            f"agent {agent.id} is {agent.state}, not stuck", hint="only a stuck agent is retried"
        )
    back = moved(agent, "retried", to=AgentState.WORKING, at=at, retry_at=None)
    return Answer(facts=(back,), reply=agent.id)


def kill(asked: Asked) -> Answer:
    agent = asked.agent()
    if agent.is_free:
        raise Conflict(f"agent {agent.id} is idle", hint="`crew ps` shows who works")
    return Answer(facts=(noted(agent, "kill_asked", at=asked.at, killing=True),))


def cleanup(asked: Asked) -> Answer:
    """The worktree goes, its content is kept as a checkpoint, the state stays.

    `idle` says that nothing runs there, as when no runner is up; the next step makes it again.
    """
    agent = asked.agent()
    run = asked.world.runs.get(agent.run or "")
    is_idle = agent.state == AgentState.STUCK or asked.args.get("idle")
    if run is not None and run.is_live and not is_idle:
        raise Conflict(
            f"agent {agent.id} is {agent.state} in its worktree",
            hint=f"`crew kill {agent.id}` first, or wait until it is idle",
        )
    task = asked.world.tasks.get(agent.task or "")
    if task is None or not task.worktree:
        return Answer(reply=None)
    return Answer(facts=(noted(task, "cleanup_asked", at=asked.at, cleaning=True),), reply=task.id)


def prune(asked: Asked) -> Answer:
    """The worktrees of these tasks go, if they are over, each after a checkpoint."""
    over = [task for task in map(asked.world.tasks.get, asked.args["tasks"]) if _is_over(task)]
    facts = [
        noted(task, "prune_asked", at=asked.at, cleaning=True)
        for task in over
        if task is not None and task.worktree
    ]
    return Answer(facts=tuple(facts), reply=[fact.subject for fact in facts])


def _is_over(task: Task | None) -> bool:
    return task is not None and (task.gone or task.state in FINISHED)


def pruned(asked: Asked) -> Answer:
    """These branches are gone: no task that is over names one of them any more."""
    names = set(asked.args["branches"])
    found = [task for task in asked.world.tasks.values() if task.branch in names and _is_over(task)]
    facts = [noted(task, "branch_removed", at=asked.at, branch="") for task in found]
    return Answer(facts=tuple(facts), reply=[task.id for task in found])


def merge(asked: Asked) -> Answer:
    """Put a done task into the queue; one that waits there, or has landed, is tried again."""
    task = asked.task()
    if task.awaits_delivery:
        return Answer(facts=_delivery_asked(asked.world, task.target, at=asked.at), reply=task.id)
    if task.state != TaskState.DONE:
        raise Conflict(f"task {task.id} is {task.state}, not done", hint=SHOW)
    if task.conflict:
        raise Conflict(
            f"task {task.id} waits for the answer to question {task.conflict}",
            hint=f"`crew inbox {task.conflict}` shows it with its choices",
            code="waits_for_answer",
        )
    head = str(asked.args.get("head") or task.head)
    if not head:
        raise Conflict(f"task {task.id} cannot be merged: {no_commit(task)}", hint=SHOW)
    if task.is_queued and task.head == head:
        return Answer(reply=task.id)
    queued = noted(task, "queued", at=asked.at, head=head, queued_at=asked.at)
    return Answer(facts=(queued,), reply=task.id)


def deliver(asked: Asked) -> Answer:
    """Compare this target branch with what landed for it, also when it had all that before."""
    target = str(asked.args["target"])
    return Answer(facts=_delivery_asked(asked.world, target, at=asked.at), reply=target)


def _delivery_asked(world: World, target: str, *, at: float) -> tuple[Fact, ...]:
    """At once, however short ago the last delivery was."""
    line = world.lines.get(target)
    if line is None:
        return ()
    fresh = {"delivered": "", "delivered_at": None, "waiting": "", "remedy": ""}
    return (noted(line, "delivery_asked", at=at, **fresh),)


def look(asked: Asked) -> Answer:  # noqa: ARG001 - every verb is asked in the same way
    """Nothing in itself: whoever is asked looks at what is due, such as a delivery."""
    return Answer()


def close(asked: Asked) -> Answer:
    task = asked.task()
    refuse_landed(task)
    if task.state in FINISHED:
        how = f"`crew show {task.id}` tells how it ended"
        raise Conflict(f"task {task.id} is {task.state} already", hint=how)
    reason = str(asked.args.get("reason") or "")
    closed = moved(
        task, "closed", to=TaskState.CLOSED, at=asked.at, close_reason=reason, queued_at=None
    )
    return Answer(facts=(closed, *abandoned(asked.world, task, at=asked.at)), reply=task.id)


def retry(asked: Asked) -> Answer:
    """Whatever is named tries again: a stuck agent, the agent stuck with a task, a failed task.

    Also a task that is in progress and that nobody works at, as in a fresh clone.
    """
    named = str(asked.args["subject"])
    agent = asked.world.crew.get(named) or next(
        (a for a in asked.world.crew.values() if a.task == named and a.state == AgentState.STUCK),
        None,
    )
    if agent is not None:
        return unstuck(agent, at=asked.at)
    task = find_task(asked.world, named)
    run = asked.world.runs.get(task.run or "")
    forgotten = task.state == TaskState.IN_PROGRESS and (run is None or not run.is_live)
    if not forgotten and task.state != TaskState.ERROR:
        raise Conflict(
            f"task {task.id} is {task.state}, not failed", hint="only what failed is retried"
        )
    trigger = "reset" if forgotten else "reopened"
    return Answer(facts=(moved(task, trigger, to=TaskState.TODO, at=asked.at),), reply=task.id)


def find_agent(world: World, name: str) -> Agent:
    if name not in world.crew:
        known = ", ".join(world.crew) or "none yet, `crew spawn` makes one"
        raise NotFound(f"no agent is called {name!r}", hint=f"agents: {known}")
    return world.agents[name]


def find_task(world: World, task: str) -> Task:
    if task not in world.tasks:
        raise NotFound(f"there is no task {task!r}", hint="`crew list -a` shows all tasks")
    return world.tasks[task]


def refuse_landed(task: Task) -> None:
    """What has landed is never taken back: it only has to reach its target branch."""
    if task.awaits_delivery:
        raise Conflict(
            f"task {task.id} has landed and waits for its delivery to {task.target}",
            hint=f"`crew merge {task.id}` delivers it; `crew new` makes a task for more work",
            code="awaits_delivery",
        )


def can_start(world: World, task: Task) -> bool:
    """A failed task may be started again although it waits for others, if it can be read."""
    restarts = task.state == TaskState.ERROR and not task.corrupt and task.is_there
    return (restarts and not is_held(world, task.id)) or is_ready(world, task)


def why_not(world: World, task: Task) -> str:
    if task.corrupt or not task.is_there:
        return not_read(task)
    if task.state != TaskState.TODO:
        return f"it is {task.state}"
    if is_held(world, task.id):
        return "the steps of its plan are walked first"
    if task.quest and task.id not in world.positions:
        return not_begun(world, task)
    tasks = world.tasks
    open_deps = [d for d in task.deps if d not in tasks or not tasks[d].is_over]
    return f"it waits for {', '.join(open_deps)}"


def not_read(task: Task) -> str:
    """Why its source does not tell of a task now."""
    if task.corrupt:
        return "its file cannot be read"
    if task.gone:
        return "its source does not have it any more"
    return "its file is away; it goes on when that is back (is another branch checked out?)"


def no_commit(task: Task) -> str:
    """Why a done task waits for nothing: its source calls it done, and no run of crew ended so."""
    return f"it is done and crew knows no commit of it; `crew close {task.id}` ends it"


def not_begun(world: World, task: Task) -> str:
    """Why a task that its labels count among a quest's is not led by that quest."""
    if task.quest == task.id:
        return "its label says quest and no quest is about it: `crew quest new` begins one"
    label = f"take the label quest-{task.quest} away to work at it by itself"
    if task.quest not in world.quests:
        return f"its label names quest {task.quest}, which there is not: {label}"
    return f"it is in no plan of quest {task.quest} yet: {label}"


def next_step(task: Task, start: str) -> str:
    """What can be done with a task that nobody works at; `start` is what starting it does."""
    if task.state in FINISHED:
        look = f"`crew show {task.id}` and `crew diff {task.id}` show what became of it"
        return f"{look}, `crew new` makes a task for more"
    return f"`crew start {task.id}` {start}"


SHOW = "`crew show` tells its state and what it waits for"

VERBS: Mapping[str, Verb] = {
    "spawn": spawn,
    "dismiss": dismiss,
    "set_kind": set_kind,
    "assign": assign,
    "retry": retry,
    "kill": kill,
    "cleanup": cleanup,
    "prune": prune,
    "pruned": pruned,
    "merge": merge,
    "deliver": deliver,
    "close": close,
    "look": look,
}
