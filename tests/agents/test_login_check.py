"""Whether a CLI has a login is found out from its own status or its files."""

import json

import pytest

from crew.agents.adapter import AgentSpec
from crew.agents.errors.login_check import check_login


@pytest.fixture
def check(tmp_path):
    """Check a CLI whose program prints this and exits so."""

    def check(adapter, printed="", code=0, *, args=(), stream=1, **env):
        program = tmp_path / adapter
        program.write_text(f"#!/bin/sh\ncat >&{stream} <<'END'\n{printed}\nEND\nexit {code}\n")
        program.chmod(0o755)
        spec = AgentSpec(name=adapter, adapter=adapter, command=str(program), args=args)
        found = check_login(spec, {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **env})
        return found.is_there

    return check


def test_claude_prints_its_own_status(check):
    assert check("claude", '{"loggedIn": true, "authMethod": "api_key"}') is True
    assert check("claude", '{"loggedIn": false}', 1) is False
    assert check("claude", "error: unknown command 'auth'", 1) is None


def test_codex_has_a_login_of_its_own_unless_another_provider_is_configured(check, tmp_path):
    assert check("codex", "Logged in using ChatGPT") is True
    assert check("codex", "Not logged in", 1, stream=2) is False
    assert check("codex", "a panic", 101) is None
    assert check("codex", "Not logged in", 1, args=("-c", "model_provider=mine")) is None
    assert check("codex-exec", "Not logged in", 1, CODEX_API_KEY="x") is True
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('model_provider = "mine"')
    assert check("codex", "Not logged in", 1) is None


def test_gemini_has_a_key_or_an_account(check, tmp_path):
    assert check("gemini") is False
    assert check("gemini", GEMINI_API_KEY="x") is True
    assert check("gemini", GOOGLE_GENAI_USE_VERTEXAI="true") is None
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/oauth_creds.json").write_text('{"access_token": "x"}')
    assert check("gemini") is True


def test_opencode_may_work_without_a_login(check, tmp_path):
    assert check("opencode") is None
    assert check("opencode", OPENROUTER_API_KEY="x") is True
    (tmp_path / ".local/share/opencode").mkdir(parents=True)
    (tmp_path / ".local/share/opencode/auth.json").write_text(json.dumps({"anthropic": {}}))
    assert check("opencode") is True


def test_of_any_other_program_nothing_is_known(check):
    assert check("command") is None
