"""What `crew manager` records about its steps, so that their cost is known, or known to be unknown.

A step is recorded before it starts: if it is killed, nothing says what it cost.
"""

from collections.abc import Mapping

from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked, Verb, typed
from crew.domain.rows.agent import Manager, ManagerState
from crew.domain.rows.step import Usage
from crew.domain.world import FactDraft, World, born, moved


@frozen
class AskManager:
    """A step of a manager begins; with an empty id it is the first of a new manager."""

    manager: str
    agent_kind: str
    model: str


@frozen
class ManagerAnswered:
    manager: str
    usage: Usage


def asked_manager(asked: Asked[AskManager]) -> Answer:
    """Record that a step begins; the reply is the id of the manager."""
    wanted, draft = asked.request, FactDraft(asked.world)
    name = wanted.manager or f"m{len(asked.world.managers) + 1}"
    if not wanted.manager:
        new = Manager(
            id=name, agent_kind=wanted.agent_kind, model=wanted.model, started_at=asked.at
        )
        draft.add(born(new, "began", at=asked.at))
    row = _find(draft.world, name)
    to, steps = ManagerState.ASKED, row.steps + 1
    draft.add(moved(row, "asked", to=to, at=asked.at, steps=steps))
    return Answer(facts=tuple(draft.facts), reply=name)


def manager_answered(asked: Asked[ManagerAnswered]) -> Answer:
    """Record the end of a step and what it used."""
    row, idle = _find(asked.world, asked.request.manager), ManagerState.IDLE
    used = asked.request.usage.added_to(row.reported)
    fact = moved(
        row,
        "answered",
        to=idle,
        at=asked.at,
        input_tokens=used["input_tokens"],
        output_tokens=used["output_tokens"],
        reported_usd=used["cost_usd"],
    )
    return Answer(facts=(fact,), reply=row.id)


def _find(world: World, name: str) -> Manager:
    if name not in world.managers:
        raise NotFound(f"there is no manager {name!r}", hint="`crew manager` starts one")
    return world.managers[name]


VERBS: Mapping[str, Verb] = {
    "manager_asked": typed(AskManager, asked_manager),
    "manager_answered": typed(ManagerAnswered, manager_answered),
}
