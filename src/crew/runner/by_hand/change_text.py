"""The change of a task as the text of a unified diff, for front ends that draw it themselves."""

from contextlib import suppress

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.git.git_command import first_output, git
from crew.git.repository import commit_of
from crew.git.worktrees.worktrees import follow
from crew.runner.by_hand.task_diff import ShownDiff, diff_of
from crew.workplace import Workplace

MOST_BYTES = 4_000_000
PATIENCE_S = 30.0
_SETTINGS = {"core.bigFileThreshold": "1m", "core.quotePath": "false"}
"""Git shows a larger file as a binary one."""

_PATCH = (
    *("diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3"),
)


@frozen
class ChangePlace:
    """The commits that the diff is between; equal ones have an equal diff."""

    start: str
    head: str


@frozen
class ChangeText:
    """A diff; `is_all` is false if it is longer than the text."""

    place: ChangePlace
    text: str
    is_all: bool = True


def find_change(workplace: Workplace, task: str) -> ChangePlace | None:
    """The commits of the task's change; None if it has changed nothing yet.

    What the agent committed in its own repository is taken in first, as by `crew diff`.
    """
    change = diff_of(workplace, task)
    with suppress(NotFound):  # it has no worktree
        follow(workplace.repo, workplace.worktrees / change.task)
    head = change.landed or commit_of(workplace.repo, f"refs/heads/{change.branch}")
    if head is None:
        _check_begun(workplace, change)
        return None
    base = commit_of(workplace.repo, change.base)
    if base is None:
        raise NotFound(
            f"the target {change.base} of task {task} does not exist",
            hint="`git branch -a` shows the branches",
            code="no_target",
        )
    start = git(workplace.repo.common_dir, "merge-base", base, head, timeout_s=PATIENCE_S)
    return ChangePlace(start=start, head=head)


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
    text = output.decode(errors="replace")
    return ChangeText(place=place, text=text, is_all=is_all)
