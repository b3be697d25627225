"""The waves of open tasks: which could start now, which after those, and which never will."""

from collections.abc import Collection, Mapping


def waves(
    deps: Mapping[str, Collection[str]], *, finished: Collection[str]
) -> tuple[dict[str, int], frozenset[str]]:
    """The wave of each open task, and the tasks that no order can reach.

    `deps` are the open tasks with their dependencies. A task of wave 0 waits for nothing; one of
    wave 1 waits for a task of wave 0. A task that is part of a cycle, or waits for one or for an
    unknown task, is blocked.
    """
    waiting = {task: {dep for dep in of if dep not in finished} for task, of in deps.items()}
    found: dict[str, int] = {}
    wave = sorted(task for task, of in waiting.items() if not of)
    dependents, number = _dependents(waiting), 0
    while wave:
        found |= dict.fromkeys(wave, number)
        number += 1
        near = {task for done in wave for task in dependents.get(done, ())}
        wave = sorted(task for task in near if waiting[task] <= found.keys())
    return found, frozenset(waiting.keys() - found.keys())


def _dependents(waiting: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task, of in waiting.items():
        for dep in of:
            found.setdefault(dep, []).append(task)
    return found
