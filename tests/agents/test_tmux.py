"""Sessions in real tmux servers: what goes in, what comes out, and how they end."""

import contextlib
import functools
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents.conftest import need
from agents.running import (
    DAEMON,
    RUNNING,
    processes_holding,
    python,
    shell_python,
    wait_until,
    written,
)
from crew.agents.terminal import tmux as door
from crew.agents.terminal.dialog_keys import enter_text
from crew.agents.terminal.terminal_script import write_session_script
from crew.agents.terminal.tmux import (
    Tmux,
    attach_argv,
    capture,
    close_session,
    find_session,
    is_installed,
    live_sessions,
    open_session,
    send_text,
)
from crew.domain.kernel.errors import CrewError, NotFound, TimedOut, UsageError
from crew.system.processes.ownership import end_all, find_process, kill_marked

LISTENS = """
import os, sys, tty
tty.setraw(0)
keep = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, sys.argv[2].encode().decode("unicode_escape").encode() + b"ready\\r\\n")
while got := os.read(0, 65536):
    os.write(keep, got)
"""
"""Keeps every byte that is typed, as a program with a screen of its own does."""

WAITS = "import time; print('ready', flush=True); time.sleep(600)"
TELLS = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))\n"
BRACKETS = r"\x1b[?2004h"
PATH = os.environ["PATH"]


class PromptPlace:
    """A `.crew` folder with a server of its own, and short ways to use it."""

    def __init__(self, folder, marker):
        folder.mkdir(parents=True)
        self.tmux = Tmux(folder=folder)
        self.marker = marker

    def open(self, name="crew-1", command="exec sleep 600", *, env=None, **changes):
        script = write_session_script(
            self.tmux.folder,
            name.replace("crew", "task"),
            command=command,
            prompt="",
            end_command=("sh", "-c", f'echo "$1" >>ended-{name}', "sh"),
        )
        values = {"cwd": self.tmux.folder, "title": "A title", "agent": "claude", **changes}
        owner = {"PATH": PATH, "CREW_OWNER": f"{self.marker}/{name}"}
        return open_session(
            self.tmux, name, script=script, env=owner if env is None else env, **values
        )

    def listen(self, name="crew-1", *, begin="", **changes):
        """Open a session whose program keeps what is typed, and wait until it listens."""
        kept = self.tmux.folder / f"kept-{name}"
        self.open(name, shell_python(LISTENS, kept, begin), **changes)
        wait_until(lambda: "ready" in capture(self.tmux, name, lines=5))
        return kept

    def open_and_wait(self, name="crew-1"):
        """Open a session and wait until all its shells stand and its program runs."""
        opened = self.open(name, f"exec {shell_python(WAITS)}")
        wait_until(lambda: "ready" in capture(self.tmux, name, lines=5))
        return opened

    def close(self, name="crew-1"):
        close_session(self.tmux, name, marker=f"{self.marker}/{name}")

    def ended(self, name="crew-1"):
        return written(self.tmux.folder / f"ended-{name}")

    def ask(self, *arguments):
        told = subprocess.run(
            ["tmux", "-N", "-S", "tmux.sock", *arguments],
            cwd=self.tmux.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return told.stdout.strip()

    def server(self):
        return int(self.ask("display-message", "-p", "#{pid}") or 0)


@pytest.fixture
def make_place(tmp_path, marker):
    need(is_installed(), "tmux")
    places = []

    def make_place(name="repository"):
        places.append(PromptPlace(tmp_path / name / ".crew", f"{marker}/{len(places)}"))
        return places[-1]

    yield make_place
    for number, place in enumerate(places):
        place.ask("kill-server")
        for path in place.tmux.folder.glob("scripts/*.sh"):
            kill_marked(f"{marker}/{number}/{path.stem.replace('task', 'crew')}")


@pytest.fixture
def place(make_place):
    return make_place()


class Screen:
    """A terminal that is attached to a session, as a person's would be."""

    def __init__(self, argv, **env):
        self.ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 120))
        lead = (
            "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            python(lead, *argv),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"TERM": "xterm-256color", "PATH": PATH, **env},
        )
        os.close(theirs)
        self.output = b""

    def type(self, keys):
        os.write(self.ours, keys)

    def shows(self, text):
        if select.select([self.ours], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):
                self.output += os.read(self.ours, 65536)
        return text.encode() in self.output

    def detach(self):
        """As a person would: tmux takes keys within a millisecond of others for a paste."""

        def press():
            with contextlib.suppress(OSError):
                self.type(b"\x07")
            return self.shows("[detached")

        wait_until(press)

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def attach():
    screens = []

    def attach(place, name="crew-1", **env):
        screens.append(Screen(attach_argv(place.tmux, name), **env))
        return screens[-1]

    yield attach
    for screen in screens:
        screen.end()


