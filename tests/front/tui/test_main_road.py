"""The main road in a real tmux, with keys alone: new, start, attach, complete, merge."""

import shlex

import pytest

from front.conftest import CREW
from front.tui.tmux_seat import TmuxSeat, needs_tmux

pytestmark = needs_tmux
CLEAN = (False, True, False)


@pytest.fixture
def seat(scene):
    found = TmuxSeat(scene.root, columns=120, lines=36)
    yield found
    found.end()


def test_ctrl_z_gives_the_shell_back_and_fg_returns(scene, seat):
    scene.ok("new", "--title", "Paint the door")
    seat.run(shlex.quote(str(CREW)))
    seat.sees("Paint the door")
    assert seat.modes == (True, False, True)
    seat.keys("C-z")
    seat.sees("ready>")
    assert seat.modes == CLEAN
    seat.run("fg")
    seat.sees("Paint the door")
    seat.until(lambda _shown: seat.modes == (True, False, True))
    seat.keys("q")
    seat.sees("ready>")
    assert seat.modes == CLEAN
    seat.run("echo code $?")
    seat.sees("code 0")
