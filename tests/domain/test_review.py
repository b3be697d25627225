"""What a reviewer said, for which commit it counts, and who is still to be asked."""

import pytest

from crew.domain.rules import Rules
from crew.domain.runs.verdicts import (
    Review,
    Verdict,
    complaints,
    passes,
    review_counted,
    said,
    still_to_ask,
    verdict,
)
from domain.scenes import after, at_terminal


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


def test_every_note_of_those_who_said_no_is_told_and_none_of_the_others():
    yes = Verdict(commit="c", reviewer="ann", passed=True, notes="nice")
    no = Verdict(commit="c", reviewer="bob", passed=False, notes="no tests")
    also = Verdict(commit="c", reviewer="cleo", passed=False, notes="a typo")
    assert complaints([yes]) is None
    assert complaints([]) is None
    assert complaints([yes, no, also]) == "bob:\n> no tests\n\ncleo:\n> a typo"


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
