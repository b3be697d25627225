"""A CLI whose project settings are off gets the repository's instructions, and no other file."""

import json
import os
from dataclasses import replace

import pytest

from agents.contract import order
from crew.agents.adapter import AgentSpec
from crew.agents.codex.codex_flags import developer_instructions
from crew.agents.instruction_files import LONGEST
from crew.agents.opencode.opencode import own_config

__all__ = ["order"]


def for_codex(order):
    return developer_instructions(AgentSpec(name="codex", adapter="codex"), order)


def for_opencode(order):
    return json.loads(own_config("", order) or "{}").get("instructions", [])


def test_a_file_of_the_repository_is_passed_on(order):
    (order.worktree / "AGENTS.md").write_text("be kind\n")
    assert for_codex(order) == f"# AGENTS.md instructions for {order.worktree}\n\nbe kind"
    assert for_opencode(order) == [str(order.worktree / "AGENTS.md")]
    trusted = replace(order, trusts_project=True)
    assert (for_codex(trusted), for_opencode(trusted)) == ("", [])


@pytest.mark.parametrize("way", ["docs/agents.md", "CLAUDE.md", "{worktree}/docs/agents.md"])
def test_a_link_within_the_repository_is_followed(order, way):
    docs = order.worktree / "docs"
    docs.mkdir()
    (docs / "agents.md").write_text("be kind\n")
    (order.worktree / "CLAUDE.md").symlink_to("docs/agents.md")
    (order.worktree / "AGENTS.md").symlink_to(way.format(worktree=order.worktree))
    assert for_codex(order).endswith("be kind")
    assert for_opencode(order) == [os.path.realpath(docs / "agents.md")]


@pytest.mark.parametrize("through", ["a link", "a folder", "two links", "its parent"])
def test_a_link_that_leads_outside_is_not_followed(order, tmp_path, through):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    agents, more = order.worktree / "AGENTS.md", order.worktree / "more"
    if through == "a link":
        agents.symlink_to(outside / "key")
    elif through == "a folder":
        more.symlink_to(outside)
        agents.symlink_to("more/key")
    elif through == "two links":
        more.symlink_to(outside / "key")
        agents.symlink_to("more")
    else:
        agents.symlink_to(os.path.relpath(outside / "key", order.worktree))
    assert (for_codex(order), for_opencode(order)) == ("", [])


@pytest.mark.parametrize("other", ["circle", "nothing", "pipe", "folder", "link to a pipe"])
def test_anything_but_a_file_gives_way_to_the_next_name(order, other):
    agents = order.worktree / "AGENTS.override.md", order.worktree / "AGENTS.md"
    for path in agents:
        if other == "circle":
            path.symlink_to(path.name)
        elif other == "nothing":
            path.symlink_to("nothing")
        elif other == "pipe":
            os.mkfifo(path)
        elif other == "folder":
            path.mkdir()
        else:
            os.mkfifo(path.with_suffix(".pipe"))
            path.symlink_to(path.with_suffix(".pipe"))
    assert (for_codex(order), for_opencode(order)) == ("", [])
    agents[1].rmdir() if other == "folder" else agents[1].unlink()
    agents[1].write_text("be kind")
    assert for_codex(order).endswith("be kind")
    assert for_opencode(order) == [str(agents[1])]


@pytest.mark.parametrize("line", ["a rule with ä\n", "x" * 300_000])
def test_a_long_file_is_cut_with_a_note(order, line):
    file = order.worktree / "AGENTS.md"
    file.write_text("be kind\n" + line * (3 * LONGEST // len(line)))
    text = for_codex(order)
    assert "be kind" in text
    assert str(file) in text.splitlines()[-1]
    assert len(text.encode()) < LONGEST + 1000
    assert "\ufffd" not in text
    assert for_opencode(order) == [str(file)]
