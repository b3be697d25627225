"""plan: from the world as it is to what should be done now; pure, so that it can be simulated.

`decide` gives the facts that follow at once from others; `plan` gives the commands for the outside.
Both are asked again after every fact, and whatever was lost in a crash is simply planned again.
"""

from collections.abc import Iterator

from crew.domain.agents.agent_kinds import follow_default
from crew.domain.agents.agent_plan import assign, is_shut
from crew.domain.channels.channel_plan import channel_waits, decide_channels, plan_channels
from crew.domain.commands import (
    Command,
    Kill,
    Prepare,
    Recover,
    RemoveWorktree,
    Step,
    WriteItems,
    WriteTask,
)
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.merging.merge_plan import delivery_waits, new_queues, plan_queues, send_back
from crew.domain.quests.council_stage import follow_councils
from crew.domain.quests.position import runs_plan
from crew.domain.quests.quest_outcomes import follow
from crew.domain.quests.quest_plan import untold
from crew.domain.rows.agent import AT_WORK, Agent, AgentState
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import NEW_SESSION, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.tasks.readiness import is_ready
from crew.domain.tasks.task_outcomes import give_up, given_up_at
from crew.domain.terminals.terminal_plan import plan_panes
from crew.domain.world import World, apply_all, moved, noted

MISSING = "missing"
"""The kind of those waits at whose end a task is given up."""


def decide(world: World, now: float, *, rules: Rules, taking_work: bool = True) -> list[Fact]:
    """The facts that follow from the present ones without anything being done outside."""
    if facts := decide_channels(world, now, is_running=taking_work):
        return facts
    if facts := give_up(world, now):
        return facts
    if facts := new_queues(world, now):
        return facts
    if facts := _withdraw(world, now):
        return facts
    if world.quests and (facts := follow(world, now) or follow_councils(world, now)):
        return facts
    if facts := send_back(world, now, leads=LEADS, rules=rules):
        return facts
    if facts := follow_default(world, now, rules=rules):
        return facts
    return assign(world, now, leads=LEADS, rules=rules) if taking_work else []


MOST_DECISIONS = 10_000
"""In a row, without anything being done: more would be a fault of ours that never ends."""


def following(world: World, now: float, *, rules: Rules, taking_work: bool = True) -> list[Fact]:
    """All that is decided, one thing after the other: what belongs together is stored once."""
    found: list[Fact] = []
    for _ in range(MOST_DECISIONS):
        facts = decide(world, now, rules=rules, taking_work=taking_work)
        if not facts:
            return found
        found += facts
        world = apply_all(world, facts)
    raise RuntimeError(f"endless decisions: {found[-1].trigger} {found[-1].subject}")


def plan(
    world: World,
    now: float,
    *,
    rules: Rules,
    epoch: int = 0,
    taking_work: bool = True,
    busy: frozenset[str] = frozenset(),
) -> list[Command]:
    """Everything that should be under way now; the caller leaves out what already is (`busy`)."""
    commands = [
        *(WriteItems(subject=quest) for quest in untold(world)),
        *_for_tasks(world, rules=rules),
        *_for_agents(world, now, rules=rules, epoch=epoch, taking_work=taking_work),
        *plan_panes(world, busy=busy),
        *plan_queues(world, now, rules=rules, busy=busy),
        *plan_channels(world, now, rules=rules, taking_work=taking_work, busy=busy),
    ]
    return [command for command in commands if command.key not in busy]


def waits(world: World, now: float, *, rules: Rules) -> dict[str, float]:
    """What the plan will ask for later although nothing happens: the command's key and when."""
    found: dict[str, float] = {}
    for agent in world.agents.values():
        if agent.task and agent.retry_at and agent.state in AT_WORK and rules.means(agent.task):
            found[f"run {agent.run}"] = agent.retry_at
    for task in world.tasks.values():
        if task.not_before is not None and is_ready(world, task, LEADS) and rules.means(task.id):
            found[f"run {task.id}"] = task.not_before
    for provider in world.providers.values():
        if provider.is_shut(now) and _is_wanted(world, provider.id, rules):
            found[f"run {provider.id}"] = provider.next_at
    found |= delivery_waits(world, rules)
    found |= channel_waits(world, now, rules=rules)
    found |= {f"{MISSING} {task}": at for task, at in given_up_at(world).items()}
    return {key: at for key, at in found.items() if at > now}


