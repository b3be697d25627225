"""The change of a task as the text of a unified diff, for front ends that draw it themselves."""

from contextlib import suppress

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import Task, TaskState
from crew.git.git_command import first_output, git
from crew.git.repository import commit_of, ref_tip
from crew.git.worktrees.worktrees import follow
from crew.runner.by_hand.task_diff import ShownDiff, diff_of
from crew.workplace import Workplace

MOST_BYTES = 4_000_000
MOST_LINES = 30_000
PATIENCE_S = 30.0
_SETTINGS = {"core.bigFileThreshold": "1m", "core.quotePath": "false"}
"""Git shows a larger file as a binary one."""

_PATCH = (
    *("diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3"),
)


@frozen
class ChangePlace:
    """The commits that the diff is between; `base` is the target that `start` was found for."""

    start: str
    head: str
    base: str


@frozen
class ChangeText:
    """A diff; `is_all` is false if it is longer than the text."""

    place: ChangePlace
    text: str
    is_all: bool = True


def find_change(
    workplace: Workplace, task: str, *, row: Task | None, known: ChangePlace | None
) -> ChangePlace | None:
    """The commits of the task's change; None if it has changed nothing yet.

    Commits of the agent's own repository are taken in first, as by `crew diff`. As long as
    the `known` ones are right, no git is started. A `row` saves the time to read it.
    """
    change = _from_row(row) or diff_of(workplace, task)
    with suppress(NotFound):  # it has no worktree
        follow(workplace.repo, workplace.worktrees / change.task)
    head = change.landed or ref_tip(workplace.repo, f"refs/heads/{change.branch}")
    if head is None:
        _check_begun(workplace, change)
        return None
    base = _base_of(workplace, change)
    if known is not None and (known.head, known.base) == (head, base):
        return known
    start = git(workplace.repo.common_dir, "merge-base", base, head, timeout_s=PATIENCE_S)
    return ChangePlace(start=start, head=head, base=base)


def _from_row(row: Task | None) -> ShownDiff | None:
    """Enough for a task at work; the others may have landed, or lost their branch."""
    if row is None or row.state != TaskState.IN_PROGRESS or not (row.branch and row.target):
        return None
    return ShownDiff(task=row.id, branch=row.branch, base=row.target)


def _base_of(workplace: Workplace, change: ShownDiff) -> str:
    repo = workplace.repo
    base = (None if change.landed else ref_tip(repo, f"refs/heads/{change.base}")) or commit_of(
        repo, change.base
    )
    if base is None:
        raise NotFound(
            f"the target {change.base} of task {change.task} does not exist",
            hint="`git branch -a` shows the branches",
            code="no_target",
        )
    return base


def _check_begun(workplace: Workplace, change: ShownDiff) -> None:
    """Raise if the task was worked on, so that its branch must have been deleted."""
    with suppress(CrewError):
        if workplace.source.show(change.task).status in {TaskState.TODO, TaskState.IN_PROGRESS}:
            return
    raise Conflict(
        f"task {change.task} has no branch {change.branch} any more",
        hint=f"`crew checkpoints {change.task}` lists what was kept of it",
        code="branch_gone",
    )


def change_text(workplace: Workplace, place: ChangePlace) -> ChangeText:
    """The diff between two commits of the main repository, which no agent can write to."""
    output, is_all = first_output(
        workplace.repo.common_dir,
        *(*_PATCH, place.start, place.head),
        settings=_SETTINGS,
        most=MOST_BYTES,
        timeout_s=PATIENCE_S,
    )
    lines = output.decode(errors="replace").split("\n", MOST_LINES)
    is_short = len(lines) <= MOST_LINES
    return ChangeText(place=place, text="\n".join(lines[:MOST_LINES]), is_all=is_all and is_short)
