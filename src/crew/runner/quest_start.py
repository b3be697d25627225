"""Begins and cancels quests, for the command line, Python and MCP alike.

A quest begins with a task for its request; the quest's row comes after it.
"""

import time
from dataclasses import replace

from crew.config.model import AgentsSettings, Settings
from crew.domain.agents.agent_kinds import refuse_unusable
from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.requests import Request
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import QUEST_LABEL, TaskItem
from crew.domain.rows.workflow import Does, Stage, Workflow, as_text, from_text
from crew.domain.world import World
from crew.runner.requests.ask_crew import ask
from crew.runner.views.quest_views import tasks_of
from crew.store.fact_log import load_world
from crew.tasks.task_source import NewTask
from crew.tasks.validate_task import checked_task
from crew.trusted_config import trusted_workflow
from crew.workplace import Workplace

MOST_SLOTS = 50


def begin_quest(
    workplace: Workplace,
    text: str,
    *,
    workflow: str = "quest",
    slots: int | None = None,
    base: str | None = None,
) -> str:
    """Begin a quest and return its id, which is its task's; a refusal leaves no task behind.

    `base` is the branch that the quest's branch starts from and lands on; None for the target of
    merges. A task that was made for the same request right before a crash is used again.
    """
    if not text.strip():
        raise UsageError(
            "the request is empty",
            hint="describe the request in a few sentences",
            code="empty_request",
        )
    found = configured(trusted_workflow(workplace.root, workflow), workplace.settings)
    _check_installed(workplace, found)
    wanted = found.slots if slots is None else slots
    if not 1 <= wanted <= MOST_SLOTS:
        raise UsageError(
            f"a quest cannot have {wanted} slots",
            hint=f"give a number from 1 to {MOST_SLOTS}",
            code="slot_count",
        )
    title, _, _ = text.strip().partition("\n")
    new = NewTask(title=title[:120], body=text.strip(), labels=(QUEST_LABEL,), base=base)
    task = _find_unbegun(workplace, new) or workplace.source.add(new, at=time.time())
    args = {"task": task, "workflow": workflow, "definition": as_text(found), "slots": wanted}
    try:
        ask(workplace, Request(verb="quest_new", args=args))
    except CrewError:
        if task not in load_world(workplace.db).quests:
            workplace.source.remove(task)
        raise
    return task


def quest_workflow(workplace: Workplace, quest: str) -> Workflow:
    """The workflow that a quest began with."""
    return from_text(load_world(workplace.db).quests[quest].definition)


def _find_unbegun(workplace: Workplace, new: NewTask) -> str | None:
    begun = load_world(workplace.db).quests
    wanted = _identity(checked_task(new))
    for item in workplace.snapshot().items:
        if _identity(item) == wanted and item.status == TaskState.TODO and item.id not in begun:
            return item.id
    return None


def _identity(task: NewTask | TaskItem) -> tuple[object, ...]:
    return task.title, task.body, task.labels, task.base or None


def cancel_quest(workplace: Workplace, quest: str, *, reason: str = "") -> None:
    """Cancel a quest; afterwards no agent works on it, and the source has each task's state."""
    request = Request(verb="quest_cancel", args={"quest": quest, "reason": reason})
    ask(workplace, request, settled=lambda world: _is_given_up(world, quest))


def _is_given_up(world: World, quest: str) -> bool:
    mine = tasks_of(world, world.quests[quest])
    tasks = [world.tasks[task] for task in mine]
    is_held = any(agent.task in mine for agent in world.agents.values())
    return not is_held and all(task.is_written for task in tasks)


def configured(workflow: Workflow, settings: Settings) -> Workflow:
    """The workflow with this repository's settings: the agents and session rules of its roles."""
    found = with_agents(workflow, settings.agents)
    kept = {name: one.session for name, one in settings.roles.items() if one.session}
    roles = {
        name: replace(role, session=kept.get(name, role.session))
        for name, role in found.roles.items()
    }
    return replace(found, roles=roles)


def with_agents(workflow: Workflow, agents: AgentsSettings) -> Workflow:
    """The workflow with configured agents; a role that only reviews gets a reviewer by default."""
    working = {role for stage in _all_stages(workflow) if _works(stage) for role in stage.roles}
    reviewing = {role for stage in _all_stages(workflow) for role in stage.roles} - working
    roles = {
        name: replace(role, agent=role.agent or agents.reviewer_default)
        if name in reviewing
        else role
        for name, role in workflow.roles.items()
    }
    for role in roles.values():
        if role.agent:
            agents.named(role.agent)
    return replace(workflow, roles=roles)


def _check_installed(workplace: Workplace, workflow: Workflow) -> None:
    """Check each role's program before anything is made: a missing one would block the quest."""
    reviewer = workplace.settings.agents.reviewer_default
    for kind in sorted({role.agent for role in workflow.roles.values() if role.agent}):
        in_config = "`crew config set agents.reviewer_default KIND`"
        in_workflow = f'`agent = "KIND"` in the workflow {workflow.name}'
        instead = in_config if kind == reviewer else in_workflow
        refuse_unusable(kind, workplace.rules, instead=instead)


def _all_stages(workflow: Workflow) -> tuple[Stage, ...]:
    return (*workflow.stages, *workflow.step_stages)


def _works(stage: Stage) -> bool:
    return stage.does in {Does.ROLE, Does.COUNCIL}
