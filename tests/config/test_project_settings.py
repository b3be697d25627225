"""Which files of a repository must be approved before an agent's program loads its settings."""

import os

import pytest

from crew.config.trust.approvals import Approval, content_hash
from crew.config.trust.project_settings import (
    MOST_FILES,
    project_settings,
    unapproved_files,
)


@pytest.fixture
def trusts(tmp_path):
    def trusts(adapter="claude", **approved):
        found = {
            name: Approval(hashes=(content_hash(text.encode()),)) for name, text in approved.items()
        }
        return not unapproved_files(tmp_path, project_settings(adapter), lambda: found)

    return trusts


def write(folder, name, text="x"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_repository_without_such_files_is_trusted(trusts, tmp_path):
    write(tmp_path, "CLAUDE.md")
    write(tmp_path, ".claude/skills/a/SKILL.md")
    assert trusts()


def test_each_file_must_be_approved_as_it_is(trusts, tmp_path):
    write(tmp_path, ".claude/settings.json", "hooks")
    assert not trusts()
    assert trusts(**{".claude/settings.json": "hooks"})
    assert not trusts(**{".claude/settings.json": "other hooks"})
    write(tmp_path, ".mcp.json", "servers")
    assert not trusts(**{".claude/settings.json": "hooks"})


def test_an_agent_with_acp_may_be_any_program(trusts, tmp_path):
    write(tmp_path, ".gemini/settings.json", "servers")
    assert not trusts("acp")
    assert trusts("acp", **{".gemini/settings.json": "servers"})
    assert trusts("command")


def test_a_folder_stands_for_all_files_in_it(trusts, tmp_path):
    write(tmp_path, ".codex/config.toml", "a")
    write(tmp_path, ".codex/deep/er.toml", "b")
    assert not trusts("codex", **{".codex/config.toml": "a"})
    assert trusts("codex", **{".codex/config.toml": "a", ".codex/deep/er.toml": "b"})


def test_what_crew_does_not_read_is_never_approved(trusts, tmp_path):
    write(tmp_path, "elsewhere", "hooks")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").symlink_to(tmp_path / "elsewhere")
    assert not trusts(**{".claude/settings.json": "hooks"})
    (tmp_path / ".mcp.json").symlink_to("nowhere")
    assert not trusts()
    os.mkfifo(tmp_path / ".env")
    assert not trusts("gemini")


def test_a_flood_of_files_is_not_approved(trusts, tmp_path):
    approved = {f".codex/{number}": "x" for number in range(MOST_FILES + 1)}
    for name in approved:
        write(tmp_path, name)
    assert not trusts("codex", **approved)
