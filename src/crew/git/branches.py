"""Branches that crew makes for its tasks, each with a mark: a branch without one is a person's."""

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import made_ref
from crew.git.git_command import GitAnswer, ask, failure, git
from crew.git.repository import Repository
from crew.system.crash_points import effect

_ARGS = ("update-ref", "-m", "crew", "--stdin")


def claim_branch(repo: Repository, branch: str, *, base: str) -> bool:
    """Make a task's branch at `base`, marked as crew's; False when crew claimed it before.

    One that is there unmarked is refused.
    """
    mark, ref = made_ref(branch), f"refs/heads/{branch}"
    answer = _create(repo, (mark, ref), base)
    if answer.code == 0:
        return True
    listed = git(repo.common_dir, "for-each-ref", "--format=%(refname)", mark, ref).split()
    if mark in listed:
        return False
    if ref in listed:
        raise Conflict(
            f"there is a branch {branch} that crew did not make",
            hint=f"give it another name: git branch -m {branch} my-{branch}",
            code="branch_not_ours",
        )
    raise standing_in_the_way(branch) if listed else failure(_ARGS, answer)


def standing_in_the_way(branch: str) -> Conflict:
    return Conflict(
        f"another branch stands where crew needs {branch}",
        hint=f"rename the branches under {branch}/",
        code="branch_in_the_way",
    )


@effect("git.claim_branch")
def _create(repo: Repository, refs: tuple[str, ...], base: str) -> GitAnswer:
    """All of them or none; a kill in between leaves the first, which is the mark."""
    lines = "".join(f"create {ref} {base}\n" for ref in refs)
    return ask(repo.common_dir, *_ARGS, stdin=lines.encode())
