"""How a task walks through a workflow: roles that begin, end, ask each other, and fail."""

from dataclasses import replace
from typing import Any

from crew.domain.agent import AgentState
from crew.domain.asking import new_question
from crew.domain.errors import Conflict
from crew.domain.fact import Fact
from crew.domain.quest import Quest, Said, StepState, Walk
from crew.domain.question import About
from crew.domain.releasing import agent_of, freed
from crew.domain.rules import Rules
from crew.domain.run import Ask, Run, RunState
from crew.domain.signals import Signal, SignalKind
from crew.domain.step import ErrorKind, StepError, StepOutcome
from crew.domain.workflow import Does, Role, Stage, Workflow, from_text
from crew.domain.world import Draft, World, born, moved, noted

RETRIES = 3
"""How often a role may begin again, or fail in a row, where its workflow does not say."""

ENDLESS = 1_000_000
"""Rounds of a run that walks: its stages have limits of their own."""

_LONGEST_STORY = 100
_LONGEST_WORDS = 2_000


def is_walked(world: World, run: Run) -> bool:
    """Whoever works at a terminal is not led through stages."""
    return run.task in world.walks and not run.pane


def workflow_of(world: World, walk: Walk) -> Workflow:
    return from_text(world.quests[walk.quest].definition)


def stages_of(workflow: Workflow, walk: Walk) -> tuple[Stage, ...]:
    return workflow.step_stages if walk.key else workflow.stages


def stage_named(world: World, walk: Walk, name: str) -> Stage:
    stages = stages_of(workflow_of(world, walk), walk)
    return next(stage for stage in stages if stage.name == name)


def acting(world: World, task: str) -> Walk:
    """The walk whose role has its turn: a follow-up, or the task's own."""
    base = world.walks[task]
    return world.walks[base.acting or base.id]


def role_of(world: World, run: Run) -> Role | None:
    """None: it is led by no workflow, or by a stage that no role acts in."""
    if not is_walked(world, run):
        return None
    return workflow_of(world, world.walks[run.task]).roles.get(run.role)


def is_held(world: World, task: str) -> bool:
    """Its steps are walked now; until they have arrived nobody is needed for it."""
    base = world.walks.get(task)
    return base is not None and stage_named(world, base, base.stage).does is Does.STEPS


def has_slot(world: World, task: str) -> bool:
    """Whether one more of this quest's tasks may be worked at."""
    base = world.walks.get(task)
    if base is None:
        return True
    walks, tasks = world.walks, [agent.task for agent in world.agents.values() if agent.task]
    busy = sum(1 for other in tasks if other in walks and walks[other].quest == base.quest)
    return busy < world.quests[base.quest].slots


def beginning(world: World, task: str) -> dict[str, Any]:
    """What a new try at this task begins with: the role whose turn it is."""
    if task not in world.walks:
        return {}
    walk = acting(world, task)
    return {"role": walk.role, "max_rounds": ENDLESS, "ask": Ask.ROLE}


def first_walk(quest: Quest, task: str, *, key: str = "") -> Walk:
    walk = Walk(id=task, quest=quest.id, task=task, key=key)
    first = stages_of(from_text(quest.definition), walk)[0]
    return replace(walk, stage=first.name, role=_role_in(first), visits=((_role_in(first), 1),))


def _role_in(stage: Stage) -> str:
    return stage.roles[0] if stage.does is Does.ROLE else ""


def check_signal(world: World, run: Run, told: Signal) -> None:
    """A role that may not say this is told so, and nothing is changed."""
    role = role_of(world, run)
    if role is None:
        if told.kind == SignalKind.NEEDS_ROLE_FOLLOWUP:
            raise Conflict(
                "nobody else works at this task, so no other role can follow",
                hint="do it yourself, or send needs-user-input with a question for a person",
            )
        return
    if told.kind not in role.signals:
        raise Conflict(
            f"the role {role.name} may not send {told.kind}",
            hint=f"it may send: {', '.join(role.signals)}",
        )
    if told.kind == SignalKind.NEEDS_ROLE_FOLLOWUP:
        _check_followup(world, run, told)


