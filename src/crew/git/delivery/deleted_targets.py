"""Landings whose target branch a person deleted: over once the person has the work elsewhere."""

import itertools
import shlex

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import landed_ref, made_ref
from crew.git.git_command import ask
from crew.git.refs import delete_ref
from crew.git.repository import Repository, has_branch, ref_tip, refs_like

_PERSONS = ("refs/heads", "refs/remotes", "refs/tags")


def is_over(repo: Repository, target: str, landed: str) -> bool:
    """Whether the target is deleted, and a branch or a tag of the person has what landed for it."""
    return not has_branch(repo, target) and is_persons(repo, landed)


def is_persons(repo: Repository, commit: str) -> bool:
    """Whether a ref of the person contains this commit. crew deletes its own branches one day."""
    format_ = "--format=%(refname)"
    answer = ask(repo.common_dir, "for-each-ref", format_, f"--contains={commit}", *_PERSONS)
    if answer.code != 0:
        return False  # the commit is missing
    return any(not _is_crews(repo, ref) for ref in answer.out.decode().split())


def clear_the_way(repo: Repository, target: str) -> bool:
    """Delete the landed refs that block this target's: git cannot have `a` next to `a/b`.

    Raises if the person has the work nowhere else. False if no ref blocks it.
    """
    start = landed_ref("")
    blocking = [
        (ref.removeprefix(start), tip)
        for ref, tip in refs_like(repo, start).items()
        if ref.startswith(f"{start}{target}/") or f"{start}{target}".startswith(f"{ref}/")
    ]
    for other, tip in blocking:
        if not is_over(repo, other, tip):
            raise Conflict(
                f"{landed_ref(other)} blocks the name {landed_ref(target)}, "
                f"and no branch has what landed for {other}",
                hint=f"keep it as a branch: {keep_command(repo, other)}",
                code="landed_ref_in_the_way",
            )
        delete_ref(repo, landed_ref(other), expected=tip)
    return bool(blocking)


def keep_command(repo: Repository, target: str) -> str:
    """The command that makes a branch of what landed: the target again, unless git refuses it."""
    return shlex.join(("git", "branch", _free_name(repo, target), landed_ref(target)))


def _free_name(repo: Repository, target: str) -> str:
    """The name of the target, or a similar one if other branches block it."""
    taken = refs_like(repo, "refs/heads")
    parents = itertools.accumulate(target.split("/")[:-1], lambda a, b: f"{a}/{b}")
    is_blocked = any(ref.startswith(f"refs/heads/{target}/") for ref in taken)
    if not is_blocked and not any(f"refs/heads/{parent}" in taken for parent in parents):
        return target
    name = f"landed-{target.replace('/', '-')}"
    names = itertools.chain((name,), (f"{name}-{number}" for number in itertools.count(2)))
    return next(one for one in names if f"refs/heads/{one}" not in taken)


def _is_crews(repo: Repository, ref: str) -> bool:
    branch = ref.removeprefix("refs/heads/")
    return branch != ref and ref_tip(repo, made_ref(branch)) is not None
