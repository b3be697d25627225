"""A request that lacks an argument, or has a wrong one, is refused with the argument's name."""

import pytest

from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.request_verbs import VERBS, answer
from crew.domain.requests import Request, parsed
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


@pytest.mark.parametrize(
    ("verb", "args", "name"),
    [
        ("spawn", {"kind": 7}, "kind"),
        ("spawn", {"kind": "claude", "count": "two"}, "count"),
        ("spawn", {"kind": "claude", "count": True}, "count"),
        ("cleanup", {"agent": "Ann", "idle": 1}, "idle"),
        ("prune", {"tasks": "12"}, "tasks"),
        ("prune", {"tasks": ["1", 2]}, "tasks"),
        ("reviewed", {"task": "1", "verdict": "PASS"}, "verdict"),
        (
            "reviewed",
            {"task": "1", "verdict": {"commit": "c", "reviewer": "r", "passed": 1}},
            "passed",
        ),
        ("signal", {"run": "1.1", "attempt": "2"}, "attempt"),
        ("channel_new", {"channel": "c", "members": ["ann"]}, "members"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(verb, args, name):
    with raises_code(UsageError, "wrong_argument", verb, name):
        answer(World(), Request(verb=verb, args=args), rules=Rules(), at=1.0)


@frozen
class Inner:
    name: str


@frozen
class Everything:
    text: str = "usual"
    limit: int | None = 5
    share: float = 0.0
    names: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    for_: str = ""
    anything: object = None


@pytest.mark.parametrize(
    ("args", "value"),
    [
        ({}, Everything()),
        ({"text": None, "names": None}, Everything()),
        ({"limit": None}, Everything(limit=None)),
        ({"share": 2}, Everything(share=2)),
        ({"names": ["a", "b"]}, Everything(names=("a", "b"))),
        ({"inner": [{"name": "a", "unknown": 1}]}, Everything(inner=(Inner(name="a"),))),
        ({"for": "rain"}, Everything(for_="rain")),
        ({"anything": True}, Everything(anything=True)),
        ({"unknown": 1}, Everything()),
    ],
)
def test_arguments_become_the_fields_of_a_class(args, value):
    assert parsed(Everything, Request(verb="v", args=args)) == value
