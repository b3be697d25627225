"""Every kind of repository that people have works from `crew init` to a delivery.

`python -m bench.repositories` prints the same cells as one table.
"""

import pytest
from bench.repositories import is_right, row_of
from bench.repository_kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_repository_of_this_kind_works(kind):
    row = row_of(kind)
    if row["init"].startswith("not tried: "):
        pytest.skip(row["init"])
    assert {column: cell for column, cell in row.items() if not is_right(cell)} == {}
