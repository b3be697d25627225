"""Checks whether an agent CLI has a login, on this machine alone: no request, no token is spent."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from crew.agents.adapter import AgentSpec
from crew.domain.kernel.frozen import frozen
from crew.system.processes.process import output_of

PATIENCE_S = 60.0  # a CLI takes half a second, on a busy machine much longer

Environment = Mapping[str, str]

_NO_HOST = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
"""Claude Code connects to its API at every start, in advance; nothing listens at this address."""


@frozen
class Login:
    """`is_there` is None if only a request could tell. A login may still be wrong or expired."""

    is_there: bool | None
    words: str


UNKNOWN = Login(is_there=None, words="its login cannot be checked here")
MISSING = Login(is_there=False, words="is not logged in")


def check_login(spec: AgentSpec, environment: Environment) -> Login:
    check = _CHECKS.get(spec.adapter)
    return UNKNOWN if check is None else check(spec, environment)


def _claude(spec: AgentSpec, environment: Environment) -> Login:
    argv = (spec.command or "claude", "auth", "status")
    env = {**_NO_HOST, **environment, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    _code, output, _errors = output_of(argv, stdin=b"", timeout_s=PATIENCE_S, env=env)
    status = _json(output)
    if "loggedIn" not in status:
        return UNKNOWN
    return _found(str(status.get("authMethod"))) if status["loggedIn"] else MISSING


def _codex(spec: AgentSpec, environment: Environment) -> Login:
    if spec.adapter == "codex-exec" and environment.get("CODEX_API_KEY"):
        return _found("CODEX_API_KEY")
    if any("model_provider" in word for word in (*spec.system_args, *spec.args)):
        return UNKNOWN
    if "model_provider" in _toml(_folder(environment, "CODEX_HOME", ".codex") / "config.toml"):
        return UNKNOWN
    argv = (spec.command or "codex", "login", "status")
    code, output, errors = output_of(argv, stdin=b"", timeout_s=PATIENCE_S, env=environment)
    if code == 0:
        return _found("codex login")
    return MISSING if b"Not logged in" in output + errors else UNKNOWN


def _opencode(_spec: AgentSpec, environment: Environment) -> Login:
    """It also has models that need no login, so a missing one is no error."""
    data = _folder(environment, "XDG_DATA_HOME", ".local/share")
    if _json(_read(data / "opencode" / "auth.json")):
        return _found("opencode auth login")
    keys = [name for name, value in environment.items() if name.endswith("_API_KEY") and value]
    return _found(keys[0]) if keys else UNKNOWN


def _gemini(_spec: AgentSpec, environment: Environment) -> Login:
    folder = _folder(environment, "GEMINI_CLI_HOME", "") / ".gemini"
    if key := _first_set(environment, ("GEMINI_API_KEY", "GOOGLE_API_KEY")):
        return _found(key)
    if b"_API_KEY=" in _read(folder / ".env"):
        return _found(".gemini/.env")
    if _json(_read(folder / "oauth_creds.json")):
        return _found("its Google account")
    return UNKNOWN if environment.get("GOOGLE_GENAI_USE_VERTEXAI") else MISSING


_CHECKS: Mapping[str, Callable[[AgentSpec, Environment], Login]] = {
    "claude": _claude,
    "codex": _codex,
    "codex-exec": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}


def _found(where: str) -> Login:
    return Login(is_there=True, words=f"has a login ({where})")


def _first_set(environment: Environment, names: Iterable[str]) -> str:
    return next((name for name in names if environment.get(name)), "")


def _folder(environment: Environment, variable: str, default: str) -> Path:
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get(variable) or home / default)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _json(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(file).decode())
    except ValueError:
        return {}
