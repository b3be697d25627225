"""A request that lacks an argument is refused with its name, whatever is asked."""

import pytest

from crew.domain.dispatch import VERBS, answer
from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.requests import Request
from crew.domain.rules import Rules
from crew.domain.world import World
from refusals import raises_code

WITHOUT_ARGUMENTS = {"look"}


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - WITHOUT_ARGUMENTS))
def test_a_request_without_arguments_is_refused_and_never_breaks(verb):
    with pytest.raises(CrewError) as refused:
        answer(World(), Request(verb=verb, args={}), rules=Rules(), at=1.0)
    assert refused.value.hint


def test_a_missing_argument_is_named():
    with raises_code(UsageError, "missing_argument", "spawn", "kind"):
        answer(World(), Request(verb="spawn", args={"count": 1}), rules=Rules(), at=1.0)
