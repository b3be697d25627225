"""The script of a pane: the agent has the terminal, and its end is reported once."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.running import python, shell_python, wait_until, written
from crew.agents.terminal.terminal_script import write_session_script
from crew.domain.kernel.errors import UsageError

LEAD = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
REPORT = 'open(sys.argv[1], "a").write(sys.argv[2] + "\\n")'

# It is ready once the last program runs: a shell between two commands would end with 0.
WAITS = f"""exec {shell_python("import time; print('ready', flush=True); time.sleep(600)")}"""


@pytest.fixture
def write(tmp_path):
    """Writes a script whose end command notes the exit code in the file `ends`."""

    def write(command, *, prompt="", name="task-1", log=None, before="", folder=None):
        report = (sys.executable, "-c", f"import sys; {before}{REPORT}", str(tmp_path / "ends"))
        return write_session_script(
            folder or tmp_path / ".crew",
            name,
            command=command,
            prompt=prompt,
            end_command=report,
            log=log,
        )

    return write


@pytest.fixture
def on_terminal():
    """Starts a script as a terminal would: leader of a session, with a terminal of its own."""
    started = []

    def on_terminal(script):
        ours, theirs = os.openpty()
        argv = python(LEAD, "/bin/sh", script)
        process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        started.append((process, ours))
        return process, ours

    yield on_terminal
    for process, ours in started:
        os.close(ours)
        process.kill()
        process.wait()


def _run(script, **changes):
    return subprocess.run(["/bin/sh", script], check=False, **changes)


def test_files_are_for_their_owner_only(write):
    script = write("true", prompt="do it")
    assert script.name == "task-1.sh"
    assert script.stat().st_mode & 0o777 == 0o700
    assert (script.parent / "task-1-prompt.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "prompt", ["EOF\nEND_OF_PROMPT\n'; exit 9; '", "$(id) `id` \\", "\0 \x1b[31m \udcff é", ""]
)
def test_a_prompt_reaches_the_agent_byte_for_byte(write, tmp_path, prompt):
    script = write(f'cat "$CREW_PROMPT_FILE" > {shlex.quote(str(tmp_path / "got"))}', prompt=prompt)
    assert _run(script).returncode == 0
    assert (tmp_path / "got").read_bytes() == prompt.encode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", 0),
        ("sh -c 'exit 7'", 7),
        ("exit 3", 3),
        ("exec sh -c 'exit 4'", 4),
        ("sh -c 'kill -9 $$'", 137),
        ("no-such-program-at-all", 127),
        ("echo 'unclosed", 2),
        ("if true", 2),
        ("set -e; false; true", 1),
        ("trap - EXIT; exit 6", 6),
        ("sh -c 'kill -TERM $$'", 143),
    ],
)
def test_the_end_is_reported_once_with_its_code(write, tmp_path, command, code):
    assert _run(write(command)).returncode == code
    assert written(tmp_path / "ends") == f"{code}\n"


def test_nothing_is_reported_while_the_agent_runs(write, tmp_path, on_terminal):
    script = write(f"read line; [ ! -e {shlex.quote(str(tmp_path / 'ends'))} ]")
    _, terminal = on_terminal(script)
    os.write(terminal, b"go\n")
    assert wait_until(lambda: written(tmp_path / "ends")) == "0\n"


def test_the_agent_has_the_terminal(write, tmp_path, on_terminal):
    note = (
        "import os, sys; ok = all(map(os.isatty, (0, 1, 2))) and "
        "os.tcgetpgrp(0) == os.getpgrp(); open(sys.argv[1], 'w').write(f'{ok} {input()}')"
    )
    _, terminal = on_terminal(write(shell_python(note, tmp_path / "note")))
    os.write(terminal, b"typed\n")
    assert wait_until(lambda: written(tmp_path / "ends")) == "0\n"
    assert written(tmp_path / "note") == "True typed"


def test_ctrl_c_is_the_agents_to_answer(write, tmp_path, on_terminal):
    """An agent that catches it goes on, and so does the script; one that does not, ends."""
    source = (
        "import signal, sys\n"
        "def heard(*_): open(sys.argv[1], 'a').write('heard ')\n"
        "signal.signal(signal.SIGINT, heard)\n"
        "print('ready', flush=True)\n"
        "sys.exit(int(input()))"
    )
    _, terminal = on_terminal(write(shell_python(source, tmp_path / "note")))
    _read_until(terminal, b"ready")
    for count in (1, 2):
        os.write(terminal, b"\x03")
        wait_until(lambda count=count: written(tmp_path / "note").count("heard") == count)
    assert written(tmp_path / "ends") == ""
    os.write(terminal, b"11\n")
    assert wait_until(lambda: written(tmp_path / "ends")) == "11\n"


def test_an_agent_that_ctrl_c_ends_is_reported_so(write, tmp_path, on_terminal):
    _, terminal = on_terminal(write(WAITS))
    _read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    assert wait_until(lambda: written(tmp_path / "ends")) == "130\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_for_all_is_reported_once_however_often_it_comes(
    write, tmp_path, on_terminal, number
):
    """The end command is hit too, while it works, and still comes through."""
    slow = "import time; time.sleep(0.3); "
    process, terminal = on_terminal(write(WAITS, before=slow))
    _read_until(terminal, b"ready")

    def hit_again():
        if process.poll() is None:
            os.killpg(process.pid, number)
        return written(tmp_path / "ends")

    assert wait_until(hit_again) == f"{128 + number}\n"
    process.wait()
    assert written(tmp_path / "ends") == f"{128 + number}\n"


def test_the_end_is_reported_when_the_terminal_goes_away(write, tmp_path, on_terminal):
    log = tmp_path / "log"
    log.touch()
    script = write(WAITS, before="print('the end'); ", log=log)
    process, terminal = on_terminal(script)
    _read_until(terminal, b"ready")
    spare = os.open(os.devnull, os.O_RDONLY)
    os.dup2(spare, terminal)
    os.close(spare)
    assert wait_until(lambda: written(tmp_path / "ends")) == "129\n"
    process.wait()
    assert written(log) == "the end\n"


def test_the_end_is_reported_when_the_outermost_shell_is_killed(write, tmp_path, on_terminal):
    process, terminal = on_terminal(write(WAITS))
    _read_until(terminal, b"ready")
    process.kill()
    assert wait_until(lambda: written(tmp_path / "ends")) == "129\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_no_second_program_starts_after_a_signal_to_end(write, tmp_path, on_terminal, number):
    """The first one hears it, tidies up and says how it went; that is the report."""
    tidy = (
        "import signal, sys, time\n"
        "def tidy(number, _):\n"
        "    signal.signal(number, signal.SIG_IGN)  # the terminal's own comes on top\n"
        "    sys.exit(33)\n"
        "signal.signal(int(sys.argv[1]), tidy)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    second = shlex.quote(str(tmp_path / "second"))
    command = f"{shell_python(tidy, number.value)}; touch {second}; exec sleep 600"
    process, terminal = on_terminal(write(command))
    _read_until(terminal, b"ready")
    os.killpg(process.pid, number)
    assert wait_until(lambda: written(tmp_path / "ends")) == "33\n"
    assert not (tmp_path / "second").exists()


def test_a_log_that_cannot_be_written_does_not_stop_the_report(write, tmp_path):
    assert _run(write("exit 8", log=tmp_path / "missing" / "log")).returncode == 8
    assert written(tmp_path / "ends") == "8\n"


def test_any_folder_will_do(write, tmp_path):
    folder = tmp_path / "it's #{a} $(touch pwned) `x` %H; é" / ".crew"
    folder.parent.mkdir()
    assert _run(write("exit 2", folder=folder), cwd=tmp_path).returncode == 2
    assert written(tmp_path / "ends") == "2\n"
    assert not (tmp_path / "pwned").exists()


def test_a_script_may_be_written_anew_while_it_runs(write, tmp_path, on_terminal):
    _, terminal = on_terminal(write("echo ready; read line; exit 21"))
    _read_until(terminal, b"ready")
    script = write("exit 22")
    os.write(terminal, b"\n")
    assert wait_until(lambda: written(tmp_path / "ends")) == "21\n"
    assert _run(script).returncode == 22
    assert sorted(path.name for path in script.parent.iterdir()) == [
        "task-1-prompt.txt",
        "task-1.sh",
    ]


@pytest.mark.parametrize("point", ["before", "after"])
def test_writing_can_be_repeated_after_a_death(tmp_path, point):
    source = (
        "from pathlib import Path; import sys\n"
        "from crew.agents.terminal.terminal_script import write_session_script as write\n"
        "write(Path(sys.argv[1]), 'task-1', command='true', prompt='p', end_command=['true'])"
    )
    call = [sys.executable, "-c", source, tmp_path]
    for count in (1, 2):
        crash = {**os.environ, "CREW_CRASH_AT": f"agents.put_session_file.{point}:{count}"}
        assert subprocess.run(call, env=crash, check=False).returncode == -signal.SIGKILL
    subprocess.run(call, check=True)
    names = {path.name for path in Path(tmp_path, "scripts").iterdir()}
    assert names == {"task-1.sh", "task-1-prompt.txt"}


@pytest.mark.parametrize("name", ["", "../task-1", "a b", "-x", "task.1"])
def test_a_name_that_could_lead_elsewhere_is_refused(write, name):
    with pytest.raises(UsageError):
        write("true", name=name)


def test_a_nul_in_a_command_is_refused(write):
    with pytest.raises(UsageError):
        write("echo a\0b")


def _read_until(terminal, word):
    seen = b""
    while word not in seen:
        seen += os.read(terminal, 4096)
