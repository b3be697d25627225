"""The requests of other processes to the runner, and its replies."""

import json
from typing import Any

from crew.domain.kernel.errors import NotFound
from crew.domain.requests import Request
from crew.store.database import Database, translated
from crew.system.crash_points import effect


@effect("store.ask")
def add_request(db: Database, request: Request, *, at: float) -> int:
    """Record a request for the runner. Its number identifies the reply."""
    with translated():
        done = db.execute(
            "INSERT INTO requests (at, verb, args) VALUES (?, ?, ?)",
            (at, request.verb, json.dumps(dict(request.args))),
        )
    assert done.lastrowid is not None
    return done.lastrowid


def open_requests(db: Database) -> list[tuple[int, Request]]:
    with translated():
        found = db.execute(
            "SELECT id, verb, args FROM requests WHERE reply IS NULL ORDER BY id"
        ).fetchall()
    return [(number, Request(verb=verb, args=json.loads(args))) for number, verb, args in found]


def find_reply(db: Database, number: int) -> Any | None:
    """The reply, or None while there is none. `NotFound` if the request was dropped."""
    with translated():
        found = db.execute("SELECT reply FROM requests WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise NotFound(f"request {number} was dropped", hint="ask again")
    return json.loads(found[0]) if found[0] is not None else None


@effect("store.drop_requests")
def drop_requests(db: Database) -> None:
    """Drop the requests to a runner that has ended. Waiting processes ask the next one.

    An earlier version of crew kept the tokens of answered requests.
    """
    with translated():
        db.execute("DELETE FROM requests WHERE reply IS NULL")
        db.execute(
            "UPDATE requests SET args = json_remove(args, '$.token') WHERE instr(args, '\"token\"')"
        )


@effect("store.withdraw")
def withdraw(db: Database, number: int) -> bool:
    """Withdraw an unanswered request; false if the runner has replied already."""
    with translated():
        done = db.execute("DELETE FROM requests WHERE id = ? AND reply IS NULL", (number,))
    return done.rowcount == 1
