"""A lock is free as soon as whoever held it says so, whatever else goes on."""

import os

import pytest

from crew.domain.kernel.errors import Conflict
from crew.system.file_locks import held
from refusals import raises_code


def test_whoever_cannot_wait_is_refused_as_long_as_it_is_held(tmp_path):
    with (
        held(tmp_path / "lock"),
        raises_code(Conflict, "lock_held", "lock"),
        held(tmp_path / "lock", patience_s=0),
    ):
        pass


def test_a_process_that_is_just_being_started_does_not_keep_it(tmp_path):
    """It shares what is open until it becomes its program; a copy is as good as that."""
    with held(tmp_path / "lock") as lock:
        copy = os.dup(lock)
    with held(tmp_path / "lock", patience_s=0) as lock:
        assert os.fstat(copy).st_ino == os.fstat(lock).st_ino
    os.close(copy)


def test_what_an_ended_git_left_behind_keeps_it(tmp_path):
    copies = []

    def fail():
        with held(tmp_path / "lock") as lock:
            copies.append(os.dup(lock))
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fail()
    with pytest.raises(Conflict), held(tmp_path / "lock", patience_s=0):
        pass
    os.close(copies[0])
