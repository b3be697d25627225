"""Lead: an agent slot, a quest's workflow or a person at a terminal, whichever leads a run.

Runs and merge queues are the same for all three. Where one of them decides otherwise, the lead is
asked. `lead_choice` puts the three together.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import Signal, StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.world import World


class Lead(Protocol):
    """A lead keeps nothing: all that it decides by is in the world it is given.

    `check` is the command that checks the work of a round. `is_watched` says that a person sees
    each result at once: such a run may try again without a limit.
    """

    check: ClassVar[type[Command]]
    is_watched: ClassVar[bool]

    def may_take_up(self, world: World, task: Task) -> bool:
        """Whether a task may start, continue or start again, as far as its lead is concerned."""

    def why_not(self, world: World, task: Task) -> str:
        """Why a task may not start; empty if its lead is not the reason."""

    def has_room(self, world: World, task: Task) -> bool:
        """Whether one more agent may work on what this task is part of."""

    def chains_behind(self, world: World) -> Mapping[str, int]:
        """How many tasks wait one behind the other for each task that this lead puts in order."""

    def wanted_kind(self, world: World, task: Task) -> str | None:
        """The agent kind that the next run of a task is for; None if any will do."""

    def purpose(self, world: World, task: Task) -> str:
        """What a task is for, if its lead knows more than its title."""

    def begin(self, world: World, run: Run) -> Run:
        """A new run, with what its lead adds to it."""

    def begin_again(self, world: World, run: Run, last: Run) -> Run:
        """A new run that continues where the last run of its task ended."""

    def check_signal(self, world: World, run: Run, signal: Signal) -> None:
        """Raise with the reason if the step under way may not send this signal."""

    def judge_step(self, world: World, run: Run, outcome: StepOutcome) -> StepOutcome:
        """The outcome of a step as this lead sees it."""

    def after_step(
        self, world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
    ) -> list[Fact]:
        """What else a step means; the world has the step's own end already."""

    def after_answer(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """What else it means that a person answered the question of a run."""

    def pass_on(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """The notes of a run are new: how they reach its agent, if not with the next step."""

    def refuse_completion(self, world: World, task: Task) -> None:
        """Raise with the reason if a person may not complete this task yet."""

    def joins_queue(self, run: Run) -> bool:
        """Whether proven work goes to the merge queue at once."""

    def take_back(
        self,
        world: World,
        run: Run,
        *,
        ask: Ask,
        notes: str,
        rules: Rules,
        at: float,
        **changes: Any,
    ) -> list[Fact]:
        """The merge queue sends a complete run back."""

    def cannot_go_on(
        self, world: World, run: Run, reason: str, *, at: float, **told: Any
    ) -> list[Fact]:
        """A run has used up its tries; `told` is what its agent would have been told next."""


@frozen
class Leads:
    """The three leads, and the one place that chooses between them."""

    slot: Lead
    quest: Lead
    terminal: Lead

    def of_run(self, world: World, run: Run) -> Lead:
        return self.terminal if world.terminal_of(run.id) else self.of_task(world, run.task)

    def of_task(self, world: World, task: str) -> Lead:
        """The lead that decides when a task is taken up; a terminal never waits for that."""
        return self.quest if task in world.positions else self.slot

    def chains_behind(self, world: World) -> Mapping[str, int]:
        return self.quest.chains_behind(world)