def test_a_session_runs_its_script_where_it_is_told(place, tmp_path):
    opened = place.open(command="pwd; exec sleep 600", cwd=tmp_path)
    assert find_session(place.tmux, "crew-1") == opened
    assert (opened.name, opened.attached, opened.title) == ("crew-1", 0, "A title")
    assert find_process(opened.pid).started == opened.started
    assert wait_until(lambda: capture(place.tmux, "crew-1", lines=9)) == str(tmp_path)


def test_a_session_that_is_there_is_returned_as_it_is(place):
    first = place.open(command="echo begun; exec sleep 600")
    wait_until(lambda: "begun" in capture(place.tmux, "crew-1", lines=5))  # its script is read
    assert place.open(title="Another", command="exit 1") == first
    assert list(live_sessions(place.tmux)) == ["crew-1"]


def test_a_session_that_ends_at_once_was_open(place):
    assert place.open(command="exit 5").pid > 0
    assert wait_until(place.ended) == "5\n"
    wait_until(lambda: live_sessions(place.tmux) == {})


def test_names_are_exact(place):
    place.open("crew-10")
    assert find_session(place.tmux, "crew-1") is None
    for use in (
        lambda: send_text(place.tmux, "crew-1", "x"),
        lambda: capture(place.tmux, "crew-1", lines=1),
        lambda: attach_argv(place.tmux, "crew-1"),
    ):
        with pytest.raises(NotFound):
            use()
    place.close("crew-1")
    assert list(live_sessions(place.tmux)) == ["crew-10"]


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "-l --help",
        ";",
        "a;",
        "a\\;",
        "a ; kill-server ;",
        "Enter",
        "C-c",
        "#{pid} #(touch pwned) %H",
        "'\"`$(id) \\",
        "é 日本 👩‍👩‍👧",
        "  spaced  ",
        "\x03\x1a\x1b\x1b[A\x7f\t\x01",
        "",
    ],
)
def test_what_is_typed_arrives_as_it_is_and_then_enter(place, text):
    kept = place.listen()
    send_text(place.tmux, "crew-1", text)
    expected = text.encode() + b"\r"
    wait_until(lambda: kept.read_bytes().endswith(b"\r"))
    assert kept.read_bytes() == expected
    assert not (place.tmux.folder / "pwned").exists()


def test_text_without_enter_waits_for_more(place):
    kept = place.listen()
    send_text(place.tmux, "crew-1", "half ", enter=False)
    send_text(place.tmux, "crew-1", "a line")
    wait_until(lambda: kept.read_bytes().endswith(b"\r"))
    assert kept.read_bytes() == b"half a line\r"


@pytest.mark.parametrize("text", ["one\ntwo\n-three;", "\0 nul", "\udcff byte\n", "x" * 201, "\n"])
def test_long_or_many_lines_are_one_paste_and_then_enter(place, text):
    kept = place.listen(begin=BRACKETS)
    send_text(place.tmux, "crew-1", text)
    wait_until(lambda: kept.read_bytes().endswith(b"~\r"))
    pasted = text.encode(errors="surrogateescape").replace(b"\n", b"\r")
    assert kept.read_bytes() == b"\x1b[200~" + pasted + b"\x1b[201~\r"


