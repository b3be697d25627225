"""The merge queues as lines: what is tested with what, what waits, what was sent back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from crew.domain.kernel.frozen import frozen
from crew.domain.merging.merge_plan import queued_tasks, undelivered
from crew.domain.rows.merge_queue import MergeQueue, Stack, TestResult
from crew.front.tui.board.task_cells import age
from crew.front.tui.live.past_returns import Return
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.line_list import ShownLine
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import Span, safe
from crew.store.kept_values import RunningGate, running_gates

MOST_BEFORE = 6
"""The most tasks that are named one by one as those that a task is tested with."""


@frozen
class QueueLine:
    """A task at its place in a queue, or a heading; `notes` is what there is to read about it."""

    task: str = ""
    key: str = ""
    spans: tuple[Span, ...] = ()
    notes: str = ""

    @property
    def line(self) -> ShownLine:
        return ShownLine(spans=self.spans, key=self.key, is_heading=not self.key)


def queue_lines(picture: Picture, returned: Sequence[Return], *, now: float) -> list[QueueLine]:
    """All queues, then the checks of single tasks, then what was sent back."""
    gates = gates_now(picture)
    lines = [
        line for one in picture.world.queues.values() for line in _queue(picture, one, gates, now)
    ]
    lines += _waiting_for_person(picture)
    lines += _own_checks(picture, gates, now)
    if returned:
        lines += [_gap(), _head(f"Sent back ({len(returned)})")]
        lines += [_return_line(picture, one, now) for one in reversed(returned)]
    return lines


def gates_now(picture: Picture) -> list[RunningGate]:
    """The gates of the runner that is up: a killed one has left what it was doing."""
    runner = picture.runner
    if runner is None:
        return []
    return [one for one in running_gates(picture.doing) if one.since >= _started(runner)]


def _started(runner: Mapping[str, Any]) -> float:
    """When the runner began; its lock has it to the second or better."""
    try:
        return datetime.fromisoformat(str(runner.get("started"))).timestamp() - 1.0
    except ValueError:
        return 0.0


def _head(text: str, style: str = "bold muted") -> QueueLine:
    return QueueLine(spans=((text, style),))


def _gap() -> QueueLine:
    return QueueLine(spans=(("", ""),))


def _queue(
    picture: Picture, queue: MergeQueue, gates: Sequence[RunningGate], now: float
) -> Iterator[QueueLine]:
    waiting = queued_tasks(picture.world, queue.id)
    testing = {gate.commit: gate for gate in gates}
    mine = sum(commit in testing for stack in queue.stacks for commit in stack.commits)
    slots = f", {mine} under test" if mine else ""
    yield _head(f"{safe(queue.id)}: {len(waiting)} in the queue{slots}  (on {queue.base[:8]})")
    if queue.waiting:
        yield _head(f"  ! waits: {safe(queue.waiting)}", "warn")
        if queue.remedy:
            yield _head(f"    → {safe(queue.remedy)}", "key")
    for number, stack in enumerate(queue.stacks):
        if number:
            yield _head(f"  trial {number} on {stack.base[:8]}")
        yield from _stack(picture, queue, stack, testing, now)
    placed = {task for task, _ in queue.entries}
    for task, _ in queue.held:
        yield _task_line(picture, task, "held", ("waits: conflicts with one before it", "warn"))
    for row in waiting:
        if row.id not in placed:
            yield _task_line(picture, row.id, "", ("joins the queue next", "muted"))
    yield from _landed(picture, queue)


def _stack(
    picture: Picture,
    queue: MergeQueue,
    stack: Stack,
    testing: Mapping[str, RunningGate],
    now: float,
) -> Iterator[QueueLine]:
    """Each task of the stack is tested together with all those before it."""
    if not stack.proven:
        words = _result_words(queue.result_of(stack.base), testing.get(stack.base), now)
        yield QueueLine(spans=(("  base with the commits of others  ", "muted"), words))
    before: list[str] = []
    for number, candidate in enumerate(stack.chain, start=1):
        result = queue.result_of(candidate.commit)
        words = _result_words(result, testing.get(candidate.commit), now)
        if words[1] == "muted" and (longer := _tested_within(stack, number, testing)):
            words = f"in the test of {safe(longer)}", "busy"
        together = f" with {_named(before)}" if before else ""
        place = f"{number}."
        notes = result.notes if result and not result.passed else ""
        yield _task_line(
            picture,
            candidate.task,
            place,
            words,
            after=f"{candidate.commit[:8]}{together}",
            notes=notes,
        )
        before.append(candidate.task)


def _tested_within(stack: Stack, number: int, testing: Mapping[str, RunningGate]) -> str:
    """The later task of the stack whose test includes this one; empty if there is none."""
    later = (one.task for one in stack.chain[number:] if one.commit in testing)
    return next(later, "")


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - MOST_BEFORE
    names = ", ".join(map(safe, tasks[-MOST_BEFORE:]))
    return f"{names} and {more} more" if more > 0 else names


def _result_words(result: TestResult | None, gate: RunningGate | None, now: float) -> Span:
    if gate is not None:
        word = "again" if result is not None else "tested"
        return f"{word} on slot {gate.slot} for {age(now - gate.since)}", "busy"
    if result is None:
        return "waits for a slot", "muted"
    if result.passed:
        return "passed", "good"
    return ("failed", "bad") if result.times >= 2 else ("failed once", "warn")


def _task_line(
    picture: Picture, task: str, place: str, words: Span, *, after: str = "", notes: str = ""
) -> QueueLine:
    spans = (
        (f"  {place:<5}", "muted"),
        (fit(safe(task), 5), "bold"),
        (" ", ""),
        (fit(words[0], 27), words[1]),
        (" ", ""),
        (safe(picture.title_of(task)), ""),
        (f"  {after}" if after else "", "muted"),
    )
    return QueueLine(task=task, key=f"queue {task}", spans=spans, notes=notes)


def _landed(picture: Picture, queue: MergeQueue) -> Iterator[QueueLine]:
    found = undelivered(picture.world, queue.id)
    if not found:
        return
    how = "the runner delivers" if picture.runner else f"`crew merge {found[0].id}` delivers"
    yield _head(f"  landed, and not in {safe(queue.id)} yet ({safe(how)})")
    for row in found:
        words = (f"landed as {row.landed_commit[:8]}", "good")
        yield _task_line(picture, row.id, "✓", words, notes=_obstacle(queue))


def _obstacle(queue: MergeQueue) -> str:
    return "\n".join(filter(None, (queue.waiting, f"→ {queue.remedy}" if queue.remedy else "")))


def _waiting_for_person(picture: Picture) -> Iterator[QueueLine]:
    rows = picture.world.tasks.values()
    asked = [row for row in rows if row.conflict and not row.landed_commit]
    free = [row for row in rows if row.awaits_merge]
    if asked or free:
        yield from (_gap(), _head("Waits for you"))
    for row in asked:
        words = (f"conflict: answer {row.conflict}", "warn")
        yield _task_line(picture, row.id, "?", words)
    for row in free:
        yield _task_line(picture, row.id, "", ("done: m merges it", "note"))


def _own_checks(picture: Picture, gates: Iterable[RunningGate], now: float) -> Iterator[QueueLine]:
    queues = picture.world.queues.values()
    known = {commit for one in queues for stack in one.stacks for commit in stack.commits}
    own = [gate for gate in gates if gate.commit not in known]
    if own:
        yield from (_gap(), _head("Checks before the queue"))
    for gate in own:
        words = (f"slot {gate.slot} for {age(now - gate.since)}", "busy")
        yield _task_line(picture, gate.task, "", words, after=gate.commit[:8])


def _return_line(picture: Picture, one: Return, now: float) -> QueueLine:
    spans = (
        (fit(f"  {age(now - one.at)} ago", 10), "muted"),
        (fit(safe(one.task), 5), "bold"),
        (" ", ""),
        (safe(one.why), "warn"),
        (f"  {safe(picture.title_of(one.task))}", "muted"),
    )
    notes = f"{one.why}\n\n{one.notes}" if one.notes else one.why
    return QueueLine(task=one.task, key=f"return {one.number}", spans=spans, notes=notes)
