"""Writes the script of a terminal, which starts the agent and reports its end.

It reports once, with the exit code, on every exit that a shell can catch. After SIGKILL there is no
report; crew then finds that the terminal is gone.
"""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from crew.domain.kernel.errors import UsageError
from crew.system.atomic_files import has_content, write_file
from crew.system.crash_points import effect
from crew.system.private_files import make_private_folder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

# Three nested shells. When the terminal closes, only the outermost gets SIGHUP and dies of it. Then
# the kernel signals all the others, which a waiting shell would not do. The second shell reports.
# The innermost contains a command that calls `exit` or `exec` or is invalid, and starts no second
# program after a signal to end. Signals are caught and not ignored, since the agent would inherit
# an ignored signal. A caught signal waits until the agent, which gets it too, has ended.
_SCRIPT = """\
#!/bin/sh
export CREW_PROMPT_FILE={prompt_file}
trap : INT QUIT TERM
(
    code=1
    report() {{
        trap '' HUP INT QUIT TERM
        trap - EXIT
        log={log}
        [ -w "$log" ] || log=/dev/null
        {end_command} "$code" </dev/null >>"$log" 2>&1
        exit "$code"
    }}
    trap report EXIT
    trap : HUP INT QUIT TERM
    (
        trap : INT QUIT
        trap exit HUP TERM
        eval {command}
    )
    code=$?
)
exit $?
"""


def write_session_script(
    folder: Path,
    name: str,
    *,
    command: str,
    prompt: str,
    end_command: Sequence[str],
    log: Path | None = None,
) -> Path:
    """Write `scripts/<name>.sh` and its prompt below the `.crew` folder; the script's path.

    `command` is a complete shell line. `$CREW_PROMPT_FILE` names a file with the prompt.
    `end_command` gets the exit code as its last argument. Its output goes to the log, since the
    terminal may be closed by then.
    """
    _check(name, command, end_command)
    prompt_file = write_session_prompt(folder, name, prompt)
    text = _SCRIPT.format(
        prompt_file=shlex.quote(str(prompt_file)),
        end_command=shlex.join(end_command),
        log=shlex.quote(str(log.absolute() if log else os.devnull)),
        command=shlex.quote(command),
    )
    script = prompt_file.with_name(f"{name}.sh")
    put_file(script, text, mode=0o700)
    return script


def write_session_prompt(folder: Path, name: str, prompt: str) -> Path:
    """Write the prompt alone: a sandbox can only be described once its files exist."""
    file = session_prompt(folder, name)
    put_file(file, prompt, mode=0o600)
    return file


def session_prompt(folder: Path, name: str) -> Path:
    """The file with the prompt of a script."""
    return folder.absolute() / "scripts" / f"{name}-prompt.txt"


@effect("agents.put_session_file")
def put_file(path: Path, text: str, *, mode: int) -> None:
    """Replace a file atomically: a shell that reads the old one continues to read it."""
    content = text.encode(errors="surrogateescape")
    if has_content(path, content) and path.stat().st_mode & 0o777 == mode:
        return
    make_private_folder(path.parent)
    write_file(path, content, mode=mode)


def _check(name: str, command: str, end_command: Sequence[str]) -> None:
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a script",
            hint="it has only letters, digits, - and _, like task-1",
        )
    if "\0" in command or any("\0" in word for word in end_command):
        raise UsageError(
            "a command line cannot contain a NUL character",
            hint="remove it from the agent's command or prompt",
        )