def _check_followup(world: World, run: Run, told: Signal) -> None:
    walk = acting(world, run.task)
    workflow = workflow_of(world, walk)
    others = ", ".join(name for name in workflow.roles if name != run.role)
    if told.role not in workflow.roles:
        raise Conflict(f"there is no role {told.role!r} here", hint=f"the others are: {others}")
    waiting = _chain(world, walk)
    if told.role in [one.role for one in waiting]:
        raise Conflict(
            f"{told.role} waits for you already, so it cannot follow you",
            hint="do your part, then send complete with what is left for it to do",
        )
    if len(waiting) > workflow.deepest:
        raise Conflict(
            f"{len(waiting) - 1} roles wait for each other already, and no more may",
            hint="do it yourself, or send complete with what is left to do",
        )


def _chain(world: World, walk: Walk) -> list[Walk]:
    """The acting walk, then whoever waits for it, up to the task's own."""
    chain = [walk]
    while chain[-1].asker:
        chain.append(world.walks[chain[-1].asker])
    return chain


def judged(world: World, run: Run, outcome: StepOutcome) -> StepOutcome:
    """A role ends its turn with a signal; one that ends without has crashed (seed 003)."""
    if not is_walked(world, run) or run.signal or outcome.done or outcome.error is not None:
        return outcome
    words = f"{run.role} ended its turn without a signal"
    return replace(outcome, error=StepError(kind=ErrorKind.CRASHED, message=words))


def after_step(
    world: World, before: Run, outcome: StepOutcome, *, rules: Rules, at: float
) -> list[Fact]:
    """What a step means for the walk; `world` knows already how the step itself ended."""
    if not is_walked(world, before):
        return []
    if outcome.error is not None and not before.signal:
        return _errored(world, before, outcome.error, rules=rules, at=at)
    draft = Draft(world)
    signal = before.signal or SignalKind.COMPLETE
    words = before.signal_notes or outcome.text
    draft.add(told(world, before.task, before.role, signal, words, session=before.session, at=at))
    walk = acting(draft.world, before.task)
    if signal == SignalKind.NEEDS_USER_INPUT:
        draft.add(moved(walk, "needs_user_input", to=StepState.WAITING_FOR_USER, at=at))
    if signal == SignalKind.PARTIALLY_COMPLETE:
        draft.add(moved(walk, "partially_complete", to=StepState.PARTIALLY_COMPLETE, at=at))
        walk = acting(draft.world, before.task)
        draft.add(moved(walk, "slot_assigned", to=StepState.IN_PROGRESS, at=at))
        if draft.world.runs[before.id].state == RunState.REVIEWING:
            reason = f"{before.role} used {rules.max_steps} sessions and is not finished"
            draft.add(*blocked(draft.world, draft.world.runs[before.id], reason, at=at))
    if signal == SignalKind.NEEDS_ROLE_FOLLOWUP:
        draft.add(*_followed(draft.world, before, at=at))
    return draft.facts


def told(
    world: World, task: str, role: str, signal: str, words: str, *, at: float, session: str = ""
) -> Fact:
    """One more line of a task's story, from a role, a gate or a reviewer."""
    base = world.walks[task]
    said = Said(at, role, session, signal, words[-_LONGEST_WORDS:])
    return noted(base, "said", at=at, story=(*base.story, said)[-_LONGEST_STORY:], failures=0)