def test_a_program_that_knows_no_pastes_gets_lines(place, tmp_path):
    source = "import sys; open(sys.argv[1], 'w').write(repr([input() for _ in range(3)]))"
    place.open(command=shell_python(source, tmp_path / "got"))
    send_text(place.tmux, "crew-1", "one\ntwo\nthree")
    assert wait_until(lambda: written(tmp_path / "got")) == "['one', 'two', 'three']"


def test_no_text_can_end_its_own_paste(place):
    kept = place.listen(begin=BRACKETS)
    send_text(place.tmux, "crew-1", "a\x1b[20\x1b[201~1~\nrm -rf\n\x9b201~")
    wait_until(lambda: kept.read_bytes().endswith(b"~\r"))
    assert kept.read_bytes() == b"\x1b[200~a\rrm -rf\r\x1b[201~\r"


ASKS = """
import os, sys, tty
tty.setraw(0)
keep = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, "ready\\r\\n\u276f ".encode())
os.write(keep, os.read(0, 65536))
os.write(1, "\\r\\nDo you want to proceed?\\r\\n\u276f 1. Yes\\r\\n  2. No\\r\\n".encode())
while got := os.read(0, 65536):
    os.write(keep, got)
"""
"""A program that shows a dialog just when the first text is typed, and keeps every byte."""

ECHOES = """
import os, sys, tty
tty.setraw(0)
keep = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, "ready\\r\\n\u276f ".encode())
while got := os.read(0, 65536):
    os.write(keep, got)
    os.write(1, "\\r\\n\u276f ".encode() if got == b"\\r" else got.replace(b"\\r", b"\\r\\n"))
"""

PASTED = ECHOES.replace('"ready', '"\\x1b[?2004hready')


def test_no_enter_answers_a_dialog_that_appears_while_text_is_typed(place):
    kept = place.tmux.folder / "kept"
    place.open(command=shell_python(ASKS, kept))
    wait_until(lambda: "ready" in capture(place.tmux, "crew-1", lines=5))
    dialog = enter_text(place.tmux, "crew-1", "no, do not do that")
    assert (dialog.question, dialog.choices) == ("Do you want to proceed?", ("Yes", "No"))
    assert kept.read_bytes() == b"no, do not do that"


def test_nothing_is_typed_at_a_dialog_that_opened_after_the_look_of_the_caller(place):
    """A single key could choose an answer there, such as the y of a yes."""
    kept = place.tmux.folder / "kept"
    place.open(command=shell_python(ASKS, kept))
    wait_until(lambda: "ready" in capture(place.tmux, "crew-1", lines=5))
    send_text(place.tmux, "crew-1", "x", enter=False)
    wait_until(lambda: "proceed" in capture(place.tmux, "crew-1", lines=10))
    assert enter_text(place.tmux, "crew-1", "stay away from it").choices == ("Yes", "No")
    assert kept.read_bytes() == b"x"


def test_a_short_text_is_pasted_too(place):
    """A dialog that opens between the look and the keys ignores a paste."""
    kept = place.tmux.folder / "kept"
    place.open(command=shell_python(PASTED, kept))
    wait_until(lambda: "ready" in capture(place.tmux, "crew-1", lines=5))
    assert enter_text(place.tmux, "crew-1", "yes") is None
    assert kept.read_bytes() == b"\x1b[200~yes\x1b[201~\r"


def test_a_text_that_ends_the_terminal_has_arrived(place):
    place.open(command="read line")
    assert enter_text(place.tmux, "crew-1", "exit") is None


