"""What follows for the rows when their repository was copied or moved."""

from collections.abc import Mapping

from crew.domain.channels.member_outcomes import fresh_session
from crew.domain.kernel.fact import Fact
from crew.domain.runs.step_errors import new_session
from crew.domain.terminals.terminal_outcomes import ended
from crew.domain.world import World, noted


def worktrees_moved(world: World, places: Mapping[str, str], *, at: float) -> list[Fact]:
    """Record where the worktree of each task is now; an empty place means that it has none."""
    return [
        noted(task, "worktree_moved", at=at, worktree=places.get(task.id, ""))
        for task in world.tasks.values()
        if task.worktree and task.worktree != places.get(task.id, "")
    ]


def copied(world: World, *, at: float) -> list[Fact]:
    """Let go of what belongs to the original: its terminals, and the sessions of its agents.

    Two agents in one session would write into each other's conversation.
    """
    facts = [
        noted(run, "copied", at=at, **new_session(run, knows_nothing=True))
        for run in world.runs.values()
        if run.is_live and (run.session or run.session_used)
    ]
    facts += [
        noted(
            one,
            "copied",
            at=at,
            session="",
            session_used=False,
            session_number=one.session_number + 1,
        )
        for one in world.positions.values()
        if one.session
    ]
    facts += [noted(q, "copied", at=at, sessions=()) for q in world.quests.values() if q.sessions]
    for member in world.members.values():
        if member.session:
            facts.append(noted(member, "copied", at=at, **fresh_session(member)))
    for one in world.terminals.values():
        if one.has_process and one.is_up:
            facts += ended(world, one.id, number=one.number, code=None, at=at)
    return facts
