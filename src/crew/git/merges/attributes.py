"""Writes the `.gitattributes` of a commit to a directory, so that a merge can use them.

`git merge-tree` reads attributes only from a worktree. Without one, it silently ignores
`merge=union` and `-merge`.
"""

import os
import shutil
import uuid
from pathlib import Path

from crew.git.git_command import git
from crew.git.repository import Repository
from crew.system.crash_points import effect

_Attributes = tuple[tuple[str, str], ...]
"""Each file's path and blob id."""

_last: dict[Path, tuple[str, _Attributes]] = {}


def attributes_worktree(repo: Repository, commit: str) -> Path:
    """A directory with only the attribute files of a commit. Equal sets share one directory."""
    import hashlib  # noqa: PLC0415 - slow to load; only a merge needs it

    found = _attributes(repo, commit)
    name = hashlib.sha256(
        "\0".join(f"{p}\0{b}" for p, b in found).encode("utf-8", "surrogateescape")
    )
    folder = repo.common_dir / "crew-attributes" / name.hexdigest()[:16]
    if not folder.is_dir():
        _write(repo, folder, found)
    return folder


def _attributes(repo: Repository, commit: str) -> _Attributes:
    """List the files in full once, then only the difference from the last commit."""
    known = _last.get(repo.common_dir)
    if known is None:
        listing = git(repo.common_dir, "ls-tree", "-r", "-z", "--full-tree", commit)
        found = dict(_entry(line) for line in listing.split("\0") if _is_attributes(line))
    elif known[0] == commit:
        return known[1]
    else:
        found = _apply_changes(repo, dict(known[1]), known[0], commit)
    _last[repo.common_dir] = (commit, tuple(sorted(found.items())))
    return _last[repo.common_dir][1]


def _apply_changes(repo: Repository, found: dict[str, str], old: str, new: str) -> dict[str, str]:
    args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    raw = git(repo.common_dir, *args, "--", ":(glob)**/.gitattributes")
    parts = raw.split("\0")
    for entry, path in zip(parts[::2], parts[1::2], strict=False):
        mode, blob = entry.split(" ")[1], entry.split(" ")[3]
        found.pop(path, None)
        if mode in {"100644", "100755"}:
            found[path] = blob
    return found


def _is_attributes(line: str) -> bool:
    return (
        line.endswith((".gitattributes",))
        and line.startswith("100")
        and (line.rpartition("\t")[2].rpartition("/")[2] == ".gitattributes")
    )


def _entry(line: str) -> tuple[str, str]:
    meta, _, path = line.partition("\t")
    return path, meta.split(" ")[2]


@effect("git.write_attributes")
def _write(repo: Repository, folder: Path, found: _Attributes) -> None:
    making = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    making.mkdir(parents=True)
    for path, blob in found:
        file = making / path
        file.parent.mkdir(parents=True, exist_ok=True)
        content = git(repo.common_dir, "cat-file", "blob", blob) + "\n"
        file.write_bytes(os.fsencode(content))
    try:
        making.rename(folder)
    except OSError:
        # Another process was faster and wrote the same content.
        shutil.rmtree(making, ignore_errors=True)
