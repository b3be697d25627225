"""What may be pruned, cleaned and repaired, decided from rows and from what git shows."""

from dataclasses import replace

import pytest

from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.upkeep.clean_plan import reopened
from crew.domain.upkeep.findings import task_findings
from crew.domain.upkeep.prune_plan import (
    Branch,
    Remains,
    Worktree,
    beside_a_runner,
    is_over,
    is_worktree_over,
    live_tasks,
    sorted_out,
    still_over,
)
from crew.domain.world import World

MERGED = Branch(task="1", name="crew-1", head="a", is_merged=True)
UNMERGED = Branch(task="2", name="crew-2", head="b", is_merged=False)
KNOWN = Worktree(task="1", path="/w/1", is_dirty=False)
UNKNOWN = Worktree(task="9", path="/w/9", is_dirty=True)


def item(task, status=TaskState.TODO, **fields):
    return TaskItem(id=task, title=task, status=status, **fields)


def test_a_task_is_live_by_its_agent_its_run_its_row_or_its_source():
    world = World(
        tasks={
            "1": Task(id="1", state=TaskState.IN_PROGRESS),
            "2": Task(id="2", state=TaskState.IN_PROGRESS, gone=True),
            "3": Task(id="3", state=TaskState.MERGED),
        },
        agents={"A": Agent(id="A", agent_kind="x", task="4")},
        runs={"5.1": Run(id="5.1", task="5", number=1, agent_kind="x")},
    )
    items = [item("6"), item("7", TaskState.CLOSED)]
    assert live_tasks(world, items) == {"1", "4", "5", "6"}


@pytest.mark.parametrize(
    ("branch", "live", "over"),
    [
        ("crew-1", (), True),
        ("crew-1", ("1",), False),
        ("crew-1-gh-7", ("1-gh-7",), False),
        ("main", (), False),
    ],
)
def test_a_branch_is_over_when_no_task_that_it_may_belong_to_is_live(branch, live, over):
    assert is_over(branch, live) is over


def test_a_folder_that_is_not_called_like_a_task_is_left_alone():
    assert is_worktree_over("1", ())
    assert not is_worktree_over("1", ("1",))
    assert not is_worktree_over(".gate-0", ())


def test_unmerged_branches_go_when_asked_for_and_those_that_are_checked_out_never():
    found = sorted_out([], [MERGED, UNMERGED], [], checked_out=(), unmerged=False)
    assert (found.branches, found.kept) == ((MERGED,), (UNMERGED,))
    every = sorted_out([], [MERGED, UNMERGED], [], checked_out=(), unmerged=True)
    assert (every.branches, every.kept) == ((MERGED, UNMERGED), ())
    looked_at = sorted_out([], [MERGED], [], checked_out=("crew-1",), unmerged=True)
    assert (looked_at.branches, looked_at.kept) == ((), (MERGED,))


def test_beside_a_runner_only_the_worktrees_of_known_tasks_go():
    found = Remains(worktrees=(KNOWN, UNKNOWN), branches=(MERGED,), marks=("crew-5",))
    now = beside_a_runner(found, {"1": None})
    assert (now.worktrees, now.branches, now.marks) == ((KNOWN,), (), ())
    assert (now.kept, now.is_postponed) == ((MERGED,), True)
    assert not beside_a_runner(Remains(worktrees=(KNOWN,)), {"1": None}).is_postponed


@pytest.mark.parametrize(
    "found",
    [Remains(branches=(MERGED,)), Remains(marks=("crew-5",)), Remains(worktrees=(UNKNOWN,))],
)
def test_each_thing_that_waits_for_the_end_of_the_runner_is_postponed(found):
    assert beside_a_runner(found, {"1": None}).is_postponed


def test_only_what_was_shown_and_is_still_over_goes():
    shown = Remains(worktrees=(KNOWN,), branches=(MERGED, UNMERGED), marks=("crew-5",))
    moved = replace(UNMERGED, head="c")
    now = Remains(worktrees=(KNOWN, UNKNOWN), branches=(MERGED, moved), marks=("crew-5", "crew-6"))
    assert still_over(shown, now) == shown_without(shown, UNMERGED)


def shown_without(shown, branch):
    return replace(shown, branches=tuple(one for one in shown.branches if one != branch))


def test_a_task_that_was_under_way_is_to_be_done_again_unless_its_work_landed():
    landed = Task(id="2", state=TaskState.DONE, landed_commit="a", target="main")
    assert landed.awaits_delivery
    items = [
        item("1", TaskState.IN_PROGRESS),
        item("2", TaskState.DONE),
        item("3", TaskState.MERGED),
        item("4", TaskState.ERROR, corrupt="unreadable"),
    ]
    assert reopened(items, World(tasks={"2": landed})) == (("1",), ("2",))


def test_tasks_in_a_circle_and_tasks_that_cannot_be_read_are_found():
    items = [item("1", deps=("2",)), item("2", deps=("1",)), item("3", deps=("8",)), item("4")]
    found = list(task_findings([*items, item("5", corrupt="no title")]))
    assert [one.fix for one in found if one.is_wrong] == [
        "crew undep 1 2",
        "crew undep 3 8",
        "fix its file, or `crew rm 5`",
    ]
    assert found[-1].message == "5 tasks were read"
    assert {one.check for one in found} == {"tasks"}
