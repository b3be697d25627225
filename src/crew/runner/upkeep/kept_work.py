"""`crew checkpoints` and `crew restore`: lists a task's checkpoints, writes one to a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.names import task_id
from crew.git.checkpoints.checkpoints import Checkpoint, checkpoints, restore
from crew.git.checkpoints.reflogs import way_back
from crew.runner.views.row_views import moment

if TYPE_CHECKING:
    from crew.workplace import Workplace


def kept_task(workplace: "Workplace", named: str) -> str:
    """The id of a task with checkpoints, which a removed task still has."""
    try:
        return workplace.source.resolve(named)
    except NotFound:
        if checkpoints(workplace.repo, task_id(named)):
            return task_id(named)
        raise


def kept_views(workplace: "Workplace", task: str) -> list[dict[str, Any]]:
    """All checkpoints of a task, the oldest first."""
    return [_view(kept) for kept in checkpoints(workplace.repo, task)]


def restore_work(
    workplace: "Workplace", task: str, *, number: int | None, into: Path | None
) -> tuple[Path, dict[str, Any]]:
    """Write a checkpoint, by default the last one, to a new or empty folder.

    It records no fact, since no row changes and no existing file is touched.
    """
    if number is None:
        kept = checkpoints(workplace.repo, task)
        number = kept[-1].number if kept else None
    folder = into or workplace.worktrees / f"restored-{task}-{number}"
    return folder, _view(restore(workplace.repo, task, number, folder))


def _view(kept: Checkpoint) -> dict[str, Any]:
    return {
        "number": kept.number,
        "commit": kept.commit,
        "parent": kept.parent,
        "label": kept.label,
        "at": moment(kept.at),
        "reset_away": list(kept.notes.reset_away),
        "nested": [one.path for one in kept.notes.nested],
        "left_out": list(kept.notes.left_out),
    }


def remarks(workplace: "Workplace", view: dict[str, Any]) -> Iterator[str]:
    """What a checkpoint contains besides files, and what it does not contain."""
    at = f"checkpoint {view['number']}"
    for commit in view["reset_away"]:
        words = way_back(workplace.repo, commit)
        yield f"{at} holds a commit that was left behind: {words}"
    for path in view["nested"]:
        yield f"{at} holds the repository {path} with its commits"
    for words in view["left_out"]:
        yield f"{at} does not hold {words}"
