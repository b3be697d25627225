"""Makes a damaged database again from what can still be read of it: its facts first.

The damaged file stays next to the new one under another name. A kill at any moment leaves either
the damaged file or the complete new one in place, and a second repair starts with the same pages.
"""

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crew.store.database import Database, StoreFailed, open_database, transaction, translated
from crew.store.database_pages import Record, Value, read_records
from crew.store.fact_log import load_rows
from crew.store.row_repair import rebuild_rows
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect

_ASIDE = "damaged"
_NAMES = (b"facts_of_subject", b"open_requests")
"""Names in the schema that no other program has."""
_TEXT, _NUMBER, _TEXT_OR_NONE = (str,), (int, float), (str, type(None))
_FACT = (
    *((type(None),), _NUMBER, _TEXT, _TEXT, _TEXT),
    *(_TEXT_OR_NONE, _TEXT_OR_NONE, _TEXT, _TEXT),
)
_COUNTED = ("repo_id", "tasks_of", "epoch")
"""The settings that matter; others, such as the notices that were sent, begin with `told `."""


@dataclass(slots=True)
class _Found:
    """What the pages hold. `numbers` are the facts that an index names."""

    facts: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    rows: dict[tuple[str, str], str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)

    @property
    def missing(self) -> int:
        """The number of facts that were recorded and cannot be read, as far as is known."""
        last = max((*self.facts, *self.numbers), default=0)
        return last - len(self.facts)

    @property
    def is_complete(self) -> bool:
        """Whether no fact is missing. Without an index, the newest may be."""
        return bool(self.numbers) and not self.missing


@dataclass(frozen=True, slots=True)
class Salvaged:
    """`aside` is the damaged file; `lost` has sentences on what could not be read."""

    aside: Path
    lost: tuple[str, ...]


def salvage(path: Path) -> Salvaged:
    """Replace a damaged database, which no process may use, by what can be read of it."""
    aside = _kept_aside(path)
    found = _found_in(read_records(aside, _beside(aside, "wal")))
    if not found.facts and not found.rows and not _is_crews(aside):
        raise StoreFailed(
            f"{path}: nothing in it can be read",
            hint="move the file away; `crew init` makes a new one, and git has all landed work",
        )
    fresh = path.with_name(f"{path.name}.new")
    for file in (fresh, *_others(fresh)):
        file.unlink(missing_ok=True)
    with closing(open_database(fresh)) as db:
        lost = _fill(db, found)
    _replace(fresh, path)
    return Salvaged(aside=aside, lost=lost)


def _is_crews(path: Path) -> bool:
    """Whether a file without any fact is a database of crew that was still empty."""
    content = path.read_bytes()
    return any(name in content for name in _NAMES)


def _kept_aside(path: Path) -> Path:
    """A second name of the damaged file, or the one that an interrupted repair gave it."""
    for known in path.parent.glob(f"{path.name}.{_ASIDE}-*[0-9a-f]"):
        if known.samefile(path):
            return known
    aside = path.with_name(f"{path.name}.{_ASIDE}-{os.urandom(4).hex()}")
    with suppress(FileNotFoundError):
        os.link(_beside(path, "wal"), _beside(aside, "wal"))
    _link(path, aside)
    return aside


@effect("store.keep_damaged")
def _link(path: Path, aside: Path) -> None:
    os.link(path, aside)


@effect("store.replace")
def _replace(fresh: Path, path: Path) -> None:
    for file in _others(path):  # SQLite would add them to the new file
        file.unlink(missing_ok=True)
    put_in_place(fresh, path)


def _others(path: Path) -> tuple[Path, Path]:
    return _beside(path, "wal"), _beside(path, "shm")


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")


def _found_in(records: Iterable[Record]) -> _Found:
    """Sort the records by their shape, since a page does not name its table."""
    found = _Found()
    for record in records:
        _sort(found, record)
    return found


def _sort(found: _Found, record: Record) -> None:
    match record.values:
        case values if record.rowid is not None and _has_shape(values, _FACT):
            found.facts[record.rowid] = values
        case (str(kind), str(id_), str(value)) if record.rowid is None:
            found.rows.setdefault((kind, id_), value)
        case (str(), str(), int(number)) if record.rowid is None:
            found.numbers.add(number)
        case ("facts", int(number)):
            found.numbers.add(number)
        case (str(name), str(value)) if name in _COUNTED or name.startswith("told "):
            found.settings[name] = value


def _has_shape(values: tuple[Value, ...], shape: tuple[tuple[type, ...], ...]) -> bool:
    return len(values) == len(shape) and all(map(isinstance, values, shape))


def _fill(db: Database, found: _Found) -> tuple[str, ...]:
    """Write what was found, and make the rows again; what is lost, in sentences."""
    with translated(), transaction(db):
        db.executemany(
            'INSERT INTO facts (id, at, kind, subject, "trigger", source, target, changes, extra)'
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *found.facts[number][1:]) for number in sorted(found.facts)],
        )
        db.executemany(
            "INSERT INTO rows (kind, id, value) VALUES (?, ?, ?)",
            [(kind, id_, value) for (kind, id_), value in found.rows.items()],
        )
        db.executemany("INSERT INTO settings VALUES (?, ?)", found.settings.items())
    lost = rebuild_rows(db, keep_rows=not found.is_complete)
    if "epoch" not in found.settings:
        _number_anew(db)
    if found.missing:
        lost.insert(0, f"{found.missing} of {found.missing + len(found.facts)} facts are lost")
    elif not found.is_complete:
        lost.insert(0, "the newest facts may be lost")
    return tuple(lost)


def _number_anew(db: Database) -> None:
    """Count runners from the last one that a run names, so that no number is used twice."""
    epochs = [getattr(run, "epoch", 0) for run in load_rows(db, "run").values()]
    with translated():
        values = ("epoch", str(max(epochs, default=0)))
        db.execute("INSERT INTO settings VALUES (?, ?)", values)
