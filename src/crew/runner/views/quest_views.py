"""The documents of quests: the request, its items, what roles wrote, and the cost."""

from collections.abc import Iterable, Mapping
from typing import Any

from crew.domain.kernel.fact import Fact
from crew.domain.quests.position import acting
from crew.domain.quests.quest_requests import find_quest
from crew.domain.rows.quest import PlanItem, Position, Quest, QuestState
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rows.workflow import from_text
from crew.domain.tasks.readiness import not_begun
from crew.domain.world import World
from crew.runner.prompts.brief_text import read_request
from crew.runner.views.row_views import asked_view, moment, total
from crew.store.database import Database
from crew.store.fact_log import facts_after, load_world
from crew.workplace import Workplace

Passed = Mapping[str, list[dict[str, Any]]]
"""The outcomes of gates and reviews by task, the oldest first."""

_JUDGED = "stage_"


def quest_line(world: World, quest: Quest) -> dict[str, Any]:
    """A quest in short, as `crew quest list` prints it."""
    task, base = world.tasks.get(quest.id), world.positions[quest.id]
    done = sum(_is_done(world, step) for step in quest.steps)
    mine = tasks_of(world, quest)
    cost = total(run for run in world.runs.values() if run.task in mine)
    return {
        "id": quest.id,
        "title": task.title if task else "",
        "state": quest.state,
        "workflow": quest.workflow,
        "base": (task.target if task else "") or None,
        "stage": base.stage,
        "slots": quest.slots,
        "steps_done": done,
        "steps_all": len(quest.steps),
        "steps_merged": sum(_is_merged(world, step) for step in quest.steps),
        "steps_closed": _closed_by_person(world, quest),
        "cost_usd": cost["cost_usd"],
        "known_cost_usd": cost["known_cost_usd"],
        "input_tokens": cost["input_tokens"],
        "output_tokens": cost["output_tokens"],
        "created": moment(quest.created_at),
        "questions": [one.id for one in open_questions(world, quest)],
    }


def quest_view(world: World, quest: Quest, *, request: str, passed: Passed) -> dict[str, Any]:
    """The whole document of a quest, as `crew quest show --json` prints it."""
    positions = [
        position
        for position in world.positions.values()
        if position.quest == quest.id and not position.asker
    ]
    planned = {step.key: step for step in quest.steps}
    given_up = [position for position in positions if position.key and position.key not in planned]
    return {
        **quest_line(world, quest),
        "request": request,
        "plan_number": quest.plan_number,
        **_walked(world, world.positions[quest.id], passed),
        "steps": [step_view(world, step, passed) for step in quest.steps],
        "given_up": [
            {
                "id": position.key,
                "title": world.tasks[position.task].title,
                **_walked(world, position, passed),
            }
            for position in given_up
        ],
        "questions": [asked_view(one) for one in open_questions(world, quest)],
    }


def step_view(world: World, step: PlanItem, passed: Passed) -> dict[str, Any]:
    """An item; before it is a task, only its plan is known."""
    planned = {
        "id": step.key,
        "title": step.title,
        "description": step.description,
        "dependencies": list(step.deps),
        "files": list(step.files),
        "acceptance": step.acceptance,
    }
    position = world.positions.get(step.task)
    return {**planned, **(_walked(world, position, passed) if position else _not_begun(step))}


def quest_part(world: World, task: Task) -> dict[str, Any] | None:
    """The part of a task in its quest, for `crew show`; None if it belongs to none."""
    if not task.quest:
        return None
    position = world.positions.get(task.id)
    role = acting(world, task.id).role if position else ""
    return {
        "id": task.quest,
        "step": (position.key if position else "") or None,
        "stage": (position.stage if position else "") or None,
        "walk": acting(world, task.id).state if position else None,
        "role": role or None,
        "role_title": role_title(world, task.quest, role) or None,
        "reason": None if position else not_begun(world, task),
    }


def _not_begun(step: PlanItem) -> dict[str, Any]:
    empty = Position(id=step.task, quest="", task=step.task, key=step.key)
    return {**_walked(World(), empty, {}), "task": step.task or None}


