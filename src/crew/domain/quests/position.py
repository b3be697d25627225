"""The position of a task in its workflow: its stage, the acting role, and the free quest slots."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crew.domain.rows.quest import Position, Quest, role_counter
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import FINISHED, Task
from crew.domain.rows.workflow import DONE, Does, Role, Stage, Workflow, from_text
from crew.domain.world import World

if TYPE_CHECKING:
    from crew.domain.row_changes import RunFields

ENDLESS = 1_000_000
"""The round limit of a run that a quest leads, because stages have limits of their own."""


def workflow_of(world: World, position: Position) -> Workflow:
    return from_text(world.quests[position.quest].definition)


def stages_of(workflow: Workflow, position: Position) -> tuple[Stage, ...]:
    return workflow.step_stages if position.key else workflow.stages


def stage_named(world: World, position: Position, name: str) -> Stage:
    stages = stages_of(workflow_of(world, position), position)
    return next(stage for stage in stages if stage.name == name)


def role_in(stage: Stage) -> str:
    return stage.roles[0] if stage.does is Does.ROLE else ""


def acting(world: World, task: str) -> Position:
    """The position whose role acts now: a follow-up's, or the task's own."""
    base = world.positions[task]
    return world.positions[base.acting or base.id]


def role_of(world: World, run: Run) -> Role | None:
    """The role that acts in a run.

    None if no workflow leads the run, as at a terminal, or if its stage has no role.
    """
    if run.task not in world.positions or world.terminal_of(run.id):
        return None
    return workflow_of(world, world.positions[run.task]).roles.get(run.role)


def wanted_kind(world: World, task: Task) -> str | None:
    """The agent kind that the acting role asks for, else the one that the task asks for."""
    if task.id not in world.positions:
        return task.wants_agent
    position = acting(world, task.id)
    role = workflow_of(world, position).roles.get(position.role)
    return (role.agent if role else "") or task.wants_agent


def is_held(world: World, task: str) -> bool:
    """Whether the task needs no agent now: its items are under way, or a council discusses."""
    if not runs_plan(world, task):
        return _does(world, task) is Does.COUNCIL
    position = world.positions[task]
    is_last = stage_named(world, position, position.stage).routes["complete"] == DONE
    return not is_last or is_unfinished(world, task)


def is_unfinished(world: World, quest: str) -> bool:
    """Whether an item of the plan is not a task yet, or its task is neither merged nor closed."""
    tasks = [world.tasks.get(step.task) for step in world.quests[quest].steps]
    return any(task is None or task.state not in FINISHED for task in tasks)


def runs_plan(world: World, task: str) -> bool:
    """Whether the items of this task are under way.

    They merge into its branch, so no worktree may have that branch checked out.
    """
    return _does(world, task) is Does.STEPS


def _does(world: World, task: str) -> Does | None:
    base = world.positions.get(task)
    return stage_named(world, base, base.stage).does if base is not None else None


def is_told(world: World, task: str) -> bool:
    """Whether the task of an item has the text and the dependencies of the current plan."""
    base = world.positions.get(task)
    if base is None or not base.key:
        return True
    return task in world.quests[base.quest].told


def is_left_out(world: World, task: str) -> bool:
    """Whether the plan does not have this item any more."""
    base = world.positions[task]
    return base.key != "" and all(step.task != task for step in world.quests[base.quest].steps)


def waits_for_steps(world: World, task: str) -> bool:
    """Whether a new plan made this item depend on unfinished items after it had started."""
    base = world.positions.get(task)
    if base is None or not base.key or is_left_out(world, task):
        return False
    deps = [world.tasks.get(dep) for dep in world.tasks[task].deps]
    is_early = any(dep is None or not dep.is_over for dep in deps)
    return is_early or not is_told(world, task)


def stage_of_run(world: World, run: Run) -> Stage | None:
    """The stage of this run; None while a follow-up acts."""
    position = acting(world, run.task)
    return None if position.asker else stage_named(world, position, position.stage)


def stage_reviewers(world: World, run: Run) -> tuple[str, ...]:
    """The agent kinds that review this stage; empty if it is no review."""
    here = stage_of_run(world, run)
    if here is None or here.does is not Does.REVIEW:
        return ()
    roles = workflow_of(world, world.positions[run.task]).roles
    return tuple(roles[name].agent or run.agent_kind for name in here.roles)


def has_slot(world: World, task: str) -> bool:
    """Whether one more agent may work on this task's quest."""
    base = world.positions.get(task)
    if base is None:
        return True
    positions, tasks = (
        world.positions,
        [agent.task for agent in world.agents.values() if agent.task],
    )
    busy = sum(1 for other in tasks if other in positions and positions[other].quest == base.quest)
    return busy < world.quests[base.quest].slots


def beginning(world: World, task: str) -> "RunFields":
    """The fields of a new run of this task: the role that acts, and the notes that it had."""
    if task not in world.positions:
        return {}
    position, last = acting(world, task), world.runs.get(world.tasks[task].run or "")
    notes = last.notes if last is not None and last.role == position.role else ""
    return {"role": position.role, "max_rounds": ENDLESS, "ask": Ask.ROLE, "notes": notes}


def first_position(quest: Quest, task: str, *, key: str = "") -> Position:
    position = Position(id=task, quest=quest.id, task=task, key=key)
    first = stages_of(from_text(quest.definition), position)[0]
    role = role_in(first)
    return replace(position, stage=first.name, role=role, visits=((role_counter(role), 1),))
