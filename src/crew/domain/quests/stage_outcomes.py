"""What follows at each stage of a workflow: role, gate, review, council or items."""

from typing import TypedDict, Unpack

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.quotation import LONGEST_NOTES, attributed, quoted
from crew.domain.quests.position import (
    acting,
    is_left_out,
    is_unfinished,
    role_in,
    runs_plan,
    stage_named,
    stage_of_run,
    stages_of,
    waits_for_steps,
    workflow_of,
)
from crew.domain.quests.quest_lead import QuestLead
from crew.domain.quests.role_entry import blocked, entered, told
from crew.domain.quests.role_requests import handed_back
from crew.domain.rows.agent import AgentState
from crew.domain.rows.quest import Position
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.workflow import DONE, Does, Stage
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence, complaint, refusal
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.runs.run_outcomes import completed, merge_kept
from crew.domain.world import FactDraft, World, noted

QUEST = QuestLead()

PROVING = frozenset({Does.GATE, Does.REVIEW})
"""Stages that look at a commit and change nothing."""


def must_have_commits(world: World, run: Run) -> bool:
    """Whether this stage has to leave commits, because they are proven or merged next."""
    here = stage_of_run(world, run)
    if here is None or here.does is not Does.ROLE:
        return False
    target = here.routes["complete"]
    position = world.positions[run.task]
    return target == DONE or stage_named(world, position, target).does in PROVING


def role_finished(
    world: World, run: Run, evidence: Evidence, *, rules: Rules, at: float
) -> list[Fact]:
    """Route the run after a role sent `complete`, if the evidence has no complaint."""
    draft = FactDraft(world)
    draft.add(*merge_kept(run, evidence, at=at))
    run = draft.world.runs[run.id]
    draft.add(*_led_on(draft.world, run, evidence, rules=rules, at=at))
    draft.add(*_put_off(draft.world, run, at=at))
    return draft.facts


def _put_off(world: World, run: Run, *, at: float) -> list[Fact]:
    """Free the agent if a new plan put unfinished items before this one."""
    now = world.runs[run.id]
    begins = now.state == RunState.WORKING and now.agent and not now.question
    return _let_go(world, now, at=at) if begins and waits_for_steps(world, run.task) else []


def _led_on(world: World, run: Run, evidence: Evidence, *, rules: Rules, at: float) -> list[Fact]:
    """Route the run to its next stage, or send it back with the complaint about the evidence.

    If another role than that of the stage acted last, the role of the stage comes next.
    """
    if is_left_out(world, run.task) and acting(world, run.task).asker:  # given up after this
        return handed_back(world, run, at=at)
    ask, notes = complaint(evidence)
    if ask is not None:
        told = refusal(evidence, ask)
        return sent_back(world, run, QUEST, ask=ask, notes=notes, rules=rules, at=at, **told)
    here = stage_of_run(world, run)
    if here is not None and here.plans and not world.quests[world.positions[run.task].quest].plan:
        return sent_back(world, run, QUEST, ask=Ask.NO_PLAN, notes="", rules=rules, at=at)
    draft = FactDraft(world)
    if here is None:
        draft.add(*handed_back(world, run, at=at))
        run = draft.world.runs[run.id]
        if run.state != RunState.REVIEWING:
            return _to_new_steps(draft, run, at=at)
        if _is_proven_next(draft.world, run):
            return draft.facts
    elif here.does is Does.ROLE and run.role != role_in(here):
        notes = _last_words(world.positions[run.task])
        return entered(world, run, role_in(here), ask=Ask.ROLE, notes=notes, at=at)
    draft.add(*routed(draft.world, run, "complete", head=evidence.head, at=at))
    return draft.facts


def _is_proven_next(world: World, run: Run) -> bool:
    """Whether a finished follow-up leads into a gate or a review, and not to a role."""
    here = stage_of_run(world, run)
    return here is not None and here.does is not Does.ROLE


def _to_new_steps(draft: FactDraft, run: Run, *, at: float) -> list[Fact]:
    """Return a quest to its items stage if its plan has new items, and free its agent."""
    base = draft.world.positions[run.task]
    planned = _plan_stage(draft.world, base)
    if planned is None:
        return draft.facts
    draft.add(noted(base, "next_stage", at=at, stage=planned.name))
    draft.add(*_let_go(draft.world, draft.world.runs[run.id], at=at))
    return draft.facts


def gate_judged(
    world: World,
    run: Run,
    *,
    passed: bool,
    output: str,
    head: str,
    at: float,
    is_same: bool = False,
) -> list[Fact]:
    """Route the run after a gate: green or red, within the limit of the stage.

    `is_same`: the item had passed all its stages, and only merged what landed since.
    """
    if passed:
        return _judged(world, run, "green", "", is_good=True, head=head, at=at, is_same=is_same)
    notes = quoted(output, most=LONGEST_NOTES)
    return _judged(world, run, "red", output, is_good=False, notes=notes, ask=Ask.RED_GATE, at=at)


def review_judged(world: World, run: Run, *, notes: str | None, head: str, at: float) -> list[Fact]:
    draft = FactDraft(world)
    if run.unjudged:
        draft.add(noted(run, "reviews_judged", at=at, unjudged=()))
    world, run = draft.world, draft.world.runs[run.id]
    if notes is None:
        draft.add(*_judged(world, run, "pass", "", is_good=True, head=head, at=at))
    else:
        failed: Handover = {"notes": notes, "ask": Ask.REVIEW}
        draft.add(*_judged(world, run, "fail", notes, is_good=False, at=at, **failed))
    return draft.facts


