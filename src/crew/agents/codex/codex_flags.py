"""The command-line settings of every start of Codex: sandbox, trust, tools and model.

All are passed each time, since a resumed thread remembers none of them. Codex keeps its own sandbox
inside crew's: crew's contains processes and protects git's settings, but leaves the rest of the
disk writable.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

from crew.agents.adapter import AgentSpec, StepOrder
from crew.agents.instruction_files import instruction_file, instruction_text
from crew.system.foreign_files import NotBelieved

TOOLS_WITHIN_S = 60
"""A starting runner on a busy machine may need this long to serve its tools."""


def codex_flags(spec: AgentSpec, order: StepOrder) -> tuple[str, ...]:
    """The arguments of Codex. The agent's own come last, and the last one wins.

    An action beyond the sandbox fails and the model sees the error, unless the thread is opened
    with approval requests.
    """
    settings: dict[str, Any] = {
        "analytics.enabled": False,
        "allow_login_shell": False,  # it would reset PATH, and `crew` would not be found
        "projects": _Inline({str(order.worktree): _Inline({"trust_level": _trust(order)})}),
        "approval_policy": "never",
        "sandbox_mode": "workspace-write",
        "sandbox_workspace_write.writable_roots": [str(path) for path in git_folders(order)],
        "sandbox_workspace_write.network_access": spec.network,
        **({"model": spec.model} if spec.model else {}),
        **_mcp(order),
    }
    flags = [word for name, value in settings.items() for word in ("-c", f"{name}={toml(value)}")]
    # Both would contact hosts of their own.
    quiet = ("--disable", "plugins", "--disable", "apps")
    return (*flags, *quiet, *spec.system_args, *spec.args)


def _trust(order: StepOrder) -> str:
    return "trusted" if order.trusts_project else "untrusted"


def developer_instructions(spec: AgentSpec, order: StepOrder) -> str:
    """crew's instructions. Without trust Codex reads no AGENTS.md, so they include it."""
    parts = (spec.system_prompt, "" if order.trusts_project else _agents_md(order.worktree))
    return "\n\n".join(part.rstrip() for part in parts if part)


def _agents_md(worktree: Path) -> str:
    """The repository's instructions, in the words with which Codex passes them on."""
    for name in ("AGENTS.override.md", "AGENTS.md"):
        with contextlib.suppress(OSError, NotBelieved):
            if (file := instruction_file(worktree, name)) is None:
                continue
            told = instruction_text(file)
            return f"# AGENTS.md instructions for {worktree}\n\n{told}" if told else ""
    return ""


def configured(spec: AgentSpec, name: str, default: str) -> str:
    """The value of a setting in the agent's own arguments. The last one wins."""
    arguments = (*spec.system_args, *spec.args)
    prefix = f"{name}="
    values = [
        word.removeprefix(prefix).strip("\"' ") for word in arguments if word.startswith(prefix)
    ]
    return values[-1] if values else default


def git_folders(order: StepOrder) -> tuple[Path, ...]:
    """The folders that a commit writes. Codex protects `.git` as a whole.

    A repository of its own may be changed; of a linked worktree, not its settings and hooks.
    """
    common = order.env.get("CREW_GIT_DIR", "")
    own = _linked_git_dir(order.worktree)
    if not common or own is None:
        return ()
    if own.name == "repository":
        return (own,)
    return (own, *(Path(common) / name for name in ("objects", "refs", "logs")))


def toml(value: Any) -> str:
    """A value in the syntax of Codex's command line."""
    if isinstance(value, _Inline):
        pairs = ",".join(f"{toml(name)}={toml(one)}" for name, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{','.join(toml(one) for one in value)}]"
    # JSON syntax is valid TOML otherwise, except for one character that TOML escapes.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class _Inline(dict[str, Any]):
    """A table that is written on one line."""


def _mcp(order: StepOrder) -> dict[str, Any]:
    """crew's own tools. The token stays in the environment, which `ps` does not show."""
    url = order.env.get("CREW_MCP_URL", "")
    if not url:
        return {}
    return {
        "mcp_servers.crew.url": url,
        "mcp_servers.crew.bearer_token_env_var": "CREW_TOKEN",
        "mcp_servers.crew.default_tools_approval_mode": "approve",
        "mcp_servers.crew.startup_timeout_sec": TOOLS_WITHIN_S,
    }


def _linked_git_dir(worktree: Path) -> Path | None:
    """The git dir of a linked worktree; None for a main checkout."""
    try:
        pointer = (worktree / ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    word, _, path = pointer.partition(":")
    return worktree / path.strip() if word == "gitdir" else None