def test_a_numbered_list_that_is_typed_is_not_taken_for_a_dialog(place):
    kept = place.tmux.folder / "kept"
    place.open(command=shell_python(ECHOES, kept))
    wait_until(lambda: "ready" in capture(place.tmux, "crew-1", lines=5))
    assert enter_text(place.tmux, "crew-1", "1. first this\n2. then that") is None
    assert kept.read_bytes() == b"1. first this\r2. then that\r"


def test_text_that_is_at_the_prompt_already_is_not_typed_twice(place):
    kept = place.tmux.folder / "kept"
    place.open(command=shell_python(ECHOES, kept))
    wait_until(lambda: "ready" in capture(place.tmux, "crew-1", lines=5))
    send_text(place.tmux, "crew-1", "do this", enter=False)
    wait_until(lambda: "do this" in capture(place.tmux, "crew-1", lines=5))
    assert enter_text(place.tmux, "crew-1", "do this") is None
    assert kept.read_bytes() == b"do this\r"


@pytest.mark.parametrize("line", [79, 200_000])
def test_two_hundred_kilobytes_arrive_whole(place, line):
    text = "".join(f"{number:07}" for number in range(28_800))
    text = "\n".join(text[at : at + line] for at in range(0, len(text), line))
    kept = place.listen()
    send_text(place.tmux, "crew-1", text)
    expected = text.replace("\n", "\r").encode() + b"\r"
    wait_until(lambda: kept.stat().st_size >= len(expected))
    assert kept.read_bytes() == expected
    assert place.ask("list-buffers") == ""


@pytest.mark.parametrize("text", ["short", "many\nlines"])
def test_text_reaches_the_program_while_somebody_scrolls(place, text):
    kept = place.listen()
    place.ask("copy-mode", "-t", "=crew-1:")
    send_text(place.tmux, "crew-1", text)
    wait_until(lambda: kept.read_bytes().endswith(b"\r"))
    assert kept.read_bytes() == text.replace("\n", "\r").encode() + b"\r"


def test_a_capture_reaches_back_into_the_history(place):
    place.open(command="seq 1 3000; echo; echo; exec sleep 600")
    wait_until(lambda: "3000" in capture(place.tmux, "crew-1", lines=1))
    for count in (0, 1, 20, 2900):
        rows = capture(place.tmux, "crew-1", lines=count).splitlines()
        assert rows == [str(number) for number in range(3001 - count, 3001)]
    assert len(capture(place.tmux, "crew-1", lines=9999).splitlines()) == 3000


def test_a_capture_has_colours_when_asked(place):
    place.open(command=r"printf '\033[31mred\nstill red\033[0m\nplain\n\n'; exec sleep 600")
    wait_until(lambda: "plain" in capture(place.tmux, "crew-1", lines=9))
    assert capture(place.tmux, "crew-1", lines=9) == "red\nstill red\nplain"
    coloured = capture(place.tmux, "crew-1", lines=2, colours=True)
    assert coloured.startswith("\x1b[31mstill red")
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == "still red\nplain"


def test_a_person_is_in_the_session_until_the_detach_key(place, attach):
    kept = place.listen()
    screen = attach(place, TMUX="/tmp/another,1,0", TMUX_PANE="%7")
    wait_until(lambda: screen.shows("detach: C-g"))
    assert find_session(place.tmux, "crew-1").attached == 1
    every_other_key = b"\x02d\x02:\x01\x1bx"
    screen.type(every_other_key)
    wait_until(lambda: screen.shows("") and kept.read_bytes() == every_other_key)
    screen.detach()
    assert screen.process.wait() == 0
    assert find_session(place.tmux, "crew-1").attached == 0


def test_the_detach_key_works_while_scrolling(place, attach):
    place.listen(begin="\\r\\n" * 100)
    screen = attach(place)
    wait_until(lambda: screen.shows("detach: C-g"))
    screen.type(b"\x1b[<64;9;9M" * 3)
    wait_until(lambda: screen.shows("") and place.ask("display", "-p", "#{pane_in_mode}") == "1")
    screen.detach()
    assert screen.process.wait() == 0
    assert find_session(place.tmux, "crew-1").attached == 0