def _errored(world: World, run: Run, error: StepError, *, rules: Rules, at: float) -> list[Fact]:
    """Errors in a row are counted for the step, so that a person hears of it in the end."""
    if error.kind == ErrorKind.RATE_LIMIT:
        return []
    base = world.walks[run.task]
    failures = base.failures + 1
    counted = noted(base, "role_failed", at=at, failures=failures)
    role = role_of(world, run)
    limit = min(_retries(role), rules.stuck_after - 2)
    agent = agent_of(world, run)
    if failures <= limit or agent is None or agent.state == AgentState.STUCK:
        return [counted]
    draft = Draft(world)
    draft.add(counted)
    reason = f"{run.role} failed {failures} times in a row: {error.message}"
    draft.add(*blocked(draft.world, draft.world.runs[run.id], reason, at=at))
    return draft.facts


def _retries(role: Role | None) -> int:
    return RETRIES if role is None or role.retries is None else role.retries


def _followed(world: World, before: Run, *, at: float) -> list[Fact]:
    """Another role acts first; whoever asked keeps its session for afterwards."""
    draft = Draft(world)
    asker, base = acting(world, before.task), world.walks[before.task]
    run = world.runs[before.id]
    draft.add(
        moved(
            asker,
            "needs_role_followup",
            to=StepState.WAITING_FOR_ROLE,
            at=at,
            role=before.role,
            agent_kind=run.agent_kind,
            session=run.session,
            session_used=run.session_used,
        )
    )
    walk = Walk(
        id=f"{before.task}/{base.followups + 1}",
        quest=base.quest,
        task=before.task,
        key=base.key,
        stage=base.stage,
        role=before.signal_role,
        asker=asker.id,
        resume=before.signal_resume,
    )
    draft.add(born(walk, "asked_for", at=at))
    base = draft.world.walks[base.id]
    draft.add(noted(base, "handed_over", at=at, acting=walk.id, followups=base.followups + 1))
    draft.add(moved(draft.world.walks[walk.id], "slot_assigned", to=StepState.IN_PROGRESS, at=at))
    notes = f"{before.role} needs you to act first.\n\n{before.signal_notes}"
    draft.add(*entered(draft.world, run, walk.role, ask=Ask.ROLE, notes=notes, at=at))
    return draft.facts


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
    """A role begins at a task, unless it did so too often; its own session, if it had the word."""
    base = world.walks[run.task]
    visits = dict(base.visits)
    visits[role] = visits.get(role, 0) + 1
    draft = Draft(world)
    draft.add(noted(base, "role_began", at=at, visits=tuple(visits.items()), failures=0))
    draft.add(_called(draft.world, run, role, ask=ask, notes=notes, at=at, trigger=trigger))
    draft.add(*_called_agent(world, run, at=at))
    known = workflow_of(world, base).roles.get(role)
    if visits[role] > 1 + _retries(known):
        reason = f"{role} was called {visits[role]} times"
        draft.add(*blocked(draft.world, draft.world.runs[run.id], reason, at=at))
    return draft.facts


