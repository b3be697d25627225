"""A home of a task's own for a CLI whose settings have no flags: links, and settings of crew's own.

The person's files are reached through links. A settings file to which crew adds something is a
copy, so that the person's own file stays as it is.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.domain.kernel.text import as_json
from crew.system.atomic_files import has_content, write_file
from crew.system.crash_points import effect
from crew.system.private_files import make_private_folder

_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)

Settings = Mapping[str, Any]


def own_home(order: StepOrder) -> Path:
    """The folder of this task's own home, next to its log. It may not exist yet."""
    return _home_beside(order.log)


@lru_cache(maxsize=1000)
def _home_beside(log: Path) -> Path:
    return log.parent / "homes" / log.stem


def read_settings(file: Path) -> dict[str, Any]:
    """The settings in a person's file, which may have comments; none if it does not exist."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    values = json.loads(_TEXT_OR_COMMENT.sub(lambda found: found[1] or "", text) or "{}")
    if not isinstance(values, dict):
        raise TypeError("expected an object")
    return values


def merged(settings: Settings, added: Settings) -> dict[str, Any]:
    """The settings with others added, which win. Tables are merged."""
    result = dict(settings)
    for name, value in added.items():
        known = result.get(name)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[name] = merged(known, value) if both else value  # type: ignore[arg-type]
    return result


@effect("agents.own_home")
def link_parts(folder: Path, theirs: Path, names: Iterable[str]) -> None:
    """Link the person's files into the folder. What a program put there itself stays.

    The agent can write in its home. A link that it put in the folder's place could lead anywhere.
    """
    if folder.is_symlink():
        folder.unlink()
    make_private_folder(folder)
    for name in names:
        link, target = folder / name, theirs / name
        if link.is_symlink() and link.readlink() != target:
            link.unlink()
        if target.exists() and not link.is_symlink() and not link.exists():
            link.symlink_to(target)


@effect("agents.own_settings")
def write_settings(file: Path, settings: Settings) -> None:
    content = as_json(settings, indent=2).encode() + b"\n"
    if file.is_symlink():
        file.unlink()
    if not has_content(file, content):
        make_private_folder(file.parent)
        write_file(file, content, mode=0o600)
