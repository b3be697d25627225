"""An agent slot leads a run: step after step until its work is proven or its tries are used up."""

# ruff: noqa: ARG002 - every lead is asked in the same way, whatever it decides by

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Unpack

from crew.domain.commands import Check, Command
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import Signal, SignalKind, StepOutcome
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_ends import broken_off
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.tasks.readiness import not_begun
from crew.domain.world import World

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside
    from crew.domain.row_changes import RunFields

_WITHOUT_COMPLAINT = frozenset({Ask.FIRST, Ask.RESUMED, Ask.CONTINUE})
"""Asks without a complaint or notes: a session that knows its task only has to continue."""


class SlotLead:
    """The lead of an ordinary task; the other leads inherit what they do not change."""

    check: ClassVar[type[Command]] = Check
    is_watched: ClassVar[bool] = False

    def may_take_up(self, world: World, task: Task) -> bool:
        """A task with the label of a quest waits for that quest."""
        return task.state != TaskState.TODO or not task.quest

    def why_not(self, world: World, task: Task) -> str:
        return not_begun(world, task) if task.quest else ""

    def has_room(self, world: World, task: Task) -> bool:
        return True

    def chains_behind(self, world: World) -> Mapping[str, int]:
        return {}

    def wanted_kind(self, world: World, task: Task) -> str | None:
        return task.wants_agent

    def reviewers(self, world: World, run: Run, *, rules: Rules) -> tuple[str, ...]:
        named = rules.reviewers if run.reviewers is None else run.reviewers
        skip = world.tasks[run.task].skip_review
        return named if rules.reviews_needed(skip=skip, reviewers=named) else ()

    def purpose(self, world: World, task: Task) -> str:
        return ""

    def begin(self, world: World, run: Run) -> Run:
        return run

    def begin_again(self, world: World, run: Run, last: Run) -> Run:
        """The next run takes over the session, the terms and the verdicts of the last one."""
        return replace(
            run,
            model=last.model,
            max_rounds=last.max_rounds,
            done_word=last.done_word,
            proof=last.proof,
            reviewers=last.reviewers,
            verdicts=last.verdicts,
            unjudged=last.unjudged,
            session=last.session,
            session_number=last.session_number,
            session_used=last.session_used,
            ask=_next_ask(last),
            notes=last.notes,
            merge_commit=last.merge_commit,
            merge_head=last.merge_head,
            merge_paths=last.merge_paths,
            merge_notes=last.merge_notes,
            merge_kept=last.merge_kept,
            merge_refused=last.merge_refused,
            merge_accepted=last.merge_accepted,
        )

    def check_signal(self, world: World, run: Run, signal: Signal) -> None:
        if signal.kind == SignalKind.NEEDS_ROLE_FOLLOWUP:
            raise Conflict(
                "this task has no other role, so none can follow",
                hint="do it yourself, or send needs-user-input with a question for a person",
            )

    def judge_step(self, world: World, run: Run, outcome: StepOutcome) -> StepOutcome:
        return outcome

    def after_step(
        self, world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
    ) -> list[Fact]:
        return []

    def after_answer(self, world: World, run: Run, *, at: float) -> list[Fact]:
        return []

    def pass_on(self, world: World, run: Run, *, at: float) -> list[Fact]:
        return []

    def refuse_completion(self, world: World, task: Task) -> None:
        """Nothing to refuse: a person may complete the task at any time."""

    def joins_queue(self, run: Run) -> bool:
        return True

    def take_back(
        self,
        world: World,
        run: Run,
        *,
        ask: Ask,
        notes: str,
        rules: Rules,
        at: float,
        **changes: "Unpack[MergeAside]",
    ) -> list[Fact]:
        """Send the task back to its own session, as after a red check."""
        return sent_back(world, run, self, ask=ask, notes=notes, rules=rules, at=at, **changes)

    def held(self, world: World, run: Run, *, at: float) -> list[Fact]:
        agent = agent_of(world, run)
        return [freed(agent, "gave_up", at=at)] if agent is not None else []

    def out_of_tries(
        self, world: World, run: Run, reason: str, *, at: float, **told: "Unpack[RunFields]"
    ) -> list[Fact]:
        """Fail the run; a run that resumes it begins with the prompt that was due next."""
        return broken_off(world, run, reason, at=at, **told)


def _next_ask(last: Run) -> str:
    """The ask of the last run, or a plain continuation if that ask holds no complaint."""
    if last.ask in _WITHOUT_COMPLAINT:
        return Ask.CONTINUE if last.session_used else Ask.RESUMED
    return last.ask
