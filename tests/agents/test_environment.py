"""An agent inherits what it needs, and no key to anything but its model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crew.agents.adapter import StepOrder
from crew.agents.environment import agent_environment, prepare_files, prompt_file


@pytest.fixture
def order(tmp_path):
    (tmp_path / "worktree").mkdir()
    return StepOrder(
        key="run-1/1/1/1",
        agent="A",
        kind="any",
        worktree=tmp_path / "worktree",
        prompt="do it",
        session="s-1",
        resume=False,
        log=tmp_path / "logs" / "1.log",
        env={"CREW_TASK_ID": "7", "CREW_TOKEN": "t"},
    )


@pytest.mark.parametrize(
    "name", ["HOME", "LANG", "LC_ALL", "https_proxy", "ANTHROPIC_API_KEY", "XDG_CONFIG_HOME"]
)
def test_what_an_agent_needs_is_passed_on(order, name):
    assert agent_environment(order, extra={}, caller={name: "x"})[name] == "x"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AZURE_CLIENT_SECRET",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SSH_AUTH_SOCK",
        "NPM_TOKEN",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "CREW_OWNER",
        "CREW_TOKEN_OF_ANOTHER",
        "CLAUDECODE",
        "PYTHONPATH",
        "LD_PRELOAD",
    ],
)
def test_keys_and_strange_settings_stay_behind(order, name):
    assert name not in agent_environment(order, extra={}, caller={name: "x"})


def test_the_order_and_the_configuration_win(order):
    found = agent_environment(
        order,
        extra={"AWS_REGION": "here", "LANG": "C", "CREW_TASK_ID": "8"},
        caller={"LANG": "de_DE", "CREW_TASK_ID": "9"},
    )
    assert (found["AWS_REGION"], found["LANG"], found["CREW_TASK_ID"]) == ("here", "C", "7")
    assert found["CREW_SESSION"] == "s-1"
    assert "CREW_RESUME" not in found


def test_git_collects_no_garbage_and_opens_no_editor(order):
    found = agent_environment(order, extra={}, caller=os.environ)
    told = subprocess.run(
        ["git", "config", "--get", "gc.auto"], env=found, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "0"
    assert found["GIT_EDITOR"] == "true"


def test_crew_is_found_first_and_nothing_else_is_shadowed(order):
    prepare_files(order)
    first, *others = agent_environment(order, extra={}, caller=os.environ)["PATH"].split(":")
    assert [path.name for path in Path(first).iterdir()] == ["crew"]
    assert ":".join(others) == os.environ["PATH"]


def test_a_package_called_crew_in_the_worktree_does_not_stand_in_for_crew(order):
    prepare_files(order)
    (order.worktree / "crew").mkdir()
    (order.worktree / "crew" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    shim = order.log.parent / "bin" / "crew"
    assert sys.executable in shim.read_text()
    ended = subprocess.run(
        [shim, "--help"], cwd=order.worktree, capture_output=True, text=True, check=False
    )
    assert "the wrong one" not in ended.stderr


def test_the_prompt_lies_outside_of_the_worktree_for_its_owner_only(order):
    prepare_files(order)
    prepare_files(order)
    path = prompt_file(order)
    assert path.read_text() == "do it"
    assert path.stat().st_mode & 0o777 == 0o600
    assert not path.is_relative_to(order.worktree)
    assert sorted(found.name for found in path.parent.iterdir()) == ["1.log.prompt", "bin"]
