"""Runs a command of crew in a process of its own, as a person types it, for other front ends."""

import json
import os
import sys
import termios
import tty
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.domain.kernel.text import one_line
from crew.system.processes.process import output_of, run_in_terminal

_CREW = (sys.executable, "-P", "-m", "crew")
"""-P: Python must not import a folder called `crew` in the current directory as the package."""


def crew_program(directory: Path) -> tuple[str, ...]:
    """How this crew is called for a repository."""
    return (*_CREW, "-C", str(directory))


def run_crew(
    args: tuple[str, ...], *, directory: Path, stdin: str = "", timeout_s: float = 60.0
) -> Any:
    """The document that the command prints with `--json`; its refusal is raised here.

    A command that takes longer is ended: all commands of crew can be killed at any moment.
    """
    program = (*crew_program(directory), "--json", *args)
    code, output, errors = output_of(
        program, stdin=stdin.encode(errors="replace"), timeout_s=timeout_s
    )
    if code is None:
        raise TimedOut(
            f"`crew {args[0]}` did not end within {timeout_s:.0f} s",
            hint="what it began continues with the runner; look again later",
        )
    try:
        document = json.loads(output)
    except ValueError:
        words = one_line(errors.decode(errors="replace"), limit=300)
        raise CrewError(
            f"`crew {args[0]}` ended with {code}: {words or 'no output'}",
            hint=f"type the command in a terminal: crew {args[0]}",
        ) from None
    if code and isinstance(document, dict) and "error" in document:
        error = document["error"]
        raise CrewError(error["message"], hint=error["hint"], code=error["code"])
    return document


def run_in_person_terminal(args: tuple[str, ...], *, directory: Path, waits: bool = False) -> int:
    """Run a command of crew that owns the person's terminal, and return its exit code.

    After a failure, or with `waits`, what it printed stays until the person presses a key.
    """
    program = (*crew_program(directory), *args)
    code, _ = run_in_terminal(program, cwd=directory, env=dict(os.environ))
    if waits or code:
        wait_for_key(code)
    return code


def wait_for_key(code: int) -> None:
    """Say how a program ended, and wait for a key, if there is a terminal."""
    if not (sys.__stdin__ and sys.__stdin__.isatty()):
        return
    keyboard = sys.__stdin__.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        termios.tcflush(keyboard, termios.TCIFLUSH)  # what was typed while the program ran
        print(f"\nexit code {code}; press a key to go back", file=sys.__stderr__, flush=True)
        os.read(keyboard, 64)
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
