"""Records replies to requests together with facts, apart from the request queue."""

import json
from typing import Any, NamedTuple

from crew.store.database import Database


class Reply(NamedTuple):
    """The reply to the request with this number."""

    number: int
    words: Any


def keep_reply(db: Database, reply: Reply) -> None:
    """Record the reply in the transaction of its facts. The first reply to a request wins.

    An answered request no longer needs its token, which would prove an agent to its next reader.
    """
    db.execute(
        "UPDATE requests SET reply = ?, args = json_remove(args, '$.token')"
        " WHERE id = ? AND reply IS NULL",
        (json.dumps(reply.words), reply.number),
    )