def test_an_attached_screen_ends_with_its_session_and_shows_no_other(place, attach):
    place.open("crew-1")
    place.open("crew-2")
    screen = attach(place)
    wait_until(lambda: screen.shows("detach: C-g"))
    place.close("crew-1")
    wait_until(lambda: screen.shows("[exited]"))
    assert find_session(place.tmux, "crew-2").attached == 0


@pytest.mark.parametrize(
    "title",
    [
        "#(touch pwned)",
        "#{pid} ##{pid} ###{pid}",
        "#[fg=red]x #[align=right]y",
        "%H:%M %% 100%",
        "#",
        "a;",
        "-x '\"",
        "é 日本",
    ],
)
def test_a_title_is_only_ever_text(place, attach, title):
    assert place.open(title=title, agent=title).title == title
    assert find_session(place.tmux, "crew-1").title == title
    screen = attach(place)
    wait_until(lambda: screen.shows(f" #1 {title} | {title}"))
    wait_until(lambda: screen.shows(f"crew-1 {title}\x07"))  # the title of the window
    assert not (place.tmux.folder / "pwned").exists()


def test_a_title_is_one_short_line(place):
    place.open(title="a\nb\x1b]0;x\x07\t c\0" + "d" * 500)
    assert find_session(place.tmux, "crew-1").title == ("a b ]0;x c " + "d" * 500)[:80]


def test_a_pane_has_the_environment_it_is_given_and_no_other(place, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "of the caller")
    monkeypatch.setenv("CREW_OWNER", "the caller's")
    given = {"PATH": PATH, "SHELL": "/bin/other", "LINES_": "a\nb;\n", "LONG": "x" * 15_000}
    seen = _environment(place, "crew-1", tmp_path, {**given, "TOKEN": "one", "TMUX": "x"})
    assert seen == {**given, "TOKEN": "one", "TERM": "tmux-256color"}
    monkeypatch.setenv("SECRET", "of another shell")
    seen = _environment(place, "crew-2", tmp_path, {"PATH": PATH, "OTHER": "two"})
    assert seen == {"PATH": PATH, "OTHER": "two", "TERM": "tmux-256color"}
    server = Path(f"/proc/{place.server()}/environ").read_bytes()
    assert server == b""


def _environment(place, name, tmp_path, env):
    """What a program in a new pane sees, apart from what every shell and the script add."""
    found = tmp_path / name
    place.open(name, f"{shell_python(TELLS, found)}; exec sleep 600", env=env)
    wait_until(lambda: written(found).endswith("}"))
    added = {"PWD", "OLDPWD", "SHLVL", "_", "CREW_PROMPT_FILE", "LC_CTYPE"}
    return {key: value for key, value in json.loads(written(found)).items() if key not in added}


def test_an_attached_persons_environment_stays_outside(place, attach):
    place.open()
    before = place.ask("show-environment", "-t", "=crew-1")
    assert f"CREW_OWNER={place.marker}/crew-1" in before
    screen = attach(place, CREW_OWNER="the person", SECRET="of the person")
    wait_until(lambda: screen.shows("detach: C-g"))
    assert place.ask("show-environment", "-t", "=crew-1") == before
    assert "SECRET" not in place.ask("show-environment", "-g")


def test_a_session_never_starts_the_server_whose_environment_all_would_share(place, monkeypatch):
    """As when the server that was there ends just before the session would open on it."""
    monkeypatch.setattr(door, "_start_server", lambda tmux: None)
    with pytest.raises(CrewError, match=r"no server running|No such file"):
        place.open()
    assert place.server() == 0


@pytest.mark.parametrize("env", [{"LONG": "x" * 17_000}, {"A B": "x"}, {"A*": "x"}, {"A": "\0"}])
def test_a_variable_that_would_be_lost_is_refused(place, env):
    with pytest.raises(UsageError):
        place.open(env=env)


