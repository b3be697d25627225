"""Replies to requests, apart from the requests: they are recorded with facts, on every path."""

import json
from typing import Any, NamedTuple

from crew.store.database import Database


class Reply(NamedTuple):
    """What the request of this number gets to hear."""

    number: int
    words: Any


def keep_reply(db: Database, reply: Reply) -> None:
    """Part of the transaction that records what was done; the first reply stands."""
    db.execute(
        "UPDATE requests SET reply = ? WHERE id = ? AND reply IS NULL",
        (json.dumps(reply.words), reply.number),
    )
