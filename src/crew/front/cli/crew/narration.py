"""Prints what happens while the crew runs: a live frame on a terminal, else one line a change."""

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import rewrite_id
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.world import fold, row_from
from crew.front.cli.call import Call
from crew.front.cli.output import line, narrate
from crew.front.cli.view.dashboard_frame import Painter, frame_lines
from crew.front.cli.watching.open_questions import asked_line
from crew.front.cli.watching.ps import paused_line
from crew.runner.views.row_views import moment, rewrite_words
from crew.store.database import open_database
from crew.store.fact_log import facts_after, last_fact
from crew.store.kept_values import paused_why

if TYPE_CHECKING:
    from crew.workplace import Workplace

LOOK_EVERY_S = 0.25

Tell = Callable[[str], None]


@contextmanager
def narrated(call: Call, workplace: "Workplace", *, task: str = "") -> Iterator["Tell"]:
    """Narrate from a thread that reads the store as another program would, without the runner.

    `task` limits the lines to one task and the merge queues. It yields a function that prints one
    more line, or shows it below the live frame.
    """
    if call.quiet:
        yield lambda _words: None
        return
    over = threading.Event()
    notices: list[str] = []
    tell: Tell = functools.partial(narrate, call)
    start = last_fact(workplace.db)
    look = functools.partial(_lines, workplace, over, start, task)
    if call.is_live and not call.json:
        look = functools.partial(_live, call, workplace, over, notices)
        tell = notices.append
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join(timeout=5)


def _lines(workplace: "Workplace", over: threading.Event, last: int, task: str) -> None:
    db = open_database(workplace.folder / "crew.db")
    paused = None
    while True:
        is_last = over.wait(LOOK_EVERY_S)
        try:
            found = facts_after(db, last)
            if paused != (paused := paused_why(db, workplace.folder)) and paused:
                print(paused_line(paused), file=sys.stderr, flush=True)
        except CrewError:
            found = []
        for _, fact in found:
            if _concerns(fact, task) and (words := told(fact)):
                print(f"{moment(fact.at)} {words}", file=sys.stderr, flush=True)
        last = found[-1][0] if found else last
        if is_last:
            return


def _concerns(fact: Fact, task: str) -> bool:
    """Whether a fact is about this task, its runs, a queue or a pause; without a task, always."""
    about = fact.subject.rpartition(".")[0] if fact.kind == "run" else fact.subject
    return (
        not task
        or fact.kind in {"line", "outage", "provider"}
        or (fact.kind in {"task", "run"} and about == task)
    )


def told(fact: Fact) -> str | None:
    """A change of state as one line; None for any other fact."""
    if fact.kind == "line":
        return _told_of_line(fact)
    if (fact.kind, fact.trigger) == ("question", "asked"):
        return asked_line(fold([fact]).questions[fact.subject])
    if (fact.kind, fact.trigger) == ("outage", "failed"):
        return _told_of_outage(fact)
    if (fact.kind, fact.trigger) == ("provider", "rate_limited"):
        return _told_of_limit(fact)
    if (fact.kind, fact.trigger) == ("task", "landed"):
        return f"task {fact.subject}: landed, and waits for its delivery"
    if fact.target is None:
        return None
    if fact.source == fact.target or (fact.kind, fact.trigger) == ("task", "seen"):
        return None
    title = line(str(fact.changes.get("title") or ""))
    why = line(str(fact.changes.get("error") or fact.changes.get("last_error") or ""))
    came = f"{fact.source} → " if fact.source else ""
    words = f"{fact.kind} {fact.subject}: {came}{fact.target} ({fact.trigger})"
    return " ".join(part for part in (words, title, why) if part)


def _told_of_outage(fact: Fact) -> str:
    reason, remedy = line(str(fact.changes["reason"])), line(str(fact.changes["remedy"]))
    return f"agent kind {fact.subject} is paused: {reason} ({remedy})"


def _told_of_limit(fact: Fact) -> str:
    until = moment(float(str(fact.changes["next_at"])))
    return f"provider {fact.subject} is paused until {until}: {line(str(fact.changes['reason']))}"


def _told_of_line(fact: Fact) -> str | None:
    if fact.trigger == "delivered":
        remedy = line(str(fact.changes.get("remedy") or ""))
        words = f"{fact.subject}: delivered {str(fact.changes.get('delivered'))[:12]}"
        return f"{words}; its submodules: {remedy}" if remedy else words
    if fact.trigger == "target_renamed" and fact.extra:
        return f"{fact.subject} is the new name of {fact.extra['former']}: its tasks follow"
    if fact.trigger == "rewritten":
        return _told_of_rewrite(fact)
    if fact.trigger == "delivery_waits":
        return f"{fact.subject}: delivery waits: {line(str(fact.changes.get('waiting')))}"
    return None


def _told_of_rewrite(fact: Fact) -> str:
    queue = row_from(fact.kind, {**fact.changes, "id": fact.subject})
    assert isinstance(queue, MergeQueue)
    if queue.dropped:
        return f"{rewrite_words(queue)} (crew inbox {rewrite_id(queue.id)})"
    return f"{queue.id} was rewritten: crew continues from {queue.integration[:12]}"


def _live(
    call: Call, workplace: "Workplace", over: threading.Event, notices: Sequence[str]
) -> None:
    db = open_database(workplace.folder / "crew.db")
    painter = Painter(sys.stderr)
    while True:
        is_last = over.wait(LOOK_EVERY_S * 2)
        try:
            painter.paint([*notices[-1:], *frame_lines(call, workplace, db)])
        except CrewError:
            painter.paint(["the store cannot be read at this moment"])
        if is_last:
            return
