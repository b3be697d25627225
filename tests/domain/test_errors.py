"""What a person reads when something is refused, and what a script gets."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import crew
from crew.domain.kernel import errors
from crew.domain.kernel.errors import Conflict, CrewError, InvalidTransition, UsageError

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
    "Interrupted": 130,
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


def test_an_error_may_have_a_more_precise_code_than_its_kind():
    assert Conflict("it rains", hint="wait").code == "conflict"
    refused = Conflict("it rains", hint="wait", code="rain")
    assert (refused.code, refused.exit_code, Conflict.code) == ("rain", 5, "conflict")


def _precise_codes() -> Iterator[tuple[str, int]]:
    """Every `code="…"` that is given to an error in the source, with the exit code of its kind."""
    others = {"GitFailed": 1, "NotTakenIn": 1, "StoreFailed": 1, "Waiting": 5}
    others["_mistake"] = UsageError.exit_code
    exit_codes = {**EXIT_CODES, **others}
    for file in Path(crew.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                given = {word.arg: word.value for word in call.keywords}.get("code")
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value, exit_codes[call.func.id]


def test_every_code_stands_for_one_exit_code():
    codes = set(_precise_codes()) | {(kind.code, kind.exit_code) for kind in KINDS}
    assert len(codes) > 50
    assert [code for code, times in Counter(code for code, _ in codes).items() if times > 1] == []
    assert [code for code, _ in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_an_error_without_a_next_step_cannot_be_made():
    with pytest.raises(TypeError, match="hint"):
        CrewError("it rains")
