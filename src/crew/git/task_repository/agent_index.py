"""Reads the index of a task's own repository as data.

crew's own index decides which files changed, because the agent's could hide them. Only until crew's
index matches HEAD, the numbers in a plain index of the agent count. The agent's index supplies the
names that it stages or skips. Git reads a copy of it, with crew's git dir.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask
from crew.git.hardening import stamp_of
from crew.git.task_repository.agent_refs import agent_git_of, read_bytes
from crew.git.worktrees.index_file import Index, load_marks, parse_index, read_index

LARGEST_INDEX = 500_000_000
_CHECKSUMS = (("sha1", 20), ("sha256", 32))

_sound: dict[Path, tuple[tuple[int, ...], ...]] = {}
"""The stamp of each index that was whole."""


@frozen
class Staged:
    """The names in an agent's index that differ from HEAD, and those that may be missing."""

    changed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def is_committed(crew_git: Path, tree: str) -> bool:
    """Whether the agent's index is that of this tree, without marks; false if unsure."""
    index = _parsed(crew_git)
    return index is not None and index.is_plain and index.tree == tree


def staged_in(path: Path, crew_git: Path) -> Staged:
    """The names that the agent staged or skips; none if its index cannot be read."""
    own = read_index(crew_git)
    if own is not None and own.tree and is_committed(crew_git, own.tree):
        return Staged()
    with copied_index(crew_git) as copy:
        if copy is None:
            return Staged()
        env = {"GIT_DIR": str(crew_git), "GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(copy)}
        args = ("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
        listed = ask(path, *args, env=env)
        marks = load_marks(path, _parsed(crew_git), env)
    names = os.fsdecode(listed.out).split("\0") if listed.code == 0 else []
    return Staged(changed=tuple(dict.fromkeys(filter(None, names))), skipped=marks.skipped)


def staged_files(path: Path, copy: Path, env: Mapping[str, str]) -> bytes:
    """The entries of a copied index, without those in conflict, for `update-index --index-info`."""
    listed = ask(path, "ls-files", "-z", "--stage", env={**env, "GIT_INDEX_FILE": str(copy)})
    entries = listed.out.split(b"\0") if listed.code == 0 else []
    return b"".join(entry + b"\0" for entry in entries if b" 0\t" in entry)


@contextmanager
def copied_index(crew_git: Path, name: str = "index") -> Iterator[Path | None]:
    """A copy of an index file of the agent, in crew's git dir; None if there is no sound one."""
    raw = read_bytes(agent_git_of(crew_git) / name, most=LARGEST_INDEX)
    if raw is None or not is_sound(raw):
        yield None
        return
    copy = crew_git / f"crew-index-{uuid.uuid4().hex}"
    try:
        copy.write_bytes(raw)
        yield copy
    finally:
        copy.unlink(missing_ok=True)
        copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)


def has_sound_index(agent_git: Path) -> bool:
    """Whether the index of a task's own repository is whole, or not there yet."""
    file = agent_git / "index"
    stamp = stamp_of((file,))
    if _sound.get(agent_git) == stamp:
        return True
    raw = read_bytes(file, most=LARGEST_INDEX)
    found = is_sound(raw) if raw is not None else not os.path.lexists(file)
    if found:
        _sound[agent_git] = stamp
    return found


def is_sound(raw: bytes) -> bool:
    """Whether an index ends in its own checksum, or in zeros, as git writes it on request."""
    return raw.startswith(b"DIRC") and any(_is_signed(raw, *one) for one in _CHECKSUMS)


def _is_signed(raw: bytes, method: str, size: int) -> bool:
    import hashlib  # noqa: PLC0415 - slow to load

    end = raw[-size:]
    return not end.strip(b"\0") or hashlib.new(method, raw[:-size]).digest() == end


def _parsed(crew_git: Path) -> Index | None:
    raw = read_bytes(agent_git_of(crew_git) / "index", most=LARGEST_INDEX)
    return None if raw is None else parse_index(raw)


def missing(path: Path, names: Iterable[str]) -> frozenset[str]:
    """Those of the names that the worktree does not have."""
    return frozenset(name for name in names if not os.path.lexists(path / name))
