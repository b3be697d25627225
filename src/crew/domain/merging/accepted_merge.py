"""A person takes a merge that the check of both sides refused; all other checks still follow.

The merge is the refused commit, and no other: work that is committed on top of it is judged anew.
"""

from collections.abc import Mapping
from dataclasses import replace

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.merging.merge_requests import MergeTask, merge
from crew.domain.requests import Answer, Asked, Verb, find_task, typed
from crew.domain.rows.agent import AgentState
from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.runs.next_round import ACCEPT_CHOICES
from crew.domain.runs.questions import answered
from crew.domain.runs.run_ends import broken_off
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.runs.run_outcomes import new_run, started
from crew.domain.tasks.readiness import SHOW, refuse_waiting
from crew.domain.world import FactDraft, World, moved, noted

ACCEPT, AGENT, GIVE_UP = ACCEPT_CHOICES


@frozen
class AcceptMerge:
    task: str


def chosen(asked: Asked[object], question: Question, choice: str) -> list[Fact]:
    """What follows from the answer; nothing if the run does not wait for it any more."""
    run = asked.world.runs[question.run]
    if run.question != question.id:
        return []
    draft = FactDraft(asked.world)
    rounds = max(run.max_rounds, run.round + asked.rules.same_complaint_limit - 1)
    draft.add(noted(run, "answered", at=asked.at, question="", error="", max_rounds=rounds))
    lead = asked.leads.of_task(asked.world, run.task)
    draft.add(*lead.after_answer(draft.world, draft.world.runs[run.id], at=asked.at))
    run = draft.world.runs[run.id]
    if choice == ACCEPT:
        draft.add(*_taken(draft.world, run, at=asked.at))
    elif choice == GIVE_UP:
        reason = f"a person gave it up: its merge {run.merge_refused[:12]} drops a part of one side"
        draft.add(*broken_off(draft.world, run, reason, at=asked.at))
    return draft.facts


def accept(asked: Asked[AcceptMerge]) -> Answer:
    """Take the refused merge of a task; without one that is refused, a done task is merged."""
    world, task = asked.world, find_task(asked.world, asked.request.task)
    if task.state == TaskState.DONE:
        return merge(asked.instead(MergeTask(task=task.id)))
    run = world.runs.get(task.run or "")
    if run is None or not run.merge_refused or task.state in FINISHED:
        raise Conflict(
            f"no merge of task {task.id} was refused for dropping a part of one side",
            hint=f"--accept overrules that check alone; {SHOW}",
            code="nothing_to_accept",
        )
    question = world.questions.get(run.question)
    if question is not None and question.is_open and question.about == About.LOST_SIDE:
        facts = (answered(question, ACCEPT, at=asked.at), *chosen(asked, question, ACCEPT))
        return Answer(facts=facts, reply=task.id)
    facts = tuple(
        _taken(world, run, at=asked.at) if run.is_live else _taken_up_again(asked, task, run)
    )
    return Answer(facts=facts, reply=task.id)


def _taken(world: World, run: Run, *, at: float) -> list[Fact]:
    """Let the checks follow; a step that is under way goes on, and decides on the commit."""
    known = run.merge_refused
    if run.state != RunState.WORKING or run.stepping or run.question:
        is_new = run.merge_accepted != known
        return [noted(run, "merge_accepted", at=at, merge_accepted=known)] if is_new else []
    is_watched = world.terminal_of(run.id) is not None
    taken = moved(
        run,
        "merge_accepted",
        to=RunState.REVIEWING,
        at=at,
        merge_accepted=known,
        error="",
        agent=None,
        merges=run.merges or is_watched,
    )
    agent = agent_of(world, run)
    if agent is None:
        return [taken]
    return [taken, freed(agent, "parked" if agent.state == AgentState.WORKING else "killed", at=at)]


def _taken_up_again(asked: Asked[object], task: Task, last: Run) -> list[Fact]:
    """Check the work of a run that ended once more, in a run that begins with the check."""
    if not task.worktree:
        raise Conflict(
            f"the worktree of task {task.id} is gone",
            hint=f"`crew start {task.id} --headless` brings it back, and then accept it",
            code="worktree_removed",
        )
    refuse_waiting(asked, task)
    lead = asked.leads.of_task(asked.world, task.id)
    new = new_run(task, kind=last.agent_kind, rules=asked.rules, at=asked.at)
    new = replace(
        lead.begin_again(asked.world, new, last),
        merge_commit=last.merge_commit,
        merge_head=last.merge_head,
        merge_paths=last.merge_paths,
        merge_notes=last.merge_notes,
        merge_refused=last.merge_refused,
        ask=last.ask,
        notes=last.notes,
    )
    draft = FactDraft(asked.world)
    draft.add(*started(task, new, at=asked.at))
    draft.add(moved(new, "prepared", to=RunState.WORKING, at=asked.at, base=last.base))
    draft.add(*_taken(draft.world, draft.world.runs[new.id], at=asked.at))
    return draft.facts


VERBS: Mapping[str, Verb] = {"accept": typed(AcceptMerge, accept)}
