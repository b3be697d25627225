"""A test knows an error by its kind, its code and the names in it, not by its wording."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from crew.domain.kernel.errors import CrewError

Kind = TypeVar("Kind", bound=CrewError)


@contextmanager
def raises_code(kind: type[Kind], code: str, *named: str) -> "Iterator[pytest.ExceptionInfo[Kind]]":
    """The message must contain each of the names: of a task, a file, a member."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code
    assert [name for name in named if name not in caught.value.message] == []
