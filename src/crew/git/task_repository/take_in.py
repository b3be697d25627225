"""Takes the commits of a task's own repository into the main one, and moves the task's branch.

Git reads the agent's objects as data, from a git dir that is crew's: no setting, hook or attribute
of the agent's repository matters. Every object is checked before it is stored (`--strict`).
"""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError
from crew.git import lfs
from crew.git.git_command import DISK_FULL, GitAnswer, GitFailed, ask, failure
from crew.git.merges.merges import contains
from crew.git.refs import Moved, advance, is_swapped
from crew.git.repository import Repository, commit_of, landed_commits, ref_tip
from crew.git.task_repository.agent_refs import (
    LARGEST_LIST,
    PACKED,
    AgentHead,
    agent_git_of,
    has_long_list,
    is_folder,
    read_head,
    read_text,
)
from crew.git.task_repository.branch_holders import checked_out, worktree_with
from crew.git.task_repository.lay_repository import alternates
from crew.git.task_repository.long_paths import unfit_for_checkout
from crew.git.task_repository.plain_objects import take_in_plain
from crew.git.task_repository.special_files import Walked, special_files, walk
from crew.git.task_repository.store_objects import LONG_S, reading, store_pack
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.file_locks import held
from crew.system.foreign_folders import write_below

_MIRRORED = "crew-mirrored"
"""In crew's git dir of a folder: where crew moved the task's branch, one commit on each line."""
_PACK = "crew-in"
_LARGEST = 4096

UNTRUSTED = (
    # These files could make git believe in other parents or objects than there are.
    *("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"),
    *("-c", "pack.useBitmaps=false"),
    *("-c", "pack.threads=1", "-c", "core.fsync=none"),
)


class NotTakenIn(GitFailed):
    """Git refuses the commits of a task's own repository, or they are incomplete."""

    code = "commits_not_taken_in"


def follow_agent(repo: Repository, crew_git: Path) -> AgentHead | None:
    """Take in the agent's HEAD, if it moved, and move the task's branch there.

    None if the agent's repository is missing or damaged: the branch stays where it was.
    """
    agent_git = agent_git_of(crew_git)
    head, branch = read_head(agent_git), mirror_of(crew_git)
    commit = head.commit if head is not None else None
    if commit and branch and ref_tip(repo, branch) != commit:
        with held(crew_git / "crew.lock"):
            _follow(repo, branch, commit, crew_git=crew_git)
    if has_long_list(agent_git):
        raise _too_many_refs()
    return head


def follow_or_clean(repo: Repository, crew_git: Path) -> AgentHead | None:
    """The same before a step. The next look at the work reports what is in the way of it."""
    try:
        return follow_agent(repo, crew_git)
    except NotTakenIn:
        _drop_special(crew_git)
    except CrewError:
        pass
    return None


def _follow(repo: Repository, branch: str, commit: str, *, crew_git: Path) -> None:
    at, noted = ref_tip(repo, branch), mirrored(crew_git)
    if at == commit:
        return  # another process of crew was faster
    if at is not None and noted and at not in noted:
        if noted[-1] == commit and is_ahead(repo, at, of=commit):
            return  # a person's commits, which the agent gets before its next step
        raise _moved_by_another(branch, at=at, head=commit)
    if holder := worktree_with(repo, branch):
        raise checked_out(branch.removeprefix("refs/heads/"), holder)
    is_plain = take_in_plain(repo, agent_git_of(crew_git) / "objects", commit, known=at)
    if not is_plain:
        _take_in_checked(repo, crew_git, commit, tuple(filter(None, (at,))))
    if paths := lfs.take_in_contents(repo, agent_git_of(crew_git), commit, known=at):
        raise _without_content(paths)
    note_mirror(crew_git, commit)
    if not (is_plain and at and is_swapped(repo, branch, to=commit, expected=at)):
        _move(repo, branch, to=commit, expected=at)


def is_ahead(repo: Repository, tip: str, *, of: str) -> bool:
    """Whether a person committed on top of the commit at which crew put the task's branch."""
    return contains(repo, ancestor=of, descendant=tip)


