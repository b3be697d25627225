"""Lead: what decides for a run: an agent slot, a quest's workflow, or a person at a terminal.

Runs and merge queues are the same for all three. Where they decide differently, the code asks the
lead. `lead_choice` puts the three together.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, Unpack

from crew.domain.commands import Command
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.step import Signal, StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.world import World

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside
    from crew.domain.row_changes import RunFields


class Lead(Protocol):
    """A lead keeps no state: it decides only from the world that it is given.

    `check` is the command that checks the work of a round. `is_watched` means that a person sees
    each result at once, so that the run has no limit of rounds.
    """

    check: ClassVar[type[Command]]
    is_watched: ClassVar[bool]

    def may_take_up(self, world: World, task: Task) -> bool:
        """Whether the lead allows a task to start, continue or start again."""

    def why_not(self, world: World, task: Task) -> str:
        """The lead's reason why a task may not start; empty if it has none."""

    def has_room(self, world: World, task: Task) -> bool:
        """Whether one more agent may work on the group that this task is part of."""

    def chains_behind(self, world: World) -> Mapping[str, int]:
        """For each task that this lead puts in order, the longest chain of tasks behind it."""

    def wanted_kind(self, world: World, task: Task) -> str | None:
        """The agent kind for the next run of a task; None if any kind will do."""

    def reviewers(self, world: World, run: Run, *, rules: Rules) -> tuple[str, ...]:
        """The agent kinds that review the work of this run; empty if no review is due."""

    def purpose(self, world: World, task: Task) -> str:
        """The purpose of a task, if its lead knows more than its title."""

    def begin(self, world: World, run: Run) -> Run:
        """A new run, with the fields that its lead adds."""

    def begin_again(self, world: World, run: Run, last: Run) -> Run:
        """A new run that continues where the last run of its task ended."""

    def check_signal(self, world: World, run: Run, signal: Signal) -> None:
        """Raise with the reason if the step under way may not send this signal."""

    def judge_step(self, world: World, run: Run, outcome: StepOutcome) -> StepOutcome:
        """The outcome of a step as this lead judges it."""

    def after_step(
        self, world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
    ) -> list[Fact]:
        """What else follows from a step; the world already holds the step's own end."""

    def after_answer(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """What else follows when a person answered the question of a run."""

    def pass_on(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """Send new notes of a run to its agent, if they do not wait for the next step."""

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
        **changes: "Unpack[MergeAside]",
    ) -> list[Fact]:
        """The merge queue sends a complete run back."""

    def held(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """What else follows when the check of a run asks a person; its agent is free."""

    def out_of_tries(
        self, world: World, run: Run, reason: str, *, at: float, **told: "Unpack[RunFields]"
    ) -> list[Fact]:
        """A run has used up its tries; `told` are the fields of the prompt that was due next."""


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
