"""Finds errors that last by the words of a model's API, where its HTTP status does not tell.

Google reports a wrong key as status 400. Many APIs report an empty account as 429, like a limit.
"""

import re

from crew.domain.rows.step import ErrorKind

_AUTH = ("api key not valid", "api key expired", "api_key_invalid", "incorrect api key provided")
_BILLING = (
    *("insufficient_quota", "credit balance", "credits are depleted"),
    *("insufficient credits", "insufficient balance"),
)
_NO_QUOTA = re.compile(r"quota exceeded for metric.*\blimit: ?0(?![.\d])")
"""Google's answer for a model that the plan of the account does not include."""
_ENDED_QUOTA = "check your plan and billing"
_PASSES = re.compile(r"ai\.google\.dev|quota exceeded for metric|retry in \d|perminute|perday")
"""Google uses the words of an empty account for its limits per minute and per day, too."""


def kind_of_words(text: str) -> ErrorKind | None:
    """None if the words do not tell that only a person can end the error."""
    lower = text.lower()
    if any(words in lower for words in _AUTH):
        return ErrorKind.AUTH
    if any(words in lower for words in _BILLING) or _NO_QUOTA.search(lower):
        return ErrorKind.BILLING
    has_ended = _ENDED_QUOTA in lower and not _PASSES.search(lower)
    return ErrorKind.BILLING if has_ended else None
