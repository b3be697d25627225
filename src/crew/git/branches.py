"""Creates the branches of tasks. A marker ref tells them apart from a person's branches."""

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import made_ref
from crew.git.git_command import GitAnswer, ask, failure, git
from crew.git.repository import Repository
from crew.system.crash_points import effect

_ARGS = ("update-ref", "-m", "crew", "--stdin")


def claim_branch(repo: Repository, branch: str, *, base: str) -> bool:
    """Create a task's branch at `base` with crew's mark; False if crew has done so before.

    An existing branch without the mark is refused.
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
        f"a branch below {branch}/ blocks the name {branch}, which crew needs",
        hint=f"rename the branches under {branch}/",
        code="branch_in_the_way",
    )


@effect("git.claim_branch")
def _create(repo: Repository, refs: tuple[str, ...], base: str) -> GitAnswer:
    """Create all refs or none. A kill in between leaves only the first, which is the mark."""
    lines = "".join(f"create {ref} {base}\n" for ref in refs)
    return ask(repo.common_dir, *_ARGS, stdin=lines.encode())
