"""Doers of steps: call the agent once, record its signals and messages, keep its work."""

import asyncio

from crew.agents.adapter import Controls, Interrupt
from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import lead_of
from crew.domain.quests.brief import brief_of
from crew.domain.quests.position import role_of
from crew.domain.rows.message import MessageState
from crew.domain.rows.run import Run
from crew.domain.rows.step import UNREPORTED, StepOutcome
from crew.domain.rows.task import Task
from crew.domain.runs.message_outcomes import given, messages_for
from crew.domain.runs.questions import (
    LiveQuestion,
    answer_taken,
    answered_meanwhile,
    asked_live,
    put_off,
)
from crew.domain.runs.step_outcomes import process_started, step_ended, step_started
from crew.domain.tasks.task_outcomes import worktree_lost
from crew.runner.doers.context import Context, kept
from crew.runner.doers.cut_short import outcome_of
from crew.runner.doers.rewritten_target import follow_target
from crew.runner.outside.outside import StepCall


async def step(ctx: Context, command: Command) -> list[Fact]:
    """Run one step; its start is recorded before the process exists, its end after a checkpoint."""
    run, task = ctx.run(command)
    if not await ctx.outside.has_worktree(task):
        return worktree_lost(task, at=ctx.now())
    await ctx.outside.clear_locks(task)
    await follow_target(ctx, task.target)  # the agent is shown the target
    if run.stepping and (facts := put_off(ctx.world(), run, at=ctx.now())):
        ctx.record(facts)  # crew was killed while the step waited for an answer
        run = ctx.run(command)[0]
    if run.stepping and run.signal:
        # The step had sent its signal, and crew was killed before it could act on it.
        await _keep(ctx, run, task)
        return _ended(ctx, command, StepOutcome(session=run.session, usage=UNREPORTED))
    if facts := answered_meanwhile(ctx.world(), run, at=ctx.now()):
        ctx.record(facts)
        run = ctx.run(command)[0]
    resume = run.session_used or run.stepping
    session = ctx.session_of(run)
    ctx.record(step_started(ctx.world(), run, epoch=ctx.epoch, session=session, at=ctx.now()))
    run, task = ctx.run(command)
    controls = ctx.controls(run.id)
    call = StepCall(
        run=run,
        task=task,
        resume=resume,
        started=lambda pid: _pid_known(ctx, run, pid),
        doing=lambda words: ctx.doing(str(run.agent), words),
        messages=tuple(messages_for(ctx.world(), task.id)),
        heard=lambda message: _heard(ctx, run, message),
        asked=lambda question: _asked(ctx, run, question, controls),
        controls=controls,
        role=role_of(ctx.world(), run),
        brief=brief_of(ctx.world(), run),
    )
    try:
        outcome = await _until_it_ends(ctx, call)
    finally:
        await _keep(ctx, run, task)
    return _ended(ctx, command, outcome)


async def _keep(ctx: Context, run: Run, task: Task) -> None:
    await kept(ctx, task, f"run {run.id} round {run.round} step {run.step}")


def _ended(ctx: Context, command: Command, outcome: StepOutcome) -> list[Fact]:
    run = ctx.run(command)[0]
    if ctx.world().agents[str(run.agent)].killing:
        return []  # the kill under way decides what happens to the run
    lead = lead_of(ctx.world(), run)
    return step_ended(ctx.world(), run, lead, outcome, rules=ctx.rules, at=ctx.now())


async def _until_it_ends(ctx: Context, call: StepCall) -> StepOutcome:
    """Run the step until it ends; after its signal it has a grace period to end by itself."""
    return await outcome_of(
        ctx.outside.run_step(call),
        stopped_by=ctx.signalled(call.run.id),
        grace_s=ctx.rules.signal_grace_s,
        session=call.run.session,
    )


def _pid_known(ctx: Context, run: Run, pid: int) -> None:
    if facts := process_started(ctx.world(), run, pid, at=ctx.now()):
        ctx.record(facts)


def _heard(ctx: Context, run: Run, message: str) -> None:
    """Record that the agent received a message, unless the step has ended in the meantime."""
    found, now = ctx.world().messages[message], ctx.world().runs[run.id]
    if found.state == MessageState.QUEUED and now.stepping and now.attempt == run.attempt:
        ctx.record([given(found, run.step_key, at=ctx.now())])


async def _asked(ctx: Context, run: Run, asked: LiveQuestion, controls: Controls) -> str:
    """Ask a person. After a while the step is ended, and the run waits without it."""
    now = ctx.world().runs[run.id]
    question, facts = asked_live(ctx.world(), now, asked, at=ctx.now())
    if facts:
        ctx.record(facts)
        await _answered(ctx, question.id, controls)
    question = ctx.world().questions[question.id]
    ctx.record(answer_taken(ctx.world(), question, at=ctx.now()))
    return question.answer


async def _answered(ctx: Context, question: str, controls: Controls) -> None:
    try:
        async with asyncio.timeout(ctx.rules.ask_patience_s):
            await ctx.answered(question)
    except TimeoutError:
        run = ctx.world().runs[ctx.world().questions[question].run]
        if facts := put_off(ctx.world(), run, at=ctx.now()):
            ctx.record(facts)
            controls.send(Interrupt())
        await ctx.answered(question)  # the end of the step ends this
