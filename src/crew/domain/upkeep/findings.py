"""The findings of `crew doctor` about tasks; each names its fix."""

from collections.abc import Collection, Iterator

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import FINISHED
from crew.domain.rows.task_item import TaskItem, dependency_cycles


@frozen
class Finding:
    """The result of one check; a fix without `is_wrong` is advice."""

    check: str
    message: str
    fix: str = ""
    is_wrong: bool = False
    is_repaired: bool = False


def task_findings(items: Collection[TaskItem]) -> Iterator[Finding]:
    """Tasks with a dependency cycle, an unreadable file, or an unknown dependency."""
    known = {item.id for item in items}
    for cycle in dependency_cycles(items):
        yield Finding(
            check="tasks",
            message=f"tasks wait for each other: {' → '.join((*cycle, cycle[0]))}",
            fix=f"crew undep {cycle[0]} {cycle[1 % len(cycle)]}",
            is_wrong=True,
        )
    for item in items:
        if item.corrupt:
            yield Finding(
                check="tasks",
                message=f"task {item.id} cannot be read: {item.corrupt}",
                fix=f"fix its file, or `crew rm {item.id}`",
                is_wrong=True,
            )
        for dep in item.deps if item.status not in FINISHED else ():
            if dep not in known:
                yield Finding(
                    check="tasks",
                    message=f"task {item.id} waits for {dep}, which does not exist",
                    fix=f"crew undep {item.id} {dep}",
                    is_wrong=True,
                )
    yield Finding(check="tasks", message=f"{len(items)} tasks were read")
