"""Times as RFC 3339 text in UTC, to the second, as task files hold them."""

from datetime import UTC, datetime


def to_text(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_text(text: object) -> float | None:
    """Seconds since 1970, or None if the text is not a time. Without a zone it is UTC."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
