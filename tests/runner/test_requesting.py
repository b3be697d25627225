"""A runner is woken by whoever asks for something, and by nobody's fault asked in vain."""

import contextlib
import os
import threading
import time

import pytest

from crew.domain.requests import Request
from crew.runner.requests import runner_pipe
from crew.runner.requests.runner_pipe import ask_runner, wake_runner
from crew.store.database import open_database
from crew.store.replies import Reply, keep_reply
from crew.store.request_queue import drop_requests, open_requests
from crew.store.runner_lock import RUNNER, writer_lock
from runner.scene import PATIENCE_S, until

LOOK = Request(verb="look", args={})


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

    monkeypatch.setattr(runner_pipe.os, "open", open_and_lose_the_runner)
    wake_runner(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(runner)


def test_a_runner_that_has_not_looked_for_long_is_not_waited_for(tmp_path, runner):
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(runner, b"." * 4096)
    began_at = time.monotonic()
    wake_runner(tmp_path)
    assert time.monotonic() - began_at < PATIENCE_S
    os.close(runner)


@pytest.fixture
def db(tmp_path):
    db = open_database(tmp_path / "crew.db")
    yield db
    db.close()


def _ask(folder):
    db = open_database(folder / "crew.db")
    try:
        return ask_runner(folder, db, LOOK, give_up_at=time.monotonic() + PATIENCE_S)
    finally:
        db.close()


def test_without_a_runner_nothing_is_asked(db, tmp_path):
    assert _ask(tmp_path) is None
    assert open_requests(db) == []


def test_what_a_runner_dropped_when_it_began_it_is_asked_again(db, tmp_path):
    heard = []
    asking = threading.Thread(target=lambda: heard.append(_ask(tmp_path)))
    with writer_lock(tmp_path / "lock", role=RUNNER, started="now"):
        asking.start()
        until(lambda: open_requests(db), what="a request")
        drop_requests(db)
        ((number, request),) = until(lambda: open_requests(db), what="the same once more")
        keep_reply(db, Reply(number, {"reply": "heard"}))
        asking.join(PATIENCE_S)
    assert (heard, request) == ([{"reply": "heard"}], LOOK)
