"""The open questions as short lines, for `crew ps`, the dashboard and other commands."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from crew.front.cli.output import line
from crew.runner.views.row_views import answer_command, suspicion_words

if TYPE_CHECKING:
    from crew.domain.rows.question import Question, Suspicion

MOST_SHOWN = 3
"""The most questions that are printed one by one."""

LONGEST = 42
"""The longest text of a question, so that its line fits a terminal; `crew inbox` has all of it."""


def open_questions(found: "Iterable[Question]") -> "list[Question]":
    """The open questions, the oldest first."""
    return sorted((one for one in found if one.state == "open"), key=lambda one: one.asked_at)


def asked_lines(found: "Iterable[Question]") -> Iterable[str]:
    waiting = open_questions(found)
    yield from map(asked_line, waiting[:MOST_SHOWN])
    if more := len(waiting[MOST_SHOWN:]):
        yield f"{more} more {count_words(more)}"


def asked_line(question: "Question") -> str:
    return f"task {question.task} {asked_words(question)} ({answer_command(question.id)})"


def asked_words(question: "Question") -> str:
    return f"asks {question.id}: {line(question.question, limit=LONGEST)}"


def suspicion_lines(found: "Iterable[Suspicion]") -> Iterable[str]:
    """One line for each suspicious act that no person has dismissed; then their number."""
    waiting = sorted((one for one in found if one.state == "open"), key=lambda one: one.first_at)
    for one in waiting[:MOST_SHOWN]:
        words = line(suspicion_words(one), limit=LONGEST)
        yield f"suspicion {one.id}: {words} (crew inbox {one.id})"
    if more := len(waiting[MOST_SHOWN:]):
        yield f"{more} more suspicious act{'' if more == 1 else 's'}: crew inbox"


def count_words(count: int) -> str:
    return f"question{'' if count == 1 else 's'} wait{'s' if count == 1 else ''}: crew inbox"


def count_line(directory: Path) -> str:
    """A line with the number of open questions of this folder's crew; empty if there are none."""
    from crew.domain.kernel.errors import CrewError  # noqa: PLC0415 - for `crew` without a command
    from crew.find_crew import find_folder  # noqa: PLC0415
    from crew.store.database import open_database  # noqa: PLC0415
    from crew.store.quick_rows import load_questions  # noqa: PLC0415

    folder = find_folder(directory.resolve())
    if folder is None:
        return ""
    try:
        with closing(open_database(folder / "crew.db")) as db:
            count = len(load_questions(db))
    except (CrewError, OSError):
        return ""
    return f"{count} {count_words(count)}" if count else ""
