"""The meaning of an HTTP status of a model's API for a step."""

from crew.domain.rows.step import ErrorKind

_KINDS = {
    401: ErrorKind.AUTH,
    402: ErrorKind.BILLING,
    403: ErrorKind.AUTH,
    404: ErrorKind.UNKNOWN_MODEL,
    413: ErrorKind.CONTEXT_FULL,
    429: ErrorKind.RATE_LIMIT,
}


def kind_of_status(status: object) -> ErrorKind | None:
    """None if the status alone does not determine the error."""
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    return ErrorKind.OVERLOADED if 500 <= status <= 599 else _KINDS.get(status)
