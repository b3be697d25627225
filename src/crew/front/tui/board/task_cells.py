"""One task as cells of the board: id, parent, status, agent, labels, title and its flags."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from crew.domain.kernel.frozen import frozen
from crew.domain.quests.position import acting
from crew.domain.rows.quest import ItemState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import FINISHED, TaskState
from crew.front.tui.board.board_order import STATE_TITLES, BoardLine, agents_of
from crew.front.tui.board.task_columns import asking_runs, columns_of
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.line_list import ShownLine, heading
from crew.front.tui.widgets.paint import STATUS_STYLES, fit
from crew.front.tui.widgets.safe_text import Span, safe
from crew.runner.views.quest_views import role_title

STATUS_SYMBOLS = {
    "todo": "○",
    "in_progress": "●",
    "done": "✓",
    "merged": "◆",
    "closed": "-",
    "error": "!",
}
WITH_PARENT, WITH_LABELS = 76, 90
"""From these widths on, a line has a column for the parent, and one for the labels."""

LOOKED_AT = 400
"""How many lines are looked at to find out how wide the columns are."""

_NAMED = {
    **{state: str(state) for state in (ItemState.BLOCKED, ItemState.WAITING_FOR_ROLE)},
    ItemState.WAITING_FOR_USER: "awaiting_user",
}


@frozen
class TaskCells:
    """The texts of a task's line, made safe; `role` is what a quest does with the task now."""

    id: str
    status: str
    state: str
    agent: str
    title: str
    parent: str = ""
    labels: str = ""
    role: str = ""
    flags: tuple[Span, ...] = ()


@frozen
class BoardWidths:
    """How wide the columns are; those that no task fills have no width."""

    id: int = 4
    status: int = 31
    agent: int = 8
    parent: int = 0
    labels: int = 0


def task_cells(picture: Picture, task: str, *, now: float) -> TaskCells:
    item = picture.items[task]
    return TaskCells(
        id=safe(task),
        status=status_words(picture, task, now=now),
        state=columns_of(picture).status[task],
        agent=safe("/".join(agents_of(picture, item))),
        title=safe(item.title),
        parent=safe(item.parent or ""),
        labels=safe(",".join(item.labels)),
        role=safe(role_words(picture, task)),
        flags=_flags(picture, task),
    )


def _flags(picture: Picture, task: str) -> tuple[Span, ...]:
    if picture.items[task].corrupt:
        return (("[CORRUPTED] ", "bad"),)
    return (("[BLOCKED] ", "warn"),) if task in columns_of(picture).blocked else ()


def status_words(picture: Picture, task: str, *, now: float) -> str:
    """The status as people read it: `In Progress (5m, awaiting_user)`."""
    state = picture.status_of(task)
    row = picture.world.tasks.get(task)
    run = picture.world.runs.get((row.run if row else None) or "")
    words = STATE_TITLES[state].replace("In progress", "In Progress")
    if state == TaskState.IN_PROGRESS and run is not None:
        details = [age(now - run.started_at), _substate(picture, run)]
        return f"{words} ({', '.join(filter(None, details))})"
    if state == TaskState.DONE and row is not None:
        return f"{words} ({_done_words(picture, task)})"
    return words


def _substate(picture: Picture, run: Run) -> str:
    """What a live run waits for, if for anything."""
    question = picture.world.questions.get(run.question)
    if question is not None and question.is_open:
        return "awaiting_user"
    if run.id in asking_runs(picture.world.questions):
        return "awaiting_permission"
    agent = picture.world.agents.get(run.agent or "")
    if agent is not None and agent.state == "stuck":
        return "stuck"
    if run.state == RunState.REVIEWING:
        return "reviewing"
    if picture.world.terminal_of(run.id):
        return "terminal"
    return "" if picture.runner else "no runner"


def _done_words(picture: Picture, task: str) -> str:
    row = picture.world.tasks[task]
    if row.landed_commit:
        return "landed"
    if row.conflict:
        return "conflict"
    return "in queue" if row.is_queued else "awaits merge"


