"""The choice of the lead of a run: slot, quest or terminal."""

from crew.domain.agents.slot_lead import SlotLead
from crew.domain.lead import Lead, Leads
from crew.domain.quests.quest_lead import QuestLead
from crew.domain.rows.run import Run
from crew.domain.terminals.terminal_lead import TerminalLead
from crew.domain.world import World

LEADS = Leads(slot=SlotLead(), quest=QuestLead(), terminal=TerminalLead())


def lead_of(world: World, run: Run) -> Lead:
    """The lead of this run now: an agent slot, a quest's workflow, or a person at a terminal."""
    return LEADS.of_run(world, run)
