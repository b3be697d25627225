"""The limits and waits of the seeds."""

import pytest

from crew.domain.rules import Rules


@pytest.mark.parametrize(
    ("errors", "seconds"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (100, 60)],
)
def test_each_error_in_a_row_doubles_the_wait_up_to_a_minute(errors, seconds):
    assert Rules().backoff(errors) == seconds


def test_the_wait_follows_the_config():
    assert Rules(backoff_s=0.5).backoff(3) == 2.0
    assert Rules(max_backoff_s=10.0).backoff(5) == 10.0


def test_the_limits_are_those_of_the_seeds():
    rules = Rules()
    assert (rules.max_steps, rules.max_rounds, rules.stuck_after) == (20, 20, 5)
    assert rules.done_word == "DONE"


def test_by_default_work_is_reviewed_and_merged_as_usual():
    rules = Rules()
    special = ("reset_on_recovery", "one_at_a_time", "keep_worktrees", "skip_review")
    assert not any(getattr(rules, name) for name in (*special, "merge_completed"))
    assert rules.conflicts_to_agent
    assert (rules.reviews_needed(skip=None), rules.test_slots) == (0, 1)
