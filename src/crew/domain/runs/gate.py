"""What the exit of a gate means: whether it proves the commit, and the message about it."""

import shlex

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen

PYTEST_NO_TESTS = 5
CANNOT_RUN = frozenset({126, 127})
"""The exit codes of a shell if the program is missing or not executable."""

NO_GATE = "none"
"""Recorded in place of the gate's command if nothing was tested."""

SET_GATE = "`crew config set complete.command 'make test'` sets one"


@frozen
class GateResult:
    """The result of a gate; `command` is "none" if no command is configured."""

    passed: bool
    output: str = ""
    command: str = ""


@frozen
class GateExit:
    """How the process of a gate ended; `broken_off` is the reason if it did not exit by itself."""

    code: int
    output: str
    broken_off: str = ""
    is_missing: bool = False


def gate_ended(command: str, end: GateExit, *, allows_no_tests: bool) -> GateResult:
    """The result of a gate; the configuration decides whether a gate without tests passes."""
    cannot_run = end.code in CANNOT_RUN and not end.broken_off
    if end.is_missing or cannot_run:
        raise CrewError(
            f"the gate `{command}` cannot be run (exit {end.code})",
            hint="install it, or set the right one: [complete] command in .crew/config.toml",
        )
    why = _why_red(command, end, allows_no_tests=allows_no_tests)
    # The message names the command, because the agent has to run it again.
    how = why if end.output.strip() else f"printed nothing and {why}"
    output = f"{end.output}\n`{command}` {how}".lstrip("\n") if why else end.output
    return GateResult(passed=not why, output=output, command=command)


def _why_red(command: str, end: GateExit, *, allows_no_tests: bool) -> str:
    if end.broken_off:
        return f"was ended: {end.broken_off}"
    if end.code == 0:
        return ""
    if end.code == PYTEST_NO_TESTS and _runs_pytest(command):
        return "" if allows_no_tests else "collected no tests"
    return f"exited with {end.code}"


def _runs_pytest(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return any(word.rpartition("/")[2] in {"pytest", "py.test"} for word in words)


def without_gate(*, is_required: bool) -> GateResult:
    """The result if no gate command is configured."""
    output = "no gate: nothing says how to test this"
    if is_required:
        output += f", and [complete] require_gate asks for one ({SET_GATE})"
    return GateResult(passed=not is_required, output=output, command=NO_GATE)
