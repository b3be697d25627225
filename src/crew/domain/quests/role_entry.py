"""How a role starts on a task, and how a blocked task asks a person."""

from typing import TYPE_CHECKING, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import attributed
from crew.domain.quests.position import acting, role_in, stages_of, workflow_of
from crew.domain.quests.role_sessions import is_used_elsewhere, session_to_resume
from crew.domain.rows.agent import AgentState
from crew.domain.rows.quest import CONFLICTS, ItemState, Position, RoleEntry, role_counter
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.workflow import Role, Stage
from crew.domain.runs.questions import new_question
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.world import FactDraft, World, born, moved, noted

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside
    from crew.domain.row_changes import PositionFields, RunFields

RETRIES = 3
"""How often a role may start again, or fail in a row, if its workflow sets no limit."""

MOST_CONFLICTS = 20
"""How often a task may come back with a conflict; each item of a longer plan may cause one."""

_LONGEST_STORY = 100
_LONGEST_WORDS = 4_000


def told(
    world: World, task: str, role: str, signal: str, words: str, *, at: float, session: str = ""
) -> Fact:
    """Add one entry to a task's story, from a role, a gate or a reviewer."""
    base = world.positions[task]
    said = RoleEntry(at, role, session, signal, words[-_LONGEST_WORDS:])
    return noted(base, "said", at=at, story=(*base.story, said)[-_LONGEST_STORY:], failures=0)


def retries(role: Role | None) -> int:
    return RETRIES if role is None or role.retries is None else role.retries


def entered(
    world: World,
    run: Run,
    role: str,
    *,
    ask: Ask,
    notes: str,
    at: float,
    trigger: str = "next_role",
) -> list[Fact]:
    """Let a role start on a task, or block the task if that role started too often.

    The role resumes its own session if it acted last.
    """
    base = world.positions[run.task]
    times = base.visited(role_counter(role)) + 1
    visits = {**dict(base.visits), role_counter(role): times}
    draft = FactDraft(world)
    draft.add(noted(base, "role_began", at=at, visits=tuple(visits.items()), failures=0))
    draft.add(noted(acting(draft.world, run.task), "role_named", at=at, role=role))
    draft.add(_called(draft.world, run, role, ask=ask, notes=notes, at=at, trigger=trigger))
    draft.add(*called_agent(world, run, at=at))
    known = workflow_of(world, base).roles.get(role)
    if times > 1 + retries(known):
        reason = f"{role} was called {times} times"
        draft.add(*blocked(draft.world, draft.world.runs[run.id], reason, at=at))
    return draft.facts


def _called(
    world: World, run: Run, role: str, *, ask: Ask, notes: str, at: float, trigger: str
) -> Fact:
    is_free = not is_used_elsewhere(world, run, run.session)
    again = role == run.role and run.session_used and is_free and ask != Ask.ROLE
    changes: RunFields = {
        "role": role,
        "round": run.round + 1,
        "step": 0,
        "ask": ask if again or ask == Ask.CONFLICT else Ask.ROLE,
        "notes": notes,
        "complaint": "",
        "complaints": 0,
        "fresh_retry": False,
        "ended_at": None,
        **({} if again else fresh_session(world, run, role)),
    }
    if run.state == RunState.WORKING:
        return noted(run, trigger, at=at, **changes)
    return moved(run, trigger, to=RunState.WORKING, at=at, **changes)


def called_agent(world: World, run: Run, *, at: float) -> list[Fact]:
    agent = agent_of(world, run)
    if agent is None or agent.state != AgentState.DONE:
        return []
    return [moved(agent, "next_role", to=AgentState.WORKING, at=at)]


def fresh_session(world: World, run: Run, role: str) -> "RunFields":
    """A new session of the agent kind of this role, or the session that the role kept."""
    known = workflow_of(world, world.positions[run.task]).roles.get(role)
    agent, task = agent_of(world, run), world.tasks[run.task]
    wanted = (known.agent if known else "") or task.wants_agent
    kind = wanted or (agent.agent_kind if agent else run.agent_kind)
    return {
        "agent_kind": kind,
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
        **session_to_resume(world, run, role=role, kind=kind),
    }


