"""The four CLIs as the tests use them: what points each at a script, and how tools are named."""

import json
from collections.abc import Callable, Mapping

from crew.agents.codex.codex_flags import toml
from crew.domain.kernel.frozen import frozen
from real_clis.scripted_model import Say, Tool

QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def claude_env(url: str) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-ant-dummy", "ANTHROPIC_BASE_URL": url}


def codex_flags(url: str) -> list[str]:
    provider = {
        "name": "fake",
        "base_url": f"{url}/v1",
        "wire_api": "responses",
        "env_key": "FAKE_KEY",
        "request_max_retries": 1,
        "stream_max_retries": 1,
    }
    settings = {f"model_providers.fake.{name}": value for name, value in provider.items()}
    settings |= {"model_provider": "fake", "model": "fake-1"}
    return [word for name, value in settings.items() for word in ("-c", f"{name}={toml(value)}")]


def opencode_env(url: str) -> dict[str, str]:
    model = {"limit": {"context": 200_000, "output": 8_000}, "cost": {"input": 3, "output": 15}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"fake-1": model},
    }
    content = {
        "provider": {"fake": provider},
        "model": "fake/fake-1",
        "small_model": "fake/fake-1",
        "share": "disabled",
    }
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(content),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "NPM_CONFIG_REGISTRY": url,  # it looks for packages that its own settings do not need
    }


def gemini_env(url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_MODEL": "gemini-2.5-pro",
    }


def _no_flags(_url: str) -> list[str]:
    return []


def _fake_key(_url: str) -> dict[str, str]:
    return {"FAKE_KEY": "dummy"}


@frozen
class Cli:
    """One CLI. `env` and `flags` point it at the script below an address."""

    name: str
    shell: str  # the tool that runs commands
    command: str  # the field of that tool with the command
    signal: str  # crew's tool `signal-back`, as the model calls it
    env: Callable[[str], Mapping[str, str]]
    flags: Callable[[str], list[str]] = _no_flags

    def run(self, command: str) -> Say:
        """The model has its CLI run this command."""
        values = {self.command: command}
        if self.name in {"claude", "opencode"}:
            values["description"] = "a command"
        return Say(tools=(Tool(name=self.shell, input=values),))

    def complete(self, summary: str) -> Say:
        """The model signals that its work is complete."""
        values = {"signal": "complete", "summary": summary}
        return Say(tools=(Tool(name=self.signal, input=values),))


CLIS = {
    cli.name: cli
    for cli in (
        Cli(
            name="claude",
            shell="Bash",
            command="command",
            signal="mcp__crew__signal-back",
            env=claude_env,
        ),
        Cli(
            name="codex",
            shell="exec_command",
            command="cmd",
            signal="mcp__crew/signal_back",
            env=_fake_key,
            flags=codex_flags,
        ),
        Cli(
            name="opencode",
            shell="bash",
            command="command",
            signal="crew_signal-back",
            env=opencode_env,
        ),
        Cli(
            name="gemini",
            shell="run_shell_command",
            command="command",
            signal="mcp_crew_signal-back",
            env=gemini_env,
        ),
    )
}