def _called(
    world: World, run: Run, role: str, *, ask: Ask, notes: str, at: float, trigger: str
) -> Fact:
    again = role == run.role and run.session_used and ask != Ask.ROLE
    changes: dict[str, Any] = {
        "role": role,
        "round": run.round + 1,
        "step": 0,
        "ask": ask if again else Ask.ROLE,
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


def fresh_session(world: World, run: Run, role: str) -> dict[str, Any]:
    """A session that knows nothing, of the agent that this role is for."""
    known = workflow_of(world, world.walks[run.task]).roles.get(role)
    agent, task = agent_of(world, run), world.tasks[run.task]
    kind = task.wants_agent or (agent.agent_kind if agent else run.agent_kind)
    return {
        "agent_kind": (known.agent if known else "") or kind,
        "session": "",
        "session_used": False,
        "session_number": run.session_number + 1,
    }


def handed_back(world: World, run: Run, *, at: float) -> list[Fact]:
    """A follow-up is finished: whoever asked goes on in its session, or its part is over too.

    When nobody of the chain wanted to go on, the task's own stage is finished with it, and the run
    is still to be led on.
    """
    draft, walk = Draft(world), acting(world, run.task)
    done_by, words = walk.role, world.walks[run.task].said[-1].words
    draft.add(moved(walk, "complete", to=StepState.COMPLETE, at=at))
    goes_on = False
    while walk.asker and not goes_on:
        goes_on, walk = walk.resume, draft.world.walks[walk.asker]
        stays = goes_on or not walk.asker
        state = StepState.IN_PROGRESS if stays else StepState.COMPLETE
        draft.add(moved(walk, "role_completed", to=state, at=at))
    base = draft.world.walks[run.task]
    draft.add(noted(base, "handed_back", at=at, acting=walk.id))
    if goes_on:
        notes = f"{done_by} has done its part:\n\n{words}"
        draft.add(_resumed(run, walk, notes=notes, at=at), *_called_agent(world, run, at=at))
    return draft.facts


def _resumed(run: Run, asker: Walk, *, notes: str, at: float) -> Fact:
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


def _called_agent(world: World, run: Run, *, at: float) -> list[Fact]:
    agent = agent_of(world, run)
    if agent is None or agent.state != AgentState.DONE:
        return []
    return [moved(agent, "next_role", to=AgentState.WORKING, at=at)]


def taken_back(
    world: World, run: Run, *, ask: Ask, notes: str, at: float, **aside: Any
) -> list[Fact]:
    """The merge queue sends a task back: to the stage that is for that, or to whoever was last."""
    base = world.walks[run.task]
    stages = stages_of(workflow_of(world, base), base)
    stage = next((stage for stage in stages if stage.takes_back), None)
    draft = Draft(world)
    draft.add(noted(run, "not_merged", at=at, **aside))
    run = draft.world.runs[run.id]
    if stage is not None:
        draft.add(noted(base, "taken_back", at=at, stage=stage.name))
    role = _role_in(stage) if stage else run.role
    draft.add(*entered(draft.world, run, role, ask=ask, notes=notes, at=at, trigger="sent_back"))
    return draft.facts


def blocked(world: World, run: Run, reason: str, *, at: float) -> list[Fact]:
    """Nothing goes on by itself: a person is asked with the whole story, and the slot is free."""
    walk = acting(world, run.task)
    question = new_question(
        world,
        run,
        text=f"{_named(walk)} is blocked: {reason}. What shall {run.role or 'it'} do?",
        context=story(world, run.task, run.notes),
        at=at,
        about=About.BLOCKED,
    )
    draft = Draft(world)
    draft.add(born(question, "asked", at=at))
    changes = {"question": question.id, "agent": None, "error": reason}
    if run.state == RunState.WORKING:
        draft.add(noted(run, "blocked", at=at, **changes))
    else:
        draft.add(moved(run, "sent_back", to=RunState.WORKING, at=at, **changes))
    if (agent := agent_of(world, run)) is not None:
        trigger = "gave_up" if agent.state == AgentState.DONE else "parked"
        draft.add(freed(agent, trigger, at=at))
    draft.add(moved(walk, "retries_spent", to=StepState.BLOCKED, at=at))
    return draft.facts


def _named(walk: Walk) -> str:
    return f"step {walk.key}" if walk.key else f"quest {walk.quest}"


def story(world: World, task: str, notes: str = "") -> str:
    """What every role said, the last word last, and what is known besides."""
    said = [f"{one.role} ({one.signal}): {one.words}" for one in world.walks[task].said]
    return "\n\n".join(part for part in (*said, notes) if part)


def answered(world: World, run: Run, *, at: float) -> list[Fact]:
    """A person has spoken: a role that asked goes on, and whatever was spent is there again."""
    if not is_walked(world, run):
        return []
    walk, base = acting(world, run.task), world.walks[run.task]
    if walk.state == StepState.WAITING_FOR_USER:
        return [moved(walk, "answered", to=StepState.IN_PROGRESS, at=at)]
    if walk.state != StepState.BLOCKED:
        return []
    return [
        moved(walk, "answered", to=StepState.PENDING, at=at),
        noted(base, "begins_anew", at=at, visits=(), failures=0),
    ]
