"""Doers of runs, tasks and terminals: each checks what exists, acts, and returns facts."""

from collections.abc import Mapping

from crew.domain import commands
from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import branch_name
from crew.domain.lead_choice import lead_of
from crew.domain.rows.run import RunState
from crew.domain.rows.task import TaskState
from crew.domain.runs.message_outcomes import queued_for
from crew.domain.runs.run_ends import killed
from crew.domain.runs.run_outcomes import Prepared, checked, prepared
from crew.domain.runs.step_outcomes import step_found_done
from crew.domain.runs.verdicts import review_waits
from crew.domain.tasks.task_outcomes import (
    worktree_cleaned,
    worktree_lost,
    worktree_reset,
    written,
)
from crew.domain.terminals import dialogs, terminal_outcomes
from crew.runner.doers.context import Context, Doer, kept
from crew.runner.doers.evidence import ReviewerPaused, gather, newest_base
from crew.runner.doers.quest_doers import check_stage, stage_checked, write_items
from crew.runner.doers.rewritten_target import follow_target
from crew.runner.doers.step_doers import step


async def prepare(ctx: Context, command: Command) -> list[Fact]:
    task = ctx.run(command)[1]
    if task.worktree and not await ctx.outside.has_worktree(task):
        return worktree_lost(task, at=ctx.now())
    if await follow_target(ctx, task.target):
        task = ctx.run(command)[1]
    base = await newest_base(ctx, task.target)
    branch = task.branch or branch_name(task.id, task.issue)
    worktree = await ctx.outside.ensure_worktree(task, branch=branch, base=base)
    where = Prepared(worktree=worktree, branch=branch, base=base)
    return prepared(ctx.world(), ctx.run(command)[0], where, at=ctx.now())


async def check(ctx: Context, command: Command) -> list[Fact]:
    await ctx.outside.clear_locks(ctx.run(command)[1])
    try:
        return await _look_and_decide(ctx, command)
    except ReviewerPaused:
        run = ctx.run(command)[0]
        is_open = run.state == RunState.REVIEWING
        return review_waits(ctx.world(), run, at=ctx.now()) if is_open else []


async def _look_and_decide(
    ctx: Context, command: Command, *, tries_merge: bool = False
) -> list[Fact]:
    run, task = ctx.run(command)
    look = await ctx.outside.look_at(task)
    if look is None:
        return worktree_lost(task, at=ctx.now())
    evidence = await gather(ctx, run, task, look, tries_merge=tries_merge)
    run, task = ctx.run(command)
    if run.state != RunState.REVIEWING or task.state != TaskState.IN_PROGRESS:
        return []  # given up during the check
    lead = lead_of(ctx.world(), run)
    return checked(ctx.world(), run, lead, evidence, rules=ctx.rules, at=ctx.now())


async def check_accepted(ctx: Context, command: Command) -> list[Fact]:
    """Check a merge that a person accepted. A reviewer that is paused is an error here."""
    run, task = ctx.run(command)
    await ctx.outside.clear_locks(task)
    if lead_of(ctx.world(), run).check is commands.CheckStage:
        return await stage_checked(ctx, run, task)
    return await _look_and_decide(ctx, command)


async def inspect(ctx: Context, command: Command) -> list[Fact]:
    """Check work at a terminal, conflicts included; a lost worktree is reported with its remedy."""
    facts = await _look_and_decide(ctx, command, tries_merge=True)
    if not any(fact.trigger == "worktree_lost" for fact in facts):
        return facts
    run = ctx.run(command)[0]
    reason = f"its worktree is gone; `crew stop {run.task}` and start it again to get it back"
    return [*facts, *terminal_outcomes.not_inspected(ctx.world(), run, reason, at=ctx.now())]


async def recover(ctx: Context, command: Command) -> list[Fact]:
    """Reset an interrupted run, unless its agent had finished; a checkpoint keeps its work."""
    run, task = ctx.run(command)
    agent = ctx.world().agents[str(run.agent)]
    await ctx.outside.clear_locks(task)
    look = await ctx.outside.look_at(task)
    if look is not None and not look.uncommitted and await ctx.outside.said_done(run):
        return step_found_done(ctx.world(), run, at=ctx.now())
    if look is None:  # it is gone or incomplete: the next run makes it again
        return killed(ctx.world(), agent, at=ctx.now(), trigger="reset")
    await kept(ctx, task, f"run {run.id} reset", is_last=True)
    await ctx.outside.remove_worktree(task)
    facts = killed(ctx.world(), agent, at=ctx.now(), trigger="reset")
    return [*facts, *worktree_reset(task, at=ctx.now())]


