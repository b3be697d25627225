"""The question to a person about a conflict, its choices, and what follows from each.

The task stays done in the meantime, out of the queue. A chosen side applies to its commit:
further conflicts of that commit are settled in the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import rewrite_id
from crew.domain.merging import accepted_merge
from crew.domain.merging.merge_outcomes import rewrite_noticed
from crew.domain.merging.sent_back import CONFLICT_CHOICES, returned
from crew.domain.requests import Answer, Asked, Verb, typed
from crew.domain.rows.question import About, Question
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import SENT_BACK, Task, TaskState
from crew.domain.runs.questions import (
    AnswerQuestion,
    answer_question,
    answer_text,
    answered,
    open_question,
)
from crew.domain.runs.run_ends import broken_off
from crew.domain.runs.suspicions import dismiss
from crew.domain.world import FactDraft, moved, noted

AGENT, _, _, GIVE_UP = CONFLICT_CHOICES


def answer(asked: Asked[AnswerQuestion]) -> Answer:
    """Answer any question; a question about a merge takes one of its choices.

    The answer to a suspicion dismisses it, as does one to the news of a rewritten target.
    """
    if suspicion := asked.world.suspicions.get(asked.request.question):
        return dismiss(asked, suspicion)
    for queue in asked.world.queues.values():
        if queue.dropped and rewrite_id(queue.id) == asked.request.question:
            return Answer(facts=(rewrite_noticed(queue, at=asked.at),), reply=queue.id)
    question = open_question(asked)
    follow = _CHOSEN.get(question.about)
    if follow is None:
        return answer_question(asked)
    choice = answer_text(asked, question)
    facts = (answered(question, choice, at=asked.at), *follow(asked, question, choice))
    return Answer(facts=facts, reply=question.id)


def chosen(asked: Asked[object], question: Question, choice: str) -> list[Fact]:
    """What follows from the choice; nothing if the task has changed in the meantime."""
    task, run = asked.world.tasks[question.task], asked.world.runs[question.run]
    if task.conflict != question.id:
        return []
    draft = FactDraft(asked.world)
    draft.add(noted(run, "answered", at=asked.at, question=""))
    run = draft.world.runs[run.id]
    if choice == AGENT:
        draft.add(*_to_agent(replace(asked, world=draft.world), task, run))
    elif choice == GIVE_UP:
        _give_up(draft, task, run, at=asked.at)
    else:
        settled = noted(
            task, "settled", at=asked.at, conflict="", favours=choice, queued_at=asked.at
        )
        draft.add(settled)
    return draft.facts


def _to_agent(asked: Asked[object], task: Task, run: Run) -> list[Fact]:
    return returned(
        asked.world,
        task.id,
        ask=Ask.CONFLICT,
        notes="",
        leads=asked.leads,
        rules=replace(asked.rules, conflicts_to_agent=True),
        at=asked.at,
        merge_commit=run.merge_commit,
        merge_paths=run.merge_paths,
        merge_notes=run.merge_notes,
    )


def _give_up(draft: FactDraft, task: Task, run: Run, *, at: float) -> None:
    files = ", ".join(run.merge_paths)
    reason = f"a person gave it up: it conflicts with {run.merge_commit[:12]} in {files}"
    draft.add(moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=at, **SENT_BACK))
    draft.add(*broken_off(draft.world, run, reason, at=at))


_CHOSEN: Mapping[str, Callable[[Asked[object], Question, str], list[Fact]]] = {
    About.CONFLICT: chosen,
    About.LOST_SIDE: accepted_merge.chosen,
}

VERBS: Mapping[str, Verb] = {"answer": typed(AnswerQuestion, answer)}
