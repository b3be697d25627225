"""What follows from what happens to the terminal that carries a run."""

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.terminal import Leaving, Terminal, TerminalState
from crew.domain.runs.run_holder import freed, shut
from crew.domain.world import World, born, moved, noted


@frozen
class Opened:
    """The first process of a terminal; both numbers together identify it for ever."""

    pid: int
    started: int


def asked_for(world: World, run: Run, *, at: float) -> Fact:
    """A run is to have a terminal: its first, or the next one."""
    known = world.terminals.get(run.id)
    if known is None:
        return born(Terminal(id=run.id, task=run.task), "asked", at=at)
    return moved(known, "asked", to=TerminalState.ASKED, at=at, number=known.number + 1)


def to_leave(terminal: Terminal, trigger: str, why: Leaving, *, at: float) -> Fact:
    """The terminal is to be closed; a later reason wins."""
    if terminal.state == TerminalState.LEAVING:
        return noted(terminal, trigger, at=at, leaving=why)
    return moved(terminal, trigger, to=TerminalState.LEAVING, at=at, leaving=why)


def taken_over(world: World, run: Run, *, at: float) -> list[Fact]:
    """The agent is free again; the terminal continues its session."""
    agent = world.agents.get(run.agent or "")
    used = run.session_used or run.stepping
    facts = [noted(run, "taken_over", at=at, agent=None, stepping=False, session_used=used)]
    return facts + ([freed(agent, "killed", at=at)] if agent else [])


def opened(world: World, run: Run, process: Opened, *, session: str, at: float) -> list[Fact]:
    terminal = world.terminals[run.id]
    pid, started = process.pid, process.started
    there = noted(terminal, "opened", at=at, pid=pid, started=started)
    if terminal.state == TerminalState.ASKED:  # else it was stopped while it was being opened
        to = TerminalState.OPEN
        there = moved(terminal, "opened", to=to, at=at, pid=pid, started=started)
    used = noted(
        run,
        "terminal_opened",
        at=at,
        session=session,
        session_used=True,
        cost_usd=None,
        notes="",
        told="",
    )
    return [there, used]


def not_opened(world: World, run: Run, reason: str, *, at: float) -> list[Fact]:
    """Nothing was started; a task that had nothing before is as it was."""
    closing = shut(world, run, at=at)
    if not run.is_live:  # given up while it was being opened
        return closing
    task = world.tasks[run.task]
    gone = moved(run, "failed", to=RunState.FAILED, at=at, error=reason, ended_at=at)
    if task.state != TaskState.IN_PROGRESS:
        return [*closing, gone]
    if task.branch:
        return [*closing, gone, moved(task, "failed", to=TaskState.ERROR, at=at)]
    return [*closing, gone, moved(task, "reset", to=TaskState.TODO, at=at)]


def closed(world: World, run: Run, *, at: float) -> list[Fact]:
    """Its end is one, whatever its exit code: only `complete` makes a task done."""
    terminal, closing = world.terminals[run.id], shut(world, run, at=at)
    if not run.is_live:
        return closing
    unheard = terminal.leaving == Leaving.ENDED and terminal.untyped
    if terminal.leaving == Leaving.HANDED_OVER or unheard:
        return [*closing, noted(run, "terminal_closed", at=at, ask=_next_ask(run))]
    why = _why(run, terminal)
    facts = [*closing, moved(run, "failed", to=RunState.FAILED, at=at, error=why, ended_at=at)]
    task = world.tasks[run.task]
    if task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at))
    return facts


def typed(world: World, run: Run, *, at: float) -> list[Fact]:
    """The words are typed: the session has them, whatever continues it."""
    return [
        noted(world.terminals[run.id], "typed", at=at, untyped=False),
        noted(run, "terminal_told", at=at, ask=Ask.CONTINUE),
    ]


def _next_ask(run: Run) -> str:
    """A session that never began, or has not heard the last complaint, is not told to go on."""
    unheard = run.merge_commit if run.ask == Ask.CONFLICT else run.notes
    return run.ask if unheard or not run.session_used else Ask.CONTINUE


def _why(run: Run, terminal: Terminal) -> str:
    if terminal.leaving != Leaving.ENDED:
        return "stopped"
    return f"the session ended{f': {run.error}' if run.error else ''}"


def ended(world: World, run: str, *, number: int, code: int | None, at: float) -> list[Fact]:
    """The first report counts, and only about the terminal there is."""
    terminal = world.terminals.get(run)
    if terminal is None or not terminal.is_up or terminal.number != number:
        return []
    if terminal.state == TerminalState.LEAVING:
        return []
    how = "" if code is None else f"exit code {code}"
    return [
        to_leave(terminal, "ended", Leaving.ENDED, at=at),
        noted(world.runs[run], "terminal_ended", at=at, error=how),
    ]


def not_inspected(world: World, run: Run, reason: str, *, at: float) -> list[Fact]:
    """crew itself could not check it, for want of a gate program, say; work continues."""
    if run.state != RunState.REVIEWING:
        return []
    back = moved(run, "sent_back", to=RunState.WORKING, at=at, error=reason)
    if not run.signal:  # else `crew complete` waits and prints it
        return [back]
    failed = noted(run, "signal_failed", at=at, signal="", notes=reason)
    return [back, failed, *to_be_typed(world, run, at=at)]


def to_be_typed(world: World, run: Run, *, at: float) -> list[Fact]:
    """The notes of the run are for the agent at its terminal, if one is open."""
    terminal = world.terminal_of(run.id)
    if terminal is None or not terminal.is_open:
        return []
    return [noted(terminal, "to_be_typed", at=at, untyped=True)]


def is_over(run: Run, task: Task) -> bool:
    """The task needs its worktree no more, so nothing may run in it."""
    return task.run == run.id and (task.is_over or task.gone or task.cleaning)
