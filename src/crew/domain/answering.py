"""Every verb there is, and the one function that answers a request."""

from collections.abc import Mapping

from crew.domain import (
    channel_agents,
    channel_people,
    pane_requests,
    quest_requests,
    requests,
    resume_requests,
    speaking,
)
from crew.domain.errors import UsageError
from crew.domain.requests import Answer, Asked, Request, Verb
from crew.domain.rules import Rules
from crew.domain.world import World

VERBS: Mapping[str, Verb] = {
    **requests.VERBS,
    **pane_requests.VERBS,
    **resume_requests.VERBS,
    **speaking.VERBS,
    **quest_requests.VERBS,
    **channel_people.VERBS,
    **channel_agents.VERBS,
}


def answer(world: World, request: Request, *, rules: Rules, at: float) -> Answer:
    """The facts and the reply, or a `CrewError` that says why not."""
    verb = VERBS.get(request.verb)
    if verb is None:
        raise UsageError(f"nobody knows {request.verb!r}", hint=f"known: {', '.join(VERBS)}")
    return verb(Asked(args=request.args, world=world, rules=rules, at=at))
