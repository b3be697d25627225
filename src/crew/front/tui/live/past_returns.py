"""Reads from the facts which tasks the merge queue sent back, and why."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Ask
from crew.store.database import open_database
from crew.store.fact_log import last_facts, next_facts
from crew.workplace import Workplace

MOST = 50
"""The most tasks for which the view shows that they were sent back."""

TOGETHER = 8
"""How many facts after that of a task may belong to the same event."""

Numbered = tuple[int, Fact]


@frozen
class Return:
    """A task that the merge queue sent back to its session, or that failed there."""

    number: int
    task: str
    at: float
    why: str
    notes: str = ""


def read_returns(root: Path) -> tuple[Return, ...]:
    """The last ones, the oldest first."""
    try:
        with closing(open_database(Workplace(root=root).database_file)) as db:
            return tuple(
                returns([(number, fact), *next_facts(db, number, count=TOGETHER)])[0]
                for number, fact in last_facts(db, "task", "sent_back", count=MOST)
            )
    except (CrewError, OSError):
        return ()


def returns(facts: Sequence[Numbered]) -> list[Return]:
    """The returns among these facts: the fact of the task, then what its run was told."""
    return [
        _return(number, fact, facts[place + 1 :])
        for place, (number, fact) in enumerate(facts)
        if fact.kind == "task" and fact.trigger == "sent_back"
    ]


def _return(number: int, fact: Fact, later: Iterable[Numbered]) -> Return:
    told = _told(fact, later)
    ask, paths = told.get("ask"), told.get("merge_paths")
    notes = str(told.get("notes") or "")
    if ask == Ask.CONFLICT:
        names = ", ".join(map(str, paths)) if isinstance(paths, list | tuple) else ""
        why = f"conflicts with what landed{f' in {names}' if names else ''}"
        notes = str(told.get("merge_notes") or notes)
    elif ask == Ask.RED_GATE:
        why = "fails the gate together with what it is merged with"
    elif ask == Ask.CHANGES:
        why = "a person wants changes"
    else:
        why = str(told.get("error") or "it has to be done again")
    return Return(number=number, task=fact.subject, at=fact.at, why=why, notes=notes)


def _told(task: Fact, later: Iterable[Numbered]) -> dict[str, object]:
    """What the run of the task was told, in facts that were recorded together with the task's."""
    told: dict[str, object] = {}
    for _, fact in later:
        is_its = fact.kind == "run" and fact.subject.rpartition(".")[0] == task.subject
        if fact.at == task.at and is_its:
            told |= fact.changes
    return told