def test_the_users_own_tmux_is_neither_read_nor_asked(place, tmp_path, monkeypatch):
    (tmp_path / ".tmux.conf").write_text("set -g @theirs yes\nbind-key -n x kill-server\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMUX", "/tmp/theirs,1,0")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    place.open()
    assert place.ask("show-options", "-gqv", "@theirs") == ""
    assert {line.split()[3] for line in place.ask("list-keys", "-T", "root").splitlines()} == {
        "C-g",
        "WheelUpPane",
        "MouseDrag1Pane",
    }
    assert place.ask("list-keys", "-T", "prefix") == ""
    assert place.ask("show-options", "-gv", "prefix") == "None"
    assert list(tmp_path.glob("tmux-*")) == []


def test_all_of_the_configuration_is_understood(place, attach):
    """What tmux does not understand of it, it would show to the first who attaches."""
    place.open()
    screen = attach(place)
    wait_until(lambda: screen.shows("detach: C-g"))
    assert place.ask("display-message", "-p", "-t", "=crew-1:", "#{pane_in_mode}") == "0"
    assert place.ask("show-options", "-gv", "history-limit") == "50000"
    assert place.ask("show-options", "-sv", "exit-empty") == "on"


def test_a_deep_folder_with_any_name_will_do(make_place, attach):
    deep = "/".join(["déép #{pid} %H (x) it's;" + "x" * 60] * 4)
    place, other = make_place(deep), make_place(deep + "/more")
    assert len(str(place.tmux.folder)) > 300
    log = place.tmux.folder / "logs" / "#(touch pwned)" / "task %H 'x'.log"
    kept = place.listen(log=log)
    other.open(title="The other")
    send_text(place.tmux, "crew-1", "hello")
    wait_until(lambda: kept.read_bytes() == b"hello\r")
    wait_until(lambda: "ready" in log.read_text())
    screen = attach(place)
    wait_until(lambda: screen.shows("detach: C-g"))
    place.close()
    assert list(live_sessions(other.tmux)) == ["crew-1"]
    assert list(place.tmux.folder.rglob("pwned")) == []


def test_a_log_keeps_the_raw_output_beyond_the_end(place):
    log = place.tmux.folder / "logs" / "task-1.log"
    for word in ("first", "second"):
        place.open(command=rf"printf '\033[31m{word}\n'", log=log)
        wait_until(lambda: live_sessions(place.tmux) == {})
        wait_until(lambda word=word: log.read_bytes().endswith(f"{word}\r\n".encode()))
    assert log.read_bytes() == b"\x1b[31mfirst\r\n\x1b[31msecond\r\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_two_repositories_never_meet(make_place):
    one, two = make_place("one"), make_place("two")
    first, second = one.listen(), two.listen()
    assert one.server() != two.server()
    send_text(one.tmux, "crew-1", "for one")
    send_text(two.tmux, "crew-1", "for two")
    wait_until(lambda: first.read_bytes() == b"for one\r")
    wait_until(lambda: second.read_bytes() == b"for two\r")
    one.close()
    assert live_sessions(one.tmux) == {}
    assert list(live_sessions(two.tmux)) == ["crew-1"]


def test_twenty_sessions_open_at_once_on_one_server(place):
    names = [f"crew-{number}" for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        opened = list(pool.map(place.open, names))
        again = list(pool.map(place.open, names))
    assert [one.name for one in opened] == names
    assert again == opened
    assert set(live_sessions(place.tmux)) == set(names)


def test_one_session_opened_by_many_at_once_is_one(place):
    script = place.tmux.folder / "run.sh"
    script.write_text("exec sleep 600\n")

    def open_it(_):
        env = {"CREW_OWNER": f"{place.marker}/crew-1"}
        return open_session(
            place.tmux, "crew-1", script=script, cwd=script.parent, env=env, title="", agent=""
        ).pid

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(open_it, range(8)))) == 1
    place.close()


