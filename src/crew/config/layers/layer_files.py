"""The paths of the config files and their displayed names."""

import os
from collections.abc import Mapping
from pathlib import Path

BUILT_IN_FILES = tuple(
    Path(__file__).parent.with_name(name) for name in ("defaults.toml", "agents.toml")
)


RUNTIME = ".crew/config.runtime.toml"
"""The file that crew itself writes."""


def layer_files(
    repo_root: Path | None, environ: Mapping[str, str] | None = None
) -> dict[str, Path]:
    """The files by their displayed names. A later file wins."""
    environ = os.environ if environ is None else environ
    files = {}
    if (folder := user_folder(environ)) is not None:
        for file in ("config.toml", "config.override.toml"):
            files[_short(folder / file, environ.get("HOME", ""))] = folder / file
    if repo_root is not None:
        for file in (".crew.toml", ".crew/config.toml", RUNTIME):
            files[file] = repo_root / file
    return files


def user_folder(environ: Mapping[str, str]) -> Path | None:
    """The path of the user's own config, below XDG_CONFIG_HOME or ~/.config."""
    for name, below in (("XDG_CONFIG_HOME", "crew"), ("HOME", ".config/crew")):
        if environ.get(name, "").startswith("/"):
            return Path(environ[name]) / below
    return None


def _short(path: Path, home: str) -> str:
    is_below = home.startswith("/") and path.is_relative_to(home)
    return f"~/{path.relative_to(home)}" if is_below else str(path)
