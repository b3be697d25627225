"""Small values next to facts and rows: settings, the agents' activity and the task index."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crew.domain.kernel.text import as_json
from crew.store.database import Database, translated, without_sync, without_waiting
from crew.system.crash_points import effect
from crew.system.full_disk import has_no_room

PAUSED = "paused"
"""The setting that has the reason why the runner starts nothing; empty or missing if it does."""

LAST_GATE = "last_gate/"
"""How the names of settings begin that have the last gate of a task."""

GATE = "gate/"
"""How the names of test slots begin in the table of activities; no agent's name has a slash."""


def setting(db: Database, name: str) -> str | None:
    with translated():
        found = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None


def paused_why(db: Database, folder: Path) -> str:
    """Why the runner starts nothing; empty if it does.

    On a full disk the runner cannot record the reason, so the disk of `.crew` is asked itself.
    """
    full = f"the disk of {folder} is full (free some space there)" if has_no_room(folder) else ""
    return setting(db, PAUSED) or full


@effect("store.set")
def keep_setting(db: Database, name: str, value: str) -> None:
    with translated():
        db.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (name, value))


@effect("store.first_set")
def first_setting(db: Database, name: str, value: str) -> str:
    """Store the value unless there is one already. Returns the stored value."""
    if (found := setting(db, name)) is not None:
        return found
    with translated():
        db.execute("INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)", (name, value))
        kept: str = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()[0]
    return kept


@effect("store.doing")
def keep_doing(db: Database, agent: str, text: str, *, at: float) -> None:
    """Store the current activity of an agent. It is not a fact: the next one replaces it."""
    with translated(), without_sync(db):
        db.execute(
            "INSERT OR REPLACE INTO doing (agent, at, words) VALUES (?, ?, ?)", (agent, at, text)
        )


def all_doing(db: Database) -> dict[str, str]:
    with translated():
        found = db.execute("SELECT agent, CAST(words AS BLOB) FROM doing").fetchall()
    return {agent: words.decode("utf-8", "replace") for agent, words in found}


class RunningGate(NamedTuple):
    """A gate that runs now: its slot, the commit, the task that it is for, and since when."""

    slot: int
    commit: str
    task: str
    since: float


def keep_gate(db: Database, gate: RunningGate) -> None:
    """Store what a test slot does now; an empty commit means nothing."""
    words = json.dumps({"commit": gate.commit, "task": gate.task, "since": gate.since})
    keep_doing(db, f"{GATE}{gate.slot}", words, at=gate.since)


def running_gates(doing: Mapping[str, str]) -> list[RunningGate]:
    """The gates among what is done now, by slot. A killed runner leaves some that run no more."""
    found = ((name, words) for name, words in doing.items() if name.startswith(GATE))
    gates = [RunningGate(slot=int(name[len(GATE) :]), **json.loads(words)) for name, words in found]
    return sorted(gate for gate in gates if gate.commit)


class LastGate(NamedTuple):
    """How the last gate of a task ended: its command, its commit, when, and the output's end."""

    command: str
    passed: bool
    commit: str
    at: float
    output: str


def keep_last_gate(db: Database, task: str, gate: LastGate) -> None:
    """Store how the task's last gate ended. It is not a fact: the next one replaces it."""
    with translated(), without_sync(db):
        db.execute(
            "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)",
            (f"{LAST_GATE}{task}", as_json(gate._asdict())),
        )


def last_gate(db: Database, task: str) -> LastGate | None:
    """How the task's last gate ended; None if none did, or an older crew wrote something else."""
    try:
        return LastGate(**json.loads(setting(db, f"{LAST_GATE}{task}") or ""))
    except (ValueError, TypeError):
        return None


@effect("store.index")
def keep_index(db: Database, source: str, index: Any) -> None:
    """The task index of a source, as plain values. It only saves time, so it waits for no lock."""
    text = as_json(index, separators=(",", ":"))
    with translated(), without_sync(db), without_waiting(db):
        db.execute(
            "INSERT OR REPLACE INTO task_index (source, value) VALUES (?, ?)", (source, text)
        )


def find_index(db: Database, source: str) -> Any | None:
    """The stored task index; None if there is none, or if it is damaged: it is made again."""
    return parsed_index(index_text(db, source))


def index_text(db: Database, source: str) -> bytes:
    """The stored task index as it is stored; empty if there is none."""
    query = "SELECT CAST(value AS BLOB) FROM task_index WHERE source = ?"
    with translated():
        found = db.execute(query, (source,)).fetchone()
    return bytes(found[0]) if found else b""


def parsed_index(text: bytes) -> Any | None:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