def test_no_server_means_no_sessions_and_none_is_started(place, tmp_path):
    assert live_sessions(place.tmux) == {}
    assert live_sessions(Tmux(folder=tmp_path / "nowhere")) == {}
    place.close()
    assert list(place.tmux.folder.iterdir()) == []


def test_a_killed_server_leaves_nothing_in_the_way(place):
    place.open_and_wait()
    os.kill(place.server(), signal.SIGKILL)
    wait_until(lambda: live_sessions(place.tmux) == {})
    assert (place.tmux.folder / "tmux.sock").exists()
    assert wait_until(place.ended) == "129\n"
    with pytest.raises(NotFound):
        send_text(place.tmux, "crew-1", "x")
    place.close()
    place.open()
    assert list(live_sessions(place.tmux)) == ["crew-1"]


def test_a_killed_shell_ends_its_session_only(place):
    first = place.open_and_wait("crew-1")
    place.open("crew-2")
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: list(live_sessions(place.tmux)) == ["crew-2"])
    assert wait_until(place.ended) == "129\n"
    assert place.open("crew-1").pid != first.pid


def test_a_server_without_sessions_ends(place):
    place.open()
    server = place.server()
    assert find_process(server) is not None
    place.close()
    assert wait_until(lambda: find_process(server) is None)


def test_closing_ends_everything_below_and_nothing_else(place, tmp_path):
    """Also what left for a session of its own, and what hears no polite word."""
    deaf = shell_python(
        "import signal, time; signal.signal(15, 1); time.sleep(600)", tmp_path / "deaf"
    )
    place.open(command=f"{shell_python(DAEMON, tmp_path / 'daemon')}; trap '' HUP; {deaf}")
    bystander = place.open("crew-2")
    daemon = int(wait_until(lambda: written(tmp_path / "daemon")))
    pid = find_session(place.tmux, "crew-1").pid
    place.close()
    assert find_process(daemon) is None
    assert find_process(pid) is None
    assert processes_holding(str(tmp_path / "deaf")) == []
    assert live_sessions(place.tmux) == {"crew-2": bystander}
    place.close()


def test_closing_finds_daemons_of_a_session_whose_server_was_killed(place, tmp_path):
    place.open(command=f"{shell_python(DAEMON, tmp_path / 'daemon')}; exec sleep 600")
    daemon = int(wait_until(lambda: written(tmp_path / "daemon")))
    os.kill(place.server(), signal.SIGKILL)
    place.close()
    assert find_process(daemon) is None


def test_an_agent_that_is_closed_has_time_for_its_last_words(place, monkeypatch):
    patient = functools.partial(end_all, grace_s=60.0)
    monkeypatch.setattr(door, "end_all", patient)
    monkeypatch.setattr(door, "_HANG_UP_AFTER_S", 60.0)
    log = place.tmux.folder / "task-1.log"
    source = (
        "import signal, sys, time\n"
        "def end(*_): print('saved', flush=True); sys.exit(33)\n"
        "signal.signal(signal.SIGTERM, end); print('ready', flush=True); time.sleep(600)"
    )
    place.open(command=f"exec {shell_python(source)}", log=log)
    wait_until(lambda: "ready" in written(log))
    place.close()
    assert wait_until(lambda: "saved" in written(log))
    assert place.ended() == "33\n"


def test_a_session_can_be_closed_from_inside(place, tmp_path):
    source = (
        "from pathlib import Path; import sys\n"
        "from crew.agents.terminal.tmux import Tmux, close_session\n"
        "close_session(Tmux(folder=Path(sys.argv[1])), 'crew-1', marker=sys.argv[2])"
    )
    own = (sys.executable, "-c", source, place.tmux.folder, f"{place.marker}/crew-1")
    daemon = tmp_path / "daemon"
    place.open(command=f"{shell_python(DAEMON, daemon)}; {shlex.join(map(str, own))}; sleep 600")
    wait_until(place.ended)
    wait_until(lambda: live_sessions(place.tmux) == {})
    assert find_process(int(written(daemon))) is None


