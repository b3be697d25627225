"""A program is heard to its end, whatever it says, and leaves nothing behind."""

import os
import signal
import subprocess
import sys

import pytest

from crew.git import spawn_git
from crew.git.spawn_git import run, started_git


def shell(script, *, stdin=None, timeout_s=60.0, keep_open=None, env=os.environ):
    return run(("sh", "-c", script), env=env, stdin=stdin, timeout_s=timeout_s, keep_open=keep_open)


def test_both_streams_and_the_exit_code_are_heard():
    heard = shell("echo out; echo err >&2; exit 3")
    assert (heard.code, heard.out, heard.err) == (3, b"out\n", b"err\n")


def test_a_signal_is_a_negative_code():
    assert shell("kill -TERM $$").code == -signal.SIGTERM


def test_more_than_a_pipe_holds_goes_in_and_out_on_both_streams():
    text = b"0123456789abcdef" * 40_000
    heard = shell("tee /dev/stderr", stdin=text)
    assert heard.out == heard.err == text


def test_without_input_there_is_nothing_to_read():
    assert shell("cat").out == b""


def test_one_that_takes_too_long_is_killed_and_reaped(monkeypatch):
    started = []
    start = spawn_git._start

    def start_and_tell(*arguments):
        started.append(start(*arguments))
        return started[0]

    monkeypatch.setattr(spawn_git, "_start", start_and_tell)
    with pytest.raises(TimeoutError):
        shell("exec sleep 600", timeout_s=0.2)
    with pytest.raises(ChildProcessError):  # it is no child of ours any more
        os.waitpid(started[0], 0)


def started(script, timeout_s=60.0):
    return started_git(("sh", "-c", script), env=os.environ, timeout_s=timeout_s, keep_open=None)


def test_a_program_that_waits_for_its_work_answers_in_lines():
    with started("while read -r line; do echo $line; done; exit 3") as talk:
        assert (talk.ask(b"one\n"), talk.ask(b"two\n")) == (b"one", b"two")
    assert talk.end() == 3
    assert talk.ask(b"three\n") == b""


def test_one_that_is_gone_is_deaf_or_says_nothing_has_no_answer():
    with started("exec <&-; echo ready; exec sleep 0.1") as deaf:
        assert (deaf.ask(b""), deaf.ask(b"one\n")) == (b"ready", b"")
    with started("exec sleep 600", timeout_s=0.2) as silent:
        assert silent.ask(b"one\n") == b""
    assert silent.end() == -signal.SIGKILL
    with started("read -r line") as gone:
        assert gone.ask(b"one\n") == b""


def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        run(("no-such-program",), env={}, stdin=None, timeout_s=1.0, keep_open=None)


def test_it_has_its_own_session_and_python_s_ignored_signals_end_it():
    session, pid = shell("ps -o sid= -p $$; echo $$").out.split()
    assert session == pid
    assert shell("kill -PIPE $$").code == -signal.SIGPIPE


def _open_descriptors(**options):
    found = shell("for fd in /proc/self/fd/*; do readlink $fd; done", **options).out.decode()
    return {line for line in found.splitlines() if line.startswith("/") and "/proc/" not in line}


def test_no_descriptor_of_ours_stays_open_but_the_one_that_is_to(tmp_path):
    with (tmp_path / "one").open("w") as one, (tmp_path / "two").open("w"):
        names = {os.path.basename(name) for name in _open_descriptors()}  # noqa: PTH119
        assert not names & {"one", "two"}
        kept = {os.path.basename(n) for n in _open_descriptors(keep_open=one.fileno())}  # noqa: PTH119
        assert kept & {"one", "two"} == {"one"}


STDIN_CLOSED = """
import os
for closed in (0, 1, 2):
    if closed in CLOSED:
        os.close(closed)
from crew.git.spawn_git import run
heard = run(("sh", "-c", "cat; echo out; echo err >&2"), env=dict(os.environ), stdin=STDIN,
            timeout_s=20.0, keep_open=None)
assert (heard.code, heard.out, heard.err) == (0, (STDIN or b"") + b"out\\n", b"err\\n"), heard
"""


@pytest.mark.parametrize("stdin", [None, b"text\n"])
@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_a_crew_that_was_started_with_closed_streams_hears_just_as_well(closed, stdin):
    script = STDIN_CLOSED.replace("CLOSED", repr(closed)).replace("STDIN", repr(stdin))
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
