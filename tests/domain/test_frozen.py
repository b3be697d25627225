"""`@frozen` is a frozen dataclass in all that a reader can see of one."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import ClassVar

import pytest

from crew.domain.kernel.frozen import frozen


@frozen
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    tags: dict[str, int] = field(default_factory=dict)


@frozen
class Named(Point):
    name: str = ""


def test_values_come_by_name_from_a_default_or_from_a_factory():
    assert (Point(x=1).x, Point(x=1).y, Point(x=1).tags, Point(x=1, y=5).y) == (1, 2, {}, 5)
    assert Point(x=1).tags is not Point(x=1).tags
    assert (Named(x=1, name="a").name, Named(x=1).kind) == ("a", "point")


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_a_missing_and_an_unknown_value_are_refused(given):
    with pytest.raises(TypeError, match="__init__"):
        Point(**given)


def test_no_value_comes_by_its_place():
    with pytest.raises(TypeError):
        Point(1)


def test_nothing_can_be_changed_or_added():
    one = Point(x=1)
    for change in (lambda: setattr(one, "x", 2), lambda: delattr(one, "x")):
        with pytest.raises(FrozenInstanceError):
            change()
    with pytest.raises(FrozenInstanceError):
        one.z = 2
    assert not hasattr(one, "__dict__")


def test_two_are_equal_when_their_class_and_all_values_are():
    assert Point(x=1) == Point(x=1, y=2)
    assert Point(x=1) != Point(x=1, y=3)
    assert Point(x=1) != Named(x=1)
    assert Point(x=1) != (1, 2, {})


def test_equal_ones_have_one_hash():
    assert hash(One(a="x")) == hash(One(a="x"))
    assert len({One(a="x"), One(a="x"), One(a="y")}) == 2
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


@frozen
class One:
    a: str


@frozen
class Nothing:
    """Has no fields."""


@frozen
class Own:
    a: int

    def __repr__(self):
        return "own"


def test_it_prints_its_values_unless_it_has_words_of_its_own():
    assert repr(Named(x=1, name="a")) == "Named(x=1, y=2, tags={}, name='a')"
    assert repr(Own(a=1)) == "own"


def test_it_is_a_dataclass_to_the_standard_library():
    assert is_dataclass(Point)
    assert [one.name for one in fields(Named)] == ["x", "y", "tags", "name"]
    assert replace(Point(x=1), y=7) == Point(x=1, y=7)
    assert asdict(Named(x=1)) == {"x": 1, "y": 2, "tags": {}, "name": ""}


def test_a_class_costs_no_compilation_before_its_first_value():
    code = (
        "import builtins\n"
        "from crew.domain.kernel.frozen import frozen\n"
        "class Refused(Exception): ...\n"
        "def refuse(*_): raise Refused\n"
        "builtins.exec = refuse\n"
        "@frozen\nclass A:\n    a: int = 1\n"
        "try: A()\n"
        "except Refused: print('written with the first value')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "written with the first value\n"