def test_an_empty_marker_is_refused(place):
    with pytest.raises(UsageError):
        close_session(place.tmux, "crew-1", marker="")


@pytest.mark.parametrize("name", ["", "a:b", "a.b", "=x", "a b", "#{pid}", "-d"])
def test_a_name_that_tmux_would_read_otherwise_is_refused(place, name):
    with pytest.raises(UsageError):
        open_session(place.tmux, name, script=Path("x"), cwd=Path("/"), env={}, title="", agent="")


def test_a_folder_that_is_gone_is_named(place, tmp_path):
    with pytest.raises(NotFound, match="gone"):
        place.open(cwd=tmp_path / "gone")


def test_without_tmux_the_hint_says_what_to_install(place, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not is_installed()
    assert live_sessions(place.tmux) == {}
    for use in (place.open, lambda: capture(place.tmux, "crew-1", lines=1)):
        with pytest.raises(CrewError, match="not installed") as caught:
            use()
        assert "install tmux" in caught.value.hint
        assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("says", "is_good"),
    [("tmux 2.9a", False), ("tmux 3.1c", False), ("tmux 3.2", True), ("tmux next-3.7", True)],
)
def test_a_tmux_that_is_too_old_is_refused(place, monkeypatch, tmp_path, says, is_good):
    other = tmp_path / "bin" / "tmux"
    other.parent.mkdir()
    real = shlex.quote(shutil.which("tmux"))
    other.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo {says} && exit\nexec {real} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{PATH}")
    if is_good:
        place.open()
        return
    with pytest.raises(CrewError, match="too old") as caught:
        place.open()
    assert "3.2" in caught.value.hint


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(place, monkeypatch):
    place.open()
    server = place.server()
    monkeypatch.setattr(door, "_ANSWERS_WITHIN_S", 0.3)
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(TimedOut):
            live_sessions(place.tmux)
    finally:
        os.kill(server, signal.SIGCONT)


OPENS = """
import sys
from pathlib import Path
from crew.agents.terminal.tmux import Tmux, open_session
folder = Path(sys.argv[1])
open_session(
    Tmux(folder=folder), "crew-1", script=folder / "run.sh", cwd=folder,
    env={"CREW_OWNER": sys.argv[2]}, title="Mine", agent="x", log=folder / "log",
)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "name", ["put_session_file", "make_session_log", "start_tmux_server", "open_session"]
)
def test_opening_can_be_repeated_after_a_death(place, name, when):
    (place.tmux.folder / "run.sh").write_text("echo run >>runs; exec sleep 600\n")
    (place.tmux.folder / "scripts").mkdir()
    (place.tmux.folder / "scripts" / "task-1.sh").touch()
    call = [sys.executable, "-c", OPENS, place.tmux.folder, f"{place.marker}/crew-1"]
    crash = {**os.environ, "CREW_CRASH_AT": f"agents.{name}.{when}"}
    assert subprocess.run(call, env=crash, check=False).returncode == -signal.SIGKILL
    subprocess.run(call, check=True)
    assert find_session(place.tmux, "crew-1").title == "Mine"
    assert wait_until(lambda: written(place.tmux.folder / "runs")) == "run\n"


def test_a_bystander_of_another_owner_outlives_a_close(place, marker):
    other = subprocess.Popen(
        python(RUNNING),
        env={**os.environ, "CREW_OWNER": f"{place.marker}/crew-10"},
        stdout=subprocess.PIPE,
    )
    other.stdout.readline()
    place.open()
    place.close()
    assert other.poll() is None
    other.kill()
    other.wait()
    other.stdout.close()
