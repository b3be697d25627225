"""Runs a command of crew in a process of its own, as a person types it, for other front ends."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.domain.kernel.text import one_line
from crew.system.processes.process import output_of, run_in_terminal

_CREW = (sys.executable, "-P", "-m", "crew")
"""-P: Python must not import a folder called `crew` in the current directory as the package."""


def run_crew(
    args: tuple[str, ...], *, directory: Path, stdin: str = "", timeout_s: float = 60.0
) -> Any:
    """The document that the command prints with `--json`; its refusal is raised here.

    A command that takes longer is ended: all commands of crew can be killed at any moment.
    """
    program = (*_CREW, "-C", str(directory), "--json", *args)
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


def run_in_person_terminal(args: tuple[str, ...], *, directory: Path) -> int:
    """Run a command of crew that owns the person's terminal, and return its exit code."""
    program = (*_CREW, "-C", str(directory), *args)
    code, _ = run_in_terminal(program, cwd=directory, env=dict(os.environ))
    return code
