"""What a person reads when something is refused, and what a script gets."""

import pytest

from crew.domain.kernel import errors
from crew.domain.kernel.errors import CrewError, InvalidTransition

EXIT_CODES = {
    "CrewError": 1,
    "UsageError": 2,
    "NotFound": 3,
    "NotInstalled": 1,
    "NeedsLogin": 4,
    "Conflict": 5,
    "InvalidTransition": 5,
    "CheckFailed": 6,
    "TryLater": 75,
    "TimedOut": 124,
}
"""The exit codes of the command line's contract."""

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type)]


def test_every_error_has_the_exit_code_of_the_contract():
    assert {kind.__name__: kind.exit_code for kind in KINDS} == EXIT_CODES


def test_every_error_has_a_code_of_its_own():
    assert len({kind.code for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not InvalidTransition])
def test_an_error_says_what_and_what_next(kind):
    error = kind("it rains", hint="take an umbrella")
    assert isinstance(error, CrewError)
    assert (str(error), error.message, error.hint) == ("it rains", "it rains", "take an umbrella")


def test_an_error_without_a_next_step_cannot_be_made():
    with pytest.raises(TypeError, match="hint"):
        CrewError("it rains")
