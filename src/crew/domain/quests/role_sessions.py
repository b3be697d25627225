"""The sessions that a role keeps for its quest, so that the next item starts with what it knows."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crew.domain.kernel.fact import Fact
from crew.domain.quests.position import role_of
from crew.domain.rows.quest import ItemState, Quest
from crew.domain.rows.run import Run
from crew.domain.rows.workflow import KeepsSession, Workflow
from crew.domain.rules import Rules
from crew.domain.world import World, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import RunFields

MOST_KEPT = 50
"""Sessions that a quest remembers; the oldest are forgotten."""


def session_to_resume(world: World, run: Run, *, role: str, kind: str) -> "RunFields":
    """The newest session that this role kept and no other run uses, as changes of its run."""
    kept = [
        session
        for kept_role, kept_kind, session in reversed(_quest_of(world, run).sessions)
        if (kept_role, kept_kind) == (role, kind) and not is_used_elsewhere(world, run, session)
    ]
    return {"session": kept[0], "session_used": True} if kept else {}


def is_used_elsewhere(world: World, run: Run, session: str) -> bool:
    """Whether another live run of the quest has this session, or a role waits to resume it."""
    quest = _quest_of(world, run).id
    positions = [position for position in world.positions.values() if position.quest == quest]
    waiting = {
        position.session for position in positions if position.state == ItemState.WAITING_FOR_ROLE
    }
    tasks = {position.task for position in positions}
    live = {
        other.session
        for other in world.runs.values()
        if other.is_live and other.task in tasks and other.id != run.id
    }
    return session in waiting | live


def session_kept(world: World, run: Run, *, rules: Rules, at: float) -> list[Fact]:
    """Keep the session of a role that has finished its part, where its CLI can move it."""
    role = role_of(world, run)
    if role is None or role.session != KeepsSession.QUEST or not run.session:
        return []
    if run.agent_kind not in rules.movable_sessions:
        return []
    quest, kept = _quest_of(world, run), (role.name, run.agent_kind, run.session)
    if kept in quest.sessions[-1:]:
        return []
    others = tuple(one for one in quest.sessions if one != kept)
    return [noted(quest, "session_kept", at=at, sessions=(*others, kept)[-MOST_KEPT:])]


def that_keep_none(workflow: Workflow, rules: Rules) -> dict[str, str]:
    """The roles that should keep their session and cannot, with the agent kind that cannot."""
    kinds = {
        role.name: role.agent or rules.default_kind
        for role in workflow.roles.values()
        if role.session == KeepsSession.QUEST
    }
    return {role: kind for role, kind in kinds.items() if kind not in rules.movable_sessions}


def as_they_keep(workflow: Workflow, rules: Rules) -> Workflow:
    """The workflow in which only those roles keep their session whose CLI can move it."""
    roles = {
        name: replace(workflow.roles[name], session=KeepsSession.ITEM)
        for name in that_keep_none(workflow, rules)
    }
    return replace(workflow, roles={**workflow.roles, **roles})


def session_dropped(world: World, run: Run, *, at: float) -> list[Fact]:
    """Forget a session that its CLI refused, lost or filled up: no other item resumes it."""
    quest = _quest_of(world, run)
    left = tuple(one for one in quest.sessions if one[2] != run.session)
    return [noted(quest, "session_dropped", at=at, sessions=left)] if left != quest.sessions else []


def _quest_of(world: World, run: Run) -> Quest:
    return world.quests[world.positions[run.task].quest]
