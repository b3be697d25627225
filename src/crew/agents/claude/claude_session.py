"""Locks a session of Claude Code, since two steps at once silently lose messages."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.domain.kernel.errors import Conflict, CrewError
from crew.system.crash_points import effect
from crew.system.file_locks import open_lock, try_lock, unlock
from crew.system.private_files import make_private_folder
from crew.system.processes.ownership import find_process


@contextlib.contextmanager
def held_session(order: StepOrder, env: Mapping[str, str]) -> Iterator[None]:
    """Hold the session of this step. Raises while another step or a terminal has it."""
    path = _lock_file(order)
    try:
        file = _lock(path)
    except OSError as error:
        raise CrewError(
            f"the lock {path} cannot be written: {error.strerror}",
            hint="make room on the disk or fix the folder's permissions, then run it again",
        ) from error
    try:
        if file is None:
            raise _in_use(order, "another step")
        if pid := _open_elsewhere(order.session, env):
            raise _in_use(order, f"the process {pid}")
        yield
    finally:
        if file is not None:
            unlock(file)
            os.close(file)


def _in_use(order: StepOrder, by: str) -> Conflict:
    return Conflict(
        f"the session {order.session} is in use by {by}",
        hint="wait until that process has ended, or start a new session",
    )


def _lock_file(order: StepOrder) -> Path:
    folder = Path(order.env.get("CREW_STATE_DIR") or order.log.parent / "sessions")
    return folder / f"claude-{order.session}.lock"


@effect("agents.lock_session")
def _lock(path: Path) -> int | None:
    """Lock the file. A killed crew leaves no lock, since closing the file ends it."""
    make_private_folder(path.parent)
    file = open_lock(path, mode=0o600)
    if try_lock(file):
        return file
    os.close(file)
    return None


def _open_elsewhere(session: str, env: Mapping[str, str]) -> int | None:
    """The process that has it open without our lock, from the files that Claude writes."""
    for entry in session_entries(env):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if entry["sessionId"] == session and _is_alive(entry):
                return int(entry["pid"])
    return None


def session_entries(env: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """What each running Claude Code reports about itself: its session, its process, its status."""
    home = env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude"
    for file in Path(home, "sessions").glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            entry = json.loads(file.read_bytes())
            if isinstance(entry, dict):
                yield entry


def _is_alive(entry: Mapping[str, Any]) -> bool:
    """Whether the process is alive. A pid of another namespace, as in a sandbox, is not."""
    namespace = Path("/proc/self/ns/pid").readlink()
    if not str(entry["pidDomain"]).endswith(str(namespace)):
        return False
    found = find_process(int(entry["pid"]))
    return found is not None and found.started == int(entry["procStart"])
