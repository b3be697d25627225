"""do: one function a command; each asks what is there already, acts, and returns the facts."""

from collections.abc import Mapping

from crew.domain import commands
from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import branch_name
from crew.domain.quests.position import is_walked
from crew.domain.rows.agent import AgentState
from crew.domain.rows.run import RunState
from crew.domain.rows.task import TaskState
from crew.domain.runs.run_outcomes import Prepared, checked, killed, prepared
from crew.domain.terminals import terminal_outcomes
from crew.domain.world import moved, noted
from crew.runner.doers.context import Desk, Doer, kept, worktree_lost
from crew.runner.doers.evidence import gather, newest_base
from crew.runner.doers.quest_doers import tell_steps, walk_on
from crew.runner.doers.step_doers import step


async def prepare(desk: Desk, command: Command) -> list[Fact]:
    task = desk.run(command)[1]
    if task.worktree and not await desk.outside.has_worktree(task):
        return worktree_lost(desk, task)
    base = await newest_base(desk, task.target)
    branch = task.branch or branch_name(task.id, task.issue)
    worktree = await desk.outside.ensure_worktree(task, branch=branch, base=base)
    where = Prepared(worktree=worktree, branch=branch, base=base)
    return prepared(desk.world(), desk.run(command)[0], where, at=desk.now())


async def check(desk: Desk, command: Command) -> list[Fact]:
    run, task = desk.run(command)
    if not run.pane:
        await desk.outside.clear_locks(task)
    look = await desk.outside.look_at(task)
    if look is None:
        return worktree_lost(desk, task)
    if is_walked(desk.world(), run):
        return await walk_on(desk, run, task, look)
    evidence = await gather(desk, run, task, look)
    run, task = desk.run(command)
    if run.state != RunState.REVIEWING or task.state != TaskState.IN_PROGRESS:
        return []  # given up while it was looked at
    return checked(desk.world(), run, evidence, rules=desk.rules, at=desk.now())


async def inspect(desk: Desk, command: Command) -> list[Fact]:
    """A worktree that is lost comes back with the next session, not under this one's feet."""
    facts = await check(desk, command)
    if not any(fact.trigger == "worktree_lost" for fact in facts):
        return facts
    run = desk.run(command)[0]
    reason = f"its worktree is gone; `crew stop {run.task}` and start it again to get it back"
    return [*facts, *terminal_outcomes.not_inspected(run, reason, at=desk.now())]


async def recover(desk: Desk, command: Command) -> list[Fact]:
    """Seed 000's recovery table; what it would throw away is kept as a checkpoint first."""
    run, task = desk.run(command)
    agent = desk.world().agents[str(run.agent)]
    await desk.outside.clear_locks(task)
    look = await desk.outside.look_at(task)
    if look is not None and not look.uncommitted and look.done_said:
        return [
            noted(run, "step_found_done", at=desk.now(), stepping=False),
            moved(run, "done", to=RunState.REVIEWING, at=desk.now()),
            *_agent_done(desk, agent.id),
        ]
    if look is None:  # gone, or half removed: whoever needs the place next finds out
        return killed(desk.world(), agent, at=desk.now(), trigger="reset")
    await kept(desk, task, f"run {run.id} reset", is_last=True)
    await desk.outside.remove_worktree(task)
    facts = killed(desk.world(), agent, at=desk.now(), trigger="reset")
    return [*facts, noted(task, "worktree_removed", at=desk.now(), worktree="")]


def _agent_done(desk: Desk, name: str) -> list[Fact]:
    agent = desk.world().agents[name]
    return [moved(agent, "done", to=AgentState.DONE, at=desk.now(), pid=None)]


async def kill(desk: Desk, command: Command) -> list[Fact]:
    agent = desk.world().agents[command.subject]
    if agent.run is not None:
        await desk.cancel(f"run {agent.run}")
    task = desk.world().tasks.get(agent.task or "")
    if task is not None:
        await kept(desk, task, f"kill of agent {agent.id}")
    agent = desk.world().agents[command.subject]
    return killed(desk.world(), agent, at=desk.now(), rest_s=desk.rules.rest_after_kill_s)


async def write_task(desk: Desk, command: Command) -> list[Fact]:
    task = desk.task(command)
    await desk.outside.write_task(task)
    return [noted(desk.task(command), "written", at=desk.now(), written=task.state)]


async def remove_worktree(desk: Desk, command: Command) -> list[Fact]:
    """Only once its content is proven to be reachable; the branch goes only when it landed."""
    task = desk.task(command)
    await kept(desk, task, "before its worktree is removed", is_last=True)
    await desk.outside.remove_worktree(task)
    if task.landed_commit:
        await desk.outside.delete_branch(task)
    return [noted(task, "worktree_removed", at=desk.now(), worktree="", cleaning=False)]


async def take_over(desk: Desk, command: Command) -> list[Fact]:
    run, task = desk.run(command)
    await desk.cancel(f"run {run.id}")
    await kept(desk, task, f"run {run.id} goes to a terminal")
    return terminal_outcomes.taken_over(desk.world(), desk.run(command)[0], at=desk.now())


async def open_pane(desk: Desk, command: Command) -> list[Fact]:
    """The worktree first, which is a fact of its own; then this is asked for again."""
    run, task = desk.run(command)
    if run.state == RunState.INIT or not await desk.outside.has_worktree(task):
        return await prepare(desk, command)
    session = desk.session_of(run)
    opened = await desk.outside.open_pane(run, task, session=session)
    return terminal_outcomes.opened(desk.run(command)[0], opened, session=session, at=desk.now())


async def tell_pane(desk: Desk, command: Command) -> list[Fact]:
    """The terminal may have ended without a report; then an agent gets the words instead."""
    run, task = desk.run(command)
    if not await desk.outside.tell_pane(run, task):
        return terminal_outcomes.ended(
            desk.run(command)[0], number=run.pane_number, code=None, at=desk.now()
        )
    return terminal_outcomes.told(desk.run(command)[0], at=desk.now())


async def close_pane(desk: Desk, command: Command) -> list[Fact]:
    run, task = desk.run(command)
    await desk.cancel(commands.Inspect(subject=run.id).key)
    await desk.outside.close_pane(run)
    await kept(desk, task, f"run {run.id} leaves its terminal")
    return terminal_outcomes.closed(desk.world(), desk.run(command)[0], at=desk.now())


RUN_DOERS: Mapping[type[Command], Doer] = {
    commands.Prepare: prepare,
    commands.Step: step,
    commands.Check: check,
    commands.Recover: recover,
    commands.Kill: kill,
    commands.WriteTask: write_task,
    commands.TellSteps: tell_steps,
    commands.RemoveWorktree: remove_worktree,
    commands.TakeOver: take_over,
    commands.OpenPane: open_pane,
    commands.TellPane: tell_pane,
    commands.ClosePane: close_pane,
    commands.Inspect: inspect,
}
