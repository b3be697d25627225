"""What the exit of a gate means: whether it proves the commit, and the message about it."""

import re
import shlex

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import MARK, headline

PYTEST_NO_TESTS = 5
CANNOT_RUN = frozenset({126, 127})
"""The exit codes of a shell if the program is missing or not executable."""

NO_GATE = "none"
"""Recorded in place of the gate's command if nothing was tested."""

LIMIT_KEY = "[complete] timeout"
NETWORK_KEY = "[sandbox] network"

_NO_NETWORK = re.compile(
    r"temporary failure in name resolution|could not resolve (?:host|proxy|')"
    r"|name or service not known|nodename nor servname|no address associated with hostname"
    r"|network is unreachable|no route to host|failed to resolve '|unknown host"
    r"|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|getaddrinfo|failed to lookup address"
    r"|dial (?:tcp|udp)\b[^\n]*(?:lookup|connect:|i/o timeout)|no such host"
    r"|unable to resolve host|UnknownHostException|bad address '"
    r"|spurious network error|failed to download from `http|the network of this sandbox is a list",
    re.IGNORECASE,
)
"""What libc, curl, git, pip, npm, cargo, go, Java and busybox print if no name can be resolved."""

SET_GATE = "`crew config set complete.command 'make test'` sets one"


@frozen
class GateResult:
    """The result of a gate; `command` is "none" if no command is configured."""

    passed: bool
    output: str = ""
    command: str = ""


@frozen
class GateExit:
    """How the process of a gate ended; `broken_off` is the reason if it did not exit by itself.

    `limit` is its limit of time if that was reached. `is_cut_off` means that a sandbox kept the
    network from it.
    """

    code: int
    output: str
    broken_off: str = ""
    limit: str = ""
    is_missing: bool = False
    is_cut_off: bool = False


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


def cause_in(output: str) -> str:
    """The last line of a red gate's output, if it names a setting as the likely cause."""
    last = headline(output.rstrip().rpartition("\n")[2].removeprefix(MARK))
    return last if LIMIT_KEY in last or NETWORK_KEY in last else ""


def _why_red(command: str, end: GateExit, *, allows_no_tests: bool) -> str:
    why = _how_it_ended(command, end, allows_no_tests=allows_no_tests)
    if not why or not end.is_cut_off or not _NO_NETWORK.search(end.output):
        return why
    return (
        f"{why}; its output reads as if it needs the network, which the sandbox keeps from it "
        f"({NETWORK_KEY}, which a person can set)"
    )


def _how_it_ended(command: str, end: GateExit, *, allows_no_tests: bool) -> str:
    if end.limit:
        return f"ran out of time: it was ended after {end.limit}, its limit ({LIMIT_KEY})"
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
