"""What follows when a terminal was opened, typed into, ended or closed."""

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.message import Message
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.terminal import Leaving, Terminal, TerminalState
from crew.domain.runs.message_outcomes import given, read
from crew.domain.runs.run_holder import freed, lost_cost, shut
from crew.domain.world import FactDraft, World, born, moved, noted


@frozen
class Opened:
    """The first process of a terminal; pid and start time together identify it."""

    pid: int
    started: int


def asked_for(world: World, run: Run, *, at: float) -> Fact:
    """Request a terminal for this run: its first, or the next one."""
    known = world.terminals.get(run.id)
    if known is None:
        return born(Terminal(id=run.id, task=run.task), "asked", at=at)
    return moved(known, "asked", to=TerminalState.ASKED, at=at, number=known.number + 1)


def to_leave(terminal: Terminal, trigger: str, why: Leaving, *, at: float) -> Fact:
    """Request that the terminal is closed; a later reason replaces an earlier one."""
    if terminal.state == TerminalState.LEAVING:
        return noted(terminal, trigger, at=at, leaving=why)
    return moved(terminal, trigger, to=TerminalState.LEAVING, at=at, leaving=why)


def taken_over(world: World, run: Run, *, at: float) -> list[Fact]:
    """Free the agent; the terminal continues its session."""
    agent = world.agents.get(run.agent or "")
    used = run.session_used or run.stepping
    facts = [noted(run, "taken_over", at=at, agent=None, stepping=False, session_used=used)]
    return facts + ([freed(agent, "killed", at=at, **lost_cost(run))] if agent else [])


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
    """Record that no terminal was started; a task without a branch returns to todo."""
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
    """Fail the run of a closed terminal, unless an agent continues it.

    The exit code does not matter: only `complete` makes a task done.
    """
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


def typed(world: World, run: Run, messages: tuple[Message, ...] = (), *, at: float) -> list[Fact]:
    """Record that the notes and messages were typed, so that the session has them."""
    terminal, draft = world.terminals[run.id], FactDraft(world)
    if terminal.untyped:
        draft.add(noted(terminal, "typed", at=at, untyped=False))
        draft.add(noted(run, "terminal_told", at=at, ask=Ask.CONTINUE))
    draft.add(*(given(one, run.step_key, at=at) for one in messages))
    draft.add(*(read(draft.world.messages[one.id], at=at) for one in messages))
    return draft.facts


def _next_ask(run: Run) -> str:
    """The next prompt; a session that never began, or misses a complaint, needs it in full."""
    unheard = run.merge_commit if run.ask == Ask.CONFLICT else run.notes
    return run.ask if unheard or not run.session_used else Ask.CONTINUE


def _why(run: Run, terminal: Terminal) -> str:
    if terminal.leaving != Leaving.ENDED:
        return "stopped"
    return f"the session ended{f': {run.error}' if run.error else ''}"


def ended(world: World, run: str, *, number: int, code: int | None, at: float) -> list[Fact]:
    """Record the first report that the current terminal has ended; all others are ignored."""
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
    """Record that crew could not check the work, for example without a gate program."""
    if run.state != RunState.REVIEWING:
        return []
    back = moved(run, "sent_back", to=RunState.WORKING, at=at, error=reason)
    if not run.signal:  # else `crew complete` waits and prints it
        return [back]
    failed = noted(run, "signal_failed", at=at, signal="", notes=reason)
    return [back, failed, *to_be_typed(world, run, at=at)]


def to_be_typed(world: World, run: Run, *, at: float) -> list[Fact]:
    """Mark the notes of the run for typing, if its terminal is open."""
    terminal = world.terminal_of(run.id)
    if terminal is None or not terminal.is_open:
        return []
    return [noted(terminal, "to_be_typed", at=at, untyped=True)]


def is_over(run: Run, task: Task) -> bool:
    """Whether the task needs its worktree no more, so that nothing may run in it."""
    return task.run == run.id and (task.is_over or task.gone or task.cleaning)
