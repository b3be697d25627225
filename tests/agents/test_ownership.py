"""Only what carries our marker, or descends from it, is ever ended."""

import itertools
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from agents.running import DAEMON, RUNNING, python, wait_until, written
from crew.domain.kernel.errors import UsageError
from crew.system.processes import ownership
from crew.system.processes.ownership import (
    RunningProcess,
    find_process,
    kill_leftovers,
    kill_marked,
    owned_processes,
    send_signal,
)


@pytest.fixture
def start(tmp_path):
    """Starts programs with a marker in their environment, and ends them after the test."""
    started = []

    def start(owner, source=RUNNING, *arguments):
        variables = {**os.environ, "CREW_OWNER": owner} if owner else dict(os.environ)
        process = subprocess.Popen(
            python(source, *arguments), env=variables, stdout=subprocess.PIPE
        )
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_leftovers_of_a_repository_are_ended_and_counted(start, marker):
    first, second = start(f"{marker}/run-1/1"), start(f"{marker}/run-2/1")
    assert {pid for pid, _ in owned_processes(marker)} == {first.pid, second.pid}
    assert kill_leftovers(f"{marker}/") == 2
    assert first.wait() == second.wait() == -signal.SIGTERM
    assert kill_leftovers(f"{marker}/") == 0


def test_a_bystander_with_a_similar_marker_or_name_survives(start, marker):
    other = start(f"other-{marker}/run")
    longer = start(f"{marker}2/run")
    argument_only = start("", RUNNING, f"CREW_OWNER={marker}/run")
    ours = start(f"{marker}/run")
    assert kill_leftovers(f"{marker}/") == 1
    assert ours.wait() < 0
    assert [one.poll() for one in (other, longer, argument_only)] == [None, None, None]
    assert kill_marked(f"{marker}2") == 0


def test_a_leftover_daemon_that_ignores_sigterm_is_killed(start, marker, tmp_path):
    start(f"{marker}/run", DAEMON + "print(flush=True)", tmp_path / "pid").wait()
    pid = int(wait_until(lambda: written(tmp_path / "pid")))
    assert owned_processes(marker) == ((pid, f"{marker}/run"),)
    assert kill_leftovers(f"{marker}/") == 1
    assert find_process(pid) is None


def test_what_descends_from_a_marked_process_goes_with_it(start, marker):
    source = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {RUNNING!r}], env={{}})\n"
        "print(child.pid, flush=True); child.wait()"
    )
    variables = {**os.environ, "CREW_OWNER": marker}
    parent = subprocess.Popen(
        [sys.executable, "-c", source], env=variables, stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    assert kill_marked(marker) == 2
    assert find_process(child) is None
    parent.wait()
    parent.stdout.close()


def test_an_orphan_that_was_seen_below_ours_is_followed_to_its_end(marker, tmp_path):
    """Its parent ends at once; the orphan hears no SIGTERM and carries no marker."""
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)\n"
    source = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {deaf + 'time.sleep(600)'!r}], "
        "env={}, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); child.wait()"
    )
    variables = {**os.environ, "CREW_OWNER": f"{marker}/run"}
    with subprocess.Popen(
        [sys.executable, "-c", source], env=variables, stdout=subprocess.PIPE, text=True
    ) as parent:
        orphan = int(parent.stdout.readline())
        assert kill_leftovers(f"{marker}/") == 2
    assert find_process(orphan) is None


def test_whoever_becomes_another_program_while_it_is_asked_is_asked_again(monkeypatch):
    one = RunningProcess(pid=10, parent=1, started=1, marker="m")
    tables, asked = [{10: one}, {10: one}, {10: one}, {}], []
    monkeypatch.setattr(ownership, "running_processes", lambda: tables.pop(0))

    def send(process, number):
        asked.append(number)
        return len(asked) > 1

    monkeypatch.setattr(ownership, "send_signal", send)
    assert ownership.end_all(lambda process: process.marker == "m", grace_s=60.0) == 1
    assert asked == [signal.SIGTERM, signal.SIGTERM]


def test_whoever_is_held_up_between_asking_and_killing_still_kills(start, marker, monkeypatch):
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)\n"
    process = start(f"{marker}/run", deaf + "time.sleep(600)")
    moments = itertools.count(0, 3600)
    clock = SimpleNamespace(monotonic=lambda: next(moments), sleep=time.sleep)
    monkeypatch.setattr(ownership, "time", clock)
    assert kill_leftovers(f"{marker}/") == 1
    assert process.wait() == -signal.SIGKILL


def test_parents_are_asked_before_their_children(monkeypatch):
    """Else a script would go on to its next command; numbers say nothing about who came first."""
    lines = [(30, 1, ""), (20, 30, "m"), (10, 20, "m"), (40, 10, ""), (50, 30, "n")]
    table = {
        pid: RunningProcess(pid=pid, parent=parent, started=1, marker=owner)
        for pid, parent, owner in lines
    }
    asked = []
    monkeypatch.setattr(ownership, "running_processes", lambda: table)
    monkeypatch.setattr(ownership, "send_signal", lambda one, number: asked.append(one.pid))
    ownership.ask_to_end(30, "m")
    assert asked[0] in (20, 50)
    assert [pid for pid in asked if pid != 50] == [20, 10, 40]


def test_the_caller_and_its_ancestors_are_spared(marker):
    """As when an agent's own shell calls crew, which looks for leftovers."""
    source = (
        "import subprocess, sys\n"
        "inner = 'from crew.system.processes.ownership import kill_leftovers, owned_processes;'"
        "'import sys;'"
        "'print(len(owned_processes(sys.argv[1])), kill_leftovers(sys.argv[1]))'\n"
        "subprocess.run([sys.executable, '-c', inner, sys.argv[1]], check=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", source, marker],
        env={**os.environ, "CREW_OWNER": f"{marker}/run"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["2", "0"]


def test_a_process_number_that_was_used_again_gets_no_signal(start):
    process = start("")
    real = find_process(process.pid)
    as_it_was = RunningProcess(
        pid=real.pid, parent=real.parent, started=real.started - 1, marker=real.marker
    )
    assert not send_signal(as_it_was, signal.SIGKILL)
    other_owner = RunningProcess(
        pid=real.pid, parent=real.parent, started=real.started, marker="somebody"
    )
    assert not send_signal(other_owner, signal.SIGKILL)
    assert process.poll() is None
    assert send_signal(real, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not send_signal(real, signal.SIGKILL)


def test_a_program_is_ours_from_the_moment_it_was_started(marker):
    """Its environment is the last that the kernel puts in place, after Popen has returned."""
    unseen = 0
    for _ in range(100):
        with subprocess.Popen(["sleep", "600"], env={"CREW_OWNER": marker}) as process:
            unseen += find_process(process.pid).marker != marker
            process.kill()
    assert unseen == 0


def test_a_process_without_an_environment_is_nobodys():
    with subprocess.Popen(["sleep", "600"], env={}) as process:
        assert find_process(process.pid).marker == ""
        process.kill()


def test_a_system_that_does_not_show_its_processes_is_warned_about(monkeypatch, caplog):
    """As on macOS: the leftovers of a killed runner are then left to people."""
    monkeypatch.setattr(ownership.os, "listdir", lambda _path: raise_missing())
    assert kill_leftovers("any/") == 0
    assert "cannot be found" in caplog.text


def raise_missing():
    raise FileNotFoundError


def test_an_empty_prefix_is_refused():
    with pytest.raises(UsageError):
        kill_leftovers("")
