"""How the view is opened and left: terminals, signals, faults, and what is there without it."""

import os
import signal
import sys
import termios

import pytest

from front.conftest import CREW, until
from front.test_cli_conventions import what_it_takes

ALTERNATE, LEFT = "\x1b[?1049h", "\x1b[?1049l"
MOUSE_OFF, CURSOR_ON = "\x1b[?1003l", "\x1b[?25h"


@pytest.fixture
def opened(scene, on_screen):
    """Opens crew on a terminal and waits for the task on it."""
    scene.ok("new", "--title", "Paint the door")

    def start(*args, argv=(CREW,), wanted="Paint the door", **env):
        screen = on_screen([*argv, *args], cwd=scene.root, **env)
        screen.until(wanted)
        return screen

    return start


def is_clean(screen):
    """Whether the terminal is the person's again: screen, cursor, mouse, echo and line input."""
    after = screen.shown[screen.shown.rindex(ALTERNATE) :]
    flags = termios.tcgetattr(screen.handle)[3]
    echoes = bool(flags & termios.ECHO and flags & termios.ICANON and flags & termios.ISIG)
    return echoes and all(code in after for code in (LEFT, MOUSE_OFF, CURSOR_ON))


@pytest.mark.parametrize("args", [(), ("tui",), ("dashboard",), ("d",)])
def test_the_view_opens_and_q_leaves_it(opened, args):
    screen = opened(*args)
    assert ALTERNATE in screen.shown
    screen.type("q")
    assert (screen.ended(), is_clean(screen)) == (0, True)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_a_signal_ends_it_and_leaves_a_clean_terminal(opened, name):
    screen = opened()
    number = signal.Signals[name]
    os.kill(screen.pid, number)
    assert (screen.ended(), is_clean(screen)) == (128 + number, True)
    assert "Traceback" not in screen.shown


BROKEN = """
import sys, time
from crew.front.cli.main import main
from crew.front.tui.pages.task_page import TaskPage
shown = TaskPage.list_again
def list_again(self):
    shown(self)
    if "door" in str(self.rows) or self.rows:
        self.set_timer(0.2, lambda: {fault})
TaskPage.list_again = list_again
main(sys.argv[1:])
"""


def test_a_fault_inside_is_one_sentence_and_the_log_has_the_rest(scene, opened):
    python = (sys.executable, "-c", BROKEN.format(fault="1 / 0"))
    screen = opened(argv=python)
    assert (screen.ended(), is_clean(screen)) == (1, True)
    said = screen.shown.rpartition(LEFT)[2]
    assert "crew: this is a fault in crew: ZeroDivisionError" in said
    assert "crew.log" in said
    assert "Traceback" not in said
    assert "ZeroDivisionError" in (scene.root / ".crew/logs/crew.log").read_text()
    screen = opened("-v", argv=python)
    assert screen.ended() == 1
    assert "Traceback" in screen.shown.rpartition(LEFT)[2]


def test_a_view_that_hangs_is_ended_by_a_signal_too(opened):
    hang = "print('hangs', file=sys.__stderr__, flush=True) or time.sleep(600)"
    screen = opened(argv=(sys.executable, "-c", BROKEN.format(fault=hang)))
    screen.until("hangs")
    os.kill(screen.pid, signal.SIGTERM)
    assert (screen.ended(), is_clean(screen)) == (143, True)


