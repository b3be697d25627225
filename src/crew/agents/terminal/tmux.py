"""Terminals that people can watch and type into, on one tmux server for each `.crew` folder.

tmux runs in that folder with a relative socket name, because the path of a socket is limited to
about a hundred bytes. The server is crew's own: it does not read or touch the user's tmux.
"""

import functools
import os
import re
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from crew.agents.terminal.terminal_script import put_file
from crew.domain.kernel.errors import CrewError, NotFound, TimedOut, UsageError
from crew.domain.kernel.frozen import frozen
from crew.system.crash_points import effect
from crew.system.processes.ownership import RunningProcess, end_all, find_process

DETACH_KEY = "C-g"
SOCKET = "tmux.sock"
CONFIG = "tmux.conf"

_OLDEST = (3, 2)  # the first with -N, `copy-mode -q` and `run-shell -d`
_ANSWERS_WITHIN_S = 20.0
_TRIES = 5
_TYPED_AT_MOST = 200
ENTER_AFTER_S = 0.1
_GONE_WITHIN_LOOKS = 50
_LOOK_AGAIN_AFTER_S = 0.02
_HANG_UP_AFTER_S = 0.5
_LONGEST_TITLE = 80
_LONGEST_VARIABLE = 16_000  # tmux silently drops a longer one
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[^\s\0,=*?\[\]\\]+")  # tmux gets them as a list of patterns
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_PASTE_BRACKET = re.compile(r"(?:\x1b\[|\x9b)20[01]~")
_TERMINFO = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo")
_SAYS = "#{session_name} #{pane_pid} #{session_created} #{session_attached} #{@crew_title}"
_NO_SERVER = ("no server running", "No such file", "server exited", "lost server")
# Variables that tmux adds to a terminal. TMUX would let an agent type into other terminals.
_ADDED_BY_TMUX = ("TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "SHELL", "PWD")

# The server starts without a session, so that no session's environment becomes the default.
# It waits for the first one. If none comes, as after a crash, it ends by itself.
_CONFIG = """\
set -s exit-empty off
run-shell -b -d 60 -C "set -s exit-empty on"
set -s escape-time 0
set -g assume-paste-time 0
set -s focus-events on
set -s default-terminal {terminal}
set -g default-shell /bin/sh
set -g history-limit 50000
set -g mouse on
set -g mode-keys emacs
set -g remain-on-exit off
set -g destroy-unattached off
set -g window-size latest
set -g allow-rename off
set -g automatic-rename off
set -g set-titles on
set -g set-titles-string "#{{session_name}} #{{@crew_title}}"
set -g status-position top
set -g status-style "bg=colour24,fg=colour255"
set -g status-format[0] "#{{@crew_bar}}#[align=right] detach: {detach} "
set -g prefix None
unbind-key -a -T prefix
unbind-key -a -T root
bind-key -T root {detach} detach-client
bind-key -T copy-mode {detach} detach-client
bind-key -T root WheelUpPane if -F "{moused}" "send -M" "copy-mode -e"
bind-key -T root MouseDrag1Pane if -F "{moused}" "send -M" "copy-mode -M"
"""
_MOUSED = "#{||:#{pane_in_mode},#{mouse_any_flag}}"

Answer = subprocess.CompletedProcess[bytes]


@frozen
class Tmux:
    """The tmux server of this crew."""

    folder: Path  # the .crew folder


@frozen
class LiveSession:
    """An open terminal. `pid` and `started` together identify its process for good."""

    name: str
    pid: int
    started: int
    attached: int
    title: str


def is_installed() -> bool:
    return shutil.which("tmux") is not None


def open_session(
    tmux: Tmux,
    name: str,
    *,
    script: Path,
    cwd: Path,
    env: Mapping[str, str],
    title: str,
    agent: str,
    log: Path | None = None,
) -> LiveSession:
    """Run the script in a terminal of this name, with `env` and TERM as its whole environment.

    An existing terminal is returned unchanged. Raw output is appended to the log.
    """
    _check(name, cwd, env)
    checked_version(load_program())
    shown = _plain(title, limit=_LONGEST_TITLE)
    bar = _not_a_format(f" #{name.removeprefix('crew-')} {shown} | {_plain(agent, limit=40)}")
    arguments = (
        *("set-option", "-g", "update-environment", _literal(" ".join(env)), ";"),
        *("new-session", "-d", "-P", "-F", _SAYS, "-s", name, "-x", "160", "-y", "48"),
        *("-c", _literal(_not_a_format(str(cwd)))),
        *_pane_argv(script, env),
        *(";", "set-option", "-s", "exit-empty", "on"),
        *(";", "set-option", "-t", _target(name), "--", "@crew_title", _literal(shown)),
        *(";", "set-option", "-t", _target(name), "--", "@crew_bar", _literal(bar)),
        *(_pipe_to(log, name) if log else ()),
    )
    put_file(tmux.folder / CONFIG, _config(), mode=0o600)
    if log:
        _make_log(log)
    for _ in range(_TRIES):
        if found := find_session(tmux, name):
            return found
        _start_server(tmux)
        done = _new_session(tmux, arguments, env)
        if done.returncode == 0:
            return _session(f"{_text(done.stdout).rstrip()} {shown}")
    raise _failure(done, f"cannot open the terminal {name}")


def find_session(tmux: Tmux, name: str) -> LiveSession | None:
    return live_sessions(tmux).get(name)


def live_sessions(tmux: Tmux) -> dict[str, LiveSession]:
    """All terminals by name; none if no server runs. Does not start a server."""
    if not (tmux.folder / SOCKET).exists() or not is_installed():
        return {}
    done = _call(tmux, "list-sessions", "-F", _SAYS)
    if done.returncode and not any(words in _text(done.stderr) for words in _NO_SERVER):
        raise _failure(done, "cannot reach crew's tmux server")
    sessions = [_session(line) for line in _text(done.stdout).splitlines()]
    return {one.name: one for one in sessions}


def close_session(tmux: Tmux, name: str, *, marker: str) -> None:
    """End the terminal and its descendants, even daemons. Safe if it has ended already."""
    if not marker:
        raise UsageError(
            "an empty marker would end every process on this machine",
            hint="pass the CREW_OWNER that the terminal was opened with",
        )
    session = find_session(tmux, name)

    def is_ours(one: RunningProcess) -> bool:
        at_the_top = session is not None and one.identity == (session.pid, session.started)
        return at_the_top or one.marker == marker

    end_all(is_ours, hang_up_after_s=_HANG_UP_AFTER_S)
    # tmux closes a session after its last output, so only a session that stays is ended.
    # The limit counts checks instead of seconds, so that a delayed server gets all of them.
    for _ in range(_GONE_WITHIN_LOOKS):
        if not session or not (now := find_session(tmux, name)) or now.pid != session.pid:
            return
        time.sleep(_LOOK_AGAIN_AFTER_S)
    _kill_session(tmux, name)


def send_text(tmux: Tmux, name: str, text: str, *, enter: bool = True) -> None:
    """Type a short line. Paste other text, so that an agent reads it as one message."""
    _demand(tmux, name)
    if len(text) > _TYPED_AT_MOST or any(end in text for end in "\n\r\0"):
        paste_text(tmux, name, text)
    elif text:
        press_keys(tmux, name, "-l", "--", _literal(text))
    if enter:
        # A program that reads text and Enter together treats both as a paste and does not submit.
        time.sleep(ENTER_AFTER_S)
        press_keys(tmux, name, "Enter")


def capture(tmux: Tmux, name: str, *, lines: int, colours: bool = False) -> str:
    """The last lines of the terminal with its history, without blank lines at the end."""
    _demand(tmux, name)
    style = ("-e",) if colours else ()
    done = _call(tmux, "capture-pane", "-p", *style, "-S", str(-lines), "-t", _target(name))
    if done.returncode:
        raise _failure(done, f"cannot read the terminal {name}")
    rows = [row.rstrip(" ") for row in _text(done.stdout).split("\n")]
    while rows and not _COLOUR.sub("", rows[-1]).strip():
        rows.pop()
    above, shown = (rows[:-lines], rows[-lines:]) if lines > 0 else (rows, [])
    return "".join(_COLOUR.findall("\n".join(above))) + "\n".join(shown)


def attach_argv(tmux: Tmux, name: str) -> tuple[str, ...]:
    """The command to attach to the terminal, even inside another tmux. DETACH_KEY detaches."""
    _demand(tmux, name)
    start = 'unset TMUX TMUX_PANE; cd -- "$1" && shift && exec "$@"'
    # -E: keep the environment with which the session was opened.
    return (
        *("/bin/sh", "-c", start, "crew-attach", str(tmux.folder.absolute())),
        *_argv("attach-session", "-E", "-t", _target(name)),
    )


@effect("agents.make_session_log")
def _make_log(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch(mode=0o600)


@effect("agents.start_tmux_server")
def _start_server(tmux: Tmux) -> None:
    """Start a server without our environment, if none runs."""
    _run(tmux, _argv("start-server", may_start=True))


@effect("agents.open_session")
def _new_session(tmux: Tmux, arguments: tuple[str, ...], env: Mapping[str, str]) -> Answer:
    """Open a session. tmux reads its environment from the client's, which `ps` does not show."""
    return _run(tmux, _argv(*arguments), env=env)


@effect("agents.kill_session")
def _kill_session(tmux: Tmux, name: str) -> None:
    _call(tmux, "kill-session", "-t", f"={name}")


@effect("agents.paste")
def paste_text(tmux: Tmux, name: str, text: str) -> None:
    """Paste in brackets, if the program uses them. The text cannot close them early."""
    while _PASTE_BRACKET.search(text):
        text = _PASTE_BRACKET.sub("", text)
    buffer = f"crew-{uuid.uuid4().hex}"
    arguments = (
        *("load-buffer", "-b", buffer, "-", ";", "copy-mode", "-q", "-t", _target(name)),
        *(";", "paste-buffer", "-p", "-d", "-b", buffer, "-t", _target(name)),
    )
    done = _run(tmux, _argv(*arguments), stdin=text.encode(errors="surrogateescape"))
    if done.returncode:
        raise _failure(done, f"cannot paste into the terminal {name}")


@effect("agents.type")
def press_keys(tmux: Tmux, name: str, *keys: str) -> None:
    """Press keys by tmux's names for them. While a person scrolls, crew leaves copy mode first."""
    leave_scrolling = ("copy-mode", "-q", "-t", _target(name))
    done = _call(tmux, *leave_scrolling, ";", "send-keys", "-t", _target(name), *keys)
    if done.returncode:
        raise _failure(done, f"cannot type into the terminal {name}")


def _pane_argv(script: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    unset = [word for name in _ADDED_BY_TMUX for word in ("-u", name)]
    shell = [_literal(f"SHELL={env['SHELL']}")] if "SHELL" in env else []
    return ("/usr/bin/env", *unset, *shell, "/bin/sh", _literal(str(script.absolute())))


def _pipe_to(log: Path, name: str) -> tuple[str, ...]:
    command = f"exec cat >>{shlex.quote(str(log.absolute()))}"
    return (";", "pipe-pane", "-t", _target(name), _literal(_not_a_format(command, time=True)))


def _call(tmux: Tmux, *arguments: str) -> Answer:
    return _run(tmux, _argv(*arguments))


def _argv(*arguments: str, may_start: bool = False) -> tuple[str, ...]:
    never_start = () if may_start else ("-N",)
    return (load_program(), "-u", *never_start, "-S", SOCKET, "-f", CONFIG, *arguments)


def _run(
    tmux: Tmux, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Answer:
    try:
        return subprocess.run(
            [word.encode(errors="surrogateescape") for word in argv],
            cwd=tmux.folder,
            env=dict(env or {}),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=_ANSWERS_WITHIN_S,
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut(
            "crew's tmux server does not answer",
            hint=f"find its process: fuser {tmux.folder / SOCKET}",
        ) from error


def load_program() -> str:
    if (program := shutil.which("tmux")) is None:
        hint = "install tmux (apt install tmux, brew install tmux), or run without a terminal"
        raise CrewError("tmux is not installed", hint=hint, code="not_installed")
    return program


@functools.cache
def checked_version(program: str) -> str:
    output = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", output)  # none in a build from source
    if version and (int(version[1]), int(version[2])) < _OLDEST:
        newer = "install tmux {}.{} or newer".format(*_OLDEST)
        raise CrewError(f"{output.strip()} is too old", hint=newer)
    return output.strip()


def _config() -> str:
    places = [Path(top, folder) for top in _TERMINFO for folder in ("t", "74")]
    is_known = any((place / "tmux-256color").exists() for place in places)
    terminal = "tmux-256color" if is_known else "screen-256color"
    return _CONFIG.format(terminal=terminal, detach=DETACH_KEY, moused=_MOUSED)


def _session(line: str) -> LiveSession:
    name, pid, created, attached, *title = line.split(" ", 4)
    process = find_process(int(pid))
    return LiveSession(
        name=name,
        pid=int(pid),
        started=process.started if process else int(created),
        attached=int(attached),
        title="".join(title),
    )


def _check(name: str, cwd: Path, env: Mapping[str, str]) -> None:
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a terminal",
            hint="it has only letters, digits, - and _, like crew-1",
        )
    if not cwd.is_dir():
        raise NotFound(f"the folder {cwd} is gone", hint="start the task again to create it")
    for variable, value in env.items():
        is_short = len(os.fsencode(variable + value)) <= _LONGEST_VARIABLE
        if not is_short or "\0" in value or _VARIABLE.fullmatch(variable) is None:
            raise UsageError(
                f"a terminal cannot have the variable {variable!r}",
                hint=f"use a plain name and fewer than {_LONGEST_VARIABLE} bytes in all",
            )


def _demand(tmux: Tmux, name: str) -> None:
    load_program()
    if find_session(tmux, name) is None:
        raise NotFound(f"there is no terminal {name}", hint="`crew list` shows all tasks")


def _target(name: str) -> str:
    """Exactly this session: a plain name would match any session with this prefix."""
    return f"={name}:"


def _literal(word: str) -> str:
    """Escape a `;` at the end of a word, which would end the command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word


def _not_a_format(text: str, *, time: bool = False) -> str:
    """Escape text so that tmux does not expand `#{…}`, `#(…)` or, with `time`, `%` codes."""
    text = text.replace("#", "##")
    return text.replace("%", "%%") if time else text


def _plain(text: str, *, limit: int) -> str:
    """One line without control characters."""
    spaced = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(spaced.split())[:limit]


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def _failure(done: Answer, what: str) -> CrewError:
    reason = _text(done.stderr).strip() or f"tmux exited with {done.returncode}"
    return CrewError(f"{what}: {reason}", hint="`crew doctor` checks tmux and its server")
