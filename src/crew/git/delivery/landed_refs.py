"""The integration refs, which hold what landed: reads them, and restores a damaged one.

Only crew writes them, and the store records where. So a ref whose file is garbage, or that names a
missing commit, is put back where the record has it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import landed_ref
from crew.git.delivery.deleted_targets import clear_the_way
from crew.git.git_command import GitFailed
from crew.git.merges.merges import is_readable
from crew.git.refs import Moved, advance
from crew.git.repository import Repository, is_object_id, ref_tip, refs_like
from crew.git.task_repository.agent_refs import remove
from crew.system.crash_points import effect

REPAIR = "`crew doctor --repair` restores it; so does the next `crew run`"

_readable: set[str] = set()


def integration_tip(repo: Repository, target: str) -> str:
    """The tip of the integration ref, which starts at the target's commit."""
    ref = landed_ref(target)
    if _is_damaged(repo, ref):
        raise Conflict(f"{ref} is damaged", hint=REPAIR, code="landed_ref_damaged")
    found = ref_tip(repo, ref)
    if found is not None:
        return found
    start = ref_tip(repo, f"refs/heads/{target}")
    if start is None:
        raise Conflict(
            f"the branch {target} to land on does not exist", hint=f"create it: git branch {target}"
        )
    try:
        _create(repo, target, start)
    except Moved as moved:
        return moved.at or start
    return start


def _create(repo: Repository, target: str, start: str) -> None:
    try:
        advance(repo, landed_ref(target), to=start, expected=None)
    except GitFailed:
        if not clear_the_way(repo, target):
            raise
        advance(repo, landed_ref(target), to=start, expected=None)


def landed_tips(repo: Repository) -> dict[str, str]:
    """Every target that has landed work, with the tip of its integration ref."""
    start = landed_ref("")
    tips = refs_like(repo, start)
    return {ref.removeprefix(start): tip for ref, tip in tips.items() if _has(repo, tip)}


def damaged_targets(repo: Repository) -> list[str]:
    """The targets whose integration ref cannot be read or names a missing commit."""
    start = landed_ref("")
    return sorted(ref.removeprefix(start) for ref in _loose(repo, start) if _is_damaged(repo, ref))


def restore_landed(repo: Repository, recorded: Mapping[str, str]) -> list[str]:
    """Put each damaged ref back to its recorded commit, or to the target's; the targets."""
    damaged = damaged_targets(repo)
    for target in damaged:
        known = (recorded.get(target, ""), ref_tip(repo, f"refs/heads/{target}") or "")
        _restore(repo, landed_ref(target), known)
    return damaged


@effect("git.restore_landed")
def _restore(repo: Repository, ref: str, known: Iterable[str]) -> None:
    """Git refuses to move a ref whose file is garbage, so the file is removed first."""
    remove(repo.common_dir / ref)
    commit = next((one for one in known if one and _has(repo, one)), None)
    if commit is not None and ref_tip(repo, ref) is None:
        advance(repo, ref, to=commit, expected=None)


def _is_damaged(repo: Repository, ref: str) -> bool:
    try:
        content = (repo.common_dir / ref).read_bytes().strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    name = content.decode("ascii", "replace")
    return not is_object_id(name) or not _has(repo, name)


def _has(repo: Repository, commit: str) -> bool:
    """Whether the commit can be read; remembered, since commits do not change."""
    if commit not in _readable and is_readable(repo, commit):
        _readable.add(commit)
    return commit in _readable


def _loose(repo: Repository, start: str) -> Iterator[str]:
    folder = repo.common_dir / start
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock")
    yield from (str(Path(file).relative_to(repo.common_dir)) for file in files)
