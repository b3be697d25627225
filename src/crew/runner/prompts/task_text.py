"""Reads what a prompt needs from the disk: the task's text, its brief, its branch's commits."""

from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.quotation import LONGEST_NOTES, attributed
from crew.domain.rows.run import NEW_SESSION, Ask, Run
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.git.worktrees.branch_work import read_work
from crew.runner.outside.outside import StepCall
from crew.runner.prompts.brief_text import read_brief
from crew.runner.prompts.step_prompt import Seen, needs_the_task
from crew.workplace import Workplace


def read_seen(workplace: Workplace, call: StepCall) -> Seen:
    """Read a step's texts."""
    if (seen := seen_at_once(workplace, call)) is not None:
        return seen
    run, task = call.run, call.task
    item = _read_item(workplace, run, task)
    is_first = run.ask == Ask.FIRST or (run.number, run.steps, run.attempt) == (1, 1, 1)
    held = "" if is_first else _held(workplace, run, task)
    return Seen(item=item, held=held, brief=read_brief(workplace.source, call.brief))


def seen_at_once(workplace: Workplace, call: StepCall) -> Seen | None:
    """What a session that knows its task gets: the task's name. None if there is more to read."""
    return None if needs_the_task(workplace, call) else Seen(item=_by_name(call.task))


def _read_item(workplace: Workplace, run: Run, task: Task) -> TaskItem:
    """The task as its source has it; a missing file does not stop a task that has begun."""
    try:
        return workplace.source.show(task.id)
    except NotFound:
        if run.ask in NEW_SESSION:
            raise
        return _by_name(task)


def _by_name(task: Task) -> TaskItem:
    return TaskItem(id=task.id, title=task.title)


def _held(workplace: Workplace, run: Run, task: Task) -> str:
    """What the branch already contains, for a session that does not know it."""
    work = read_work(workplace.repo, workplace.worktree_of(task), base=run.base)
    commits = attributed("Commits", work.commits or "(none)")
    uncommitted = attributed("Uncommitted", work.uncommitted or "(nothing)", most=LONGEST_NOTES)
    return f"{commits}\n\n{uncommitted}"