def _is_wanted(world: World, provider: str, rules: Rules) -> bool:
    """Somebody waits for this provider: a run that has begun, or a task that could."""
    begun = (run for run in world.runs.values() if run.is_live and not run.question)
    return any(
        rules.provider(run.agent_kind) == provider and rules.means(run.task) for run in begun
    ) or any(is_ready(world, task, LEADS) and rules.means(task.id) for task in world.tasks.values())


def _withdraw(world: World, now: float) -> list[Fact]:
    """Nobody waits for the answer to a question whose run is over, or for leave after its step."""
    facts: list[Fact] = []
    for question in world.questions.values():
        run = world.runs[question.run]
        asks_on = _asks_on(world, question, run)
        if not question.is_open or asks_on:
            continue
        facts.append(moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=now))
        if run.question == question.id:
            facts.append(noted(run, "question_withdrawn", at=now, question=""))
    return facts


def _asks_on(world: World, question: Question, run: Run) -> bool:
    """Whether the answer still changes anything."""
    if question.about == About.CONFLICT:
        task = world.tasks[question.task]
        return task.state == TaskState.DONE and task.conflict == question.id
    return run.stepping if question.about == About.PERMISSION else run.is_live


def _for_tasks(world: World, *, rules: Rules) -> Iterator[Command]:
    for task in world.tasks.values():
        if not task.is_written:
            yield WriteTask(subject=task.id)
        if task.worktree and _is_worktree_over(world, task, rules):
            yield RemoveWorktree(subject=task.id)


def _is_worktree_over(world: World, task: Task, rules: Rules) -> bool:
    run = world.runs.get(task.run or "")
    if run is not None and lead_of(world, run).is_watched:
        return False
    held = any(agent.task == task.id for agent in world.agents.values())
    over = task.gone or (task.is_over and not rules.keep_worktrees)
    return task.cleaning or ((over or runs_plan(world, task.id)) and not held)


def _for_agents(
    world: World, now: float, *, rules: Rules, epoch: int, taking_work: bool
) -> Iterator[Command]:
    for agent in world.agents.values():
        if agent.killing:
            yield Kill(subject=agent.id)
            continue
        run = world.runs.get(agent.run or "")
        if run is None or agent.state in {AgentState.IDLE, AgentState.STUCK}:
            continue
        command = _for_run(world, run, agent, now, rules=rules, epoch=epoch)
        if command is not None and taking_work:
            yield command


def _for_run(
    world: World, run: Run, agent: Agent, now: float, *, rules: Rules, epoch: int
) -> Command | None:
    if agent.retry_at is not None and agent.retry_at > now:
        return None
    lead = lead_of(world, run)
    if world.tasks[run.task].cleaning or lead.is_watched or not rules.means(run.task):
        return None
    if run.state == RunState.WORKING and is_shut(world, run.agent_kind, now, rules):
        return None
    if rules.reset_on_recovery and run.stepping and run.epoch != epoch and not run.signal:
        return Recover(subject=run.id)
    if run.state == RunState.INIT or not world.tasks[run.task].worktree:
        return Prepare(subject=run.id)
    if run.state == RunState.WORKING:
        return Step(subject=run.id) if _can_be_told(world, run) else None
    if run.state == RunState.REVIEWING:
        return lead.check(subject=run.id)
    return None


def _can_be_told(world: World, run: Run) -> bool:
    """A session that knows its task goes on while its file is away; a new one waits for it."""
    return run.ask not in NEW_SESSION or world.tasks[run.task].is_there
