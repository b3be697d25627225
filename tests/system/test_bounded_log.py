"""Logs with a limit: the beginning and the end stay, and no disk error becomes a traceback."""

import logging
import os
import subprocess
import sys

import pytest

from crew.domain.kernel.errors import CrewError
from crew.system import bounded_log
from crew.system.bounded_log import MIB, Log, LogHandler, limit_logs

LINES = b"".join(b"%07d\n" % number for number in range(2**16))
"""Half a MiB."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(bounded_log, "_limit", MIB)


def test_a_log_beyond_its_limit_keeps_its_beginning_and_its_end_and_says_so(tmp_path):
    path = tmp_path / "logs" / "log"
    with Log(path) as log:
        log.append(b"first\n")
        for _ in range(40):
            log.append(LINES)
            assert path.stat().st_size <= MIB + len(LINES)
        log.append(b"last\n")
    text = path.read_bytes()
    assert text.startswith(b"first\n0000000\n")
    assert text.endswith(LINES[-MIB // 4 :] + b"last\n")
    assert text.count(b"[log] max_mb = 1 limits this log") == 1


def test_a_log_within_its_limit_is_whole(tmp_path):
    limit_logs(2 * MIB)
    with Log(tmp_path / "log") as log:
        log.append(LINES + LINES + LINES)
    assert (tmp_path / "log").read_bytes() == LINES * 3


def test_a_line_that_is_longer_than_the_limit_is_cut(tmp_path):
    with Log(tmp_path / "log") as log:
        for _ in range(8):
            log.append(b"x" * MIB)
    assert (tmp_path / "log").stat().st_size < MIB


def test_another_process_can_append_after_the_middle_is_gone(tmp_path):
    path = tmp_path / "log"
    with Log(path) as log, path.open("ab", buffering=0) as other:
        log.append(LINES * 3)
        other.write(b"theirs\n")
        log.append(b"ours\n")
    assert path.read_bytes().endswith(b"theirs\nours\n")


@pytest.mark.parametrize("point", ["agents.shorten_log.before", "agents.shorten_log.after"])
def test_a_kill_while_a_log_is_shortened_leaves_a_log_that_the_next_one_shortens(tmp_path, point):
    path = tmp_path / "log"
    path.write_bytes(LINES * 3)
    code = "import sys, pathlib; from crew.system.bounded_log import *; limit_logs(MIB)\n"
    code += "with Log(pathlib.Path(sys.argv[1])) as log: log.append(b'last\\n')"
    argv = [sys.executable, "-c", code, path]
    killed = subprocess.run(argv, env={**os.environ, "CREW_CRASH_AT": point}, check=False)
    assert killed.returncode == -9
    assert subprocess.run(argv, check=False).returncode == 0
    assert path.stat().st_size <= MIB
    assert path.read_bytes().endswith(b"last\n")


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_step_s_log_on_a_full_disk_is_an_error_with_a_hint(tmp_path, monkeypatch):
    with Log(tmp_path / "log") as log:
        monkeypatch.setattr(bounded_log, "_append", full_disk)
        with pytest.raises(CrewError, match="No space left"):
            log.append(b"x")


def test_crew_s_own_log_on_a_full_disk_prints_no_traceback_and_counts_what_it_lost(
    tmp_path, monkeypatch, capsys
):
    log = logging.getLogger("crew.test")
    log.propagate = False
    log.addHandler(LogHandler(tmp_path / "crew.log"))
    with monkeypatch.context() as full:
        full.setattr(bounded_log, "_append", full_disk)
        log.warning("one")
        log.warning("two %d", "no number")
    log.warning("three")
    assert (tmp_path / "crew.log").read_text() == "2 lines could not be written here\nthree\n"
    assert capsys.readouterr() == ("", "")
