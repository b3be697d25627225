"""Workflows as values: what is wrong with one is named with its place, and a quest keeps it."""

from dataclasses import replace

import pytest

from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.rows.workflow import (
    DONE,
    Does,
    Role,
    Stage,
    Workflow,
    as_text,
    faults,
    from_text,
    session_count,
)
from domain.quest_life import built_in


def role(name, target, *, stage="", **more):
    return Stage(
        name=stage or name, does=Does.ROLE, roles=(name,), routes={"complete": target}, **more
    )


def gate(name, *, green, red, **more):
    return Stage(name=name, does=Does.GATE, routes={"green": green, "red": red}, **more)


SOLO = Workflow(name="solo", roles={"maker": Role(name="maker")}, stages=(role("maker", DONE),))

PLANNED = Workflow(
    name="planned",
    roles={name: Role(name=name, retries=3) for name in ("thinker", "maker")},
    stages=(
        role("thinker", "walk", plans=True),
        Stage(name="walk", does=Does.STEPS, routes={"complete": DONE}),
    ),
    step_stages=(role("maker", "ward"), gate("ward", green=DONE, red="maker", limit=3)),
)


def test_those_who_speak_in_a_council_have_names_of_members_and_each_its_own():
    ways = {"agreed": DONE, "objected": "maker"}
    long = "a-role-that-has-rather-a-long-name"
    talk = Stage(
        name="talk", does=Does.COUNCIL, roles=("maker", "maker", long), limit=2, routes=ways
    )
    roles = {name: Role(name=name) for name in ("maker", long)}
    workflow = Workflow(name="talks", roles=roles, stages=(role("maker", "talk"), talk))
    twice, unfit = faults(workflow)
    assert twice == "stage talk: each role speaks in it once"
    assert f"{long} cannot be a member's name" in unfit


@pytest.mark.parametrize("workflow", [SOLO, PLANNED, built_in()], ids=lambda w: w.name)
def test_a_sound_workflow_has_no_faults_and_is_kept_as_it_is(workflow):
    assert faults(workflow) == []
    assert from_text(as_text(workflow)) == workflow


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stages": ()}, "it has no stages"),
        (
            {"stages": (role("wizard", DONE),)},
            "stage wizard: unknown role wizard",
        ),
        ({"stages": (role("maker", "nowhere"),)}, "complete leads to nowhere, which does not"),
        (
            {"stages": (replace(role("maker", DONE), routes={}),)},
            "stage maker: nothing says where complete leads",
        ),
        (
            {"stages": (role("maker", DONE), role("maker", DONE))},
            "stage maker is defined twice",
        ),
        (
            {"stages": (role("maker", DONE), role("maker", DONE, stage="late"))},
            "stage late: unreachable",
        ),
        (
            {"stages": (role("maker", "ward"), gate("ward", green=DONE, red="maker"))},
            "a loop through it has no limit",
        ),
        (
            {"stages": (role("maker", DONE, plans=True),)},
            "stage maker: no stage runs the items that it plans",
        ),
        (
            {"roles": {"maker": Role(name="maker", signals=("finished",))}},
            "role maker: finished is not a signal",
        ),
        ({"stages": (role("maker", DONE, stage=DONE),)}, "that is where every way ends"),
        (
            {"stages": (gate("ward", green=DONE, red=DONE),)},
            "stage ward: it is the first one, so a role must act in it",
        ),
        (
            {
                "stages": (
                    role("maker", "ward"),
                    gate("ward", green=DONE, red=DONE, takes_back=True),
                )
            },
            "stage ward: only a role can take back what was not merged",
        ),
        (
            {"stages": (role("maker", "ward"), gate("ward", green=DONE, red=DONE, plans=True))},
            "stage ward: only a role can plan",
        ),
        (
            {"roles": {"maker": Role(name="maker", signals=("needs-user-input",))}},
            "role maker: it must be able to send complete, or it never ends",
        ),
        (
            {"roles": {**SOLO.roles, "a\0b": Role(name="a\0b")}},
            "role 'a\\x00b': a name has letters, digits, - and _, at most 40",
        ),
        (
            {"roles": {"maker": Role(name="maker", followups=("wizard",))}},
            "role maker: unknown role wizard",
        ),
        (
            {"step_stages": (role("maker", DONE),)},
            "step stages and a stage that runs the items belong together",
        ),
    ],
)
def test_a_fault_is_named_with_its_place(changes, words):
    found = faults(replace(SOLO, **changes))
    assert [fault for fault in found if words in fault], found


def test_steps_that_no_stage_plans_cannot_be_walked():
    position = Stage(name="walk", does=Does.STEPS, routes={"complete": DONE})
    found = faults(replace(PLANNED, stages=(role("thinker", "walk"), position)))
    assert found == ["stage walk: it runs items that no stage plans"]


def test_steps_are_walked_in_one_stage_only():
    again = Stage(name="again", does=Does.STEPS, routes={"complete": DONE})
    position = Stage(name="walk", does=Does.STEPS, routes={"complete": "again"})
    found = faults(replace(PLANNED, stages=(role("thinker", "walk", plans=True), position, again)))
    assert found == ["only one stage may run the items"]


def test_a_step_is_not_planned_into_steps():
    found = faults(replace(PLANNED, step_stages=(role("maker", DONE, plans=True),)))
    assert found == ["step stage maker: an item cannot be planned into items"]


@pytest.mark.parametrize("limit", ["stage", "role"])
def test_a_loop_may_be_limited_by_its_stage_or_by_its_role(limit):
    roles = {"maker": Role(name="maker", retries=2 if limit == "role" else None)}
    ward = gate("ward", green=DONE, red="maker", limit=2 if limit == "stage" else None)
    assert faults(replace(SOLO, roles=roles, stages=(role("maker", "ward"), ward))) == []


def test_a_stage_that_takes_work_back_needs_no_way_to_it():
    mend = role("maker", DONE, stage="mend", takes_back=True)
    assert faults(replace(SOLO, stages=(role("maker", DONE), mend))) == []


def test_all_faults_are_named_at_once():
    found = faults(
        replace(SOLO, stages=(role("wizard", "nowhere"), role("maker", DONE, stage="late")))
    )
    assert len(found) == 3


@pytest.mark.parametrize(
    ("name", "count", "for_five"),
    [
        ("solo", (1, 0, 0), 1),
        ("pair", (2, 0, 0), 2),
        ("claudex", (3, 0, 0), 3),
        ("plan", (2, 1, 0), 7),
        ("quest", (3, 2, 0), 13),
    ],
)
def test_a_workflow_counts_the_sessions_of_the_way_on_which_nothing_is_sent_back(
    name, count, for_five
):
    found = session_count(load_workflow(BUILT_IN / f"{name}.toml"))
    assert tuple(found) == count
    assert found.for_items(5, slots=3) == for_five


def test_a_session_that_is_kept_counts_once_for_each_slot_in_use():
    workflow = load_workflow(BUILT_IN / "quest.toml")
    kept = replace(workflow.roles["codeweaver"], session="quest")
    found = session_count(replace(workflow, roles={**workflow.roles, "codeweaver": kept}))
    assert (found.for_items(5, slots=3), found.for_items(2, slots=3)) == (3 + 5 + 3, 3 + 2 + 2)
