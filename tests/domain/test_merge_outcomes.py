"""What follows when a merge queue was built, tested, landed or delivered."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Assemble
from crew.domain.kernel.quotation import LONGEST_NOTES
from crew.domain.lead_choice import LEADS
from crew.domain.merging.conflict_text import Sides
from crew.domain.merging.merge_outcomes import (
    assembled,
    candidate_tested,
    delivered,
    delivery_held_up,
    found,
    held_up,
    landings_lost,
    prefix_landed,
    signed,
    target_moved,
)
from crew.domain.merging.merge_plan import plan_queues, send_back
from crew.domain.merging.merge_reports import Assembled, Conflicting, Delivered, MergeResult, Tips
from crew.domain.merging.queue_search import believed_tips, prefix_to_land
from crew.domain.rows.merge_queue import OVERTAKEN_LIMIT, Candidate
from crew.domain.rows.merge_queue import TestResult as Result
from crew.domain.rows.task import TaskState
from crew.domain.runs.gate import GateResult
from domain.scenes import RULES, after, given, queue_of, queued

NOTHING_BUILT = Assembled(
    tips=Tips(integration="base", target="main tip"),
    base="base",
    proven=True,
    waiting="",
    chain=(),
    trials=(),
    cleared=(),
    held=(),
    landed=(),
    conflicts=(),
)


def built(world, **changes):
    new = replace(NOTHING_BUILT, **changes)
    return after(world, assembled(world, "main", new, leads=LEADS, rules=RULES, at=2.0))


def waiting(*ids):
    return given(queue_of(*ids), *queued(*ids))


def test_only_results_of_commits_that_are_still_built_are_kept():
    results = (Result("base+1", True, 1, ""), Result("gone", True, 1, ""))
    world = given(queue_of(results=results), *queued("1"))
    now = built(world, chain=(Candidate("1", "head-1", "base+1"),)).queues["main"]
    assert [result.commit for result in now.results] == ["base+1"]
    assert (now.target_seen, now.upstream) == ("main tip", False)


def test_a_task_that_the_target_has_already_has_landed_there():
    world = waiting("1")
    now = built(world, landed=((world.tasks["1"], "main tip"),))
    assert now.tasks["1"].landed_commit == "main tip"


def test_a_task_that_conflicts_goes_back_unless_it_left_meanwhile():
    world = waiting("1")
    merge = MergeResult(conflicts=("a.txt",), detail="CONFLICT in a.txt")
    conflict = Conflicting(task=world.tasks["1"], merge=merge, sides=Sides(), onto="base")
    now = built(world, conflicts=(conflict,))
    assert now.tasks["1"].state == TaskState.IN_PROGRESS
    assert now.runs["1.1"].merge_paths == ("a.txt",)
    closed = given(queue_of(), replace(world.tasks["1"], queued_at=None), world.runs["1.1"])
    assert built(closed, conflicts=(conflict,)).tasks["1"].state == TaskState.DONE


def test_a_target_that_does_not_merge_is_told_with_the_way_out():
    now = built(waiting("1"), waiting="main conflicts").queues["main"]
    assert (now.waiting, now.remedy) == ("main conflicts", "git merge refs/crew/landed/main")


def test_a_red_test_keeps_the_end_of_its_output_and_a_green_one_nothing():
    queue = queue_of("1")
    red = GateResult(passed=False, output="x" * LONGEST_NOTES + "end")
    (fact,) = candidate_tested(queue, "base+1", red, at=2.0)
    (result,) = fact.changes["results"]
    assert result.notes.endswith("end")
    assert len(result.notes) == LONGEST_NOTES
    (fact,) = candidate_tested(queue, "base+1", GateResult(passed=True, output="ok"), at=2.0)
    assert fact.changes["results"] == (Result("base+1", True, 1, ""),)


def test_a_prefix_that_landed_leaves_the_queue_and_its_tasks_know_their_commit():
    world = waiting("1", "2")
    now = after(world, prefix_landed(world, world.queues["main"], 1, at=2.0))
    queue = now.queues["main"]
    assert (queue.integration, queue.base, queue.base_proven) == ("base+1", "base+1", True)
    assert [candidate.task for candidate in queue.chain] == ["2"]
    assert [now.tasks[id_].landed_commit for id_ in "12"] == ["base+1", ""]


def landed_world():
    world = waiting("1", "2")
    return after(world, prefix_landed(world, world.queues["main"], 2, at=2.0))


def test_what_the_target_branch_has_is_merged_and_nothing_else():
    world = landed_world()
    done = Delivered(state="delivered", commit="base+1")
    now = after(world, delivered(world, "main", done, arrived=["1"], at=3.0, delivered="base+1"))
    assert [now.tasks[id_].state for id_ in "12"] == [TaskState.MERGED, TaskState.DONE]
    assert now.queues["main"].delivered_at == 3.0


@pytest.mark.parametrize(("arrived", "trigger"), [(["1"], "delivered"), ([], "found_delivered")])
def test_a_target_that_had_all_before_is_found_delivered(arrived, trigger):
    world = landed_world()
    facts = delivered(world, "main", Delivered(state="current"), arrived=arrived, at=3.0)
    assert facts[0].trigger == trigger


def test_only_what_was_delivered_makes_the_next_delivery_wait():
    world = landed_world()
    found = after(world, delivered(world, "main", Delivered(state="current"), arrived=[], at=3.0))
    assert found.queues["main"].delivered_at is None
    done = Delivered(state="delivered", commit="base+1")
    now = after(found, delivered(found, "main", done, arrived=["1"], at=4.0))
    again = after(now, delivered(now, "main", Delivered(state="current"), arrived=[], at=9.0))
    assert again.queues["main"].delivered_at == 4.0


def test_a_lost_landing_lands_again():
    world = landed_world()
    now = after(world, landings_lost([world.tasks["1"]], at=3.0))
    assert now.tasks["1"].is_queued


def test_a_target_that_moved_is_tested_with_what_landed_first():
    queue, tips = queue_of(target_seen="before"), Tips(integration="base", target="by hand")
    (fact,) = target_moved(queue, tips, overtaken=1, at=2.0)
    assert (fact.changes["upstream"], fact.changes["overtaken"]) == (True, 1)
    assert "waiting" not in fact.changes
    (fact,) = target_moved(queue, tips, overtaken=OVERTAKEN_LIMIT, at=2.0)
    assert "gets new commits" in fact.changes["waiting"]
    assert target_moved(replace(queue, upstream=True), tips, overtaken=1, at=2.0) == []
    assert target_moved(replace(queue, target_seen="by hand"), tips, overtaken=1, at=2.0) == []


def test_what_is_in_the_way_of_a_delivery_is_recorded_once():
    queue, blocked = queue_of(), Delivered(state="waiting", reason="a file", remedy="mv it")
    (fact,) = delivery_held_up(queue, blocked, at=2.0)
    again = replace(queue, waiting="a file", remedy="mv it")
    assert fact.trigger == "delivery_waits"
    assert delivery_held_up(again, blocked, at=2.0) == []
    assert delivery_held_up(again, Delivered(state="diverged"), at=2.0) == []


def test_a_delivery_that_waits_for_nothing_named_records_nothing():
    assert delivery_held_up(queue_of(), Delivered(state="waiting"), at=2.0) == []


def test_what_holds_a_queue_up_is_recorded_once():
    queue = queue_of()
    (fact,) = held_up(queue, "a full disk", "make room", at=2.0)
    assert (fact.trigger, fact.changes["waiting"]) == ("held_up", "a full disk")
    assert (
        held_up(
            replace(queue, waiting="a full disk", remedy="make room"),
            "a full disk",
            "make room",
            at=3.0,
        )
        == []
    )


def test_landed_work_that_only_git_knows_gets_its_queue_back():
    world = given(queue_of())
    tips = {name: Tips(integration="x", target="x") for name in ("main", "dev")}
    assert [fact.subject for fact in found(world, tips, at=2.0)] == ["dev"]


# A task that got another target in the meantime


def moved_away():
    """Task 1 is merged and tested in the queue of main, and waits for feature by now."""
    one, *more = queued("1")
    return given(
        queue_of("1", results=(("base+1", True, 1, ""),)), replace(one, target="feature"), *more
    )


def test_a_queue_neither_lands_nor_blames_a_task_that_waits_for_another_target():
    world = moved_away()
    commands = list(plan_queues(world, Clock(2.0), rules=RULES, busy=frozenset()))
    assert [type(one) for one in commands] == [Assemble]
    red = given(*queued("1"), queue_of("1", results=(("base+1", False, 2, ""),)))
    assert send_back(red, 2.0, leads=LEADS, rules=RULES)
    red = replace(red, tasks={"1": world.tasks["1"]})
    assert not send_back(red, 2.0, leads=LEADS, rules=RULES)


def test_what_was_built_of_it_for_the_old_target_changes_nothing_for_it():
    world = moved_away()
    task = replace(world.tasks["1"], target="main")
    merge = MergeResult(conflicts=("a",))
    for changes in (
        {"landed": ((task, "base"),)},
        {"conflicts": (Conflicting(task=task, merge=merge, sides=(), onto="base"),)},
        {"refused": ((task, "a submodule"),)},
    ):
        assert built(world, **changes).tasks["1"] == world.tasks["1"]


def test_a_landing_that_was_under_way_is_where_the_task_has_landed():
    """The ref has moved already, and landed work is never taken back."""
    world = moved_away()
    now = after(world, prefix_landed(world, world.queues["main"], 1, at=2.0))
    assert (now.tasks["1"].landed_commit, now.tasks["1"].target) == ("base+1", "main")


def test_signed_merges_take_the_place_of_those_that_were_tested():
    results = (Result("base+1", True, 1, ""), Result("base+1+2", False, 1, "red"))
    world = given(queue_of("1", "2", results=results), *queued("1", "2"))
    placed = {"base+1": "signed 1", "base+1+2": "on signed 1"}
    now = after(world, signed(world.queues["main"], placed, at=2.0)).queues["main"]
    assert [one.commit for one in now.chain] == ["signed 1", "on signed 1"]
    assert [(one.commit, one.passed) for one in now.results] == [
        ("signed 1", True),
        ("on signed 1", False),
    ]
    assert prefix_to_land(now) == 1
    assert "signed 1" in believed_tips(now)


def test_a_test_under_way_counts_for_the_commit_that_took_the_place_of_its_own():
    world = given(queue_of("1", "2"), *queued("1", "2"))
    first = {"base+1": "signed 1", "base+1+2": "on signed 1"}
    world = after(world, signed(world.queues["main"], first, at=2.0))
    second = {"on signed 1": "signed 2"}
    world = after(world, signed(world.queues["main"], second, at=3.0))
    green = GateResult(passed=True, output="", command="")
    world = after(world, candidate_tested(world.queues["main"], "base+1+2", green, at=4.0))
    assert [one.commit for one in world.queues["main"].results] == ["signed 2"]
    assert world.queues["main"].name_of("base+1") == "signed 1"


def test_nothing_signed_is_no_fact():
    assert signed(queue_of("1"), {}, at=2.0) == []
