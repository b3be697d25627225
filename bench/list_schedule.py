"""The makespan of an ideal crew: no overhead at all, the same agents, the same order of tasks."""

import heapq
from collections.abc import Mapping, Sequence


def list_schedule_s(
    durations_s: Mapping[str, float], deps: Mapping[str, Sequence[str]], *, agents: int
) -> float:
    """List scheduling: a free agent takes the first task, in the mapping's order, that is ready."""
    waiting, finished = list(durations_s), set[str]()
    running: list[tuple[float, str]] = []
    now = 0.0
    while waiting or running:
        while len(running) < agents and (task := _next(waiting, deps, finished)):
            waiting.remove(task)
            heapq.heappush(running, (now + durations_s[task], task))
        now, ended = heapq.heappop(running)
        finished.add(ended)
    return now


def _next(waiting: list[str], deps: Mapping[str, Sequence[str]], finished: set[str]) -> str | None:
    return next((task for task in waiting if finished.issuperset(deps[task])), None)


def lower_bound_s(
    durations_s: Mapping[str, float], deps: Mapping[str, Sequence[str]], *, agents: int
) -> float:
    """No schedule at all is shorter: the longest chain, or all work shared evenly.

    A task must come after the tasks it depends on.
    """
    ends: dict[str, float] = {}
    for task, duration in durations_s.items():
        ends[task] = duration + max((ends[dep] for dep in deps[task]), default=0.0)
    return max(*ends.values(), sum(durations_s.values()) / agents)
