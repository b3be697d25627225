"""Ctrl-C, where the program that started crew ignores SIGINT."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from front.conftest import CREW, until

IGNORING = 'trap "" INT HUP; '


@pytest.fixture
def crew(scene, on_screen):
    """A shell that ignores SIGINT and SIGHUP, on a terminal, and starts crew."""

    def crew(script: str):
        text = IGNORING + script.format(crew=shlex.quote(str(CREW)))
        return on_screen(["/bin/sh", "-c", text], cwd=scene.root)

    return crew


@pytest.fixture
def task(scene):
    scene.ok("new", "--title", "one")
    return "1"


def _ignores_sigint(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.split("SigIgn:\t")[1].split()[0], 16)
    return bool(ignored >> (signal.SIGINT - 1) & 1)


def test_a_command_in_the_foreground_of_a_terminal_heeds_ctrl_c(crew, task):
    screen = crew(f"exec {{crew}} poll {task}")
    screen.until("waiting: ")
    screen.type("\x03")
    assert screen.ended() == 130


def test_a_runner_in_the_foreground_of_a_terminal_heeds_ctrl_c(crew):
    screen = crew("exec {crew} run")
    screen.until("runner: pid")
    screen.type("\x03")
    assert screen.ended() == 130


@pytest.mark.parametrize(
    "background",
    [
        "{crew} poll 1 & echo pid $!.; wait",  # its input is not the terminal
        "set -m; {crew} poll 1 & echo pid $!.; wait",  # its process group is not the terminal's
    ],
    ids=["of a script", "of a shell with job control"],
)
def test_a_command_in_the_background_of_a_terminal_does_not(crew, task, background):
    screen = crew(background)
    screen.until("waiting: ")
    pid = int(screen.shown.split("pid ")[1].split(".")[0])
    assert _ignores_sigint(pid)
    os.kill(pid, signal.SIGKILL)
    screen.ended()


def test_a_runner_in_the_background_works_on_while_its_steps_can_be_interrupted(scene, crew):
    agent = scene.folder / "agent.sh"
    agent.write_text(f"sh -c 'kill -INT $$' && exit 1\n{agent.read_text()}")
    screen = crew("{crew} run & wait")
    scene.ok("new", "--title", "one")
    until(lambda: scene.status("1") == "merged")
    runner = scene.runner_pid()
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(runner, number)
    scene.ok("new", "--title", "two")
    until(lambda: scene.status("2") == "merged")
    assert scene.runner_pid() == runner
    os.kill(runner, signal.SIGTERM)
    assert screen.ended() == 0
