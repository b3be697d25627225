"""Errors in a row: how they are counted, and when automatic tries end."""

from crew.domain.kernel.frozen import frozen


@frozen
class ErrorRow:
    """`count` errors without a success between them; `limit` is the highest count."""

    count: int
    limit: int

    @property
    def is_spent(self) -> bool:
        """Whether no try is left."""
        return self.count >= self.limit

    @property
    def ends_here(self) -> bool:
        """Whether this error used up the tries: the first `limit`, or those that a person added."""
        return self.count % self.limit == 0


def one_more_error(before: int, *, limit: int) -> ErrorRow:
    """The row with one more error."""
    return ErrorRow(count=before + 1, limit=limit)
