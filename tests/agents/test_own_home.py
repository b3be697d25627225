"""The settings that crew adds for a CLI are in a home of the task's own, not in the person's."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from agents.contract import order
from crew.agents.claude.claude_home import claude_variables
from crew.agents.gemini.gemini_home import gemini_variables
from crew.agents.own_home import own_home, read_settings
from crew.config.layers.layers import merged_settings

__all__ = ["order"]

CREW_TOOLS = {
    "httpUrl": "$CREW_MCP_URL",
    "headers": {"Authorization": "Bearer $CREW_TOKEN"},
    "trust": True,
}


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home"
    (path / ".gemini").mkdir(parents=True)
    return path


@pytest.fixture
def theirs(home):
    return home / ".gemini" / "settings.json"


@pytest.fixture
def ours(order):
    return lambda: json.loads((own_home(order) / ".gemini" / "settings.json").read_text())


def test_the_persons_settings_stay_and_hold_with_what_crew_adds(order, home, theirs, ours):
    text = '{ // mine\n"ui": {"theme": "a // b"}, "security": {"folderTrust": {"enabled": false}}}'
    theirs.write_text(text)
    env = {**order.env, "CREW_MCP_URL": "http://127.0.0.1:1/mcp", "CREW_TOKEN": "secret"}
    variables = gemini_variables(
        replace(order, env=env), {"HOME": str(home), "GEMINI_API_KEY": "x"}
    )
    assert variables == {"GEMINI_CLI_HOME": str(own_home(order))}
    assert theirs.read_text() == text
    assert ours() == {
        "ui": {"theme": "a // b"},
        "security": {"folderTrust": {"enabled": True}, "auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": {"crew": CREW_TOOLS},
    }


def test_a_persons_login_stays_and_only_the_trusted_are_told_so(order, home, theirs, ours):
    theirs.write_text('{"security": {"auth": {"selectedType": "oauth-personal"}}}')
    trusted = replace(order, trusts_project=True)
    found = gemini_variables(trusted, {"HOME": str(home), "GEMINI_API_KEY": "x"})
    assert found["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
    assert ours()["security"]["auth"] == {"selectedType": "oauth-personal"}


def test_sessions_and_the_login_are_those_of_the_person(order, home):
    (home / ".gemini" / "oauth_creds.json").write_text("{}")
    for _ in range(2):
        gemini_variables(order, {"HOME": str(home)})
    folder = own_home(order) / ".gemini"
    (folder / "tmp" / "chat").write_text("hello")
    assert (home / ".gemini" / "tmp" / "chat").read_text() == "hello"
    assert (folder / "oauth_creds.json").readlink() == home / ".gemini" / "oauth_creds.json"


def test_what_older_versions_wrote_is_removed_once_and_reported(order, home, theirs, caplog):
    former = {"ui": {"theme": "x"}, "mcpServers": {"crew": CREW_TOOLS, "mine": {"command": "y"}}}
    theirs.write_text(json.dumps(former))
    gemini_variables(order, {"HOME": str(home)})
    left = {"ui": {"theme": "x"}, "mcpServers": {"mine": {"command": "y"}}}
    assert json.loads(theirs.read_text()) == left
    gemini_variables(order, {"HOME": str(home)})
    assert caplog.text.count("removed crew's server") == 1


def test_a_server_of_that_name_that_a_person_wrote_stays(order, home, theirs):
    text = '{"mcpServers": {"crew": {"command": "mine"}}}'
    theirs.write_text(text)
    gemini_variables(order, {"HOME": str(home)})
    assert theirs.read_text() == text


def test_a_link_in_place_of_the_folder_or_the_settings_leads_crew_nowhere(
    order, home, ours, tmp_path
):
    target = tmp_path / "target"
    target.mkdir()
    (target / "settings.json").write_text("precious")
    folder = own_home(order) / ".gemini"
    folder.parent.mkdir(parents=True)
    folder.symlink_to(target)
    gemini_variables(order, {"HOME": str(home)})
    (folder / "settings.json").unlink()
    (folder / "settings.json").symlink_to(target / "settings.json")
    gemini_variables(order, {"HOME": str(home)})
    assert [file.name for file in target.iterdir()] == ["settings.json"]
    assert (target / "settings.json").read_text() == "precious"
    assert ours()["security"] == {"folderTrust": {"enabled": True}}


POINTS = [
    f"agents.{name}.{when}"
    for name in ("own_home", "own_settings", "remove_former_tools")
    for when in ("before", "after")
]

MAKE = """
import os, sys
from pathlib import Path
from crew.agents.adapter import StepOrder
from crew.agents.gemini.gemini_home import gemini_variables
order = StepOrder(key="k", agent="A", kind="gemini", worktree=Path("/w"), prompt="", session="s",
                  resume=False, log=Path(sys.argv[1]))
gemini_variables(order, {"HOME": sys.argv[2]})
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_is_made_good_by_the_next_start(order, home, theirs, ours, point):
    theirs.write_text(json.dumps({"ui": {"theme": "x"}, "mcpServers": {"crew": CREW_TOOLS}}))
    command = [sys.executable, "-c", MAKE, str(order.log), str(home)]
    env = {**os.environ, "CREW_CRASH_AT": point}
    assert subprocess.run(command, env=env, timeout=60, check=False).returncode == -9
    assert read_settings(theirs)["ui"] == {"theme": "x"}
    subprocess.run(command, timeout=60, check=True)
    assert read_settings(theirs) == {"ui": {"theme": "x"}}
    assert ours()["ui"] == {"theme": "x"}
    assert (own_home(order) / ".gemini" / "tmp").is_symlink()


@pytest.mark.skipif(sys.platform == "darwin", reason="the login is bound to the person's folder")
def test_claudes_first_questions_are_answered_beside_the_persons_file(order, home):
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text("{}")
    (home / ".claude.json").write_text('{"theme":"light","mine":1}')
    answers = merged_settings(()).agents.named("claude").first_run
    found = claude_variables(order, {"HOME": str(home)}, answers)
    folder = own_home(order) / ".claude"
    assert found == {"CLAUDE_CONFIG_DIR": str(folder)}
    assert (home / ".claude.json").read_text() == '{"theme":"light","mine":1}'
    assert json.loads((folder / ".claude.json").read_text()) == {
        "theme": "light",
        "mine": 1,
        "hasCompletedOnboarding": True,
        "projects": {str(order.worktree): {"hasTrustDialogAccepted": True}},
    }
    assert (folder / "settings.json").readlink() == home / ".claude" / "settings.json"
