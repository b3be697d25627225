"""The table of all request verbs, and the one function that answers a request."""

from collections.abc import Mapping

from crew.domain.agents import agent_requests, manager_requests
from crew.domain.channels import channel_requests, member_requests
from crew.domain.kernel.errors import UsageError
from crew.domain.lead_choice import LEADS
from crew.domain.merging import accepted_merge, conflict_choice, merge_requests
from crew.domain.quests import quest_requests
from crew.domain.requests import Answer, Asked, Request, Verb
from crew.domain.rules import Rules
from crew.domain.runs import suspicions
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.tasks import messages, task_requests
from crew.domain.terminals import resume_requests, terminal_requests, terminal_signals
from crew.domain.world import World

VERBS: Mapping[str, Verb] = {
    **agent_requests.VERBS,
    **manager_requests.VERBS,
    **task_requests.VERBS,
    **merge_requests.VERBS,
    **terminal_requests.VERBS,
    **resume_requests.VERBS,
    **terminal_signals.VERBS,
    **conflict_choice.VERBS,
    **accepted_merge.VERBS,
    **messages.VERBS,
    **suspicions.VERBS,
    **quest_requests.VERBS,
    **channel_requests.VERBS,
    **member_requests.VERBS,
}


def answer(
    world: World, request: Request, *, rules: Rules, at: float, scope: Scope = EVERYTHING
) -> Answer:
    """The facts and the reply of a request, or a `CrewError` with the reason."""
    verb = VERBS.get(request.verb)
    if verb is None:
        raise UsageError(f"unknown request {request.verb!r}", hint=f"known: {', '.join(VERBS)}")
    return verb(Asked(request=request, world=world, leads=LEADS, rules=rules, scope=scope, at=at))
