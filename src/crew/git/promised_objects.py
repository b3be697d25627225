"""Brings what a partial clone lacks: objects that its remote promises, and git fetches on demand.

crew's own git never fetches: an agent could name an object, or a remote, and have a program run for
it. So before crew uses a commit of the person, the person's git fetches what that commit's files
need, with the person's settings and credentials, as a checkout would. Commits of agents are never
asked for: git refuses to take one in unless all its objects are here.
"""

from collections.abc import Iterable
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from crew.git.git_command import ask, failure, fetch_as_person, git, promising_remotes
from crew.git.repository import Repository, is_object_id
from crew.system.crash_points import effect

_ROUNDS = 4
"""A fetched tree may name others that are not here yet."""
_LONG_S = 1800.0

_whole: set[tuple[Path, str]] = set()
"""Commits whose objects were all here."""


class NotFetched(CrewError):
    """The person's git cannot fetch objects that their partial clone lacks."""

    code = "promised_objects_missing"


def bring_promised(repo: Repository, *commits: str) -> None:
    """Fetch what the files of these commits need. None of them may be an agent's own."""
    remotes = promising_remotes(repo.common_dir)
    wanted = [one for one in commits if remotes and (repo.common_dir, one) not in _whole]
    if not wanted:
        return
    for _ in range(_ROUNDS):
        missing = _missing(repo, wanted)
        if not missing:
            _whole.update((repo.common_dir, one) for one in wanted if is_object_id(one))
            return
        _fetch(repo, remotes, missing)
    raise _not_fetched(repo, remotes[0], f"{len(missing)} objects are still missing")


def bring_for_merge(repo: Repository, *, onto: str, head: str) -> None:
    """The same for a merge: what is merged into, and what both sides began from."""
    if promising_remotes(repo.common_dir):
        bases = ask(repo.common_dir, "merge-base", "--all", onto, head).out.decode().split()
        bring_promised(repo, onto, *bases)


def bring_if_persons(repo: Repository, commit: str) -> None:
    """The same for a commit that may be an agent's: only if a branch of the person has it."""
    if promising_remotes(repo.common_dir) and _is_persons(repo, commit):
        bring_promised(repo, commit)


def _is_persons(repo: Repository, commit: str) -> bool:
    patterns = ("refs/heads", "refs/remotes", "refs/tags")
    args = ("for-each-ref", "--format=%(refname)", f"--contains={commit}", *patterns)
    refs = git(repo.common_dir, *args).splitlines()
    return any(not ref.startswith("refs/heads/crew-") for ref in refs)


def _missing(repo: Repository, commits: Iterable[str]) -> list[str]:
    args = ("rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print", *commits)
    answer = ask(repo.common_dir, *args, timeout_s=_LONG_S)
    if answer.code != 0:
        raise failure(args, answer)
    return [line[1:] for line in answer.out.decode().splitlines() if line.startswith("?")]


@effect("git.fetch_promised")
def _fetch(repo: Repository, remotes: tuple[str, ...], missing: list[str]) -> None:
    """From the first remote that has them, as git itself does."""
    said = ""
    for remote in remotes:
        answer = fetch_as_person(repo.root, remote, missing)
        if answer.code == 0:
            return
        lines = [line for line in answer.err.splitlines() if line.strip()]
        said = said or (lines[0] if lines else f"git ended with {answer.code}")
    raise _not_fetched(repo, remotes[0], said)


def _not_fetched(repo: Repository, remote: str, said: str) -> NotFetched:
    return NotFetched(
        f"this partial clone lacks objects, and git cannot fetch them from {remote}: "
        f"{said.removeprefix('fatal: ')}",
        hint=f"crew tries again; see whether this works: git -C {repo.root} fetch {remote}",
    )
