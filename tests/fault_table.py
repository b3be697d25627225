"""One table for all fault suites: what was tried, and what came of it.

A test hands in its history with `record_property(ROW, Survived(...).row)`; pytest prints the table
after its summary, also when the tests ran in several processes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

ROW = "faults"
KINDS = {
    "runner": "runner killed",
    "git": "crew's git killed",
    "agent": "agent killed",
    "agent_git": "agent's git killed",
    "gate": "gate killed",
    "stop": "stopped and continued",
    "all": "all killed at once",
    "disk": "disk full",
    "bytes": "bytes of the database",
    "clock": "clock jumps",
}
"""The faults, and their rows in the table, in this order."""

COLUMNS = {
    "tried": "faults tried",
    "survived": "survived",
    "tasks": "tasks",
    "lost": "work lost",
    "double": "double merges",
    "orphans": "orphans",
    "held_up": "held-up tasks",
}


@dataclass
class Survived:
    """One history: its faults by kind, and what was wrong in the end. `detail` is for people."""

    name: str
    faults: Mapping[str, int] = field(default_factory=dict)
    is_sound: bool = False
    """Whether everything was in order in the end, so that each of its faults was survived."""
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
    """The lines of the table: a row for each kind of fault, a sum, and the histories below it.

    A history with several kinds of faults counts in each of their rows, and once in the sum.
    """
    histories = sorted((Survived(**row) for row in rows), key=lambda one: one.name)  # type: ignore[arg-type]
    kinds = [kind for kind in KINDS.values() if any(kind in one.faults for one in histories)]
    by_kind = {kind: [one for one in histories if kind in one.faults] for kind in kinds}
    cells = [["", *COLUMNS.values()]]
    cells += [[kind, *_sums(found, {kind})] for kind, found in by_kind.items()]
    cells += [["all", *_sums(histories, kinds)]]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    lines = ["  ".join(_aligned(line, widths)) for line in cells]
    return [*lines, "", *map(_described, histories)]


def _sums(histories: list[Survived], kinds: Iterable[str]) -> list[str]:
    kinds = set(kinds)
    tried = {one.name: sum(one.faults[kind] for kind in kinds & {*one.faults}) for one in histories}
    survived = sum(tried[one.name] for one in histories if one.is_sound)
    others = (sum(getattr(one, name) for one in histories) for name in [*COLUMNS][2:])
    return [str(number) for number in (sum(tried.values()), survived, *others)]


def _described(history: Survived) -> str:
    faults = [f"{count} {kind}" for kind, count in history.faults.items()]
    return f"{history.name}: {', '.join([*faults, *map(str, history.detail)])}"


def _aligned(line: list[str], widths: list[int]) -> list[str]:
    first, *numbers = zip(line, widths, strict=True)
    return [first[0].ljust(first[1]), *(text.rjust(width) for text, width in numbers)]