def _take_in_checked(repo: Repository, crew_git: Path, commit: str, known: tuple[str, ...]) -> None:
    """Take in a commit that may land: git checks each of its objects, even those already here.

    A checkpoint stores files without that check. What landed was checked.
    """
    landed = tuple(landed_commits(repo))
    try:
        take_in(repo, crew_git, (commit,), without=(*known, *landed), is_all=True)
    except NotTakenIn:
        if not landed:
            raise
        take_in(
            repo, crew_git, (commit,), without=known, is_all=True
        )  # a landed ref may be damaged
    if commit_of(repo, commit) is None:
        return  # the branch cannot be moved there
    if unfit := unfit_for_checkout(repo, commit, since=next(iter((*known, *landed)), None)):
        raise NotTakenIn(f"the commits of the task cannot land: {unfit}", hint=_HINT)


def take_in(
    repo: Repository,
    crew_git: Path,
    commits: Iterable[str],
    *,
    without: Iterable[str] = (),
    is_all: bool = False,
    objects: Path | None = None,
) -> None:
    """Store these commits of the agent's repository, and all they need, in the main one."""
    revs = [*commits, *(f"^{commit}" for commit in without)]
    env = seeing(repo, crew_git, objects)
    take_from(repo, revs, env=env, scratch=crew_git, is_all=is_all)


def take_from(
    repo: Repository,
    revs: list[str],
    *,
    env: Mapping[str, str],
    scratch: Path,
    is_all: bool = False,
) -> None:
    """Store the objects of these revisions that `env` shows and the main repository lacks.

    `is_all`: those that it has are checked too.
    """
    try:
        pack = _pack(scratch, revs, env, is_all=is_all)
        stored = store_pack(repo, pack) if pack is not None else None
        if stored is not None and stored.code != 0:
            raise _refused(stored)
    finally:
        for left in scratch.glob(f"{_PACK}-*"):
            left.unlink(missing_ok=True)


def existing(
    repo: Repository, crew_git: Path, commits: Iterable[str], *, objects: Path | None = None
) -> list[str]:
    """Those of the commits, or of the commits of tags, that git finds there or in the main one."""
    args = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    stdin = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
    env = seeing(repo, crew_git, objects)
    answer = ask(crew_git, *UNTRUSTED, *args, stdin=stdin, env=env)
    found = (line.split(" ") for line in answer.out.decode(errors="replace").splitlines())
    return list(dict.fromkeys(words[0] for words in found if words[1:] == ["commit"]))


@effect("git.note_mirror")
def note_mirror(crew_git: Path, commit: str) -> None:
    """Record where crew moves the task's branch next, to notice if another process moves it.

    The branch is at the last commit or, after a kill, at the one before it.
    """
    file = f"{crew_git}/{_MIRRORED}"
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(handle, f"{commit}\n".encode())
        is_long = os.fstat(handle).st_size > _LARGEST // 2
    finally:
        os.close(handle)
    if is_long:
        write_file(Path(file), "".join(f"{one}\n" for one in mirrored(crew_git)).encode())


def mirrored(crew_git: Path) -> list[str]:
    """Where crew moved the task's branch last, and before that."""
    return (read_text(f"{crew_git}/{_MIRRORED}", most=_LARGEST) or "").split()[-2:]


def refuse_special(path: Path, git_dir: Path) -> Walked:
    """Raise if git would wait for a pipe, a socket or a device in this folder."""
    walked = walk(path)
    if found := special_files(walked, path, git_dir):
        raise NotTakenIn(
            f"git would wait for a pipe, a socket or a device: {', '.join(found[:5])}",
            hint=f"delete it: rm {shlex.quote(str(path / found[0]))}",
            code="special_file",
        )
    return walked


_HINT = "its files are kept: `crew checkpoints ID` lists them; the agent can make the commits again"


def mirror_of(crew_git: Path) -> str | None:
    """The branch that follows the agent's HEAD; None for a folder of gates or reviews."""
    text = read_text(f"{crew_git}/HEAD", most=_LARGEST) or ""
    return text.removeprefix("ref: ") if text.startswith("ref: ") else None


def seeing(repo: Repository, crew_git: Path, objects: Path | None = None) -> dict[str, str]:
    """Let git read the agent's objects as data, with a git dir that is crew's.

    The agent's come first, so that `--local` packs these alone. `objects` are those of another
    repository of the agent.
    """
    objects = objects or agent_git_of(crew_git) / "objects"
    if not is_folder(objects):
        raise NotTakenIn("the objects of the task's own repository are missing", hint=_HINT)
    _settle_alternates(repo, objects)
    if special := special_in(objects):
        raise NotTakenIn(
            f"{special} in the task's own repository is not a plain file",
            hint=f"delete it, and start the task again: rm {special}",
        )
    return reading(repo, crew_git, objects)


