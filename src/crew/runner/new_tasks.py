"""What a new or a changed task may name; the command line and Python refuse the same."""

from dataclasses import replace

from crew.tasks.task_source import NewTask
from crew.workplace import Workplace


def checked_names(workplace: Workplace, new: NewTask) -> NewTask:
    """The task with full ids in place of prefixes; raises for anything that does not exist.

    Its base comes from `Workplace.base_of_new`, which checks it.
    """
    refuse_unknown_agent(workplace, new.agent)
    source = workplace.source
    return replace(
        new,
        parent=source.resolve(new.parent) if new.parent else None,
        deps=tuple(source.resolve(task) for task in new.deps),
    )


def refuse_unknown_agent(workplace: Workplace, agent: str | None) -> None:
    """Raise unless this agent kind is configured."""
    if agent:
        workplace.settings.agents.named(agent)
