"""Moving refs by compare-and-swap: one winner, and a repeat of what is done already is no error."""

from collections.abc import Mapping

from crew.domain.effects import effect
from crew.domain.errors import Conflict
from crew.git.command import ask, failure
from crew.git.repository import Repository, commit_of

ABSENT = "0" * 40


class Moved(Conflict):
    """The ref is not where it was expected; somebody else moved it."""

    code = "moved"

    def __init__(self, ref: str, *, at: str | None, expected: str | None) -> None:
        super().__init__(
            f"{ref} is at {_short(at)}, not at {_short(expected)}",
            hint="build on the commit it is at now and try again",
        )
        self.at = at


@effect("git.advance")
def advance(
    repo: Repository,
    ref: str,
    *,
    to: str,
    expected: str | None,
    keep_open: int | None = None,
) -> None:
    """Move a ref (full name) from `expected` to `to`; None means that it must not exist yet."""
    args = ("update-ref", "-m", "crew", ref, to, expected or ABSENT)
    answer = ask(repo.common_dir, *args, keep_open=keep_open)
    if answer.code == 0:
        return
    at = commit_of(repo, ref)
    if at == to:
        return
    if at == expected:
        raise failure(args, answer)
    raise Moved(ref, at=at, expected=expected)


@effect("git.delete_ref")
def delete_ref(repo: Repository, ref: str, *, expected: str) -> None:
    """Delete a ref (full name) that is at `expected`; one that is gone already is fine."""
    _delete(repo, ref, expected)


@effect("git.delete_ref")
def delete_refs(repo: Repository, refs: Mapping[str, str]) -> None:
    """Delete refs that are where they are expected to be, in one go; one that is gone is fine."""
    lines = "".join(f"delete {ref} {expected}\n" for ref, expected in refs.items())
    answer = ask(repo.common_dir, "update-ref", "--stdin", stdin=lines.encode())
    if answer.code != 0:
        for ref, expected in refs.items():
            _delete(repo, ref, expected)


def _delete(repo: Repository, ref: str, expected: str) -> None:
    args = ("update-ref", "-d", ref, expected)
    answer = ask(repo.common_dir, *args)
    if answer.code == 0:
        return
    at = commit_of(repo, ref)
    if at is None:
        return
    if at == expected:
        raise failure(args, answer)
    raise Moved(ref, at=at, expected=expected)


def _short(commit: str | None) -> str:
    return commit[:10] if commit else "nothing"
