"""What a reviewer said, for which commit it counts, and who is still to be asked."""

from dataclasses import replace

import pytest

from crew.domain.agents.slot_lead import SlotLead
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.run_outcomes import checked
from crew.domain.runs.verdicts import (
    Review,
    Verdict,
    complaints,
    in_this_review,
    passes,
    review_counted,
    review_ended,
    said,
    still_to_ask,
    verdict,
)
from domain.scenes import after, at_terminal, holding


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("PASS", True),
        ("fine\n\n  PASS  \n\n", True),
        ("FAIL", False),
        ("PASS\nFAIL", False),
        ("FAIL\nPASS", False),
        ("FAIL\nmended since\n  PASS  ", False),
        ("PASS\nPASS", True),
        ("FAIL: was red\nPASS", False),
        ("- FAIL - no tests\nPASS", False),
        ("## Verdict: FAIL\n\nPASS", False),
        ("**FAIL**\nPASS", False),
        ("`FAIL`.\nPASS", False),
        ("**FAIL**: no tests\nPASS", False),
        ("FAIL, the tests are missing\nPASS", False),
        ("> FAIL\nthat was the last review\nPASS", True),
        ("FAIL src/login.test.js\nis what the old commit printed\nPASS", True),
        ("I found nothing to FAIL it for\nPASS", True),
        ("FAILURES: 0\nPASS", True),
        ("PASS.", None),
        ("Pass", None),
        ("PASS FAIL", None),
        ("PASS: all good", None),
        ("FAIL, the tests are missing", None),
        ("**PASS**", None),
        ("no\nPASS\nno", None),
        ("\tPASS\r\n", True),
        ("pass", None),
        ("I would say PASS", None),
        ("PASS\nbut mind the tests", None),
        ("", None),
        ("\n \n", None),
    ],
)
def test_the_last_line_is_the_verdict_and_must_be_the_word_alone(text, heard):
    assert said(text) is heard


def test_a_clear_word_is_a_verdict_with_everything_that_was_said():
    found = verdict("good\nPASS\n", commit="c", reviewer="bob")
    assert found == Verdict(commit="c", reviewer="bob", passed=True, notes="good\nPASS")
    assert not verdict("bad\nFAIL", commit="c", reviewer="bob").passed


def test_no_clear_word_is_a_fail_that_says_so():
    found = verdict("looks good", commit="c", reviewer="bob")
    assert not found.passed
    assert found.notes.startswith("looks good")
    assert "the last line must be PASS or FAIL alone" in found.notes


def test_a_pass_after_a_fail_is_a_fail_that_says_so():
    found = verdict("FAIL\nthe tests pass now\nPASS", commit="c", reviewer="bob")
    assert not found.passed
    assert "a line above gives the verdict FAIL" in found.notes
    assert "a line above" not in verdict("PASS\nFAIL", commit="c", reviewer="bob").notes


def test_a_verdict_counts_for_exactly_one_commit():
    world = at_terminal()
    for commit, passed in (("old", True), ("old", True), ("new", False)):
        found = Verdict(commit=commit, reviewer="bob", passed=passed)
        review = Review(reviewer=found.reviewer, verdict=found)
        world = after(world, review_counted(world, world.runs["1.1"], review, at=60.0))
    run = world.runs["1.1"]
    assert (passes(run, "old"), passes(run, "new")) == (("bob", "bob"), ())


def reviewed(world, *verdicts):
    for found in verdicts:
        review = Review(reviewer=found.reviewer, verdict=found)
        run = world.runs["1.1"]
        world = after(world, review_ended(world, run, review, rules=Rules(), at=60.0))
    return world


YES = Verdict(commit="c", reviewer="ann", passed=True, notes="nice")
NO = Verdict(commit="c", reviewer="bob", passed=False, notes="no tests")
ALSO = Verdict(commit="c", reviewer="cleo", passed=False, notes="a typo")
OLD = Verdict(commit="old", reviewer="dan", passed=False, notes="older")


