"""What the end of a gate means."""

import pytest

from crew.domain.kernel.errors import CrewError
from crew.domain.runs.gate import GateExit, cause_in, gate_ended, without_gate


def ended(command="make test", *, allows_no_tests=False, **exit_):
    end = GateExit(**{"code": 0, "output": "said", **exit_})
    return gate_ended(command, end, allows_no_tests=allows_no_tests)


def test_a_gate_that_exits_with_zero_proves_the_commit():
    result = ended()
    assert (result.passed, result.output, result.command) == (True, "said", "make test")


def test_a_red_gate_names_its_command_and_its_exit():
    result = ended(code=2)
    assert not result.passed
    assert result.output == "said\n`make test` exited with 2"


@pytest.mark.parametrize("output", ["", "\n \n"])
def test_a_red_gate_without_output_names_the_command_and_says_so(output):
    last = ended(code=2, output=output).output.splitlines()[-1]
    assert last == "`make test` printed nothing and exited with 2"


def test_a_gate_that_was_broken_off_is_red_whatever_it_exited_with():
    result = ended(code=0, broken_off="no output for 10 s")
    assert not result.passed
    assert result.output.endswith("`make test` was ended: no output for 10 s")


@pytest.mark.parametrize(
    "command", ["pytest", "uv run pytest -q", ".venv/bin/pytest", "python -m pytest"]
)
def test_exit_code_five_of_pytest_means_that_there_are_no_tests(command):
    assert ended(command, code=5, allows_no_tests=True).passed
    assert ended(command, code=5).output.endswith("collected no tests")
    assert not ended(command, code=2, allows_no_tests=True).passed


def test_exit_code_five_of_anything_else_is_red():
    assert not ended("make test 'x", code=5, allows_no_tests=True).passed


@pytest.mark.parametrize("how", [{"code": 127}, {"code": 126}, {"code": 0, "is_missing": True}])
def test_a_gate_that_cannot_be_run_is_an_error_and_no_verdict(how):
    with pytest.raises(CrewError, match="cannot be run"):
        ended(**how)


def test_a_gate_that_was_ended_by_crew_did_run_whatever_its_exit_code():
    assert not ended(code=127, broken_off="timed out").passed


def test_without_a_gate_the_configuration_decides():
    assert without_gate(is_required=False).passed
    refused = without_gate(is_required=True)
    assert not refused.passed
    assert "crew config set complete.command" in refused.output


def test_a_gate_that_ran_out_of_time_names_its_limit_and_the_key_of_it():
    result = ended(code=137, broken_off="ended after its limit of 1200 s", limit="20m")
    last = result.output.splitlines()[-1]
    assert last == (
        "`make test` ran out of time: it was ended after 20m, its limit ([complete] timeout)"
    )
    assert (result.passed, cause_in(result.output)) == (False, last)


WITHOUT_NAMES = [
    "curl: (6) Could not resolve host: pypi.org",
    "fatal: unable to access 'https://x/': Could not resolve host: x",
    "ping: connect: Network is unreachable",
    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "Failed to establish a new connection: [Errno -2] Name or service not known",
    "npm ERR! request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND",
    "Error: getaddrinfo EAI_AGAIN registry.npmjs.org",
    "warning: spurious network error (3 tries remaining): [6] Couldn't resolve host name",
    "dial tcp: lookup proxy.golang.org on 127.0.0.1:53: read udp: connection refused",
    "dial tcp: lookup proxy.golang.org: no such host",
    "java.net.UnknownHostException: repo.maven.apache.org",
    "wget: bad address 'x.org'",
    "wget: unable to resolve host address 'x.org'",
]


@pytest.mark.parametrize("line", WITHOUT_NAMES)
def test_a_red_gate_without_network_names_the_network_as_the_likely_reason(line):
    red = ended(code=1, output=f"begins\n{line}\nends", is_cut_off=True).output
    assert red.splitlines()[-1].startswith("`make test` exited with 1; its output reads as if")
    assert "[sandbox] network" in cause_in(red)
    with_network = ended(code=1, output=line).output
    assert cause_in(with_network) == ""
    assert cause_in(ended(code=1, output="1 failed", is_cut_off=True).output) == ""
    assert ended(code=0, output=line, is_cut_off=True).output == line


def test_only_the_last_line_which_crew_writes_can_name_a_cause():
    output = "`x` ran out of time ([complete] timeout)"
    assert cause_in(ended(code=1, output=output, is_cut_off=True).output) == ""
