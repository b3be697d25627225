"""What dependencies mean."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import TaskItem, blockers, cycle_through, dependency_cycles


def item(task, *deps, status=TaskState.TODO, corrupt=None):
    return TaskItem(id=task, title=task, deps=deps, status=status, corrupt=corrupt)


@pytest.mark.parametrize("status", list(TaskState))
def test_only_merged_and_closed_tasks_let_others_go(status):
    first = item("1", status=status)
    second = item("2", "1")
    is_free = status in {TaskState.MERGED, TaskState.CLOSED}
    assert blockers(second, {"1": first, "2": second}) == (() if is_free else ("1",))


def test_a_dependency_that_nobody_knows_blocks():
    assert blockers(item("2", "gone"), {}) == ("gone",)


def test_a_dependency_that_cannot_be_read_blocks_whatever_it_says():
    broken = item("1", status=TaskState.MERGED, corrupt="torn")
    assert blockers(item("2", "1"), {"1": broken}) == ("1",)


def test_each_cycle_is_told_once_from_its_smallest_id():
    items = [item("3", "1"), item("1", "2"), item("2", "3"), item("4", "4"), item("5", "1")]
    assert dependency_cycles(items) == (("1", "2", "3"), ("4",))


def test_a_very_long_chain_is_no_cycle_and_no_recursion():
    items = [item(str(n), str(n + 1)) for n in range(20_000)]
    assert dependency_cycles(items) == ()
    assert cycle_through(items, task="20000", new_dep="0")[:3] == ("20000", "0", "1")


def test_a_new_dependency_that_would_close_a_cycle_shows_it():
    items = [item("1", "2"), item("2", "3"), item("3")]
    assert cycle_through(items, task="3", new_dep="1") == ("3", "1", "2")
    assert cycle_through(items, task="1", new_dep="3") is None
    assert cycle_through(items, task="1", new_dep="1") == ("1",)


IDS = st.sampled_from("abcdef")


@settings(deadline=None)
@given(st.dictionaries(IDS, st.lists(IDS, max_size=4, unique=True)), IDS, IDS)
def test_a_cycle_that_is_shown_is_a_cycle(graph, task, new_dep):
    items = [item(one, *deps) for one, deps in graph.items()]
    after = {**graph, task: [*graph.get(task, []), new_dep]}
    shown = cycle_through(items, task=task, new_dep=new_dep)
    reachable = reach(graph, new_dep)
    assert (shown is not None) == (task in reachable)
    for cycle in [*([shown] if shown else []), *dependency_cycles(items)]:
        for one, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert following in after[one]


@settings(deadline=None)
@given(st.dictionaries(IDS, st.lists(IDS, max_size=4, unique=True)))
def test_cycles_are_found_exactly_where_there_are_some(graph):
    items = [item(one, *deps) for one, deps in graph.items()]
    is_cyclic = any(one in reach(graph, dep) for one, deps in graph.items() for dep in deps)
    assert bool(dependency_cycles(items)) == is_cyclic


def reach(graph, start):
    seen, todo = set(), [start]
    while todo:
        if (one := todo.pop()) not in seen:
            seen.add(one)
            todo += graph.get(one, [])
    return seen
