"""The files of a repository with which an agent's program starts other programs.

An agent reads the repository's instructions and skills anyway. Hooks, servers and plugins are
different: they run at once. They do so only if a person has approved each such file as it is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from crew.config.trust.approvals import NOTHING, Approval
from crew.domain.kernel.adapter_names import AdapterName
from crew.system.foreign_files import NotBelieved, read_foreign

MOST_BYTES = 1_000_000
MOST_FILES = 200

_CODEX = (".codex",)
PROJECT_SETTINGS: Mapping[AdapterName, tuple[str, ...]] = {
    "claude": (".claude/settings.json", ".mcp.json"),
    "codex": _CODEX,
    "codex-exec": _CODEX,
    "opencode": (
        *("opencode.json", "opencode.jsonc"),
        *(".opencode/opencode.json", ".opencode/opencode.jsonc"),
        *(".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools"),
    ),
    "gemini": (".gemini", ".env"),
}
"""Files and folders by adapter; a folder stands for all files in it."""

ALL_PROJECT_SETTINGS = tuple(
    dict.fromkeys(name for names in PROJECT_SETTINGS.values() for name in names)
)


def project_settings(adapter: str) -> tuple[str, ...]:
    """The files of an adapter's program; an agent with ACP may be any of these programs."""
    if adapter == "acp":
        return ALL_PROJECT_SETTINGS
    return PROJECT_SETTINGS.get(adapter, ())  # type: ignore[call-overload, no-any-return]


def project_contents(folder: Path, names: Iterable[str]) -> dict[str, bytes | None]:
    """The files among these names with their contents; None for what crew does not read."""
    files = [path for name in names for path in _files(folder / name)]
    contents = {str(path.relative_to(folder)): _content(path) for path in files[:MOST_FILES]}
    return contents if len(files) <= MOST_FILES else {**contents, "…": None}


def unapproved_files(
    folder: Path, names: Iterable[str], load_approvals: Callable[[], Mapping[str, Approval]]
) -> tuple[str, ...]:
    """Those of these files in the folder that no person has approved as they are."""
    contents = project_contents(folder, names)
    approvals = load_approvals() if contents else {}
    return tuple(
        name
        for name, content in contents.items()
        if content is None or not approvals.get(name, NOTHING).approves(content)
    )


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or the files in the folder. A link is one file, wherever it leads."""
    if path.is_dir() and not path.is_symlink():
        found = (one for one in path.rglob("*") if "node_modules" not in one.parts)
        yield from sorted(one for one in found if one.is_symlink() or not one.is_dir())
    elif path.is_symlink() or path.exists():
        yield path


def _content(path: Path) -> bytes | None:
    try:
        return read_foreign(path, max_bytes=MOST_BYTES)
    except (OSError, NotBelieved):
        return None
