"""Records replies to requests together with facts, apart from the request queue."""

import json
from typing import Any, NamedTuple

from crew.store.database import Database


class Reply(NamedTuple):
    """The reply to the request with this number."""

    number: int
    words: Any


def keep_reply(db: Database, reply: Reply) -> None:
    """Record the replies in the transaction of their facts. The first reply to a request wins."""
    db.execute(
        "UPDATE requests SET reply = ? WHERE id = ? AND reply IS NULL",
        (json.dumps(reply.words), reply.number),
    )
