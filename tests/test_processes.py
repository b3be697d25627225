"""The tests themselves: which signals their processes get, and what becomes of forgotten ones."""

import signal
import subprocess
import sys

from processes import ended_processes

IGNORED = """
import signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.path.insert(0, "tests")
import conftest
for number in (signal.SIGINT, signal.SIGHUP):
    signal.raise_signal(number)
    print(subprocess.run(["sh", "-c", f"kill -{int(number)} $$"]).returncode)
"""


def test_a_process_of_a_test_heeds_the_signals_that_the_tests_ignore(pytestconfig):
    done = subprocess.run(
        [sys.executable, "-c", IGNORED],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(-signal.SIGINT), str(-signal.SIGHUP)]


def test_a_process_that_a_test_forgets_is_killed_and_named():
    with ended_processes(may_take_s=0.0) as killed:
        left = subprocess.Popen(["sh", "-c", "sleep 611 & wait"], start_new_session=True)
    assert left.wait() == -signal.SIGKILL
    assert any("sleep 611" in one for one in killed)


def test_a_process_that_is_ending_is_waited_for():
    with ended_processes() as killed:
        ending = subprocess.Popen(["sh", "-c", "sleep 0.1"])
    assert killed == []
    assert ending.wait() == 0


def test_the_check_is_there_for_every_test_and_comes_first(request):
    assert request.fixturenames[0] == "_nothing_is_left_behind"
