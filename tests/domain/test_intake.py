"""What follows when a task source is read."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.rows.task import TASK, Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.tasks.task_outcomes import GIVEN_UP_AFTER_S, Intake, give_up, seen
from crew.domain.world import World
from domain.scenes import after, given, holding

ITEM = TaskItem(id="1", title="first", deps=("2",), priority=1, agent="codex", created=7.0)
INTAKE = Intake(target="main", at=50.0)


def read(world, *items):
    return after(world, seen(world, items, INTAKE))


def known(**changes):
    """A task that says what ITEM says."""
    return replace(read(World(), ITEM).tasks["1"], **changes)


def test_a_new_task_is_taken_as_the_source_tells_it():
    assert read(World(), ITEM).tasks["1"] == Task(
        id="1",
        title="first",
        deps=("2",),
        priority=1,
        wants_agent="codex",
        created_at=7.0,
        target="main",
    )


def test_a_task_may_name_its_own_base_branch():
    assert read(World(), replace(ITEM, base="dev")).tasks["1"].target == "dev"


@pytest.mark.parametrize("status", TaskState)
def test_a_new_task_has_the_state_its_source_says_and_nothing_is_written_back(status):
    task = read(World(), replace(ITEM, status=status)).tasks["1"]
    assert task.state == task.written == status


def test_reading_the_same_again_says_nothing():
    assert seen(given(known()), [ITEM], INTAKE) == []


def test_an_edit_changes_only_what_was_edited():
    facts = seen(given(known()), [replace(ITEM, title="second", priority=0)], INTAKE)
    assert [fact.changes for fact in facts] == [{"title": "second", "priority": 0}]


@pytest.mark.parametrize(
    ("state", "before", "written", "after_it"),
    [
        ("in_progress", None, True, None),
        ("done", False, True, False),
        ("in_progress", False, None, False),
        ("in_progress", True, False, False),
        ("todo", None, True, True),
        ("error", None, True, True),
    ],
)
def test_a_review_is_not_dropped_while_there_is_work(state, before, written, after_it):
    """The agent could have edited the file itself."""
    task = known(state=state, written=state, skip_review=before)
    item = replace(ITEM, status=TaskState(state), skip_review=written)
    assert read(given(task), item).tasks["1"].skip_review == after_it


def test_a_task_with_a_branch_keeps_the_target_it_started_from():
    item = replace(ITEM, base="dev")
    assert read(given(known()), item).tasks["1"].target == "dev"
    assert read(given(known(branch="crew-1")), item).tasks["1"].target == "main"


def test_a_task_that_vanished_is_missing_then_gone_and_may_come_back_at_any_time():
    missing = read(given(known()))
    assert (missing.tasks["1"].missing_at, missing.tasks["1"].gone) == (INTAKE.at, False)
    over = INTAKE.at + GIVEN_UP_AFTER_S
    assert give_up(missing, Clock(over - 1)) == []
    gone = after(missing, give_up(missing, Clock(over)))
    assert (gone.tasks["1"].missing_at, gone.tasks["1"].gone) == (None, True)
    for world in (missing, gone):
        assert not world.tasks["1"].is_there
        assert seen(world, [], INTAKE) == []
        assert read(world, ITEM).tasks["1"] == known()


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_a_finished_task_that_vanished_is_gone_at_once(state):
    missing = read(given(known(state=state)))
    assert [fact.changes["gone"] for fact in give_up(missing, Clock(INTAKE.at))] == [True]


def test_a_task_that_cannot_be_read_keeps_what_was_known_of_it():
    torn = TaskItem(id="1", title="", status=TaskState.CLOSED, corrupt="torn in the middle")
    world = read(given(known()), torn)
    assert world.tasks["1"] == known(corrupt=True)
    assert seen(world, [torn], INTAKE) == []
    assert read(world, ITEM).tasks["1"] == known()


def test_a_new_task_that_cannot_be_read_is_known_as_such():
    torn = TaskItem(id="1", title="", corrupt="torn in the middle")
    assert read(World(), torn).tasks["1"].corrupt


ADOPTED = {
    ("todo", "closed"),
    ("in_progress", "closed"),
    ("done", "closed"),
    ("error", "closed"),
    ("error", "todo"),
}
"""What a person may do to a task in its file."""


@pytest.mark.parametrize("ours", TaskState)
@pytest.mark.parametrize("theirs", TaskState)
def test_a_person_may_close_or_reopen_a_task_and_all_else_is_written_over(ours, theirs):
    world = given(known(state=ours, written=ours))
    task = read(world, replace(ITEM, status=theirs)).tasks["1"]
    adopted = (ours, theirs) in ADOPTED
    assert task.state == (theirs if adopted else ours)
    assert task.written == theirs


def test_whatever_is_adopted_is_a_move_of_the_machine():
    moves = {(move.source, move.target) for move in TASK.moves}
    assert moves >= ADOPTED


def test_an_edit_that_crosses_a_move_of_ours_is_written_over():
    """crew moved the task and has not told the source yet; then a person closes it there."""
    world = given(known(state="in_progress", written="todo"))
    task = read(world, replace(ITEM, status=TaskState.CLOSED)).tasks["1"]
    assert (task.state, task.written) == ("in_progress", "closed")


def test_a_source_that_still_says_what_it_was_told_last_changes_nothing():
    world = given(known(state="in_progress", written="todo"))
    assert seen(world, [ITEM], INTAKE) == []


def closed_outside(world):
    item = TaskItem(id="1", title="", status=TaskState.CLOSED, base="main")
    world = replace(world, tasks={"1": replace(world.tasks["1"], written="in_progress")})
    return read(world, item)


def test_whoever_works_at_a_task_that_a_person_closed_is_killed():
    world = closed_outside(holding("working"))
    assert world.tasks["1"].state == "closed"
    assert world.agents["A"].killing


def test_a_run_that_waits_for_an_agent_ends_when_a_person_closes_its_task():
    world = closed_outside(replace(holding("working", run_agent=None), agents={}))
    assert (world.runs["1.1"].state, world.runs["1.1"].error) == ("failed", "closed")
