"""Whether an agent's program loads the repository's settings, as the order of a step says."""

import subprocess
from dataclasses import replace

import pytest

from agents.conftest import marker
from agents.contract import order
from crew.runner.prompts.step_orders import agent_settings
from crew.runner.sandbox.confinement import with_rights
from crew.runner.views.proposal_views import MOST_LINES, change_lines
from crew.trusted_config import NEW_PROJECT_SETTINGS, approve, proposals
from crew.workplace import find_workplace, make_workplace

__all__ = ["marker", "order"]


@pytest.fixture
def workplace(make_scene):
    path = make_scene().path
    make_workplace(path)
    return find_workplace(path)


def test_a_person_reads_what_there_is_to_approve(workplace):
    text = '{"hooks": "x"}\n' + "y" * 9_000 + "\n\x1b[2Jz" + "\n" * 100
    (workplace.root / ".mcp.json").write_text(text)
    subprocess.run(["git", "add", ".mcp.json"], cwd=workplace.root, check=True)
    name, why, *lines = change_lines(*proposals(workplace.root))
    assert (name, why.strip()) == (".mcp.json", NEW_PROJECT_SETTINGS)
    assert lines[0] == '+ {"hooks": "x"}'
    assert len(lines) == MOST_LINES + 1
    assert "read the file" in lines[-1]
    assert max(map(len, lines)) < 600
    assert "\x1b" not in "".join(lines)


def test_a_step_trusts_what_a_person_approved_and_no_other_content(workplace, order):
    def rights(kind="claude"):
        found = with_rights(workplace, replace(order, kind=kind), agent_settings(workplace, kind))
        return found.trusts_project, found.unapproved

    assert rights() == (True, ())
    for folder in (workplace.root, order.worktree):
        (folder / ".mcp.json").write_text("servers")
    assert rights() == (False, (".mcp.json",))
    assert rights("codex") == (True, ())
    subprocess.run(["git", "add", ".mcp.json"], cwd=workplace.root, check=True)
    assert [one.file for one in proposals(workplace.root)] == [".mcp.json"]
    approve(workplace.root)
    assert proposals(workplace.root) == ()
    assert rights() == (True, ())
    (order.worktree / ".mcp.json").write_text("other servers")
    assert rights() == (False, (".mcp.json",))