@pytest.fixture
def without_extra(tmp_path):
    """An environment in which Textual cannot be imported."""
    (tmp_path / "textual.py").write_text("raise ImportError('no such package')\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path}


def test_without_the_extra_there_are_hints_and_plain_frames(opened, without_extra):
    screen = opened(wanted="git-crew[tui]", **without_extra)
    assert screen.ended() == 2
    assert "Usage: crew" in screen.shown
    screen = opened("tui", wanted="git-crew[tui]", **without_extra)
    assert screen.ended() == 1
    screen = opened("dashboard", wanted="q ends this view", **without_extra)
    assert "git-crew[tui]" in screen.shown
    screen.type("q")
    assert screen.ended() == 0
    assert ALTERNATE not in screen.shown


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(opened):
    screen = opened(wanted="crew dashboard --plain", TERM="dumb")
    assert (screen.ended(), "Usage: crew" in screen.shown) == (2, True)
    for command in ("dashboard", "tui"):
        screen = opened(command, wanted="tasks:", TERM="dumb")
        assert "hint: " in screen.shown
        screen.type("\x03")
        assert screen.ended() == 130
        assert "\x1b[" not in screen.shown


def test_without_a_terminal_the_view_says_what_to_type(scene):
    assert "--plain" in scene.refused(2, "needs_terminal", "tui").hint
    assert scene.crew().code == 2


def test_plain_lines_tell_every_change_as_it_happens(scene, running):
    scene.ok("new", "--title", "Paint the door")
    lines = scene.start("dashboard", "--plain")
    said = [lines.stdout.readline()]
    assert "no runner is up" in said[0]
    running("--drain").wait()
    while "merged" not in said[-1]:
        said.append(lines.stdout.readline())
    told = "".join(said)
    assert "task 1: todo to in_progress (started)" in told
    assert "agent A: " in told
    assert "runner " in told
    assert "\x1b" not in told
    lines.send_signal(signal.SIGINT)
    assert lines.wait() == 130


@pytest.mark.parametrize("args", [["dashboard", "--once"], ["dashboard", "--json"], ["d"]])
def test_the_plain_frame_loads_no_textual(scene, args):
    code, modules, _ = what_it_takes(scene, *args)
    assert (code, modules & {"textual", "rich"}) == (0, set())


DARK, LIGHT = "48;2;18;18;18", "48;2;224;224;224"
"""The backgrounds of Textual's two themes."""


def test_colours_follow_the_terminal_and_can_be_turned_off(opened):
    colourful = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    dark, light = opened(**colourful), opened(COLORFGBG="0;15", **colourful)
    light.type("T")
    light.until(DARK)
    without = [opened(NO_COLOR="1", **colourful), opened("--no-color", **colourful)]
    for screen in (dark, light, *without):
        screen.type("q")
        assert screen.ended() == 0
    assert (DARK in dark.shown, LIGHT in dark.shown) == (True, False)
    assert light.shown.index(LIGHT) < light.shown.index(DARK)
    for screen in without:
        assert "38;2;" not in screen.shown
        assert "48;2;" not in screen.shown


@pytest.mark.parametrize("term", ["xterm", "tmux-256color", "linux", "vt100"])
def test_it_opens_on_terminals_with_few_colours_too(opened, term):
    screen = opened(TERM=term)
    assert "38;2;" not in screen.shown
    screen.type("q")
    assert (screen.ended(), is_clean(screen)) == (0, True)


def test_outside_a_crew_the_usual_error_is_told(bare_scene, on_screen):
    screen = on_screen([CREW, "tui"], cwd=bare_scene.root)
    screen.until("crew init")
    assert screen.ended() == 2
    screen = on_screen([CREW], cwd=bare_scene.root)
    screen.until("Usage: crew")
    assert screen.ended() == 2


def test_the_view_stays_while_its_runner_is_killed_and_comes_back(scene, opened, running):
    scene.plan("1", "wait")
    runner = running()
    screen = opened()
    screen.until(f"runner {runner.pid}")
    until(lambda: scene.agent()["pid"] is not None)
    runner.kill()
    runner.wait()
    screen.until("no runner")
    screen.shown = ALTERNATE
    again = running()
    screen.until(f"runner {again.pid}")
    scene.let_go()
    until(lambda: scene.status("1") == "merged")
    screen.type("q")
    assert (screen.ended(), is_clean(screen)) == (0, True)
