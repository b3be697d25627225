"""Dependencies as a source tells them agree with the plan, and a told cycle is a cure."""

from dataclasses import replace

from hypothesis import given as for_all
from hypothesis import strategies as st

from crew.domain.lead_choice import LEADS
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem, blockers, cycle_through, dependency_cycles
from crew.domain.tasks.readiness import is_ready
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import fold
from domain.scenes import patient

IDS = "123456"
GRAPHS = st.fixed_dictionaries(
    {id_: st.lists(st.sampled_from(IDS), max_size=2, unique=True) for id_ in IDS}
)


def items_of(graph):
    return [TaskItem(id=id_, title=id_, deps=tuple(deps)) for id_, deps in graph.items()]


@patient
@for_all(GRAPHS, st.lists(st.sampled_from(TaskState), min_size=6, max_size=6), st.integers(1, 6))
def test_a_task_that_nothing_blocks_is_exactly_one_that_the_plan_calls_ready(graph, states, size):
    """Of the six tasks only the first ones exist; a dependency on the others is unknown."""
    items = [
        replace(item, status=state)
        for item, state in zip(items_of(graph)[:size], states, strict=False)
    ]
    by_id = {item.id: item for item in items}
    world = fold(seen(fold([]), items, Intake(target="main", at=1.0)))
    for item in items:
        is_free = item.status == TaskState.TODO and blockers(item, by_id) == ()
        assert is_ready(world, world.tasks[item.id], LEADS) == is_free


@patient
@for_all(GRAPHS)
def test_cutting_one_dependency_of_each_told_cycle_again_and_again_ends_all_cycles(graph):
    for _ in range(sum(map(len, graph.values()))):
        told = dependency_cycles(items_of(graph))
        if not told:
            break
        for cycle in told:
            first, second = (*cycle, cycle[0])[:2]
            graph[first] = [dep for dep in graph[first] if dep != second]
    assert dependency_cycles(items_of(graph)) == ()


@patient
@for_all(GRAPHS, st.sampled_from(IDS), st.sampled_from(IDS))
def test_a_dependency_is_refused_exactly_when_a_line_of_tasks_would_become_a_ring(
    graph, task, new_dep
):
    is_ring = _is_reached(graph, start=new_dep, goal=task)
    shown = cycle_through(items_of(graph), task=task, new_dep=new_dep)
    assert (shown is not None) == is_ring
    if shown:
        assert shown[0] == task
        after = {**graph, task: [*graph[task], new_dep]}
        steps = zip(shown, (*shown[1:], task), strict=True)
        assert all(following in after[one] for one, following in steps)


def _is_reached(graph, *, start, goal):
    reached = {start}
    for _ in graph:
        reached |= {dep for one in reached for dep in graph[one]}
    return goal in reached
