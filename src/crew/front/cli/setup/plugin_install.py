"""Writes and removes the files of a plugin, and touches nothing that a person wrote.

A list in the plugin's folder has the hash of each file that crew wrote there. A file with another
content is the person's.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import Conflict
from crew.front.cli.setup.codex_entry import with_entry, without_entry
from crew.front.cli.setup.plugin_files import (
    codex_home,
    own_program,
    plugin_files,
    plugin_folder,
)
from crew.system.atomic_files import has_content, rewrite_file, write_file
from crew.system.crash_points import effect

LIST = ".crew-plugin.json"

Changes = dict[Path, str]


def planned_files(assistant: str, environ: Mapping[str, str]) -> dict[Path, str]:
    """The content of each file after an install; raises if one of them is the person's."""
    folder = plugin_folder(assistant, environ)
    files = {folder / name: text for name, text in plugin_files(assistant).items()}
    _refuse_foreign(folder, files, assistant)
    if assistant == "codex":
        settings = codex_home(environ) / "config.toml"
        files[settings] = with_entry(settings, own_program())
    return files


def install_plugin(assistant: str, environ: Mapping[str, str]) -> Changes:
    """Write the files and return what changed; a repeat changes nothing."""
    files = planned_files(assistant, environ)
    folder = plugin_folder(assistant, environ)
    own = {path: text for path, text in files.items() if path.is_relative_to(folder)}
    known = _listed(folder)
    hashes = {str(path.relative_to(folder)): _hash(text.encode()) for path, text in own.items()}
    # Until all are written, both the old and the new content are crew's.
    both = {name: [*known.get(name, []), one] for name, one in hashes.items()}
    _write_list(folder, {**known, **both})
    changes = {path: _written(path, text, is_own=path in own) for path, text in files.items()}
    gone = {folder / name: _removed(folder, name, known) for name in known if name not in hashes}
    _write_list(folder, {name: [one] for name, one in hashes.items()})
    return changes | gone


def uninstall_plugin(assistant: str, environ: Mapping[str, str]) -> Changes:
    """Remove what crew wrote, and return what changed; a file that a person changed is kept."""
    folder = plugin_folder(assistant, environ)
    settings = codex_home(environ) / "config.toml"
    left = without_entry(settings) if assistant == "codex" else None
    known = _listed(folder)
    changes = {folder / name: _removed(folder, name, known) for name in known}
    _remove(folder / LIST)
    for place in sorted(folder.rglob("*"), reverse=True):
        _remove_empty(place)
    _remove_empty(folder)
    return changes if left is None else {**changes, settings: _without_entry(settings, left)}


def _without_entry(settings: Path, text: str) -> str:
    if text.strip() or settings.is_symlink():
        change = _written(settings, text, is_own=False)
        return "kept" if change == "unchanged" else change
    _remove(settings)
    return "removed"


def _refuse_foreign(folder: Path, files: Mapping[Path, str], assistant: str) -> None:
    known = _listed(folder)
    if folder.exists() and not known and any(folder.iterdir()):
        raise _not_ours(folder, assistant)
    for path, text in files.items():
        hashes = {*known.get(str(path.relative_to(folder)), []), _hash(text.encode())}
        if path.exists() and _hash(path.read_bytes()) not in hashes:
            raise _not_ours(path, assistant)


def _not_ours(path: Path, assistant: str) -> Conflict:
    return Conflict(
        f"{path} exists, and crew did not write it like this",
        hint=f"move it away, then repeat `crew plugin install {assistant}`",
        code="plugin_file_not_ours",
    )


def _listed(folder: Path) -> dict[str, list[str]]:
    """The hashes of the files that crew wrote; empty without a list."""
    try:
        found: Any = json.loads((folder / LIST).read_bytes())
    except (OSError, ValueError):
        return {}
    files = found.get("files") if isinstance(found, dict) else None
    return files if isinstance(files, dict) else {}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@effect("front.list_plugin")
def _write_list(folder: Path, files: Mapping[str, list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / LIST, json.dumps({"files": files}, indent=2).encode(), mode=0o644)


@effect("front.write_plugin")
def _written(path: Path, text: str, *, is_own: bool) -> str:
    content = text.encode()
    if has_content(path, content):
        return "unchanged"
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_own:
        write_file(path, content, mode=0o644)
    else:
        rewrite_file(path, content, mode=0o600)
    return "written"


def _removed(folder: Path, name: str, known: Mapping[str, list[str]]) -> str:
    path = folder / name
    if not path.is_relative_to(folder) or ".." in path.parts or not path.is_file():
        return "absent"
    if _hash(path.read_bytes()) not in known[name]:
        return "kept"
    _remove(path)
    return "removed"


@effect("front.remove_plugin")
def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
