"""What people ask of one task: start it, stop it, complete it, send it back with changes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, quoted
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.step import NOTHING, Usage
from crew.domain.rows.task import FINISHED, SENT_BACK, Task, TaskState
from crew.domain.rows.terminal import Leaving
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_ends import broken_off
from crew.domain.runs.run_outcomes import new_run, started
from crew.domain.runs.verdicts import Review, Verdict, review_counted
from crew.domain.tasks.readiness import SHOW, next_step, refuse_waiting
from crew.domain.tasks.task_requests import refuse_landed
from crew.domain.terminals.terminal_outcomes import asked_for, ended, to_leave
from crew.domain.world import FactDraft, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import RunWishes


@frozen
class StartTask:
    """A named `kind` comes before `default_kind`; the rest changes what the config says."""

    task: str
    kind: str = ""
    default_kind: str
    headless: bool = False
    resume: bool = False
    model: str = ""
    told: str = ""
    done_word: str = ""
    proof: str = ""
    reviewers: tuple[str, ...] | None = None
    max_rounds: int | None = None


@frozen
class StopTask:
    task: str


@frozen
class RequestChanges:
    task: str
    notes: str = ""


@frozen
class TerminalEnded:
    run: str
    number: int
    code: int


@frozen
class CompleteTask:
    """`merge` is None where the config decides whether the task is merged."""

    task: str
    merge: bool | None = None


@frozen
class RecordVerdict:
    """A review that a person asked for: its usage, and its verdict if it came to one."""

    task: str
    reviewer: str = ""
    verdict: Verdict | None = None
    usage: Usage = NOTHING


def start(asked: Asked[StartTask]) -> Answer:
    """Open a terminal for the task, or, with `headless`, give it to the first free agent."""
    task = find_task(asked.world, asked.request.task)
    run = _live_run(asked, task)
    _refuse_leaving(asked, task)
    if task.state == TaskState.DONE:
        is_there = _has_terminal(asked, task) and not asked.request.headless
        notes = asked.request.told if is_there else ""
        facts, run = _reopened(asked, task, notes)
        more = [] if is_there else _carry_on(asked, run)
        return Answer(facts=(*facts, *more), reply=run.id)
    if run is not None:
        return Answer(facts=tuple(_carry_on(asked, run)), reply=run.id)
    new = _new_run(asked, task)
    facts = begin(asked, task, new)
    if not asked.request.headless:
        facts.append(asked_for(asked.world, new, at=asked.at))
    return Answer(facts=tuple(facts), reply=new.id)


def begin(asked: Asked[object], task: Task, run: Run) -> list[Fact]:
    if task.state == TaskState.IN_PROGRESS:  # as in a fresh clone, so no agent works on it
        draft = FactDraft(asked.world)
        draft.add(moved(task, "reset", to=TaskState.TODO, at=asked.at))
        draft.add(*started(draft.world.tasks[task.id], run, at=asked.at))
        return draft.facts
    refuse_waiting(asked, task)
    return started(task, run, at=asked.at)


def _new_run(asked: Asked[StartTask], task: Task) -> Run:
    last = asked.world.runs.get(task.run or "")
    kind = _kind(asked, last)
    refuse_unusable(
        kind, asked.rules, instead=f"`crew start {task.id} KIND` (`crew agents` lists them)"
    )
    run = new_run(task, kind=kind, rules=asked.rules, at=asked.at)
    run = asked.leads.of_task(asked.world, task.id).begin(asked.world, run)
    run = replace(run, **_wishes(asked.request))
    if not asked.request.resume or last is None or not last.session:
        return run
    if run.agent_kind != last.agent_kind:  # no other agent kind knows that session
        return run
    return replace(
        run,
        session=last.session,
        session_number=last.session_number,
        session_used=last.session_used,
        ask=Ask.CONTINUE if last.session_used else run.ask,
        model=run.model or last.model,
    )


def _carry_on(asked: Asked[StartTask], run: Run) -> list[Fact]:
    """Open a terminal for a live run, or hand the run over to an agent, in the same session."""
    if run.state == RunState.REVIEWING:
        raise Conflict(
            f"task {run.task} is being checked",
            hint=f"`crew complete {run.task}` waits for the result, `crew stop {run.task}` ends it",
            code="being_checked",
        )
    _refuse_other_kind(asked, run)
    wishes = _wishes(asked.request)
    if asked.request.headless:
        return _handed_over(asked, run, wishes)
    if asked.world.terminal_of(run.id):
        raise Conflict(
            f"task {run.task} already has a terminal",
            hint=f"`crew attach {run.task}` shows it",
            code="has_terminal",
        )
    wanted = asked_for(asked.world, run, at=asked.at)
    return [wanted, noted(run, "terminal_asked", at=asked.at, **wishes)]


def _refuse_leaving(asked: Asked[object], task: Task) -> None:
    terminal = asked.world.terminal_of(task.run or "")
    if terminal is not None and terminal.leaving:
        raise Conflict(
            f"the terminal of task {task.id} is being closed",
            hint="try again in a moment",
        )


def _refuse_other_kind(asked: Asked[StartTask], run: Run) -> None:
    named = asked.request.kind
    if named and named != run.agent_kind:
        raise Conflict(
            f"task {run.task} is under way with {run.agent_kind}, not {named}",
            hint=f"`crew stop {run.task}` first; its work is kept",
        )


def _handed_over(asked: Asked[StartTask], run: Run, wishes: "RunWishes") -> list[Fact]:
    if run.agent is not None:
        raise Conflict(
            f"agent {run.agent} works on task {run.task} already", hint="`crew ps` shows it"
        )
    facts = [noted(run, "headless_asked", at=asked.at, **wishes)]
    if terminal := asked.world.terminal_of(run.id):
        why = Leaving.HANDED_OVER
        facts.append(to_leave(terminal, "hand_over_asked", why, at=asked.at))
    return facts


def _has_terminal(asked: Asked[object], task: Task) -> bool:
    return asked.world.terminal_of(task.run or "") is not None


def _reopened(asked: Asked[object], task: Task, notes: str) -> tuple[list[Fact], Run]:
    """Start a done task again and remove it from the merge queue."""
    run = asked.world.runs.get(task.run or "")
    if run is None or run.state != RunState.COMPLETE:
        raise Conflict(
            f"task {task.id} is done", hint="`crew merge` lands it; `crew close` discards it"
        )
    # Changes that a person asks for do not count as a round.
    max_rounds = max(run.max_rounds, run.round + 1)
    draft = FactDraft(asked.world)
    draft.add(moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=asked.at, **SENT_BACK))
    draft.add(
        *sent_back(
            draft.world,
            run,
            asked.leads.of_run(asked.world, run),
            ask=Ask.CHANGES,
            notes=quoted(notes, most=LONGEST_NOTES),
            rules=asked.rules,
            at=asked.at,
            max_rounds=max_rounds,
        )
    )
    return draft.facts, draft.world.runs[run.id]


def changes(asked: Asked[RequestChanges]) -> Answer:
    """Send a done task back to its own session with the changes that a person wants."""
    task = find_task(asked.world, asked.request.task)
    refuse_landed(task)
    if task.state != TaskState.DONE:
        raise Conflict(
            f"task {task.id} is {task.state}, not done",
            hint="only a done task can be sent back; `crew comment` works in every state",
        )
    facts, _ = _reopened(asked, task, asked.request.notes)
    return Answer(facts=tuple(facts), reply=task.id)


def stop_task(asked: Asked[StopTask]) -> Answer:
    """End all work on the task; it can be started again."""
    task = find_task(asked.world, asked.request.task)
    run = asked.world.runs.get(task.run or "")
    terminal = asked.world.terminal_of(task.run or "")
    if run is None or not (run.is_live or terminal):
        raise Conflict(f"task {task.id} is {task.state}, so no agent works on it", hint=SHOW)
    if terminal is not None:
        leaving = to_leave(terminal, "stop_asked", Leaving.STOPPED, at=asked.at)
        return Answer(facts=(leaving,), reply=task.id)
    stopping = noted(run, "stop_asked", at=asked.at, stopping=True)
    agent = asked.world.agents.get(run.agent or "")
    if agent is None:
        facts = broken_off(asked.world, run, "stopped", at=asked.at)
        return Answer(facts=tuple(facts), reply=task.id)
    kill = noted(agent, "kill_asked", at=asked.at, killing=True)
    return Answer(facts=(stopping, kill), reply=task.id)


def terminal_ended(asked: Asked[TerminalEnded]) -> Answer:
    """The terminal reports that it has ended; a late or repeated report is ignored."""
    told = asked.request
    facts = ended(asked.world, told.run, number=told.number, code=told.code, at=asked.at)
    return Answer(facts=tuple(facts), reply=told.run if facts else None)


def complete(asked: Asked[CompleteTask]) -> Answer:
    """Check the finished work of a terminal, as its user asked."""
    task = find_task(asked.world, asked.request.task)
    run = _live_run(asked, task)
    if run is None or task.state != TaskState.IN_PROGRESS:
        start_it = f"`crew start {task.id}` begins it"
        if task.state == TaskState.DONE:
            start_it = (
                f"`crew merge {task.id}` merges it, `crew start {task.id}` opens it once more"
            )
        raise Conflict(f"task {task.id} is {task.state}, not in progress", hint=start_it)
    if run.agent is not None:
        raise Conflict(
            f"agent {run.agent} works on task {task.id} and crew checks it itself",
            hint=f"its agent ends the work with {asked.rules.done_word} alone on a line",
        )
    if run.state == RunState.REVIEWING:
        return Answer(facts=tuple(_joined(asked, run)), reply=run.id)
    asked.leads.of_task(asked.world, task.id).refuse_completion(asked.world, task)
    if run.state != RunState.WORKING or not _has_process(asked, run):
        raise Conflict(f"no agent works on task {task.id}", hint=f"`crew start {task.id}` does")
    _refuse_leaving(asked, task)
    done = moved(
        run, "done", to=RunState.REVIEWING, at=asked.at, error="", merges=_wants_merge(asked)
    )
    return Answer(facts=(done,), reply=run.id)


def _joined(asked: Asked[CompleteTask], run: Run) -> list[Fact]:
    """Let a second `complete` wait for the check of the first; it may still ask for the merge."""
    if not asked.request.merge or run.merges:
        return []
    return [noted(run, "merge_asked", at=asked.at, merges=True)]


def _wants_merge(asked: Asked[CompleteTask]) -> bool:
    wish = asked.request.merge
    return asked.rules.merge_completed if wish is None else wish


def reviewed(asked: Asked[RecordVerdict]) -> Answer:
    """Record the review for the run that made the commit; a verdict counts for that commit only."""
    task = find_task(asked.world, asked.request.task)
    run = asked.world.runs.get(task.run or "")
    if run is None:
        raise Conflict(f"task {task.id} was never started", hint="there is nothing to review")
    wanted = asked.request
    review = Review(reviewer=wanted.reviewer, verdict=wanted.verdict, usage=wanted.usage)
    facts = review_counted(asked.world, run, review, at=asked.at)
    return Answer(facts=tuple(facts), reply=task.id)


def _live_run(asked: Asked[object], task: Task) -> Run | None:
    refuse_landed(task)
    if task.state in FINISHED:
        raise Conflict(
            f"task {task.id} is {task.state}", hint=next_step(task, "opens it"), code="task_over"
        )
    run = asked.world.runs.get(task.run or "")
    return run if run is not None and run.is_live else None


def _has_process(asked: Asked[object], run: Run) -> bool:
    terminal = asked.world.terminal_of(run.id)
    return terminal is not None and terminal.has_process


def _kind(asked: Asked[StartTask], last: Run | None) -> str:
    """The agent kind that the request names; a resumed session keeps the kind that began it."""
    named = asked.request.kind
    resumes = last is not None and asked.request.resume
    return named or (last.agent_kind if last and resumes else asked.request.default_kind)


def _wishes(wanted: StartTask) -> "RunWishes":
    """The terms of this run that the request sets in place of the configuration."""
    wishes: RunWishes = {}
    if wanted.model:
        wishes["model"] = wanted.model
    if wanted.told:
        wishes["told"] = wanted.told
    if wanted.done_word:
        wishes["done_word"] = wanted.done_word
    if wanted.proof:
        wishes["proof"] = wanted.proof
    if wanted.reviewers is not None:
        wishes["reviewers"] = wanted.reviewers
    if wanted.max_rounds is not None:
        wishes["max_rounds"] = wanted.max_rounds
    return wishes


VERBS: Mapping[str, Verb] = {
    "start": typed(StartTask, start),
    "stop_task": typed(StopTask, stop_task),
    "terminal_ended": typed(TerminalEnded, terminal_ended),
    "complete": typed(CompleteTask, complete),
    "changes": typed(RequestChanges, changes),
    "reviewed": typed(RecordVerdict, reviewed),
}