async def kill(ctx: Context, command: Command) -> list[Fact]:
    agent = ctx.world().agents[command.subject]
    if agent.run is not None:
        await ctx.cancel(commands.RunCommand(subject=agent.run).key)
    task = ctx.world().tasks.get(agent.task or "")
    if task is not None:
        await kept(ctx, task, f"kill of agent {agent.id}")
    agent = ctx.world().agents[command.subject]
    return killed(ctx.world(), agent, at=ctx.now(), rest_s=ctx.rules.rest_after_kill_s)


async def write_task(ctx: Context, command: Command) -> list[Fact]:
    task = ctx.task(command)
    await ctx.outside.write_task(task)
    return written(ctx.task(command), task.state, at=ctx.now())


async def remove_worktree(ctx: Context, command: Command) -> list[Fact]:
    """Remove a worktree after a checkpoint; the branch is deleted only if it landed."""
    task = ctx.task(command)
    await kept(ctx, task, "before its worktree is removed", is_last=True)
    await ctx.outside.remove_worktree(task)
    if task.landed_commit:
        await ctx.outside.delete_branch(task)
    return worktree_cleaned(task, at=ctx.now())


async def take_over(ctx: Context, command: Command) -> list[Fact]:
    run, task = ctx.run(command)
    await ctx.cancel(commands.RunCommand(subject=run.id).key)
    await kept(ctx, task, f"run {run.id} goes to a terminal")
    return terminal_outcomes.taken_over(ctx.world(), ctx.run(command)[0], at=ctx.now())


async def open_terminal(ctx: Context, command: Command) -> list[Fact]:
    """Open a run's terminal; without a worktree, prepare that first and return its facts."""
    run, task = ctx.run(command)
    if run.state == RunState.INIT or not await ctx.outside.has_worktree(task):
        return await prepare(ctx, command)
    await follow_target(ctx, task.target)
    session = ctx.session_of(run)
    terminal = ctx.world().terminals[run.id]
    opened = await ctx.outside.open_terminal(terminal, run, task, session=session)
    now = ctx.run(command)[0]
    return terminal_outcomes.opened(ctx.world(), now, opened, session=session, at=ctx.now())


async def type_into_terminal(ctx: Context, command: Command) -> list[Fact]:
    """Type at the terminal's prompt; if it has ended unnoticed, record that instead."""
    run, task = ctx.run(command)
    terminal, messages = ctx.world().terminals[run.id], queued_for(ctx.world(), task.id)
    seen = await ctx.outside.type_into_terminal(terminal, run, task, messages)
    run = ctx.run(command)[0]
    if seen is None:
        number = terminal.number
        return terminal_outcomes.ended(ctx.world(), run.id, number=number, code=None, at=ctx.now())
    if not seen.takes_text:
        return dialogs.not_typed(ctx.world(), run, seen, at=ctx.now())
    return terminal_outcomes.typed(ctx.world(), run, messages, at=ctx.now())


async def answer_dialog(ctx: Context, command: Command) -> list[Fact]:
    run = ctx.run(command)[0]
    terminal = ctx.world().terminals[run.id]
    await ctx.outside.choose_in_terminal(terminal, dialogs.to_be_entered(ctx.world(), terminal))
    return dialogs.dialog_answered(ctx.world(), ctx.run(command)[0], at=ctx.now())


async def close_terminal(ctx: Context, command: Command) -> list[Fact]:
    run, task = ctx.run(command)
    await ctx.cancel(commands.Inspect(subject=run.id).key)
    await ctx.outside.close_terminal(ctx.world().terminals[run.id])
    await kept(ctx, task, f"run {run.id} leaves its terminal")
    return terminal_outcomes.closed(ctx.world(), ctx.run(command)[0], at=ctx.now())


RUN_DOERS: Mapping[type[Command], Doer] = {
    commands.Prepare: prepare,
    commands.Step: step,
    commands.Check: check,
    commands.CheckStage: check_stage,
    commands.Recover: recover,
    commands.Kill: kill,
    commands.WriteTask: write_task,
    commands.WriteItems: write_items,
    commands.RemoveWorktree: remove_worktree,
    commands.TakeOver: take_over,
    commands.OpenTerminal: open_terminal,
    commands.TypeIntoTerminal: type_into_terminal,
    commands.AnswerDialog: answer_dialog,
    commands.CloseTerminal: close_terminal,
    commands.Inspect: inspect,
    commands.CheckAccepted: check_accepted,
}
