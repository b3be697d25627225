"""The status line: the runner, the tasks, the merge queue, limits and the cost so far."""

from collections import Counter
from collections.abc import Iterator

from crew.domain.rows.task import TaskState
from crew.front.tui.live.made_once import made_once, tasks_and_items
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.paint import Span, safe
from crew.runner.pause_views import pause_line, pause_views


def status_spans(picture: Picture) -> list[Span]:
    """The parts that have something to say, the most urgent first."""
    spans: list[Span] = []
    for text, style in _parts(picture):
        spans += [("  ", ""), (text, style)] if spans else [(" ", ""), (text, style)]
    return spans


def _parts(picture: Picture) -> Iterator[Span]:
    if picture.failure:
        yield f"! cannot read the crew: {safe(picture.failure)}", "bad"
        return
    if picture.runner is None:
        yield "○ no runner (:run starts one)", "warn"
    else:
        yield f"● runner {picture.runner['pid']}", "good"
    if picture.pause:
        yield f"! {safe(picture.pause)}", "bad"
    for view in pause_views(picture.world):
        yield f"! {safe(pause_line(view))}", "warn"
    yield from _waiting(picture)
    yield _counts(picture), "muted"
    yield _spent(picture), "muted"


def _waiting(picture: Picture) -> Iterator[Span]:
    world = picture.world
    if queued := _queued(picture):
        yield f"queue {queued}", "note"
    for queue in world.queues.values():
        if queue.waiting:
            yield f"! delivery to {safe(queue.id)} waits: {safe(queue.waiting)}", "warn"


@made_once(lambda picture: (picture.world.tasks,))
def _queued(picture: Picture) -> int:
    return sum(task.is_queued for task in picture.world.tasks.values())


@made_once(tasks_and_items)
def _counts(picture: Picture) -> str:
    states = Counter(map(picture.status_of, picture.items))
    counts = ((str(state), states[state]) for state in TaskState)
    return ", ".join(f"{count} {state}" for state, count in counts if count) or "no tasks"


@made_once(lambda picture: (picture.world.runs, picture.world.members))
def _spent(picture: Picture) -> str:
    """The cost of all runs and members; a part that is unknown is said."""
    costs = [one.cost_usd for one in picture.world.runs.values()]
    costs += [one.cost_usd for one in picture.world.members.values()]
    known = sum(cost for cost in costs if cost is not None)
    more = " and unknown" if None in costs else ""
    return f"${known:.2f}{more}"
