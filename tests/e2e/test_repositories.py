"""Every kind of repository that people have works from `crew init` to a delivery.

`python -m bench.repositories` prints the same cells as one table.
"""

import pytest
from bench.repositories import is_right, row_of
from bench.repository_kinds import KINDS

AWAITED = {
    "git-lfs": "files of git-lfs are not delivered",
    "partial clone": "a task needs all objects",
    "signed commits": "an agent cannot sign",
    "another owner": "the hint names no folder",
    "copied": "the copy works in the folders of the original",
    "line ends of Windows": "task files with these line ends cannot be read",
    "no identity": "it is not asked for at `init`",
}
"""What does not work yet. A kind that begins to work fails here until its line is deleted."""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            marks=[pytest.mark.xfail(strict=True, reason=AWAITED[kind])] if kind in AWAITED else [],
        )
        for kind in KINDS
    ],
)
def test_a_repository_of_this_kind_works(kind):
    row = row_of(kind)
    if row["init"].startswith("not tried: "):
        pytest.skip(row["init"])
    assert {column: cell for column, cell in row.items() if not is_right(cell)} == {}
