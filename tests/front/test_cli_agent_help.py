"""What agents are told about crew is made of the commands there are."""

import re

import click
import pytest

from crew.front.cli.agent_help import FOR_ROLE, agent_help
from crew.front.cli.call import Call
from crew.front.cli.catalogue import ALIASES, COMMANDS
from crew.front.cli.root import root

ROLES = sorted(FOR_ROLE)


@pytest.fixture
def top():
    return click.Context(root, info_name="crew", obj=Call())


@pytest.mark.parametrize("role", ROLES)
def test_it_works_outside_of_a_repository(bare_scene, tmp_path, role):
    said = bare_scene.ok(f"--help-{role}", cwd=tmp_path)
    assert said.err == ""
    assert "crew show" in said.out
    for args in (["--json", f"--help-{role}"], [f"--help-{role}", "--json"]):
        told = bare_scene.ok(*args, cwd=tmp_path).json
        assert (told["role"], told["text"]) == (role, said.out)


@pytest.mark.parametrize("role", ROLES)
def test_every_command_that_is_named_exists(top, role):
    text = agent_help(top, role)
    named = re.findall(r"(?:`|^|Example: )crew ([a-z-]+)", text, re.MULTILINE)
    assert len(named) >= 5
    assert set(named) <= {*COMMANDS, *ALIASES}


@pytest.mark.parametrize("role", ROLES)
def test_every_flag_that_is_named_belongs_to_its_command(top, role):
    text = agent_help(top, role)
    for name, rest in re.findall(r"(?:`|Example: )crew ([a-z-]+)([^`\n]*)", text):
        one = root.get_command(top, ALIASES.get(name, name))
        known = {flag for param in one.get_params(top) for flag in param.opts}
        used = re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest.partition(" -- ")[0])
        assert set(used) <= known, f"crew {name} {used}"


@pytest.mark.parametrize("role", ROLES)
def test_usage_and_help_come_from_the_command_itself(top, role):
    text = agent_help(top, role)
    for name in FOR_ROLE[role]:
        if name not in COMMANDS:
            continue
        assert f"\ncrew {name} " in text
        assert COMMANDS[name].help in text
    assert "${" not in text


def test_the_roles_are_listed_in_the_help(bare_scene):
    out = bare_scene.ok("--help").out
    assert all(f"--help-{role}" in out for role in ROLES)
