"""Errors in a row, as agents, members, roles and commands count them."""

from crew.domain.kernel.error_row import one_more_error


def test_the_last_try_is_spent_at_the_limit_and_not_before():
    spent = [one_more_error(before, limit=3).is_spent for before in range(4)]
    assert spent == [False, False, True, True]


def test_after_the_limit_a_person_adds_as_many_tries_again():
    ends = [one_more_error(before, limit=2).ends_here for before in range(4)]
    assert ends == [False, True, False, True]


def test_the_row_counts_the_error_that_happened_just_now():
    assert one_more_error(0, limit=5).count == 1
