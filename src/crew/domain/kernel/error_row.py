"""Errors in a row: how they are counted, and when nothing is tried any more by itself."""

from crew.domain.kernel.frozen import frozen


@frozen
class ErrorRow:
    """`count` errors with no success between them; `limit` of them are the most."""

    count: int
    limit: int

    @property
    def is_spent(self) -> bool:
        """No try is left."""
        return self.count >= self.limit

    @property
    def ends_here(self) -> bool:
        """This error used up the tries: the first `limit` ones, or those a person added since."""
        return self.count % self.limit == 0


def one_more_error(before: int, *, limit: int) -> ErrorRow:
    """The row with the error that happened just now."""
    return ErrorRow(count=before + 1, limit=limit)
