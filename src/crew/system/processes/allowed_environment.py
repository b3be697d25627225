"""The environment of the processes that crew starts: an allow-list of the caller's.

All other variables are removed, above all secrets that reach beyond the worktree: `GITHUB_TOKEN`,
cloud keys, the socket of an ssh agent. An agent reads text from strangers, who may make it reveal
its secrets. The exception is the key of its model. An agent that needs more, such as AWS keys for
Claude on Bedrock, gets it from `env` in its configuration.
"""

from collections.abc import Mapping

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
        "GOOGLE_APPLICATION_CREDENTIALS",  # opens a whole cloud account, not only a model
        "CLAUDE_CODE_ENTRYPOINT",  # these two describe the session that crew was called from
        "CLAUDE_CODE_SSE_PORT",
    }
)


def allowed_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The part of the caller's environment that agents and gates may see."""
    return {name: caller[name] for name in caller if _is_allowed(name)}


def _is_allowed(name: str) -> bool:
    return name in ALLOWED or (name.startswith(ALLOWED_PREFIXES) and name not in KEPT_BACK)
