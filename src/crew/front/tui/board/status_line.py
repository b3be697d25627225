"""The status line: the runner, the tasks, the merge queue, limits and the cost so far."""

import time
from collections.abc import Iterator

from crew.domain.rows.task import TaskState
from crew.front.tui.board.task_columns import columns_of, spent
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.safe_text import Span, safe

LONGEST_REASON = 60


def status_spans(picture: Picture) -> list[Span]:
    """The parts that have something to say, the most urgent first."""
    spans: list[Span] = []
    for text, style in _parts(picture, now=time.time()):
        spans += [("  ", ""), (text, style)] if spans else [(" ", ""), (text, style)]
    return spans


def _parts(picture: Picture, *, now: float) -> Iterator[Span]:
    if picture.failure:
        yield f"! cannot read the crew: {safe(picture.failure)}", "bad"
        return
    if picture.runner is None:
        yield "○ no runner (:run starts one)", "warn"
    else:
        yield f"● runner {picture.runner['pid']}", "good"
    if picture.pause:
        yield f"! {_short(picture.pause)}", "bad"
    yield from _limits(picture, now=now)
    yield from _waiting(picture)
    yield _spent(picture), "muted"
    yield _counts(picture), "muted"


def _limits(picture: Picture, *, now: float) -> Iterator[Span]:
    """Agent kinds that need a person, then providers at their limit and when it ends."""
    for outage in picture.world.outages.values():
        if outage.state == "open":
            yield f"! {safe(outage.id)} is paused: {_short(outage.reason)}", "bad"
    for provider in picture.world.providers.values():
        if provider.state == "paused" and provider.next_at > now:
            yield f"! {safe(provider.id)} at its limit until {clock(provider.next_at, now)}", "warn"


def clock(at: float, now: float) -> str:
    """The local time; with the date if it is not soon."""
    form = "%H:%M" if abs(at - now) < 43_200 else "%d %b %H:%M"
    return time.strftime(form, time.localtime(at))


def _short(reason: str) -> str:
    return safe(reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…")


def _waiting(picture: Picture) -> Iterator[Span]:
    if queued := columns_of(picture).queued:
        yield f"queue {queued}", "note"
    for queue in picture.world.queues.values():
        if queue.waiting:
            yield f"! delivery to {safe(queue.id)} waits: {_short(queue.waiting)}", "warn"


def _counts(picture: Picture) -> str:
    counts = columns_of(picture).counts
    return ", ".join(f"{counts[s]} {s}" for s in TaskState if counts.get(s)) or "no tasks"


def _spent(picture: Picture) -> str:
    """The cost of all runs, members and managers; an unknown part is marked."""
    world = picture.world
    known, is_partly_unknown = spent(world.runs, world.members, world.managers)
    return f"${known:.2f}{' and unknown' if is_partly_unknown else ''}"