def _settle_alternates(repo: Repository, objects: Path) -> None:
    """Restore the list of other object folders: git follows it, and could wait for a pipe."""
    info = objects / "info"
    file, wanted = info / "alternates", alternates(repo)
    if read_text(file, most=_LARGEST) == os.fsdecode(wanted).strip() and is_folder(info):
        return
    write_below(objects.parent, f"{objects.name}/info/alternates", wanted, clears_way=True)


def _drop_special(crew_git: Path) -> None:
    """Delete links, pipes and devices among the agent's objects. Only while no process runs."""
    objects = agent_git_of(crew_git) / "objects"
    while is_folder(objects) and (special := special_in(objects)) is not None:
        _drop(special)


@effect("git.drop_special")
def _drop(special: Path) -> None:
    special.unlink(missing_ok=True)


def special_in(objects: Path) -> Path | None:
    """A link, pipe or device where git expects an object: it could wait for it, or follow it."""
    folders = [objects]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                is_inner = entry.is_dir(follow_symlinks=False)
                if is_inner and folder == objects:
                    folders.append(objects / entry.name)
                if not is_inner and not entry.is_file(follow_symlinks=False):
                    return folder / entry.name
    return None


@effect("git.pack_commits")
def _pack(scratch: Path, revs: list[str], env: Mapping[str, str], *, is_all: bool) -> Path | None:
    """The objects that the commits need, as one file: the agent's own alone, or all of them."""
    own = () if is_all else ("--local",)
    args = ("pack-objects", "-q", "--revs", *own, "--delta-base-offset")
    stdin = "".join(f"{rev}\n" for rev in revs).encode()
    answer = ask(
        scratch, *UNTRUSTED, *args, str(scratch / _PACK), stdin=stdin, env=env, timeout_s=LONG_S
    )
    if answer.code != 0:
        raise _refused(answer)
    name = answer.out.decode().strip()
    return scratch / f"{_PACK}-{name}.pack" if name else None


def _move(repo: Repository, branch: str, *, to: str, expected: str | None) -> None:
    try:
        advance(repo, branch, to=to, expected=expected)
    except Moved as moved:
        raise _moved_by_another(branch, at=moved.at or "", head=to) from moved
    except GitFailed as failed:
        if commit_of(repo, to) is None:
            raise NotTakenIn(f"{to[:10]} is not a commit", hint=_HINT) from failed
        raise


def _moved_by_another(branch: str, *, at: str, head: str) -> CrewError:
    name = branch.removeprefix("refs/heads/")
    return Conflict(
        f"the branch {name} was moved to {at[:10]}, and its worktree is at {head[:10]}",
        hint=f"keep the branch under another name and set it back: "
        f"git branch my-{name} {at[:10]} && git branch -f {name} {head[:10]}",
        code="branch_moved",
    )


def _without_content(paths: tuple[str, ...]) -> CrewError:
    more = f" and {len(paths) - 1} more files" if len(paths) > 1 else ""
    return NotTakenIn(
        f"crew cannot take in {paths[0]}{more} of git-lfs: the content that the pointer names is "
        "in no store or is too large, or git-lfs did not write the pointer",
        hint="write the content into the file again, then: git add --renormalize, and commit",
        code="lfs_content_not_taken_in",
    )


def _too_many_refs() -> CrewError:
    return NotTakenIn(
        f"the task's own repository has more refs than crew reads: {PACKED} is larger than "
        f"{LARGEST_LIST // 10**6} MB",
        hint="delete branches and tags that the task does not need, then: git pack-refs --all",
        code="too_many_refs",
    )


def _refused(answer: GitAnswer) -> GitFailed:
    if any(sign in answer.err for sign in DISK_FULL):
        return failure(("unpack-objects",), answer)
    lines = [line for line in answer.err.splitlines() if line.strip()]
    detail = lines[0] if lines else f"git ended with {answer.code}"
    for prefix in ("fatal: ", "error: "):
        detail = detail.removeprefix(prefix)
    return NotTakenIn(f"git refuses the commits of the task: {detail}", hint=_HINT)
