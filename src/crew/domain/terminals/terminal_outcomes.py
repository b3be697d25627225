"""What follows from what happens to a terminal session that carries a run (seed 001)."""

from typing import TypedDict

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Ask, Leaving, Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.runs.run_holder import freed
from crew.domain.world import World, moved, noted


@frozen
class Opened:
    """The first process of a terminal session; both numbers together name it for ever."""

    pid: int
    started: int


class Closed(TypedDict):
    """The fields of a run whose terminal session is closed."""

    pane: str
    pane_pid: int | None
    pane_started: int | None
    leaving: str
    untyped: bool


_CLOSED: Closed = {
    "pane": "",
    "pane_pid": None,
    "pane_started": None,
    "leaving": "",
    "untyped": False,
}


def taken_over(world: World, run: Run, *, at: float) -> list[Fact]:
    """The agent is free again; its session is what the terminal will go on with."""
    agent = world.agents.get(run.agent or "")
    used = run.session_used or run.stepping
    facts = [noted(run, "taken_over", at=at, agent=None, stepping=False, session_used=used)]
    return facts + ([freed(agent, "killed", at=at)] if agent else [])


def opened(run: Run, pane: Opened, *, session: str, at: float) -> list[Fact]:
    return [
        noted(
            run,
            "pane_opened",
            at=at,
            pane_pid=pane.pid,
            pane_started=pane.started,
            session=session,
            session_used=True,
            cost_usd=None,
            notes="",
            told="",
        )
    ]


def not_opened(world: World, run: Run, reason: str, *, at: float) -> list[Fact]:
    """Nothing was started; a task that had nothing before is as it was."""
    if not run.is_live:  # given up while it was being opened
        return [noted(run, "pane_closed", at=at, **_CLOSED)]
    task = world.tasks[run.task]
    gone = moved(run, "failed", to=RunState.FAILED, at=at, error=reason, ended_at=at, **_CLOSED)
    if task.state != TaskState.IN_PROGRESS:
        return [gone]
    if task.branch:
        return [gone, moved(task, "failed", to=TaskState.ERROR, at=at)]
    return [gone, moved(task, "reset", to=TaskState.TODO, at=at)]


def closed(world: World, run: Run, *, at: float) -> list[Fact]:
    """The session's end is one, whatever its exit code: only `complete` makes a task done."""
    if not run.is_live:
        return [noted(run, "pane_closed", at=at, **_CLOSED)]
    unheard = run.leaving == Leaving.ENDED and run.untyped
    if run.leaving == Leaving.HANDED_OVER or unheard:
        return [noted(run, "pane_closed", at=at, ask=_next_ask(run), **_CLOSED)]
    facts = [
        moved(run, "failed", to=RunState.FAILED, at=at, error=_why(run), ended_at=at, **_CLOSED),
    ]
    task = world.tasks[run.task]
    if task.state == TaskState.IN_PROGRESS:
        facts.append(moved(task, "failed", to=TaskState.ERROR, at=at))
    return facts


def told(run: Run, *, at: float) -> list[Fact]:
    """The words are typed: whoever goes on with this session has them."""
    return [noted(run, "pane_told", at=at, untyped=False, ask=Ask.CONTINUE)]


def _next_ask(run: Run) -> str:
    """A session that never began, or has not heard the last complaint, is not told to go on."""
    unheard = run.merge_commit if run.ask == Ask.CONFLICT else run.notes
    return run.ask if unheard or not run.session_used else Ask.CONTINUE


def _why(run: Run) -> str:
    if run.leaving != Leaving.ENDED:
        return "stopped"
    return f"the session ended{f': {run.error}' if run.error else ''}"


def ended(run: Run, *, number: int, code: int | None, at: float) -> list[Fact]:
    """Whoever notices says so; the first word counts, and only about the session there is."""
    if not run.pane or run.leaving or number != run.pane_number:
        return []
    how = "" if code is None else f"exit code {code}"
    return [noted(run, "pane_ended", at=at, leaving=Leaving.ENDED, error=how)]


def not_inspected(run: Run, reason: str, *, at: float) -> list[Fact]:
    """crew itself could not check it, for want of a gate program, say; work goes on."""
    if run.state != RunState.REVIEWING:
        return []
    back = moved(run, "sent_back", to=RunState.WORKING, at=at, error=reason)
    if not run.signal:  # else `crew complete` waits and prints it
        return [back]
    return [back, noted(run, "signal_failed", at=at, signal="", notes=reason, untyped=True)]


def is_over(run: Run, task: Task) -> bool:
    """The task needs its worktree no more, so nobody may sit in it."""
    return task.run == run.id and (task.is_over or task.gone or task.cleaning)
