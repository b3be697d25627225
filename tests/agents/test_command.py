"""Any program can be an agent, and what it is told reaches it unharmed."""

import os
from dataclasses import replace

import pytest

from agents.contract import AdapterContract, order, run_step, shell_lines
from crew.agents.adapter import AgentSpec, adapter_for
from crew.agents.command import LONGEST_ARGUMENT
from crew.agents.environment import prompt_file
from crew.domain.rows.step import ErrorKind

__all__ = ["order"]

HOSTILE = (
    'it\'s "x" $(touch ran) `touch ran` ${HOME}; touch ran\n| touch ran & \\ * ~ ünï \x1b[1m\n\n'
)


@pytest.fixture
def stage(tmp_path):
    def make(*acts):
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\n" + shell_lines(acts, str))
        program.chmod(0o755)
        return AgentSpec(name="any", command=str(program))

    return make


class TestCommandAdapter(AdapterContract):
    pass


@pytest.mark.parametrize(
    ("via", "template"),
    [
        ("arg", "printf %s {{.Prompt}} > got"),
        ("stdin", "cat {{.Prompt}} > got"),
        ("file", "cat {{.Prompt}} > got"),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_hostile_prompt_arrives_byte_for_byte_and_runs_nothing(order, via, template, size):
    spec = AgentSpec(name="any", command_template=template, prompt_via=via)
    prompt = HOSTILE * size
    outcome = run_step(adapter_for(spec), replace(order, prompt=prompt))
    assert outcome.error is None
    assert (order.worktree / "got").read_text() == prompt
    assert [path.name for path in order.worktree.iterdir()] == ["got"]


@pytest.mark.parametrize("via", ["stdin", "file"])
def test_a_prompt_of_200_kb_arrives(order, via):
    spec = AgentSpec(name="any", command_template="cat {{.Prompt}} > got", prompt_via=via)
    prompt = "x" * 199_999 + "\n"
    assert run_step(adapter_for(spec), replace(order, prompt=prompt)).error is None
    assert (order.worktree / "got").read_text() == prompt


def test_a_prompt_too_long_for_an_argument_is_named_by_its_file(order):
    template = """printf %s {{.Prompt}} > got; cat "$CREW_PROMPT_FILE" > whole"""
    spec = AgentSpec(name="any", command_template=template)
    fits = "ü" * (LONGEST_ARGUMENT // 2) + "x"
    assert len(fits.encode()) == LONGEST_ARGUMENT
    assert run_step(adapter_for(spec), replace(order, prompt=fits)).error is None
    assert (order.worktree / "got").read_text() == fits
    for prompt in (fits + "x", HOSTILE * 2000, "\0" + fits[1:]):
        assert run_step(adapter_for(spec), replace(order, prompt=prompt)).error is None
        said = (order.worktree / "got").read_text()
        assert len(said) < 500
        assert str(prompt_file(order)) in said
        assert (order.worktree / "whole").read_text() == prompt


def test_a_nul_in_a_prompt_is_no_reason_to_fail(order):
    spec = AgentSpec(name="any", command_template="printf %s {{.Prompt}}")
    outcome = run_step(adapter_for(spec), replace(order, prompt="a\0b"))
    assert outcome.text == "a\ufffdb\n"


def test_the_template_names_everything_about_the_step(order):
    names = (
        "Command Args SystemArgs Model Worktree TaskID Branch RepoRoot BaseBranch GitDir Session"
    )
    template = "printf '%s\\n' " + " ".join(f"{{{{.{name}}}}}" for name in names.split())
    spec = AgentSpec(
        name="any",
        command="sh",
        args=("-a", "b c"),
        system_args=("-s",),
        model="m 1",
        command_template=template,
    )
    about = {
        "CREW_TASK_ID": "$(id)",
        "CREW_BRANCH": "crew-7",
        "CREW_REPO": "/r",
        "CREW_BASE_BRANCH": "main",
        "CREW_GIT_DIR": "/r/.git",
    }
    outcome = run_step(adapter_for(spec), replace(order, env={**order.env, **about}))
    assert outcome.text.splitlines() == [
        *("sh", "-a", "b c", "-s", "m 1", str(order.worktree)),
        *("$(id)", "crew-7", "/r", "main", "/r/.git", order.session),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        AgentSpec(name="any", command="no-such-agent"),
        AgentSpec(name="any", command_template="no-such-agent {{.Prompt}}"),
    ],
)
def test_a_missing_program_is_named(order, spec):
    error = run_step(adapter_for(spec), order).error
    assert error.kind is ErrorKind.NOT_INSTALLED
    assert "no-such-agent" in error.message


def test_a_wrong_template_is_an_error_with_the_known_names(order):
    error = run_step(
        adapter_for(AgentSpec(name="any", command_template="x {{.Promt}}")), order
    ).error
    assert "Prompt" in error.message


def test_the_reason_of_a_failure_is_its_last_word_on_stderr(order):
    spec = AgentSpec(name="any", command_template="echo first >&2; echo 'no credit' >&2; exit 2")
    error = run_step(adapter_for(spec), order).error
    assert error.message == "any: exited with code 2: no credit"


def test_coloured_output_still_signals_and_its_cost_is_unknown(order):
    spec = AgentSpec(name="any", command_template="printf '\\033[32mDONE\\033[0m\\n'")
    outcome = run_step(adapter_for(spec, caller={"PATH": os.environ["PATH"]}), order)
    assert outcome.done
    assert outcome.usage.cost_usd is None


def test_only_the_end_of_a_flood_of_words_is_kept(order):
    spec = AgentSpec(name="any", command_template="yes word | head -c 3000000; echo; echo DONE")
    outcome = run_step(adapter_for(spec), order)
    assert outcome.done
    assert len(outcome.text) <= 16_384
    assert outcome.text.endswith("DONE\n")
