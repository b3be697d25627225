"""A person at a terminal leads a run: no round limit, and no merge without a request."""

from typing import ClassVar

from crew.domain.agents.slot_lead import SlotLead
from crew.domain.commands import Command, Inspect
from crew.domain.kernel.fact import Fact
from crew.domain.rows.run import Run
from crew.domain.terminals.terminal_outcomes import to_be_typed
from crew.domain.world import World


class TerminalLead(SlotLead):
    """As an agent slot, but a person sees each result and decides what follows."""

    check: ClassVar[type[Command]] = Inspect
    is_watched: ClassVar[bool] = True

    def pass_on(self, world: World, run: Run, *, at: float) -> list[Fact]:
        """Type the notes into the terminal."""
        return to_be_typed(world, run, at=at)

    def joins_queue(self, run: Run) -> bool:
        """Only if the person asked for the merge; else they look at the result first."""
        return run.merges
