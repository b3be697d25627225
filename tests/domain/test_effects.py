"""Crash points: a process dies at exactly the named moment, as from `kill -9`."""

import os
import signal
import subprocess
import sys

import pytest

from crew.system import crash_points
from crew.system.crash_points import EFFECTS, crash_point, effect

PROGRAM = """
from crew.system.crash_points import effect

@effect("test.say")
def say(word):
    print(word, flush=True)

for word in ("one", "two", "three"):
    say(word)
"""


def run_program(crash_at):
    env = {name: value for name, value in os.environ.items() if name != "CREW_CRASH_AT"}
    env |= {"CREW_CRASH_AT": crash_at} if crash_at else {}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("crash_at", "said"),
    [
        ("test.say.before", []),
        ("test.say.after", ["one"]),
        ("test.say.before:1", []),
        ("test.say.before:3", ["one", "two"]),
        ("test.say.after:3", ["one", "two", "three"]),
    ],
)
def test_a_process_dies_at_the_nth_time_before_or_after(crash_at, said):
    assert run_program(crash_at) == (-signal.SIGKILL, said)


@pytest.mark.parametrize("crash_at", [None, "test.say.before:4", "test.say", "other.before"])
def test_a_process_lives_where_its_point_is_never_reached(crash_at):
    assert run_program(crash_at) == (0, ["one", "two", "three"])


def test_an_effect_is_known_by_name_and_stays_the_function_it_marks():
    @effect("test.double")
    def double(number):
        """Twice as much."""
        return number * 2

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")
    assert "test.double" in EFFECTS
    EFFECTS.discard("test.double")


def test_the_countdown_is_of_the_named_point_only(monkeypatch):
    deaths = []
    monkeypatch.setattr(crash_points, "_at", "test.point")
    monkeypatch.setattr(crash_points, "_left", 2)
    monkeypatch.setattr(os, "kill", lambda pid, number: deaths.append((pid, number)))
    for point in ("other.point", "test.point", "other.point", "test.point", "test.point"):
        crash_point(point)
    assert deaths == [(os.getpid(), signal.SIGKILL)]
