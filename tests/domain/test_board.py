"""The board: why a task is open, and whether a manager has anything to decide."""

import pytest

from crew.domain.agents.manager_board import ManagerMove, Point, board, next_move
from crew.domain.lead_choice import LEADS
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.world import with_rows

AGENT = Agent(id="A", agent_kind="sh")


def the_point(*rows, runner_up=True):
    (point,) = board(with_rows(rows), LEADS, runner_up=runner_up)
    return point


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_what_is_finished_is_not_on_the_board(state):
    assert board(with_rows([Task(id="1", state=state)]), LEADS, runner_up=True) == ()


def test_what_its_source_lost_is_not_on_the_board():
    assert board(with_rows([Task(id="1", gone=True)]), LEADS, runner_up=True) == ()


def test_the_oldest_task_comes_first():
    tasks = [Task(id="1", created_at=5.0), Task(id="2", created_at=1.0)]
    assert [point.task for point in board(with_rows(tasks), LEADS, runner_up=True)] == ["2", "1"]


def test_a_ready_task_moves_by_itself_only_with_a_runner_and_agents():
    task = Task(id="1")
    assert not the_point(task, AGENT).decidable
    assert the_point(task, AGENT, runner_up=False).decidable
    assert the_point(task).decidable


def test_a_task_that_waits_for_another_needs_no_decision():
    points = board(with_rows([Task(id="1"), Task(id="2", deps=("1",))]), LEADS, runner_up=False)
    assert (points[1].why, points[1].decidable) == ("waits for 1", False)


def test_a_dependency_that_nobody_knows_needs_one():
    point = the_point(Task(id="2", deps=("9",)))
    assert (point.why, point.decidable) == ("depends on 9, which does not exist", True)


def test_a_file_that_cannot_be_read_needs_one():
    assert the_point(Task(id="1", corrupt=True)).decidable


def test_a_done_task_needs_one_until_it_is_queued():
    assert the_point(Task(id="1", state="done")).decidable
    assert not the_point(Task(id="1", state="done", queued_at=1.0)).decidable


def test_a_failed_task_is_told_with_its_reason():
    run = Run(id="1.1", task="1", state="failed", error="gave up")
    point = the_point(Task(id="1", state="error", run="1.1"), run)
    assert (point.why, point.decidable) == ("failed: gave up", True)
    assert "unknown reason" in the_point(Task(id="1", state="error")).why


def in_progress(**run):
    run = Run(id="1.1", task="1", state="working", **run)
    return Task(id="1", state="in_progress", run="1.1"), run


def test_a_task_at_a_terminal_is_looked_at():
    assert the_point(*in_progress(), Terminal(id="1.1", task="1")).decidable


def test_an_agent_at_work_needs_no_decision_and_a_stuck_one_does():
    task, run = in_progress(agent="A")
    assert not the_point(task, run, AGENT).decidable
    stuck = Agent(id="A", agent_kind="sh", state="stuck", last_error="no network")
    point = the_point(task, run, stuck)
    assert (point.why, point.decidable) == ("agent A is stuck: no network", True)


def test_a_task_that_nobody_holds_goes_on_with_the_runner():
    assert not the_point(*in_progress()).decidable
    assert the_point(*in_progress(), runner_up=False).decidable


def point(*, decidable, why="x"):
    return Point(task="1", title="t", state="todo", why=why, decidable=decidable)


@pytest.mark.parametrize(
    ("points", "asked", "move"),
    [
        ((), 0, ManagerMove.FINISHED),
        ((point(decidable=True),), 0, ManagerMove.ASK),
        ((point(decidable=True),), 1, ManagerMove.ASK),
        ((point(decidable=True),), 2, ManagerMove.GIVE_UP),
        ((point(decidable=False),), 0, ManagerMove.WAIT),
        ((point(decidable=True), point(decidable=False)), 2, ManagerMove.WAIT),
        ((point(decidable=False, why="waits for 1"),), 0, ManagerMove.GIVE_UP),
        (
            (point(decidable=True), point(decidable=False, why="waits for 1")),
            2,
            ManagerMove.GIVE_UP,
        ),
    ],
)
def test_the_manager_is_asked_while_there_is_something_to_decide(points, asked, move):
    assert next_move(points, asked=asked, patience=2) == move


@pytest.mark.parametrize("points", [(), (point(decidable=False),)])
def test_a_manager_with_instructions_is_asked_before_there_is_a_task(points):
    assert next_move(points, asked=0, patience=2, plans=True) == ManagerMove.ASK