def _walked(world: World, position: Position, passed: Passed) -> dict[str, Any]:
    """The progress of a task: its position, the acting role, what roles wrote, and the cost."""
    task = world.tasks.get(position.task)
    runs = [run for run in world.runs.values() if run.task == position.task]
    run = world.runs.get((task.run if task else None) or "")
    live = run if run and run.is_live else None
    now = world.positions.get(position.acting) or position
    cost = total(runs)
    role = (live.role if live else "") or now.role
    return {
        "task": position.task,
        "status": task.state if task else "todo",
        "walk": now.state,
        "stage": position.stage,
        "role": role or None,
        "role_title": role_title(world, position.quest, role) or None,
        "agent": live.agent if live else None,
        "kind": live.agent_kind if live else None,
        "branch": (task.branch if task else "") or None,
        "session": (live.session if live else "") or None,
        "sessions": _sessions(position, live),
        "said": [_said(one) for one in position.said],
        "gates": list(passed.get(position.task, ())),
        "followups": _followups(world, position),
        "error": (live.error if live else "") or None,
        "task_cost_usd": cost["cost_usd"],
        "agent_steps": cost["steps"],
        "changed_at": moment(_changed_at(position, runs)),
    }


def _sessions(position: Position, live: Run | None) -> list[dict[str, str]]:
    """Every session of a role, in the order of their first signals, and the present one."""
    found = {one.session: one.role for one in position.said if one.session}
    if live and live.session:
        found.setdefault(live.session, live.role)
    return [{"role": role, "session": session} for session, role in found.items()]


def _said(said: Any) -> dict[str, Any]:
    return {
        "at": moment(said.at),
        "role": said.role,
        "session": said.session or None,
        "signal": said.signal,
        "words": said.words,
    }


def _followups(world: World, asker: Position) -> list[dict[str, Any]]:
    """The roles that were asked to act first, each with those that it asked in turn."""
    return [
        {
            "id": position.id,
            "role": position.role,
            "asked_by": position.asked_by or asker.role,
            "state": position.state,
            "resume": position.resume,
            "followups": _followups(world, position),
        }
        for position in world.positions.values()
        if position.asker == asker.id
    ]


def open_questions(world: World, quest: Quest) -> list[Question]:
    mine = tasks_of(world, quest)
    return [one for one in world.questions.values() if one.is_open and one.task in mine]


def tasks_of(world: World, quest: Quest) -> frozenset[str]:
    """The request's task and those of all items, former ones included."""
    return frozenset(
        position.task for position in world.positions.values() if position.quest == quest.id
    )


def role_title(world: World, quest: str, role: str) -> str:
    """What a role does, in plain words of the quest's workflow; empty if it has none."""
    found = world.quests.get(quest)
    known = from_text(found.definition).roles.get(role) if found and role else None
    return known.title if known else ""


def _changed_at(position: Position, runs: Iterable[Run]) -> float | None:
    """When a run last began or ended, or a role last wrote; None before the first."""
    times = [at for run in runs for at in (run.started_at, run.ended_at) if at]
    return max([*times, *(one.at for one in position.said)], default=None)


def _is_merged(world: World, step: PlanItem) -> bool:
    task = world.tasks.get(step.task)
    return task is not None and task.state == TaskState.MERGED


def _is_done(world: World, step: PlanItem) -> bool:
    task = world.tasks.get(step.task)
    return task is not None and task.state in FINISHED


def _closed_by_person(world: World, quest: Quest) -> list[dict[str, str]]:
    """The items of the plan that a person closed instead of having them built.

    A new plan leaves out what it closes, and a cancelled quest closes all that is left.
    """
    if quest.state == QuestState.CANCELLED:
        return []
    found = ((step.key, world.tasks.get(step.task)) for step in quest.steps)
    return [
        {"id": key, "task": task.id, "reason": task.close_reason}
        for key, task in found
        if task is not None and task.state == TaskState.CLOSED
    ]


def load_view(workplace: Workplace, quest: str) -> dict[str, Any]:
    """Load the whole document of a quest."""
    world = load_world(workplace.db)
    found = find_quest(world, quest)
    passed = load_passed(workplace.db, tasks_of(world, found))
    request = read_request(workplace.source, quest)
    return quest_view(world, found, request=request, passed=passed)


def load_passed(db: Database, tasks: Iterable[str]) -> Passed:
    """The outcomes of gates and reviews, from the facts: rows only have counts."""
    return {
        task: _judged(fact for _, fact in facts_after(db, subject=f"walk:{task}")) for task in tasks
    }


def _judged(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """A fact does not name its stage; it is the one whose count has increased."""
    found, before = [], dict[str, int]()
    for fact in facts:
        counted = fact.changes.get("visits")
        visits = dict(counted) if isinstance(counted, list | tuple) else before
        if fact.trigger.startswith(_JUDGED):
            stage = next(name for name, count in visits.items() if count != before.get(name, 0))
            outcome = fact.trigger.removeprefix(_JUDGED)
            found.append({"at": moment(fact.at), "stage": stage, "outcome": outcome})
        before = visits
    return found
