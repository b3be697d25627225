"""What the end of a gate means."""

import pytest

from crew.domain.kernel.errors import CrewError
from crew.domain.runs.gate import GateExit, gate_ended, without_gate


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
