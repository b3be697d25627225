"""What a person took out of a target branch, and how the work that was built on it goes on.

A reset, a rebase, an amend or a forced update replaces commits that crew had delivered. They may
not come back, neither as content nor in the history. So work that contains some of them is
*replayed*: each of its own commits is made again on the branch as it is now.

For that there is one commit that git itself understands, the *superseding* commit. It has the
content of the branch as it is, and the branch and everything that was removed as its parents. A
merge of the work with it takes the removal into account. It is never landed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import landed_ref, superseded_ref
from crew.git.git_command import GitFailed, ask, git
from crew.git.merges.favoured_side import favoured_tree
from crew.git.merges.merges import (
    MergeConflict,
    contains,
    contents,
    identity,
    is_readable,
    merged_tree,
)
from crew.git.refs import Moved, advance, delete_ref
from crew.git.repository import Repository, commit_of, ref_tip
from crew.system.crash_points import effect
from crew.system.foreign_files import read_foreign

MOST_REPLAYED = 100
"""Longer work is replayed as one commit, so that no agent can keep git busy for hours."""

_NOWHERE = "refs/crew/none"
"""No ref has this name, so nothing is found there."""

_LONGEST_REFLOG = 64 * 1024 * 1024
_META = "%an%x00%ae%x00%ad%x00%cn%x00%ce%x00%cd%x00%B"
_WHO = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
_BY = ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE")


@frozen
class Replayed:
    """The newest commit of the replayed work, or the conflict with the superseding commit.

    `refused` is the reason why git can do neither.
    """

    commit: str = ""
    conflict: MergeConflict | None = None
    superseding: str = ""
    refused: str = ""


def is_rewritten(repo: Repository, target: str, last_seen: str) -> bool:
    """Whether the branch no longer contains the commit at which crew saw it last."""
    tip = ref_tip(repo, f"refs/heads/{target}")
    if tip is None or last_seen in ("", tip):
        return False
    return not contains(repo, ancestor=last_seen, descendant=tip)


def newest_delivered(repo: Repository, target: str, commits: Iterable[str]) -> str:
    """The first of these commits at which the branch was, as its reflog shows; empty if none."""
    lines = re.findall(rb"^[0-9a-f]+ ([0-9a-f]+) ", _log_of(repo, target), re.MULTILINE)
    been = frozenset(lines)
    return next((one for one in commits if one.encode() in been), "")


def renamed(repo: Repository, target: str) -> str:
    """The branch that a missing one was renamed to, as the reflogs show; empty if they do not."""
    words = f"\tBranch: renamed refs/heads/{target} to refs/heads/".encode()
    logs = repo.common_dir / "logs" / "refs" / "heads"
    found = [
        branch
        for file in logs.rglob("*")
        if file.is_file() and words in _log_of(repo, branch := str(file.relative_to(logs)))
    ]
    there = [branch for branch in found if ref_tip(repo, f"refs/heads/{branch}")]
    return there[0] if len(there) == 1 else ""


def is_renamed(repo: Repository, target: str, last_seen: str) -> bool:
    """Whether a missing branch has another name now, and still what crew saw in it last."""
    name = renamed(repo, target)
    tip = ref_tip(repo, f"refs/heads/{name}") if name else None
    return tip is not None and contains(repo, ancestor=last_seen, descendant=tip)


def rename(repo: Repository, old: str, new: str) -> None:
    """Move what crew keeps about a branch to its new name; safe to repeat.

    Git cannot have `a` next to `a/b`, so the old ref goes first, and its commit is kept elsewhere.
    """
    kept = [ref_tip(repo, superseded_ref(old)), ref_tip(repo, landed_ref(old))]
    _keep(repo, new, *filter(None, kept))
    for ref, at in zip((superseded_ref(old), landed_ref(old)), kept, strict=True):
        if at is not None:
            delete_ref(repo, ref, expected=at)
    if kept[1] is not None:
        with suppress(Moved):
            advance(repo, landed_ref(new), to=kept[1], expected=None)


def _log_of(repo: Repository, branch: str) -> bytes:
    log = f"{repo.common_dir}/logs/refs/heads/{branch}"
    try:
        return read_foreign(log, max_bytes=_LONGEST_REFLOG)
    except (OSError, ValueError):
        return b""


def supersede(
    repo: Repository,
    target: str,
    *,
    now: str,
    removed: Iterable[str],
    landed: str,
    branches: Mapping[str, str],
) -> str:
    """Let what lands on this target start from the commit `now`; safe to repeat.

    The commit that supersedes `removed` is returned. It stays reachable, as does what had `landed`.
    `branches` are those of work that landed and was never delivered: a branch that crew deleted is
    made again.
    """
    made = _superseding(repo, now, removed)
    _keep(repo, target, made, landed)
    for branch, head in branches.items():
        is_gone = bool(branch) and ref_tip(repo, f"refs/heads/{branch}") is None
        if is_gone and is_readable(repo, head):
            with suppress(Moved):
                advance(repo, f"refs/heads/{branch}", to=head, expected=None)
    at = ref_tip(repo, landed_ref(target))
    if at != now:
        advance(repo, landed_ref(target), to=now, expected=at)
    return made


@frozen
class Removal:
    """What people removed from a target: the commit that supersedes it.

    `given_up` are integration tips of that time. Their work was never delivered, and lands anew.
    `offered` are superseding commits that agents were asked to merge.
    """

    target: str
    superseded: str
    given_up: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()


def replay(
    repo: Repository, head: str, *, onto: str, removal: Removal, favours: str = ""
) -> Replayed:
    """The work `head` on the commit `onto`, without anything that was removed from the branch.

    Work that contains nothing of that is returned as it is.
    """
    others = [_without(repo, head, one, removal.superseded) for one in removal.given_up]
    merged = [one for one in removal.offered if contains(repo, ancestor=one, descendant=head)]
    removed = _readable(repo, (removal.superseded, *others, *merged))
    if not _has_any(repo, head, removed, onto=onto):
        return Replayed(commit=head)
    whole = _superseding(repo, onto, removed)
    last = _tree_with(repo, whole, head)
    if last is None:
        return Replayed(refused="git cannot merge it")
    if isinstance(last, MergeConflict) and favours:
        last = favoured_tree(repo, onto=whole, head=head, favours_head=favours == "mine")
    if isinstance(last, MergeConflict):
        _keep(repo, removal.target, whole)
        return Replayed(conflict=last, superseding=whole)
    tip, tree = onto, _tree(repo, onto)
    for commit in _own_commits(repo, head, whole):
        made = last if commit == head else _tree_with(repo, whole, commit)
        if isinstance(made, str) and (made != tree or commit == head):
            tip, tree = _commit_again(repo, commit, tree=made, parent=tip), made
    return Replayed(commit=tip)


def _tree_with(repo: Repository, superseding: str, head: str) -> str | MergeConflict | None:
    """The tree of the merge; None if git cannot merge the commit with anything."""
    try:
        return merged_tree(repo, onto=superseding, head=head)
    except GitFailed:
        return None


def _without(repo: Repository, head: str, landed: str, superseded: str) -> str:
    """What had landed before this work, or an earlier state of it, did; empty if nothing had.

    Work that was built on a landing contains its merge commit. Of its own landing it contains only
    the commit that was merged.
    """
    if not is_readable(repo, landed):
        return ""
    older = ("--not", superseded) if is_readable(repo, superseded) else ()
    line = ("rev-list", "--first-parent", "--reverse", "--parents", landed, *older)
    newest = ""
    for tip, *parents in map(str.split, git(repo.common_dir, *line).splitlines()):
        merged = parents[1] if len(parents) == 2 else ""
        is_own = merged and contains(repo, ancestor=merged, descendant=head)
        if is_own and not contains(repo, ancestor=tip, descendant=head):
            break
        newest = tip
    return newest


def dropped(
    repo: Repository, landed: Mapping[str, str], *, was: str, now: str
) -> tuple[tuple[str, str], ...]:
    """The tasks of which a rewrite left next to nothing, by the commits with which they landed.

    A rebase, an amend or a squash keeps the content of a task. What other work had replaced before
    the rewrite does not count. `was` and `now` are the branch before and after it. Beside each task
    stands what `git cherry-pick` needs to bring it back.
    """
    if not is_readable(repo, was) or _tree(repo, was) == _tree(repo, now):
        return ()
    changed, renamed = frozenset(_changed(repo, was, now)), _renames(repo, was, now)

    def is_gone(commit: str) -> bool:
        if not is_readable(repo, commit):
            return False
        before = commit_of(repo, f"{commit}^1") or _NOWHERE
        paths = _changed(repo, before, commit)
        if changed.isdisjoint(paths):
            return False
        left = _left_of(repo, (before, commit, was, now), paths, renamed)
        return left < 0.5 and not contains(repo, ancestor=commit, descendant=now)

    return tuple((task, _pick(repo, one)) for task, one in landed.items() if is_gone(one))


def _pick(repo: Repository, commit: str) -> str:
    is_merge = commit_of(repo, f"{commit}^2") is not None
    return f"-m 1 {commit}" if is_merge else commit


def _left_of(
    repo: Repository,
    places: tuple[str, str, str, str],
    paths: Iterable[str],
    renamed: Mapping[str, str],
) -> float:
    """The share of a change that is left: lines that were there before the rewrite and still are.

    `places` are the commits before and after the change, then before and after the rewrite.
    """
    *earlier, now = places
    left = total = 0
    for path in paths:
        names = [*(f"{place}:{path}" for place in earlier), f"{now}:{renamed.get(path, path)}"]
        blobs = contents(repo, names)
        old, new, then, after = (_lines(blobs[name]) for name in names)
        added, removed = (new - old) & then, (old - new) - then
        total += added.total() + removed.total()
        left += (added & (after - old)).total() + (removed - after).total()
    return left / total if total else 1.0


def _lines(content: bytes | None) -> Counter[bytes]:
    """The lines of a file; a file without any still counts as one that exists."""
    if content is None:
        return Counter()
    return Counter([line.strip() for line in content.splitlines() if line.strip()] or [b""])


def _changed(repo: Repository, before: str, after: str) -> list[str]:
    trees = ("--root", after) if before == _NOWHERE else (before, after)
    shown = ("-r", "-z", "--name-only", "--no-renames", "--no-commit-id")
    listed = git(repo.common_dir, "diff-tree", *shown, *trees)
    return [path for path in listed.split("\0") if path]


def _renames(repo: Repository, was: str, now: str) -> dict[str, str]:
    shown = ("-r", "-z", "-M", "--name-status", "--diff-filter=R")
    words = git(repo.common_dir, "diff-tree", *shown, was, now).split("\0")
    return dict(zip(words[1::3], words[2::3], strict=False))


def _readable(repo: Repository, commits: Iterable[str]) -> list[str]:
    """Without those that are gone for good."""
    return [one for one in dict.fromkeys(commits) if one and is_readable(repo, one)]


def _has_any(repo: Repository, head: str, removed: list[str], *, onto: str) -> bool:
    """Whether the work contains a removed commit that the branch does not have again."""
    if not removed:
        return False
    shared = ask(repo.common_dir, "merge-base", "--all", head, *removed).out.decode().split()
    return any(not contains(repo, ancestor=one, descendant=onto) for one in shared)


def _own_commits(repo: Repository, head: str, superseding: str) -> list[str]:
    """The commits of the work itself, the oldest first; just the newest of very many."""
    most = f"--max-count={MOST_REPLAYED + 1}"
    listed = git(
        repo.common_dir, "rev-list", "--first-parent", most, head, "--not", superseding
    ).split()
    return listed[::-1] if len(listed) <= MOST_REPLAYED else [head]


@effect("git.commit_superseding")
def _superseding(repo: Repository, now: str, removed: Iterable[str]) -> str:
    """The same arguments give the same commit; removed commits that are gone are left out."""
    return _joined(repo, now, _readable(repo, removed), tree=_tree(repo, now))


def _keep(repo: Repository, target: str, *commits: str) -> None:
    """Keep these commits reachable, beside those that were kept before, also by another thread."""
    ref, there = superseded_ref(target), _readable(repo, commits)
    while there:
        at = ref_tip(repo, ref)
        if at is not None and all(contains(repo, ancestor=one, descendant=at) for one in there):
            return
        first, *others = filter(None, (at, *there))
        with suppress(Moved):
            joined = _joined(repo, first, others, tree=_tree(repo, first))
            advance(repo, ref, to=joined, expected=at)


def _joined(repo: Repository, first: str, others: Iterable[str], *, tree: str) -> str:
    parents = [word for one in (first, *others) for word in ("-p", one)]
    stdin = b"What people removed from the branch\n\nThis commit is never landed.\n"
    return git(repo.common_dir, "commit-tree", *parents, tree, stdin=stdin, env=identity(0))


@effect("git.commit_again")
def _commit_again(repo: Repository, commit: str, *, tree: str, parent: str) -> str:
    """The commit with its author and message, in another place."""
    shown = ("show", "-s", "--date=raw", "--encoding=UTF-8", f"--format={_META}", commit)
    told = git(repo.common_dir, *shown).split("\0", 6)
    stdin = told[6].encode("utf-8", "surrogateescape")
    args = ("commit-tree", "-p", parent, tree)
    env = identity(0)
    for names, (name, email, date) in ((_WHO, told[:3]), (_BY, told[3:6])):
        if name.strip() and email.strip():
            env |= dict(zip(names, (name, email, f"@{date}"), strict=True))
    try:
        return git(repo.common_dir, *args, stdin=stdin, env=env)
    except GitFailed:  # a name or a date that git itself would not write
        return git(repo.common_dir, *args, stdin=stdin, env=identity(0))


def _tree(repo: Repository, commit: str) -> str:
    return git(repo.common_dir, "rev-parse", f"{commit}^{{tree}}")
