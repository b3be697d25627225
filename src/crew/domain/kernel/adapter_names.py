"""The names of the adapters."""

from typing import Literal, get_args

AdapterName = Literal[
    "command", "scripted", "claude", "codex", "codex-exec", "opencode", "gemini", "acp"
]
ADAPTERS: tuple[AdapterName, ...] = get_args(AdapterName)