def age(seconds: float) -> str:
    """A duration in its largest unit: 40s, 5m, 3h, 2d; seconds by tens, so that lines stay calm."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds)) // 10 * 10}s"


def role_words(picture: Picture, task: str) -> str:
    """The role that acts for a task of a quest, or how far the quest itself is."""
    world = picture.world
    if task not in world.positions or picture.status_of(task) in FINISHED:
        return ""
    now = acting(world, task)
    words = ", ".join(filter(None, (now.role, role_title(world, now.quest, now.role))))
    if now.state in _NAMED:
        words += f" ({_NAMED[ItemState(now.state)]})"
    quest = world.quests.get(task)
    if quest is None:
        return words
    done = sum(_is_finished(picture, step.task) for step in quest.steps)
    progress = f"{done} of {len(quest.steps)} items done" if quest.steps else "no plan yet"
    return f"{progress}, at {world.positions[task].stage}{f': {words}' if words else ''}"


def _is_finished(picture: Picture, task: str) -> bool:
    row = picture.world.tasks.get(task)
    return row is not None and row.state in FINISHED


def board_widths(picture: Picture, lines: Sequence[BoardLine], *, now: float) -> BoardWidths:
    """The widths for these lines: no column is wider than its content.

    A status may become one letter longer while nothing happens: 9m becomes 10m. All ids are looked
    at: the longest come last.
    """
    cells = [task_cells(picture, one.task, now=now) for one in lines[:LOOKED_AT] if one.task]
    most = max((one.depth for one in lines[:LOOKED_AT]), default=0)
    return BoardWidths(
        id=min(12, max([2, *(len(one.task) for one in lines)])) + 2 * most,
        status=_widest((f"{one.status}." for one in cells), least=4, most=38),
        agent=_widest((one.agent for one in cells), least=0, most=18),
        parent=_widest((one.parent for one in cells), least=0, most=8),
        labels=_widest((one.labels for one in cells), least=0, most=24),
    )


def _widest(texts: Iterator[str], *, least: int, most: int) -> int:
    return min(most, max(least, max(map(cell_len, texts), default=0)))


def board_line(
    picture: Picture, line: BoardLine, width: int, *, now: float, widths: BoardWidths | None = None
) -> ShownLine:
    """The line of the board for a task, for an item that is no task yet, or for a heading."""
    if line.quest:
        return _planned_line(line)
    if not line.task or line.task not in picture.items:
        return heading(f"{line.title} ({line.size})")
    widths = widths or BoardWidths()
    cells = task_cells(picture, line.task, now=now)
    style = STATUS_STYLES[cells.state]
    indent = "  " * line.depth
    room = max(2, widths.id - len(indent))
    spans: list[Span] = [(f"{indent}{STATUS_SYMBOLS[cells.state]} ", style)]
    spans += [(fit(cells.id, room), "bold"), (" ", "")]
    if widths.parent and width >= WITH_PARENT:
        spans += [(fit(cells.parent, widths.parent), "muted"), (" ", "")]
    spans += [(_fitting_status(cells, min(widths.status, width * 2 // 5)), style), (" ", "")]
    if widths.agent:
        spans += [(fit(cells.agent, min(widths.agent, width // 8)), "muted"), (" ", "")]
    if widths.labels and width >= WITH_LABELS:
        spans += [(fit(cells.labels, min(widths.labels, width // 9)), "note"), (" ", "")]
    spans += [*cells.flags, (cells.title, "")]
    if cells.role:
        spans.append((f"  {cells.role}", "note"))
    return ShownLine(spans=tuple(spans), key=cells.id)


def _fitting_status(cells: TaskCells, room: int) -> str:
    """The status in its column; in a narrow one its details matter more than `In Progress`."""
    begin, _, details = cells.status.partition(" (")
    is_too_long = len(cells.status) > room and begin == "In Progress"
    return fit(details.removesuffix(")") if is_too_long else cells.status, room)


def _planned_line(line: BoardLine) -> ShownLine:
    spans = (("  " * line.depth, ""), ("· planned  ", "muted"), (safe(line.title), "muted"))
    return ShownLine(spans=spans, is_heading=True)
