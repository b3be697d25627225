"""Opens `.crew/crew.db`: SQLite in WAL mode, migrates its schema and translates its errors."""

import atexit
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from crew.domain.kernel.errors import CrewError, TryLater
from crew.store.schema import MIGRATIONS
from crew.system.atomic_files import put_in_place
from crew.system.crash_points import effect
from crew.system.full_disk import has_no_room, is_disk_full
from crew.system.private_files import FILE_MODE, is_on_read_only_disk

LOCK_WAIT_S = 10.0
REBUILD = "`crew stop`, then `crew doctor --repair` makes it again from its facts"
DAMAGED = "damaged"
"""The code of a failure that only `salvage` can repair."""
MADE_MEANWHILE = "made-meanwhile"
"""The ending of a database that another process made in the place of a deleted one."""
_UNDECODABLE = "Could not decode to UTF-8"


class Database(sqlite3.Connection):
    """A connection that supports weak references, which `_open` needs."""


_open: WeakSet[Database] = WeakSet()


class StoreFailed(CrewError):
    """The database could not be read or written. Nothing was recorded in part."""


def open_database(path: Path, *, wait_s: float = LOCK_WAIT_S) -> Database:
    """A connection to the database, which is created or migrated first if needed."""
    with translated(path):
        if is_on_read_only_disk(path.parent):
            return _open_to_read(path)
        _make_private(path)
        db = sqlite3.connect(path, timeout=wait_s, isolation_level=None, factory=Database)
        _open.add(db)
        try:
            _bring_up(db, path)
        except BaseException as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError) and has_no_room(path.parent):
                return _open_to_read(path)
            raise
        return db


def _open_to_read(path: Path) -> Database:
    """A connection on a read-only or full disk, where SQLite cannot make its other files.

    Its log of late changes (WAL) may hold the newest facts: with one, a copy of both is read.
    """
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size == 0:
        db = _connect_to_read(path, "immutable=1")
    else:
        import shutil  # noqa: PLC0415 - slow to load, and a disk is seldom read-only
        import tempfile  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="crew-read-") as folder:
            for file in (path, wal):
                shutil.copyfile(file, Path(folder) / file.name)
            db = _in_memory(Path(folder) / path.name)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != len(MIGRATIONS):
        raise StoreFailed(
            f"{path} is on a read-only disk and was written by another version of crew",
            hint="run a command of this version once where the disk can be written",
        )
    return db


def _connect_to_read(path: Path, how: str) -> Database:
    uri = f"file:{quote(str(path))}?mode=ro&{how}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, factory=Database)
    _open.add(db)
    return db


def _in_memory(path: Path) -> Database:
    """The content of this database, so that its files can be deleted."""
    db = sqlite3.connect(":memory:", isolation_level=None, factory=Database)
    _open.add(db)
    with closing(sqlite3.connect(path)) as copied:
        copied.backup(db)
    db.execute("PRAGMA query_only=ON")
    return db


def _make_private(path: Path) -> None:
    """Make the file before SQLite does, which would let others read it.

    SQLite gives its other files the mode of this one. An existing file is not opened: to close it
    would end the locks of this process on it.
    """
    if path.is_symlink():
        raise StoreFailed(
            f"{path} is a link", hint="crew keeps its own file there: remove the link"
        )
    if not path.exists():
        with suppress(OSError):  # SQLite names the reason
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))


@atexit.register
def _close_all() -> None:
    """Close connections that a reference cycle keeps open, so that SQLite deletes the WAL."""
    for db in list(_open):
        with suppress(sqlite3.ProgrammingError):  # it belongs to another thread
            db.close()


def _bring_up(db: Database, path: Path) -> None:
    if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    _migrate(db, path)


