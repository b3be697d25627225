"""One task as cells of the board: id, parent, status, agent, labels, title and its flags."""

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import blockers
from crew.front.tui.board.board_order import STATE_TITLES, BoardLine, agents_of
from crew.front.tui.live.made_once import made_once
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.line_list import ShownLine, heading
from crew.front.tui.widgets.paint import STATUS_STYLES, Span, fit, safe

STATUS_SYMBOLS = {
    "todo": "○",
    "in_progress": "●",
    "done": "✓",
    "merged": "◆",
    "closed": "-",
    "error": "!",
}
WIDE = 110
"""From this width on, a line has columns for the parent and the labels."""

ROOMY = 90
"""From this width on, `In Progress (20m, awaiting_user)` is shown in full."""


@frozen
class TaskCells:
    """The texts of a task's line, made safe."""

    id: str
    status: str
    state: str
    agent: str
    title: str
    parent: str = ""
    labels: str = ""
    flags: tuple[Span, ...] = ()


def task_cells(picture: Picture, task: str, *, now: float) -> TaskCells:
    item = picture.items[task]
    state = picture.status_of(task)
    return TaskCells(
        id=safe(task),
        status=status_words(picture, task, now=now),
        state=state,
        agent=safe("/".join(agents_of(picture, item))),
        title=safe(item.title),
        parent=safe(item.parent or ""),
        labels=safe(",".join(item.labels)),
        flags=_flags(picture, task),
    )


def _flags(picture: Picture, task: str) -> tuple[Span, ...]:
    item = picture.items[task]
    if item.corrupt:
        return (("[CORRUPTED] ", "bad"),)
    is_open = picture.status_of(task) in {TaskState.TODO, TaskState.ERROR}
    if is_open and item.deps and blockers(item, picture.items, _over(picture)):
        return (("[BLOCKED] ", "warn"),)
    return ()


@made_once(lambda picture: (picture.world.tasks,))
def _over(picture: Picture) -> frozenset[str]:
    """The tasks for which no other task waits any more."""
    return frozenset(task for task, row in picture.world.tasks.items() if row.is_over)


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
    if _asks_permission(picture, run):
        return "awaiting_permission"
    agent = picture.world.agents.get(run.agent or "")
    if agent is not None and agent.state == "stuck":
        return "stuck"
    if run.state == RunState.REVIEWING:
        return "reviewing"
    if picture.world.terminal_of(run.id):
        return "terminal"
    return "" if picture.runner else "no runner"


def _asks_permission(picture: Picture, run: Run) -> bool:
    def is_its(question: Question) -> bool:
        return question.is_open and question.run == run.id

    return any(map(is_its, picture.world.questions.values()))


def _done_words(picture: Picture, task: str) -> str:
    row = picture.world.tasks[task]
    if row.landed_commit:
        return "landed"
    if row.conflict:
        return "conflict"
    return "in queue" if row.is_queued else "awaits merge"


def age(seconds: float) -> str:
    """A duration in its largest unit: 40s, 5m, 3h, 2d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def _fitting_status(cells: TaskCells, width: int) -> str:
    """The status in its column; on a narrow line its details matter more than `In Progress`."""
    if width >= ROOMY:
        return fit(cells.status, 32)
    begin, _, details = cells.status.partition(" (")
    is_long = len(cells.status) > 22 and begin == "In Progress"
    return fit(details.removesuffix(")") if is_long else cells.status, 22)


def board_line(picture: Picture, line: BoardLine, width: int, *, now: float) -> ShownLine:
    """The line of the board for a task or a heading."""
    if not line.task:
        return heading(f"{line.title} ({line.size})")
    cells = task_cells(picture, line.task, now=now)
    style = STATUS_STYLES[cells.state]
    indent = "  " * line.depth
    spans: list[Span] = [
        (f"{indent}{STATUS_SYMBOLS[cells.state]} ", style),
        (fit(cells.id, 5), "bold"),
        (" ", ""),
        (_fitting_status(cells, width), style),
        (" ", ""),
        (fit(cells.agent, 12 if width >= WIDE else 8), "muted"),
        (" ", ""),
    ]
    if width >= WIDE:
        spans += [(fit(cells.parent, 4), "muted"), (" ", ""), (fit(cells.labels, 12), "note")]
        spans.append((" ", ""))
    return ShownLine(spans=(*spans, *cells.flags, (cells.title, "")), key=cells.id)
