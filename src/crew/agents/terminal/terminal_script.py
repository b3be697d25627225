"""Writes what a session's pane runs: a script that starts the agent and reports how it ended.

The report is made once, with the exit code, on every way out that a shell can catch. If all of the
script is killed with SIGKILL there is none; whoever looks for its session finds that it is gone.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crew.domain.kernel.errors import UsageError
from crew.system.crash_points import effect

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

# Three shells, one inside the other. When the terminal goes away only the outermost is told, and it
# dies of that: then the kernel tells all the others, which a shell that waits would not do. The
# next one reports. The innermost lets a command `exit`, `exec` or be nonsense without harm, and
# starts no second program once it was told to end. Signals are caught rather than ignored, because
# what is ignored stays so in the agent; a caught one waits until the agent, which hears it too, has
# ended.
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
    """Write `scripts/<name>.sh` and its prompt below the `.crew` folder; where the script is.

    `command` is a finished shell line; the prompt is also in the file `$CREW_PROMPT_FILE` names.
    `end_command` gets the exit code as its last argument; what it says goes to the log, for the
    terminal may be gone by then.
    """
    _check(name, command, end_command)
    scripts = folder.absolute() / "scripts"
    prompt_file = scripts / f"{name}-prompt.txt"
    text = _SCRIPT.format(
        prompt_file=shlex.quote(str(prompt_file)),
        end_command=shlex.join(end_command),
        log=shlex.quote(str(log.absolute() if log else os.devnull)),
        command=shlex.quote(command),
    )
    put_file(prompt_file, prompt, mode=0o600)
    put_file(scripts / f"{name}.sh", text, mode=0o700)
    return scripts / f"{name}.sh"


@effect("agents.put_session_file")
def put_file(path: Path, text: str, *, mode: int) -> None:
    """Put a file in place in one move: a shell that reads the old one goes on reading it."""
    content = text.encode(errors="surrogateescape")
    if path.is_file() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(handle, mode)
    Path(fresh).replace(path)


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
