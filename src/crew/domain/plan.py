"""The plan: from the world to the facts that follow and the commands to do now, without I/O.

`decide` returns the facts that follow at once from others; `plan` returns the commands for the
outside. Both run again after every fact, so commands that a crash lost are planned again.
"""

from collections.abc import Iterator

from crew.domain.agents.agent_kinds import follow_default
from crew.domain.agents.agent_plan import assign, is_sent_back
from crew.domain.channels.channel_plan import Outlooks, decide_channels, plan_channels
from crew.domain.clock import Clock
from crew.domain.commands import (
    CheckAccepted,
    Command,
    CommandKey,
    CommandKind,
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
from crew.domain.merging.merge_plan import new_queues, plan_queues, send_back
from crew.domain.provider_limits import opens_at, programs_back
from crew.domain.quests.council_stage import follow_councils
from crew.domain.quests.position import runs_plan
from crew.domain.quests.quest_outcomes import follow
from crew.domain.quests.quest_plan import quests_to_write
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import NEW_SESSION, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.questions import answered_meanwhile
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.tasks.task_outcomes import give_up
from crew.domain.terminals.terminal_plan import plan_terminals
from crew.domain.world import FactDraft, World, moved, noted


def decide(
    world: World,
    clock: Clock,
    *,
    rules: Rules,
    scope: Scope = EVERYTHING,
    outlooks: Outlooks | None = None,
) -> list[Fact]:
    """The facts that follow from the present ones without any command."""
    now = clock.now
    if facts := decide_channels(world, clock, scope=scope, outlooks=outlooks):
        return facts
    if facts := give_up(world, clock):
        return facts
    if facts := new_queues(world, now):
        return facts
    if facts := _withdraw(world, now) or _pass_on_answers(world, now):
        return facts
    if world.quests and (facts := follow(world, now) or follow_councils(world, now)):
        return facts
    if facts := send_back(world, now, leads=LEADS, rules=rules):
        return facts
    if facts := programs_back(world, rules, at=now) or follow_default(world, now, rules=rules):
        return facts
    return assign(world, clock, leads=LEADS, rules=rules, scope=scope)


MOST_DECISIONS = 10_000
"""Decisions in a row without a command; more would be an endless loop, a bug in crew."""


def following(
    world: World,
    clock: Clock,
    *,
    rules: Rules,
    scope: Scope = EVERYTHING,
    outlooks: Outlooks | None = None,
) -> list[Fact]:
    """All facts that are decided one after the other, so that they are stored together."""
    draft = FactDraft(world)
    for _ in range(MOST_DECISIONS):
        clock.waits.clear()
        facts = decide(draft.world, clock, rules=rules, scope=scope, outlooks=outlooks)
        if not facts:
            return draft.facts
        draft.add(*facts)
    last = draft.facts[-1]
    raise RuntimeError(f"endless decisions: {last.trigger} {last.subject}")


def plan(
    world: World,
    clock: Clock,
    *,
    rules: Rules,
    scope: Scope = EVERYTHING,
    epoch: int = 0,
    busy: frozenset[CommandKey] = frozenset(),
    outlooks: Outlooks | None = None,
) -> list[Command]:
    """All commands that should be under way now, without those that already are (`busy`)."""
    commands = [
        *(WriteItems(subject=quest) for quest in quests_to_write(world)),
        *_for_tasks(world, rules=rules),
        *_for_agents(world, clock, rules=rules, scope=scope, epoch=epoch),
        *_for_accepted(world, scope),
        *plan_terminals(world, busy=busy),
        *plan_queues(world, clock, rules=rules, busy=busy, scope=scope),
        *plan_channels(world, clock, rules=rules, scope=scope, busy=busy, outlooks=outlooks),
    ]
    return [one for one in commands if scope.allows(one.kind) and one.key not in busy]


def _withdraw(world: World, now: float) -> list[Fact]:
    """Withdraw questions whose run has ended, and permissions whose step has ended."""
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


def _pass_on_answers(world: World, now: float) -> list[Fact]:
    """Put answers into the next prompts of runs whose steps ended before they got them."""
    late = [one for one in world.questions.values() if one.state == QuestionState.ANSWERED]
    runs = [run for one in late if (run := world.runs[one.run]).question == one.id]
    return [
        fact
        for run in runs
        if run.is_live and not run.stepping
        for fact in answered_meanwhile(world, run, at=now)
    ]


def _asks_on(world: World, question: Question, run: Run) -> bool:
    """Whether the answer still changes anything."""
    if question.about == About.CONFLICT:
        task = world.tasks[question.task]
        return task.state == TaskState.DONE and task.conflict == question.id
    if question.about == About.DIALOG:
        terminal = world.terminals.get(run.id)
        return terminal is not None and terminal.is_open and terminal.dialog == question.id
    if question.about == About.PERMISSION:
        return run.is_live and (run.stepping or run.question == question.id)
    return run.is_live


def _for_tasks(world: World, *, rules: Rules) -> Iterator[Command]:
    for task in world.tasks.values():
        if not task.is_written:
            yield WriteTask(subject=task.id)
        if task.worktree and _is_worktree_over(world, task, rules):
            yield RemoveWorktree(subject=task.id)


def _is_worktree_over(world: World, task: Task, rules: Rules) -> bool:
    over = task.gone or (task.is_over and not rules.keep_worktrees)
    if not (task.cleaning or over or runs_plan(world, task.id)):
        return False
    run = world.runs.get(task.run or "")
    if run is not None and lead_of(world, run).is_watched:
        return False
    return task.cleaning or not any(agent.task == task.id for agent in world.agents.values())


def _for_agents(
    world: World, clock: Clock, *, rules: Rules, scope: Scope, epoch: int
) -> Iterator[Command]:
    for agent in world.agents.values():
        if agent.killing:
            yield Kill(subject=agent.id)
            continue
        run = world.runs.get(agent.run or "")
        if run is None or agent.state in {AgentState.IDLE, AgentState.STUCK}:
            continue
        if not scope.takes_work or not scope.has_task(run.task):
            continue
        command = _for_run(world, run, rules=rules, epoch=epoch)
        if command is not None and _is_time(world, run, agent, clock, rules=rules):
            yield command


def _for_accepted(world: World, scope: Scope) -> Iterator[Command]:
    """Check accepted merges at once where no agent takes up work, as for a command."""
    if scope.takes_work:
        return
    for task in world.tasks.values():
        run = world.runs.get(task.run or "")
        if run is None or not run.merge_accepted or run.state != RunState.REVIEWING:
            continue
        if task.worktree and is_sent_back(world, task, LEADS):
            yield CheckAccepted(subject=run.id)


def _is_time(world: World, run: Run, agent: Agent, clock: Clock, *, rules: Rules) -> bool:
    """Whether the pause after an error has passed and the provider takes the next step."""
    is_open_at = opens_at(world, run.agent_kind, rules) if run.state == RunState.WORKING else None
    kind = CommandKind.RUN
    return clock.has_come(agent.retry_at, kind) and clock.has_come(is_open_at, kind)


def _for_run(world: World, run: Run, *, rules: Rules, epoch: int) -> Command | None:
    lead = lead_of(world, run)
    if world.tasks[run.task].cleaning or lead.is_watched:
        return None
    has_ended = run.signal or run.question  # else its work would be lost with it
    if rules.reset_on_recovery and run.stepping and run.epoch != epoch and not has_ended:
        return Recover(subject=run.id)
    if run.state == RunState.INIT or not world.tasks[run.task].worktree:
        return Prepare(subject=run.id)
    if run.state == RunState.WORKING:
        return Step(subject=run.id) if _can_be_told(world, run) else None
    if run.state == RunState.REVIEWING:
        return lead.check(subject=run.id)
    return None


def _can_be_told(world: World, run: Run) -> bool:
    """Whether a step can get its task's text; a session that knows the task needs none."""
    return run.ask not in NEW_SESSION or world.tasks[run.task].is_there
