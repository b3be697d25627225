"""One writer at a time, and everybody knows who."""

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from crew.store import runner_lock
from crew.store.runner_lock import COMMAND, RUNNER, LockHeld, find_runner, writer_lock

STARTED = "2026-02-04T21:00:00Z"
NOBODY = 2**22  # no number of a process is as large

HOLDER = """
import sys
from pathlib import Path
from crew.store.runner_lock import writer_lock

with writer_lock(Path(sys.argv[1]), role=sys.argv[2], started=sys.argv[3]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@contextmanager
def another_process(path, role):
    """Holds the lock until the block ends, or until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path, role, STARTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.communicate()


@contextmanager
def locked(path, how):
    """Hold the lock of the file itself, without a word in it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, how)
    yield
    os.close(handle)


@pytest.fixture
def instead_of_sleeping(monkeypatch):
    """Whoever would wait for the lock does this instead; what is left of it tells if it waited."""
    todo = []
    monkeypatch.setattr(time, "sleep", lambda _seconds: todo.pop()())
    return todo


def test_a_second_runner_is_refused_with_the_first_ones_pid_and_start(path):
    with (
        another_process(path, RUNNER) as first,
        pytest.raises(LockHeld, match=f"pid {first.pid}, started {STARTED}") as caught,
        writer_lock(path, role=RUNNER, started="later"),
    ):
        pass
    assert caught.value.holder == {"pid": first.pid, "started": STARTED, "role": RUNNER}
    assert (caught.value.exit_code, caught.value.code) == (5, "lock_held")
    assert "crew stop" in caught.value.hint


def test_a_runner_is_found_as_long_as_it_runs(path):
    assert find_runner(path) is None
    with another_process(path, RUNNER) as runner:
        assert find_runner(path) == {"pid": runner.pid, "started": STARTED, "role": RUNNER}
    assert find_runner(path) is None


def test_the_lock_is_free_after_a_runner_was_killed(path):
    with another_process(path, RUNNER) as runner:
        runner.kill()
        runner.wait()
        assert json.loads(path.read_text())["pid"] == runner.pid
        assert find_runner(path) is None
        with writer_lock(path, role=RUNNER, started="now"):
            assert find_runner(path) == {"pid": os.getpid(), "started": "now", "role": RUNNER}


def test_the_lock_is_free_after_an_error_inside(path):
    with pytest.raises(KeyError), writer_lock(path, role=RUNNER, started=STARTED):
        raise KeyError
    assert find_runner(path) is None
    with writer_lock(path, role=RUNNER, started=STARTED):
        pass
    assert path.read_text() == ""


def test_a_short_command_is_waited_for_and_is_no_runner(path, instead_of_sleeping):
    command = writer_lock(path, role=COMMAND, started=STARTED)
    command.__enter__()
    assert find_runner(path) is None
    instead_of_sleeping.append(lambda: command.__exit__(None, None, None))
    with writer_lock(path, role=RUNNER, started=STARTED):
        assert instead_of_sleeping == []


def test_a_command_that_does_not_end_is_named_in_the_end(path, monkeypatch):
    monkeypatch.setattr(runner_lock, "_SHORT_WAIT_S", -1.0)
    with (
        another_process(path, COMMAND) as command,
        pytest.raises(LockHeld, match=f"pid {command.pid}"),
        writer_lock(path, role=RUNNER, started=STARTED),
    ):
        pass


@pytest.mark.parametrize("torn", ["", '{"pid": 1', "[1]", "\0\0"])
def test_a_holder_that_has_not_signed_yet_is_waited_for(path, monkeypatch, torn):
    monkeypatch.setattr(runner_lock, "_SHORT_WAIT_S", -1.0)
    path.write_text(torn)
    with locked(path, fcntl.LOCK_EX):
        assert find_runner(path) is None
        with (
            pytest.raises(LockHeld, match=r"pid \?, started just now"),
            writer_lock(path, role=RUNNER, started=STARTED),
        ):
            pass


def test_a_holder_that_has_not_signed_yet_does_not_pass_for_the_runner_that_was_killed(
    path, instead_of_sleeping
):
    path.write_text(json.dumps({"pid": NOBODY, "started": STARTED, "role": RUNNER}))
    unsigned = locked(path, fcntl.LOCK_EX)
    unsigned.__enter__()
    instead_of_sleeping.append(lambda: unsigned.__exit__(None, None, None))
    with writer_lock(path, role=RUNNER, started="now"):
        assert instead_of_sleeping == []


def test_somebody_who_only_looks_does_not_pass_for_the_runner_that_was_killed(
    path, instead_of_sleeping
):
    path.write_text(json.dumps({"pid": 1, "started": STARTED, "role": RUNNER}))
    looks = locked(path, fcntl.LOCK_SH)
    looks.__enter__()
    instead_of_sleeping.append(lambda: looks.__exit__(None, None, None))
    with writer_lock(path, role=RUNNER, started="now"):
        assert instead_of_sleeping == []
        assert find_runner(path)["pid"] == os.getpid()


def test_a_process_that_is_just_being_started_does_not_keep_the_lock(path, monkeypatch):
    """It shares what is open until it becomes its program; a copy is as good as that."""
    opened, really_open = [], os.open
    monkeypatch.setattr(os, "open", lambda *of: opened.append(really_open(*of)) or opened[-1])
    with writer_lock(path, role=RUNNER, started=STARTED):
        copy = os.dup(opened[0])
    assert find_runner(path) is None
    with writer_lock(path, role=RUNNER, started=STARTED):
        pass
    os.close(copy)


def test_a_child_that_outlives_the_holder_does_not_keep_the_lock(path):
    with writer_lock(path, role=RUNNER, started=STARTED):
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
        )
    with writer_lock(path, role=RUNNER, started=STARTED):
        assert child.poll() is None
    child.communicate(b"\n")
