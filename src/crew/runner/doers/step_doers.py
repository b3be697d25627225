"""do, for steps: call the agent once, hear what it says of itself, keep its work."""

import asyncio

from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.quests.brief import brief_of
from crew.domain.quests.position import role_of
from crew.domain.rows.message import MessageState
from crew.domain.rows.question import About
from crew.domain.rows.run import Run
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task
from crew.domain.runs.new_question import new_question
from crew.domain.runs.step_outcomes import given, messages_for, step_ended, step_started
from crew.domain.world import born, noted
from crew.runner.doers.context import Desk, kept, worktree_lost
from crew.runner.outside.outside import StepCall

YES = frozenset({"y", "yes", "allow", "ok"})


async def step(desk: Desk, command: Command) -> list[Fact]:
    """The start is recorded before the process exists, the end after its work is kept."""
    run, task = desk.run(command)
    if not await desk.outside.has_worktree(task):
        return worktree_lost(desk, task)
    await desk.outside.clear_locks(task)
    if run.stepping and run.signal:
        # It had said all, and crew died before it could act on that.
        await _keep(desk, run, task)
        return _ended(desk, command, StepOutcome(session=run.session))
    resume = run.session_used or run.stepping
    session = desk.session_of(run)
    desk.record(step_started(desk.world(), run, epoch=desk.epoch, session=session, at=desk.now()))
    run, task = desk.run(command)
    call = StepCall(
        run=run,
        task=task,
        resume=resume,
        started=lambda pid: _pid_known(desk, run, pid),
        doing=lambda words: desk.doing(str(run.agent), words),
        messages=tuple(messages_for(desk.world(), task.id)),
        heard=lambda message: _heard(desk, run, message),
        asked=lambda tool, detail: _asked(desk, run, tool, detail),
        controls=desk.controls(run.id),
        role=role_of(desk.world(), run),
        brief=brief_of(desk.world(), run),
    )
    try:
        outcome = await _until_it_ends(desk, call)
    finally:
        await _keep(desk, run, task)
    return _ended(desk, command, outcome)


async def _keep(desk: Desk, run: Run, task: Task) -> None:
    await kept(desk, task, f"run {run.id} round {run.round} step {run.step}")


def _ended(desk: Desk, command: Command, outcome: StepOutcome) -> list[Fact]:
    run = desk.run(command)[0]
    if desk.world().agents[str(run.agent)].killing:
        return []  # the kill that is under way says what becomes of the run
    return step_ended(desk.world(), run, outcome, rules=desk.rules, at=desk.now())


async def _until_it_ends(desk: Desk, call: StepCall) -> StepOutcome:
    """A step that has signalled is to end its turn; one that does not is ended."""
    signalled = asyncio.ensure_future(desk.signalled(call.run.id))  # listens before it can speak
    running = asyncio.ensure_future(desk.outside.run_step(call))
    try:
        await asyncio.wait({running, signalled}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({running}, timeout=desk.rules.signal_grace_s)
        return running.result() if running.done() else StepOutcome(session=call.run.session)
    finally:
        signalled.cancel()
        running.cancel()
        await asyncio.gather(running, signalled, return_exceptions=True)


def _pid_known(desk: Desk, run: Run, pid: int) -> None:
    """Heard only while this very step is under way; a late word about an ended one is nothing."""
    world = desk.world()
    now, agent = world.runs[run.id], world.agents[str(run.agent)]
    if agent.run == run.id and now.stepping and now.attempt == run.attempt:
        desk.record([noted(agent, "process_started", at=desk.now(), pid=pid)])


def _heard(desk: Desk, run: Run, message: str) -> None:
    """The agent has got it; a late word about a step that ended changes nothing."""
    found, now = desk.world().messages[message], desk.world().runs[run.id]
    if found.state == MessageState.QUEUED and now.stepping and now.attempt == run.attempt:
        desk.record([given(found, run.step_key, at=desk.now())])


async def _asked(desk: Desk, run: Run, tool: str, detail: str) -> bool:
    """A person decides; the step waits for that as long as it may run."""
    question = new_question(
        desk.world(),
        run,
        text=f"May the agent use {tool}? Answer yes or no.",
        context=detail,
        at=desk.now(),
        about=About.PERMISSION,
    )
    desk.record([born(question, "asked", at=desk.now())])
    await desk.answered(question.id)
    return desk.world().questions[question.id].answer.strip().lower() in YES
