"""The repository's instructions reach each CLI; its settings that start programs need approval."""

import json
from dataclasses import replace

import pytest

from agents.contract import run_step
from crew.domain.rows.step import ErrorKind
from real_clis.cli_kinds import CLIS
from real_clis.repository_files import lay_out, seen, sprung
from real_clis.scripted_model import Say

pytestmark = pytest.mark.timeout(240)

ALWAYS = {
    "claude": {"claude", "claude-import", "claude-rule"},
    "codex": {"agents", "shared-skill"},
    "opencode": {"agents", "claude-skill", "shared-skill"},
    "gemini": {"gemini", "gemini-import", "shared-skill"},
}
"""What the model of each CLI is told even if settings of the repository are not approved."""

WITH_TRUST = {"claude": {"claude-skill"}, "opencode": {"opencode-skill"}}
"""What comes in addition as with the bare CLI: all of it if no settings wait for approval."""

TRAPS = {
    "claude": {"claude-hook", "claude-server"},
    "codex": {"codex-server"},
    "opencode": {"opencode-server"},
    "gemini": {"gemini-server"},
}


@pytest.mark.ability("reads the instructions of the repository; unapproved settings start nothing")
def test_instructions_reach_the_model_and_unapproved_settings_start_nothing(
    cli, agent_of, script, order, tmp_path
):
    lay_out(order.worktree, tmp_path / "proof")
    play = script(Say("DONE"))
    assert run_step(agent_of(cli), order).error is None
    assert seen(play.turns[0]) == ALWAYS[cli.name]
    assert sprung(tmp_path / "proof") == set()


LINKED = [pytest.param(name, marks=pytest.mark.clis) for name in ("codex", "opencode")]


@pytest.mark.parametrize("cli", LINKED, indirect=True)
def test_instructions_behind_a_link_reach_the_model_too(cli, agent_of, script, order, tmp_path):
    lay_out(order.worktree, tmp_path / "proof")
    (order.worktree / "AGENTS.md").rename(order.worktree / "docs" / "agents.md")
    (order.worktree / "AGENTS.md").symlink_to("docs/agents.md")
    play = script(Say("DONE"))
    assert run_step(agent_of(cli), order).error is None
    assert seen(play.turns[0]) == ALWAYS[cli.name]


@pytest.mark.ability("loads hooks, servers and skills of the repository once you approve them")
def test_with_trust_instructions_skills_and_settings_are_those_of_the_bare_cli(
    cli, agent_of, script, order, tmp_path
):
    lay_out(order.worktree, tmp_path / "proof")
    play = script(Say("DONE"))
    assert run_step(agent_of(cli), replace(order, trusts_project=True)).error is None
    assert seen(play.turns[0]) == ALWAYS[cli.name] | WITH_TRUST.get(cli.name, set())
    assert sprung(tmp_path / "proof") == TRAPS[cli.name]


def test_plugins_that_opencode_would_run_refuse_the_step(opencode, agent_of, script, order):
    plugin = order.worktree / ".opencode" / "plugin" / "trap.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const trap = async () => ({})\n")
    play = script(Say("DONE"))
    error = run_step(agent_of(CLIS["opencode"]), order).error
    assert error.kind is ErrorKind.PERMISSION_DENIED
    assert ".opencode/plugin/trap.js" in error.message
    assert play.asked == []


@pytest.mark.clis
def test_a_persons_approval_lets_the_repositorys_settings_in(crew, script, repo, git, tmp_path):
    lay_out(repo, tmp_path / "proof")
    crew.configure(f'[sandbox]\nallow_write = ["{tmp_path / "proof"}"]')
    git("add", "-A", at=repo)
    git("commit", "-qm", "settings", at=repo)
    waits = {one["file"] for one in json.loads(crew("trust", "--show", "--json"))["files"]}
    assert waits == {
        *(".claude/settings.json", ".mcp.json", ".codex/config.toml"),
        *("opencode.json", ".gemini/settings.json"),
    }
    work = CLIS["claude"].run("echo hello > new.txt && git add new.txt && git commit -qm new")
    more = CLIS["claude"].run("echo more >> new.txt && git commit -qam more")
    play = script(work, Say("DONE"), more, Say("DONE"))
    crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--drain")
    assert seen(play.turns[0]) == ALWAYS["claude"]
    assert sprung(tmp_path / "proof") == set()
    crew("trust", "--yes")
    crew("new", "--title", "Add a line to new.txt")
    crew("run", "--agents", "1", "--drain")
    assert seen(play.turns[2]) >= {"claude", "claude-skill"}
    assert sprung(tmp_path / "proof") == TRAPS["claude"]