def _migrate(db: Database, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise StoreFailed(
            f"{path} was written by a newer crew (schema {version}, this one knows "
            f"{len(MIGRATIONS)})",
            hint="update crew, or move the file away to start with an empty one",
            code="newer_schema",
        )
    if version < len(MIGRATIONS):
        _apply_migrations(db)


@effect("store.migrate")
def _apply_migrations(db: Database) -> None:
    with transaction(db):
        version = db.execute("PRAGMA user_version").fetchone()[0]
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")


@effect("store.save_again")
def save_again(db: Database, path: Path) -> None:
    """Write what an open database holds to a new file, such as after its own was deleted.

    The connection is closed before the file has its name: at its end, SQLite deletes the log of
    late changes that has the name of its own.
    """
    fresh = path.with_name(f"{path.name}.new")
    with translated(path):
        fresh.unlink(missing_ok=True)
        _make_private(fresh)
        with closing(sqlite3.connect(fresh)) as copy:
            db.backup(copy)
        db.close()
    if path.exists():
        put_in_place(path, path.with_name(f"{path.name}.{MADE_MEANWHILE}"))
    put_in_place(fresh, path)


def check_whole(db: Database) -> None:
    """Read every page and every text; raises `StoreFailed` with the code `DAMAGED` if one is not.

    SQLite's own check does not decode texts, and one byte makes a text unreadable.
    """
    with translated(), one_moment(db):
        found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            for _ in db.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - its own schema
                pass
    if found != "ok":
        problem = " ".join(str(found).split()).removeprefix("*** in database main *** ")
        raise _damaged(".crew/crew.db", problem)


def change_count(db: Database) -> int:
    """A number that changes when another process has written. Cheap to read."""
    with translated():
        return int(db.execute("PRAGMA data_version").fetchone()[0])


@contextmanager
def transaction(db: Database) -> Iterator[None]:
    """A transaction that takes the write lock at once, so that values read inside stay valid."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # On a full disk SQLite rolls back by itself. A second rollback would hide the reason.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def without_sync(db: Database) -> Iterator[None]:
    """A transaction that does not wait for the disk, for facts that can be found again.

    A killed process loses nothing. A power failure loses it only with everything written after it.
    """
    db.execute("PRAGMA synchronous=NORMAL")
    try:
        yield
    finally:
        db.execute("PRAGMA synchronous=FULL")


@contextmanager
def without_waiting(db: Database) -> Iterator[None]:
    """Fail at once where another program has the lock, for what can be left out."""
    (wait_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout=0")
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout={wait_ms}")


@contextmanager
def one_moment(db: Database) -> Iterator[None]:
    """Read a consistent snapshot while other processes write."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


def unreadable_row(kind: str, value: object) -> StoreFailed:
    return StoreFailed(
        f"a row of the database cannot be read: {kind} {str(value)[:40]!r}",
        hint=REBUILD,
        code="unreadable_row",
    )


@contextmanager
def translated(path: Path | None = None) -> Iterator[None]:
    """Translate SQLite's errors to sentences with a next step."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translation(error, str(path or ".crew/crew.db")) from error
    except UnicodeDecodeError as error:  # SQLite quotes a damaged name in its own message
        raise _damaged(str(path or ".crew/crew.db"), "a name in it cannot be read") from error
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise _no_room(str(path or ".crew/crew.db"), error) from error


def _no_room(path: str, problem: object) -> StoreFailed:
    return StoreFailed(
        f"{path}: {problem}",
        hint="the disk is full: free some space and start again, nothing is lost",
        code="store_full",
    )


def _damaged(path: str, problem: object) -> StoreFailed:
    return StoreFailed(
        f"{path}: {problem}",
        hint="`crew stop`, then `crew doctor --repair` makes a new one of what can be read; "
        "if it is not crew's, move the file away",
        code="damaged",
    )


def _translation(error: sqlite3.Error, path: str) -> CrewError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TryLater(
            f"{path} is locked by another program",
            hint="wait and try again; `crew ps` shows whether a runner is running",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or _UNDECODABLE in str(error):
        return _damaged(path, error)
    if name == "SQLITE_FULL":
        return _no_room(path, error)
    hints = {
        "SQLITE_READONLY": "crew must be able to write there: check its owner and its permissions, "
        "and whether the disk is full",
        "SQLITE_CANTOPEN": "crew must be able to write there: check its owner and its permissions",
        "SQLITE_IOERR": "the disk failed or is full: check it and start again",
    }
    if "malformed JSON" in str(error):
        return StoreFailed(f"{path}: a row cannot be read", hint=REBUILD)
    hint = next((text for start, text in hints.items() if name.startswith(start)), "see the log")
    return StoreFailed(f"{path}: {error}", hint=hint)