def council_judged(world: World, run: Run, *, agreed: bool, words: str, at: float) -> list[Fact]:
    """Record the decision of a council in the story, and route the run with it as notes."""
    outcome = "agreed" if agreed else "objected"
    draft = FactDraft(world)
    if agreed:
        draft.add(told(world, run.task, "council", outcome, words, at=at))
    draft.add(*_judged(draft.world, run, outcome, words, is_good=agreed, notes=words, at=at))
    return draft.facts


class Handover(TypedDict, total=False):
    """What the next stage gets: the proven commit, and the notes and the prompt for its role.

    `is_same` is as for `gate_judged`.
    """

    head: str
    is_same: bool
    notes: str
    ask: Ask


def _judged(
    world: World,
    run: Run,
    outcome: str,
    words: str,
    *,
    is_good: bool,
    at: float,
    **how: Unpack[Handover],
) -> list[Fact]:
    """Count the outcome and route the run.

    `words` go into the task's story, `notes` go to the next role.
    """
    base = world.positions[run.task]
    here = stage_named(world, base, base.stage)
    visits = dict(base.visits)
    visits[here.name] = visits.get(here.name, 0) + 1
    draft = FactDraft(world)
    draft.add(noted(base, f"stage_{outcome}", at=at, visits=tuple(visits.items())))
    if not is_good:
        draft.add(told(draft.world, run.task, here.name, outcome, words, at=at))
    draft.add(*routed(draft.world, run, outcome, at=at, **how))
    run = draft.world.runs[run.id]
    spent = here.limit is not None and visits[here.name] >= here.limit
    if not is_good and spent and not run.question:
        reason = f"{here.name} was {outcome} {visits[here.name]} times"
        draft.add(*blocked(draft.world, run, reason, at=at))
    draft.add(*_put_off(draft.world, run, at=at))
    return draft.facts


def routed(
    world: World,
    run: Run,
    outcome: str,
    *,
    at: float,
    head: str = "",
    notes: str = "",
    ask: Ask = Ask.ROLE,
    is_same: bool = False,
) -> list[Fact]:
    """Move the run to the stage that this outcome leads to.

    A role does not look again at an item that is the same; gates and reviews do.
    """
    base = world.positions[run.task]
    target = _target(world, base, outcome)
    while is_same and target != DONE and stage_named(world, base, target).does is Does.ROLE:
        target = stage_named(world, base, target).routes["complete"]
    if target == DONE:
        return completed(world, run, QUEST, head, at=at)
    draft = FactDraft(world)
    draft.add(noted(base, "next_stage", at=at, stage=target))
    following = stage_named(world, base, target)
    if following.does is Does.ROLE:
        said = notes or _last_words(base)
        role = following.roles[0]
        draft.add(*entered(draft.world, run, role, ask=ask, notes=said, at=at))
    if following.does in {Does.STEPS, Does.COUNCIL}:
        draft.add(*_let_go(draft.world, run, at=at))
    return draft.facts


def _target(world: World, base: Position, outcome: str) -> str:
    """The stage that the workflow names, or the items stage if the plan has new items."""
    planned = _plan_stage(world, base)
    here = stage_named(world, base, base.stage)
    return here.routes[outcome] if planned is None else planned.name


def _plan_stage(world: World, base: Position) -> Stage | None:
    """The items stage, if the task is in it or beyond it and an item is unfinished."""
    stages = stages_of(workflow_of(world, base), base)
    planned = next((stage for stage in stages if stage.does is Does.STEPS), None)
    here = stage_named(world, base, base.stage)
    is_later = planned is not None and stages.index(here) >= stages.index(planned)
    return planned if is_later and is_unfinished(world, base.quest) else None


def _last_words(base: Position) -> str:
    if not base.said:
        return ""
    last = base.said[-1]
    return attributed(f"{last.role} said", last.words)


def _let_go(world: World, run: Run, *, at: float) -> list[Fact]:
    agent = agent_of(world, run)
    facts = [noted(run, "let_go", at=at, agent=None)]
    if agent is not None:
        trigger = "released" if agent.state == AgentState.DONE else "parked"
        facts.append(freed(agent, trigger, at=at))
    return facts


def plan_finished(world: World, quest: str, *, at: float) -> list[Fact]:
    """Move the quest to its next stage once every item is finished.

    If the items are the last stage, the next free agent checks their result.
    """
    base, task = world.positions.get(quest), world.tasks.get(quest)
    if base is None or task is None or task.worktree or not runs_plan(world, quest):
        return []
    run = world.runs.get(task.run or "")
    target = stage_named(world, base, base.stage).routes["complete"]
    if target == DONE or world.terminal_of(task.run or "") or is_unfinished(world, quest):
        return []
    if run is not None and run.state == RunState.REVIEWING:
        return routed(world, run, "complete", at=at, notes="Every item is in the quest's branch.")
    onward = noted(base, "next_stage", at=at, stage=target)
    if run is not None and run.is_live:
        return [onward]  # a session waited for the new items and continues after them
    # The task was stopped in the meantime, so its next run starts at that stage.
    role = role_in(stage_named(world, base, target))
    if not role or acting(world, base.task) is not base:
        return [onward]
    return [onward, noted(base, "role_named", at=at, role=role)]
