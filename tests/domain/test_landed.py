"""Between landed and merged: nothing waits for the task, and nothing can be done to it any more."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Deliver, RemoveWorktree
from crew.domain.kernel.errors import Conflict
from crew.domain.lead_choice import LEADS
from crew.domain.plan import plan
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.tasks.readiness import is_ready
from crew.domain.tasks.task_outcomes import Intake, seen
from domain.scenes import RULES, after, given, queue_of, queued
from refusals import raises_code

WAITING, RUN = queued("1")
LANDED = replace(WAITING, landed_commit="base+1")
LINE = queue_of(integration="base+1", base="base+1", delivered_at=49.0, is_shown=True)
NEXT = Task(id="2", deps=("1",), target="main")


def asked(verb: str, **args):
    world = given(LANDED, RUN, LINE)
    return answer(world, Request(verb=verb, args={"task": "1", **args}), rules=RULES, at=50.0)


def planned(*rows):
    return plan(given(*rows), Clock(50.0), rules=RULES)


@pytest.mark.parametrize("state", TaskState)
def test_only_a_done_task_that_landed_awaits_its_delivery(state):
    landed = Task(id="1", state=state, queued_at=0.0, landed_commit="c")
    assert landed.awaits_delivery == (state == "done")
    assert not landed.is_queued


def test_what_waited_for_a_task_starts_once_it_has_landed():
    assert not is_ready(given(WAITING, NEXT), NEXT, LEADS)
    assert is_ready(given(LANDED, NEXT), NEXT, LEADS)


def test_the_worktree_of_a_landed_task_is_not_needed_any_more():
    assert RemoveWorktree(subject="1") not in planned(WAITING, RUN, LINE)
    assert RemoveWorktree(subject="1") in planned(LANDED, RUN, LINE)


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("close", {}),
        ("changes", {"notes": "more"}),
        ("message", {"sender": "me", "text": "more"}),
        ("start", {"default_kind": "claude"}),
        ("complete", {}),
    ],
)
def test_a_landed_task_is_not_taken_back(verb, args):
    with raises_code(Conflict, "awaits_delivery", "main") as refused:
        asked(verb, **args)
    assert "`crew merge 1`" in refused.value.hint


def test_a_file_that_says_closed_is_written_over_once_the_task_has_landed():
    item = TaskItem(id="1", title="", status=TaskState.CLOSED)
    facts = seen(given(LANDED), [item], Intake(target="main", at=50.0))
    assert after(given(LANDED), facts).tasks["1"].state == "done"


def test_to_merge_a_landed_task_is_to_deliver_it_at_once():
    other = queued("3", target="dev")
    assert Deliver(subject="main") not in planned(LANDED, RUN, LINE, *other)
    line = after(given(LANDED, RUN, LINE), list(asked("merge").facts)).queues["main"]
    assert Deliver(subject="main") in planned(LANDED, RUN, line, *other)


def test_a_branch_that_no_checkout_shows_is_delivered_at_once():
    unshown = replace(LINE, is_shown=False)
    assert Deliver(subject="main") in planned(LANDED, RUN, unshown, *queued("3", target="dev"))


def test_a_task_that_was_in_its_target_already_is_delivered_like_any_other():
    assert Deliver(subject="main") in planned(LANDED, RUN, replace(LINE, delivered="base+1"))
