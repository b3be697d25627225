"""What an agent's process inherits: an allow-list of the caller's environment, and its order.

Everything else stays behind, above all tokens that reach beyond the worktree: `GITHUB_TOKEN`, cloud
keys, an ssh agent's socket. An agent reads text that strangers wrote, so what it holds is what they
may get. The exception is the key of the model it talks to. Whoever needs more for an agent (AWS
keys for Claude on Bedrock, say) names it under `env` in that agent's configuration.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from crew.domain.effects import effect
from crew.domain.step import StepOrder

_PLACE_AND_LANGUAGE = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLORTERM NO_COLOR TMPDIR TEMP TMP"
)
_NETWORK = (
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy "
    "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE"
)
_TOOLS = (
    "VIRTUAL_ENV PYENV_ROOT UV_CACHE_DIR PIP_CACHE_DIR NVM_DIR NODE_PATH CARGO_HOME RUSTUP_HOME "
    "GOPATH GOROOT GOCACHE GOMODCACHE JAVA_HOME DISABLE_TELEMETRY DISABLE_AUTOUPDATER "
    "DISABLE_ERROR_REPORTING IS_SANDBOX"
)
_WHO_COMMITS = (
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL "
    "GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM"
)
_MODEL_KEYS = "OPENROUTER_API_KEY MISTRAL_API_KEY DEEPSEEK_API_KEY XAI_API_KEY GROQ_API_KEY"
ALLOWED = frozenset(
    f"{_PLACE_AND_LANGUAGE} {_NETWORK} {_TOOLS} {_WHO_COMMITS} {_MODEL_KEYS}".split()
)
ALLOWED_PREFIXES = (
    "LC_",
    "XDG_",
    "ANTHROPIC_",
    "CLAUDE_",
    "OPENAI_",
    "CODEX_",
    "GEMINI_",
    "GOOGLE_",
    "OPENCODE_",
)
KEPT_BACK = frozenset(
    {
        "GOOGLE_APPLICATION_CREDENTIALS",  # a key to a whole cloud account, not to a model
        "CLAUDE_CODE_ENTRYPOINT",  # these two describe the session that crew was called from
        "CLAUDE_CODE_SSE_PORT",
    }
)

# Git collects garbage in the background and could drop objects that nothing refers to yet.
_GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def agent_environment(
    order: StepOrder, *, extra: Mapping[str, str], caller: Mapping[str, str]
) -> dict[str, str]:
    """The complete environment of a step; later parts win: caller, git, the order, `extra`, CREW_.

    `crew` is found first on the path, in a folder that holds nothing else, so that it shadows
    neither the user's python nor anything beside it.
    """
    environment = {
        **allowed_environment(caller),
        **_GIT,
        "CREW_AGENT": order.agent,
        "CREW_WORKTREE": str(order.worktree),
        "CREW_PROMPT_FILE": str(prompt_file(order)),
        "CREW_SESSION": order.session,
        "CREW_DONE_WORD": order.done_word,
        **({"CREW_RESUME": "1"} if order.resume else {}),
        **extra,
        **order.env,
    }
    path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**environment, "PATH": f"{shim_folder(order)}:{path}"}


def allowed_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """What agents and gates may see of the caller's environment."""
    return {name: value for name, value in caller.items() if _is_allowed(name)}


def prompt_file(order: StepOrder) -> Path:
    """Where the step's prompt lies: beside its log, never in the worktree."""
    return order.log.with_name(f"{order.log.name}.prompt")


def shim_folder(order: StepOrder) -> Path:
    return order.log.parent / "bin"


def prepare_files(order: StepOrder) -> None:
    """Write the prompt and the `crew` that the agent will find."""
    _write(prompt_file(order), order.prompt, mode=0o600)
    _write(shim_folder(order) / "crew", _shim(), mode=0o755)


def _is_allowed(name: str) -> bool:
    return name in ALLOWED or (name.startswith(ALLOWED_PREFIXES) and name not in KEPT_BACK)


def _shim() -> str:
    # -P: the agent's folder must not come first where python looks for the package `crew`.
    start = "from crew.front.cli.main import main; main()"
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(start)} "$@"\n'


@effect("agents.write_file")
def _write(path: Path, text: str, *, mode: int) -> None:
    """Put a file in place in one move, unless it says so already: steps run side by side."""
    content = text.encode(errors="surrogateescape")
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(mode)
    fresh.replace(path)