def taken_back(
    world: World, run: Run, *, ask: Ask, notes: str, at: float, **aside: "Unpack[MergeAside]"
) -> list[Fact]:
    """Send a task that could not be merged to the stage with `takes_back`, or to the last role."""
    base = world.positions[run.task]
    stages = stages_of(workflow_of(world, base), base)
    stage = next((stage for stage in stages if stage.takes_back), None)
    draft = FactDraft(world)
    draft.add(noted(run, "not_merged", at=at, **aside))
    run = draft.world.runs[run.id]
    draft.add(noted(base, "taken_back", at=at, **_back_at(base, run, stage, ask)))
    role = role_in(stage) if stage else run.role
    draft.add(*entered(draft.world, run, role, ask=ask, notes=notes, at=at, trigger="sent_back"))
    times = draft.world.positions[base.id].visited(CONFLICTS)
    if ask == Ask.CONFLICT and times > max(MOST_CONFLICTS, len(world.quests[base.quest].steps)):
        reason = f"it had conflicts with what landed {times} times"
        draft.add(*blocked(draft.world, draft.world.runs[run.id], reason, at=at))
    return draft.facts


def _back_at(base: Position, run: Run, stage: Stage | None, ask: Ask) -> "PositionFields":
    """The position of a task that comes back from the merge queue.

    It had passed all its stages. A conflict is the fault of none of them, so their counts begin
    anew, and only the conflicts go on being counted.
    """
    changes: PositionFields = {"stage": stage.name} if stage else {}
    if ask != Ask.CONFLICT:
        return {**changes, "passed": ""}
    visits = ((CONFLICTS, base.visited(CONFLICTS) + 1),)
    return {**changes, "visits": visits, "passed": run.merge_head if base.key else ""}


def blocked(
    world: World, run: Run, reason: str, *, at: float, **told: "Unpack[RunFields]"
) -> list[Fact]:
    """Ask a person how to continue, with the whole story as context, and free the agent."""
    position = acting(world, run.task)
    question = new_question(
        world,
        run,
        text=f"{_named(position)} is blocked: {reason}. What shall {run.role or 'it'} do?",
        context=story(world, run.task, run.notes),
        at=at,
        about=About.BLOCKED,
    )
    draft = FactDraft(world)
    draft.add(born(question, "asked", at=at))
    counts: RunFields = {
        "complaint": "",
        "complaints": 0,
        "merge_tries": 0,
    }  # the answer resets them
    changes: RunFields = {"question": question.id, "agent": None, "error": reason, **told, **counts}
    if run.state == RunState.WORKING:
        draft.add(noted(run, "blocked", at=at, **changes))
    else:
        draft.add(moved(run, "sent_back", to=RunState.WORKING, at=at, **changes))
    if (agent := agent_of(world, run)) is not None:
        trigger = "gave_up" if agent.state == AgentState.DONE else "parked"
        draft.add(freed(agent, trigger, at=at))
    draft.add(held(draft.world, run, at=at))
    return draft.facts


def held(world: World, run: Run, *, at: float) -> Fact:
    """Block the position until a person has answered."""
    return moved(acting(world, run.task), "retries_spent", to=ItemState.BLOCKED, at=at)


def _named(position: Position) -> str:
    return f"item {position.key}" if position.key else f"quest {position.quest}"


def story(world: World, task: str, notes: str = "") -> str:
    """The entries of every role, the newest last, and then the notes."""
    said = [
        attributed(f"{one.role} ({one.signal})", one.words) for one in world.positions[task].said
    ]
    return "\n\n".join(part for part in (*said, notes) if part)


def answered(world: World, run: Run, *, at: float) -> list[Fact]:
    """Continue the role that asked, or reset the counters of a task that was blocked."""
    position, base = acting(world, run.task), world.positions[run.task]
    if position.state == ItemState.WAITING_FOR_USER:
        return [moved(position, "answered", to=ItemState.IN_PROGRESS, at=at)]
    if position.state != ItemState.BLOCKED:
        return []
    return [
        moved(position, "answered", to=ItemState.PENDING, at=at),
        noted(base, "begins_anew", at=at, visits=(), failures=0),
    ]
