"""The waves of open tasks: now, next, later, never."""

from crew.domain.tasks.dependency_waves import waves


def test_a_task_is_one_wave_after_the_last_that_it_waits_for():
    deps = {"1": (), "2": ("1",), "3": ("1", "2"), "4": ("9",)}
    found, blocked = waves(deps, finished={"9"})
    assert found == {"1": 0, "4": 0, "2": 1, "3": 2}
    assert blocked == frozenset()


def test_a_cycle_and_what_waits_for_it_and_an_unknown_task_are_blocked():
    deps = {"1": ("2",), "2": ("1",), "3": ("2",), "4": ("missing",), "5": ()}
    found, blocked = waves(deps, finished=())
    assert found == {"5": 0}
    assert blocked == {"1", "2", "3", "4"}
