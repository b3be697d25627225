"""Follow-ups: which role may ask which other role to act first, and how the asking role resumes."""

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import attributed
from crew.domain.quests.position import acting, workflow_of
from crew.domain.quests.role_entry import called_agent, entered
from crew.domain.rows.quest import ItemState, Position
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.step import Signal, SignalKind
from crew.domain.rows.workflow import Role
from crew.domain.world import FactDraft, World, born, moved, noted


def check_signal(world: World, run: Run, role: Role, told: Signal) -> None:
    """Raise with the reason if this role may not send this signal."""
    if told.kind not in role.signals:
        raise Conflict(
            f"the role {role.name} may not send {told.kind}",
            hint=f"it may send: {', '.join(role.signals)}",
            code="signal_not_allowed",
        )
    if told.kind == SignalKind.NEEDS_ROLE_FOLLOWUP:
        _check_followup(world, run, told)


def _check_followup(world: World, run: Run, told: Signal) -> None:
    position = acting(world, run.task)
    workflow = workflow_of(world, position)
    others = ", ".join(name for name in workflow.roles if name != run.role)
    if told.role not in workflow.roles:
        raise Conflict(
            f"there is no role {told.role!r} here",
            hint=f"the others are: {others}",
            code="unknown_role",
        )
    if told.role == run.role:
        raise Conflict(
            f"you are {told.role} yourself", hint=f"the others are: {others}", code="own_role"
        )
    waiting = _chain(world, position)
    if told.role in [one.role for one in waiting]:
        raise Conflict(
            f"{told.role} already waits for you, so it cannot follow you",
            hint="do your part, then send complete with what is left for it to do",
        )
    if len(waiting) > workflow.deepest:
        raise Conflict(
            f"{len(waiting) - 1} roles already wait for each other, which is the limit",
            hint="do it yourself, or send complete with what is left to do",
            code="too_deep",
        )


def _chain(world: World, position: Position) -> list[Position]:
    """The acting position, then the positions that wait for it, up to the task's own."""
    chain = [position]
    while chain[-1].asker:
        chain.append(world.positions[chain[-1].asker])
    return chain


def followed(world: World, before: Run, *, at: float) -> list[Fact]:
    """Start the role that was asked for, and keep the session of the asking role."""
    draft = FactDraft(world)
    asker, base = acting(world, before.task), world.positions[before.task]
    run = world.runs[before.id]
    draft.add(
        moved(
            asker,
            "needs_role_followup",
            to=ItemState.WAITING_FOR_ROLE,
            at=at,
            role=before.role,
            agent_kind=run.agent_kind,
            session=run.session,
            session_used=run.session_used,
        )
    )
    position = Position(
        id=f"{before.task}/{base.followups + 1}",
        quest=base.quest,
        task=before.task,
        key=base.key,
        stage=base.stage,
        role=before.signal_role,
        asker=asker.id,
        resume=before.signal_resume,
        asked_by=before.role,
    )
    draft.add(born(position, "asked_for", at=at))
    base = draft.world.positions[base.id]
    draft.add(noted(base, "handed_over", at=at, acting=position.id, followups=base.followups + 1))
    draft.add(
        moved(draft.world.positions[position.id], "slot_assigned", to=ItemState.IN_PROGRESS, at=at)
    )
    needs = f"{before.role} needs you to act first, and says why"
    notes = attributed(needs, before.signal_notes)
    draft.add(*entered(draft.world, run, position.role, ask=Ask.ROLE, notes=notes, at=at))
    return draft.facts


def handed_back(world: World, run: Run, *, at: float) -> list[Fact]:
    """End a follow-up, and resume the asking role in its session if it wanted to resume.

    If no role of the chain wanted to resume, the stage of the task itself is finished too, and the
    caller still has to route the run.
    """
    draft, position = FactDraft(world), acting(world, run.task)
    done_by, words = position.role, world.positions[run.task].said[-1].words
    draft.add(moved(position, "complete", to=ItemState.COMPLETE, at=at))
    continues = False
    while position.asker and not continues:
        continues, position = position.resume, draft.world.positions[position.asker]
        stays = continues or not position.asker
        state = ItemState.IN_PROGRESS if stays else ItemState.COMPLETE
        draft.add(moved(position, "role_completed", to=state, at=at))
    base = draft.world.positions[run.task]
    draft.add(noted(base, "handed_back", at=at, acting=position.id))
    if continues:
        notes = attributed(f"{done_by} has done its part, and says", words)
        draft.add(_resumed(run, position, notes=notes, at=at), *called_agent(world, run, at=at))
    return draft.facts


def _resumed(run: Run, asker: Position, *, notes: str, at: float) -> Fact:
    return moved(
        run,
        "next_role",
        to=RunState.WORKING,
        at=at,
        role=asker.role,
        agent_kind=asker.agent_kind,
        session=asker.session,
        session_used=asker.session_used,
        session_number=run.session_number + 1,
        round=run.round + 1,
        step=0,
        ask=Ask.FOLLOWED,
        notes=notes,
        fresh_retry=False,
    )
