"""Every kind of repository that people have works from `crew init` to a delivery.

`make repositories` prints the same cells as one table. `make test` tries those kinds that differ
most from a plain repository, `make faults` the others.
"""

import pytest
from bench.repositories import is_right, row_of
from bench.repository_kinds import KINDS

OFTEN = {
    *("plain", "git-lfs", "partial clone", "SHA-256", "signed commits", "copied"),
    *("bare, with worktrees", "another owner"),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=() if one in OFTEN else pytest.mark.faults) for one in KINDS],
)
def test_a_repository_of_this_kind_works(kind):
    row = row_of(kind)
    if row["init"].startswith("not tried: "):
        pytest.skip(row["init"])
    assert {column: cell for column, cell in row.items() if not is_right(cell)} == {}
