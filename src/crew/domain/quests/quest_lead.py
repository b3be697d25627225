"""A quest's workflow leads a run: from role to role and stage to stage."""

# ruff: noqa: ARG002 - every lead is asked in the same way, whatever it decides by

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Unpack

from crew.domain.agents.slot_lead import SlotLead
from crew.domain.commands import CheckStage, Command
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.quests import position, role_entry, role_outcomes, role_requests
from crew.domain.quests.quest_plan import chains_behind
from crew.domain.quests.role_sessions import session_to_resume
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import Signal, StepOutcome
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.world import World

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside
    from crew.domain.row_changes import RunFields


class QuestLead(SlotLead):
    """As an agent slot, but roles act in turn, and a person is asked before a run fails."""

    check: ClassVar[type[Command]] = CheckStage

    def may_take_up(self, world: World, task: Task) -> bool:
        if position.is_held(world, task.id):
            return False
        if task.state == TaskState.TODO:
            return position.is_told(world, task.id)
        is_begun = task.state == TaskState.IN_PROGRESS
        return not (is_begun and position.waits_for_steps(world, task.id))

    def why_not(self, world: World, task: Task) -> str:
        is_held = position.is_held(world, task.id)
        return "the items of its plan come first" if is_held else ""

    def has_room(self, world: World, task: Task) -> bool:
        return position.has_slot(world, task.id)

    def chains_behind(self, world: World) -> Mapping[str, int]:
        return chains_behind(world)

    def wanted_kind(self, world: World, task: Task) -> str | None:
        return position.wanted_kind(world, task)

    def reviewers(self, world: World, run: Run, *, rules: Rules) -> tuple[str, ...]:
        return position.stage_reviewers(world, run)

    def purpose(self, world: World, task: Task) -> str:
        """The description of an item in its plan."""
        quest = world.quests.get(world.positions[task.id].quest)
        steps = quest.steps if quest else ()
        return next((step.description for step in steps if step.task == task.id), "")

    def begin(self, world: World, run: Run) -> Run:
        """Start the acting role; it resumes the session that it kept, if there is one."""
        run = replace(run, **position.beginning(world, run.task))
        if run.agent is None:
            return run
        kept = session_to_resume(world, run, role=run.role, kind=run.agent_kind)
        return replace(run, **kept)

    def begin_again(self, world: World, run: Run, last: Run) -> Run:
        return self.begin(world, run)

    def check_signal(self, world: World, run: Run, signal: Signal) -> None:
        role = position.role_of(world, run)
        if role is None:
            super().check_signal(world, run, signal)
        else:
            role_requests.check_signal(world, run, role, signal)

    def judge_step(self, world: World, run: Run, outcome: StepOutcome) -> StepOutcome:
        return role_outcomes.judged(run, outcome)

    def after_step(
        self, world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
    ) -> list[Fact]:
        return role_outcomes.after_step(world, before, outcome, rules=rules, at=at)

    def after_answer(self, world: World, run: Run, *, at: float) -> list[Fact]:
        return role_entry.answered(world, run, at=at)

    def refuse_completion(self, world: World, task: Task) -> None:
        if task.id in world.quests and position.is_unfinished(world, task.id):
            raise Conflict(
                f"the items of quest {task.id} are not finished",
                hint=f"`crew quest show {task.id}` lists them; `crew close` drops one",
                code="quest_unfinished",
            )

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
        return role_entry.taken_back(world, run, ask=ask, notes=notes, at=at, **changes)

    def held(self, world: World, run: Run, *, at: float) -> list[Fact]:
        return [*super().held(world, run, at=at), role_entry.held(world, run, at=at)]

    def out_of_tries(
        self, world: World, run: Run, reason: str, *, at: float, **told: "Unpack[RunFields]"
    ) -> list[Fact]:
        return role_entry.blocked(world, run, reason, at=at, **told)