def test_every_note_of_those_who_said_no_is_told_and_none_of_the_others():
    world = holding("done")
    assert complaints(world.runs["1.1"], "c") is None
    assert complaints(reviewed(world, YES, OLD).runs["1.1"], "c") is None
    run = reviewed(world, OLD, YES, NO, ALSO).runs["1.1"]
    assert complaints(run, "c") == "bob:\n> no tests\n\ncleo:\n> a typo"


def test_a_fail_stands_until_it_is_told_and_a_review_by_hand_is_told_at_once():
    world = reviewed(holding("done"), NO, replace(NO, passed=True))
    assert complaints(world.runs["1.1"], "c") == "bob:\n> no tests"
    for red in (Evidence(head="c", gate_passed=False), Evidence(head="c", uncommitted=("a",))):
        facts = checked(world, world.runs["1.1"], SlotLead(), red, rules=Rules(), at=1.0)
        assert complaints(after(world, facts).runs["1.1"], "c") == "bob:\n> no tests"
    told = Evidence(head="c", gate_passed=True, review_notes="no tests")
    for judged in (told, Evidence(head="c", gate_passed=True)):
        facts = checked(world, world.runs["1.1"], SlotLead(), judged, rules=Rules(), at=1.0)
        assert after(world, facts).runs["1.1"].unjudged == ()
    by_hand = Review(reviewer="bob", verdict=NO)
    world = holding("done")
    facts = review_counted(world, world.runs["1.1"], by_hand, at=1.0)
    assert complaints(after(world, facts).runs["1.1"], "c") is None


def test_a_stage_counts_the_verdicts_of_its_own_review_only():
    world = reviewed(holding("done", run_verdicts=(("c", "dan", True),)), YES)
    run = world.runs["1.1"]
    assert (passes(run, "c"), passes(in_this_review(run), "c")) == (("dan", "ann"), ("ann",))


@pytest.mark.parametrize(
    ("rules", "task_says", "needed"),
    [
        (Rules(), None, 0),
        (Rules(reviewers=("ann",)), None, 1),
        (Rules(reviewers=("ann", "bob")), None, 2),
        (Rules(reviewers=("ann",), min_reviews=3), None, 3),
        (Rules(reviewers=("ann",), skip_review=True), None, 0),
        (Rules(reviewers=("ann",), skip_review=True), False, 1),
        (Rules(reviewers=("ann",)), True, 0),
    ],
)
def test_what_the_task_says_about_reviews_wins_over_the_config(rules, task_says, needed):
    assert rules.reviews_needed(skip=task_says) == needed


@pytest.mark.parametrize(
    ("verdicts", "reviewers", "needed", "asked"),
    [
        ((), ("ann", "bob"), 2, ("ann", "bob")),
        ((), ("ann",), 3, ("ann", "ann", "ann")),
        ((), (), 0, ()),
        ((("c", "ann", True),), ("ann", "bob"), 2, ("bob",)),
        ((("c", "bob", True),), ("ann", "bob"), 2, ("ann",)),
        ((("c", "eve", True),), ("ann", "bob"), 2, ("ann",)),
        ((("c", "ann", True),) * 3, ("ann", "bob"), 2, ()),
        ((("c", "ann", True), ("c", "ann", False)), ("ann",), 1, ("ann",)),
        ((("c", "ann", False), ("c", "ann", True)), ("ann",), 1, ()),
        ((("c", "ann", True), ("c", "bob", False)), ("ann",), 1, ()),
        ((("c", "ann", True), ("old", "ann", False)), ("ann",), 1, ()),
        ((("c", "ann", False), ("old", "bob", True)), ("ann", "bob"), 2, ("ann", "bob")),
    ],
)
def test_those_are_asked_whose_pass_is_missing_for_this_very_commit(
    verdicts, reviewers, needed, asked
):
    run = at_terminal(run_verdicts=verdicts).runs["1.1"]
    assert still_to_ask(run, reviewers, commit="c", needed=needed) == asked
