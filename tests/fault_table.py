"""One table for all fault suites: what was tried, and what came of it.

A test hands in its row with `record_property(ROW, Survived(...).row)`; pytest prints the table
after its summary, also when the tests ran in several processes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

ROW = "faults"
COLUMNS = {
    "faults": "faults tried",
    "survived": "survived",
    "tasks": "tasks",
    "lost": "work lost",
    "double": "double merges",
    "orphans": "orphans",
    "held_up": "held-up tasks",
}


@dataclass
class Survived:
    """The row of one history. `detail` is for people: the faults by kind, and what was found."""

    name: str
    faults: int = 0
    survived: int = 0
    tasks: int = 0
    lost: int = 0
    double: int = 0
    orphans: int = 0
    held_up: int = 0
    detail: list[str] = field(default_factory=list)

    @property
    def row(self) -> Mapping[str, object]:
        return asdict(self)


def table(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """The lines of the table, with a sum, and the details below it."""
    rows = sorted(rows, key=lambda row: str(row["name"]))
    total = {key: sum(int(str(row[key])) for row in rows) for key in COLUMNS}
    cells = [["", *COLUMNS.values()]]
    cells += [[str(row["name"]), *(str(row[key]) for key in COLUMNS)] for row in rows]
    cells += [["all", *map(str, total.values())]]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    lines = ["  ".join(_aligned(line, widths)) for line in cells]
    details = [f"{row['name']}: {', '.join(map(str, row['detail']))}" for row in rows]  # type: ignore[call-overload]
    return [*lines, "", *details]


def _aligned(line: list[str], widths: list[int]) -> list[str]:
    first, *numbers = zip(line, widths, strict=True)
    return [first[0].ljust(first[1]), *(text.rjust(width) for text, width in numbers)]
