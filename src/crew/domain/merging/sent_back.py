"""What follows when the merge queue sends a task back: to its session, or to a person's choice."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import headline
from crew.domain.lead import Leads
from crew.domain.merging.conflict_text import conflict_notes
from crew.domain.merging.merge_reports import Conflicting
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import SENT_BACK, Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.next_round import merge_tries
from crew.domain.runs.questions import new_question
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside

CONFLICT_CHOICES = ("agent", "mine", "theirs", "give up")
"""The agent resolves it; the task's side wins; the landed side wins; the task fails."""


def conflicted(
    world: World, conflicting: Conflicting, *, leads: Leads, rules: Rules, at: float
) -> list[Fact]:
    onto, paths = conflicting.onto, conflicting.merge.conflicts
    detail = conflicting.merge.detail
    return returned(
        world,
        conflicting.task.id,
        ask=Ask.CONFLICT,
        notes="",
        leads=leads,
        rules=rules,
        at=at,
        merge_commit=onto,
        merge_paths=paths,
        merge_notes=conflict_notes(
            world, leads, conflicting.sides, commit=onto, paths=paths, detail=detail
        ),
    )


def returned(
    world: World,
    task_id: str,
    *,
    ask: Ask,
    notes: str,
    leads: Leads,
    rules: Rules,
    at: float,
    merge_commit: str = "",
    merge_paths: tuple[str, ...] = (),
    merge_notes: str = "",
) -> list[Fact]:
    """Send a task back from the queue to its own session, with the reason."""
    task = world.tasks[task_id]
    run = world.runs.get(task.run or "")
    draft = FactDraft(world)
    draft.add(moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=at, **SENT_BACK))
    if run is None or run.state != RunState.COMPLETE:
        draft.add(moved(draft.world.tasks[task_id], "failed", to=TaskState.ERROR, at=at))
        return draft.facts
    aside: MergeAside = {
        "merge_commit": merge_commit,
        "merge_head": task.head,
        "merge_paths": merge_paths,
        "merge_notes": merge_notes,
        "merge_tries": merge_tries(run, ask, merge_commit),
    }
    if run.merge_kept:
        aside["merge_kept"] = ""
    if run.merge_refused:
        aside["merge_refused"] = ""
    lead = leads.of_run(world, run)
    if ask == Ask.CONFLICT and not rules.conflicts_to_agent and not lead.is_watched:
        return _choice_asked(world, task, run, at=at, **aside)
    if run.round >= run.max_rounds and not lead.is_watched:
        reason = f"the merge queue sent it back after {run.round} rounds"
        draft.add(
            *lead.out_of_tries(draft.world, run, reason, at=at, ask=ask, notes=notes, **aside)
        )
    else:
        draft.add(
            *lead.take_back(draft.world, run, ask=ask, notes=notes, rules=rules, at=at, **aside)
        )
    return draft.facts


def _choice_asked(
    world: World, task: Task, run: Run, *, at: float, **aside: "Unpack[MergeAside]"
) -> list[Fact]:
    """Ask a person; until the answer the task stays done and out of the queue."""
    files = ", ".join(map(headline, aside["merge_paths"]))
    question = new_question(
        world,
        run,
        text=f"Task {task.id} conflicts with {aside['merge_commit'][:12]}, which landed, in "
        f"{files}. Who resolves it, or which lines win: mine (the task's) or theirs (what landed)?",
        context=aside["merge_notes"],
        at=at,
        about=About.CONFLICT,
        choices=CONFLICT_CHOICES,
    )
    return [
        born(question, "asked", at=at),
        noted(run, "conflicted", at=at, question=question.id, **aside),
        noted(task, "conflicted", at=at, conflict=question.id),
    ]
