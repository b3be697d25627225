"""`crew prune`: removes the worktrees and branches of finished tasks; their content is kept."""

from typing import TYPE_CHECKING, Any

import click

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import confirm, yes_option
from crew.runner.upkeep.prune_remains import find_remains, remove_remains

if TYPE_CHECKING:
    from crew.domain.upkeep.prune_plan import Remains


@command("prune", example="crew prune --dry-run\ncrew prune --yes\ncrew prune --branches")
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed.")
@click.option("--branches", is_flag=True, help="Also remove branches that are not merged.")
@yes_option
@pass_call
def prune(call: Call, *, dry_run: bool, branches: bool, yes: bool) -> None:
    """Remove the worktrees and branches of finished tasks.

    Finished tasks are merged, closed or deleted; crew removes only what it made. A checkpoint keeps
    every worktree and every unmerged branch first. While a runner is up, branches stay. Checkpoints
    of merged tasks that are older than [worktree] checkpoint_days are deleted.
    """
    workplace = call.workplace()
    found = find_remains(workplace, unmerged=branches)
    for words in _told(found):
        narrate(call, words)
    if dry_run or found.is_nothing or not confirm("Remove all this?", yes=yes):
        narrate(call, "nothing was removed")
        _tell(call, found, removed=False)
        return
    remove_remains(workplace, found, unmerged=branches)
    _tell(call, found, removed=True)


def _told(found: "Remains") -> list[str]:
    words = []
    if found.is_postponed:
        words += ["a runner is up: branches, and worktrees of unknown tasks, stay for now"]
    words += [
        f"removes the worktree {one.path}, after a checkpoint"
        + (" of its uncommitted changes" if one.is_dirty else "")
        for one in found.worktrees
    ]
    words += [
        f"removes the branch {one.name}, "
        + ("which is merged" if one.is_merged else "which is not merged, after a checkpoint")
        for one in found.branches
    ]
    if found.old_checkpoints:
        words += [f"deletes {found.old_checkpoints} old checkpoints of merged tasks"]
    return words + [
        f"keeps the branch {one.name}, which is "
        + ("checked out" if one.is_merged else "not merged (--branches removes it)")
        for one in found.kept
    ]


def _tell(call: Call, found: "Remains", *, removed: bool) -> None:
    document: dict[str, Any] = {
        "removed": removed,
        "worktrees": [one.path for one in found.worktrees],
        "branches": [one.name for one in found.branches],
        "kept_branches": [one.name for one in found.kept],
        "old_checkpoints": found.old_checkpoints,
    }
    if call.json:
        print_json(document)
    elif removed:
        narrate(call, "removed; `crew checkpoints TASK` lists its checkpoints")
