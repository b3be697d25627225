"""A runner is woken by whoever asks for something, and by nobody's fault asked in vain."""

import contextlib
import os

import pytest

from crew.runner import requesting
from crew.runner.requesting import wake_runner


@pytest.fixture
def runner(tmp_path):
    """The end of the pipe at which a runner listens."""
    os.mkfifo(tmp_path / "wake")
    return os.open(tmp_path / "wake", os.O_RDWR | os.O_NONBLOCK)


def test_a_runner_that_dies_while_it_is_woken_is_no_reason_to_fail(tmp_path, runner, monkeypatch):
    opened = os.open

    def open_and_lose_the_runner(*arguments):
        pipe = opened(*arguments)
        os.close(runner)
        return pipe

    monkeypatch.setattr(requesting.os, "open", open_and_lose_the_runner)
    wake_runner(tmp_path)


def test_a_runner_that_has_not_looked_for_long_is_not_waited_for(tmp_path, runner):
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(runner, b"." * 4096)
    wake_runner(tmp_path)
    os.close(runner)
