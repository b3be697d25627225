"""Takes the commits of a task's own repository into the main one, and moves the task's branch.

Git reads the agent's objects as data, from a git dir that is crew's: no setting, hook or attribute
of the agent's repository matters. Every object is checked before it is stored (`--strict`).
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError
from crew.git.git_command import GitAnswer, GitFailed, ask
from crew.git.refs import Moved, advance
from crew.git.repository import Repository, commit_of, ref_tip
from crew.git.task_repository.agent_refs import (
    AgentHead,
    agent_git_of,
    is_folder,
    read_head,
    read_text,
)
from crew.git.task_repository.lay_repository import alternates
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.file_locks import held

MOST_LOOSE = 500
"""A larger pack is stored as it is, instead of one file for each object."""
LONG_S = 1800.0

_MIRRORED = "crew-mirrored"
"""In crew's git dir of a folder: where crew moved the task's branch."""
_PACK = "crew-in"
_LARGEST = 4096

_UNTRUSTED = (
    # These files could make git believe in other parents or objects than there are.
    *("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"),
    *("-c", "pack.threads=1", "-c", "core.fsync=none"),
)


class NotTakenIn(GitFailed):
    """Git refuses the commits of a task's own repository, or they are incomplete."""

    code = "commits_not_taken_in"


def follow_agent(
    repo: Repository, path: Path, *, crew_git: Path, without: Iterable[str] = ()
) -> AgentHead | None:
    """Take in the agent's HEAD, if it moved, and move the task's branch there.

    None if the agent's repository is missing or damaged: the branch stays where it was. `without`
    are commits whose history is in the main repository.
    """
    head = read_head(agent_git_of(crew_git))
    branch = _mirror_of(crew_git)
    if head is None or head.commit is None or branch is None:
        return head
    if ref_tip(repo, branch) != head.commit or len(_mirrored(crew_git)) > 1:
        with held(crew_git / "crew.lock"):
            _follow(repo, path, branch, head.commit, crew_git=crew_git, without=without)
    return head


def _follow(
    repo: Repository,
    path: Path,
    branch: str,
    commit: str,
    *,
    crew_git: Path,
    without: Iterable[str],
) -> None:
    at, noted = ref_tip(repo, branch), _mirrored(crew_git)
    if at is not None and noted and at not in (*noted, commit):
        raise _moved_by_another(branch, at=at, head=commit)
    if at != commit:
        known = tuple(dict.fromkeys(filter(None, (at, *without))))
        take_in(repo, crew_git, (commit,), without=known)
        note_mirror(crew_git, *filter(None, (at,)), commit)
        _move(repo, branch, to=commit, expected=at)
    bring_index(path, crew_git)
    note_mirror(crew_git, commit)


def take_in(
    repo: Repository, crew_git: Path, commits: Iterable[str], *, without: Iterable[str] = ()
) -> None:
    """Store these commits of the agent's repository, and all they need, in the main one."""
    objects = agent_git_of(crew_git) / "objects"
    if not is_folder(objects):
        raise NotTakenIn("the objects of the task's own repository are missing", hint=_HINT)
    _settle_alternates(repo, objects)
    revs = [*commits, *(f"^{commit}" for commit in without)]
    try:
        pack = _pack(crew_git, revs, _seeing(repo, crew_git, objects))
        if pack is not None:
            _store(repo, pack)
    finally:
        for left in crew_git.glob(f"{_PACK}-*"):
            left.unlink(missing_ok=True)


def existing(repo: Repository, crew_git: Path, commits: Iterable[str]) -> list[str]:
    """Those of the commits that the agent's repository or the main one has."""
    objects = agent_git_of(crew_git) / "objects"
    if not is_folder(objects):
        return []
    _settle_alternates(repo, objects)
    args = ("rev-list", "--no-walk", "--ignore-missing", "--stdin")
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    answer = ask(crew_git, *_UNTRUSTED, *args, stdin=stdin, env=_seeing(repo, crew_git, objects))
    return answer.out.decode().split() if answer.code == 0 else []


@effect("git.note_mirror")
def note_mirror(crew_git: Path, *commits: str) -> None:
    """Record where crew moves the task's branch, to notice if another process moves it.

    Two commits mean that a move has begun. After a kill it is completed.
    """
    write_file(crew_git / _MIRRORED, "".join(f"{commit}\n" for commit in commits).encode())


def _mirrored(crew_git: Path) -> list[str]:
    return (read_text(crew_git / _MIRRORED, most=_LARGEST) or "").split()


@effect("git.bring_index")
def bring_index(path: Path, crew_git: Path) -> None:
    """Make crew's index that of HEAD, with the numbers of the files as they are now.

    Only the second command records the tree, which proves later without git that nothing changed.
    """
    env = {"GIT_DIR": str(crew_git), "GIT_WORK_TREE": str(path)}
    ask(path, "reset", "-q", "--mixed", "HEAD", env=env, timeout_s=LONG_S)
    ask(path, "write-tree", env=env, timeout_s=LONG_S)


_HINT = "look at it with `git fsck` in its worktree, or start the task again"


def _mirror_of(crew_git: Path) -> str | None:
    """The branch that follows the agent's HEAD; None for a folder of gates or reviews."""
    text = (crew_git / "HEAD").read_text(errors="replace").strip()
    return text.removeprefix("ref: ") if text.startswith("ref: ") else None


def _seeing(repo: Repository, crew_git: Path, objects: Path) -> Mapping[str, str]:
    """The agent's objects first, so that `--local` packs these alone."""
    main = str((repo.common_dir / "objects").resolve())
    quoted = main.replace("\\", "\\\\").replace('"', '\\"')
    return {
        "GIT_DIR": str(crew_git),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
    }


def _settle_alternates(repo: Repository, objects: Path) -> None:
    """Restore the list of other object folders: git follows it, and could wait for a pipe."""
    info = objects / "info"
    file, wanted = info / "alternates", alternates(repo)
    if read_text(file, most=_LARGEST) == os.fsdecode(wanted).strip() and is_folder(info):
        return
    if not is_folder(info):
        info.unlink(missing_ok=True)
        info.mkdir()
    write_file(file, wanted)


@effect("git.pack_commits")
def _pack(crew_git: Path, revs: list[str], env: Mapping[str, str]) -> Path | None:
    """The agent's own objects among those that the commits need, as one file."""
    args = ("pack-objects", "-q", "--revs", "--local", "--delta-base-offset")
    stdin = "".join(f"{rev}\n" for rev in revs).encode()
    answer = ask(
        crew_git, *_UNTRUSTED, *args, str(crew_git / _PACK), stdin=stdin, env=env, timeout_s=LONG_S
    )
    if answer.code != 0:
        raise _refused(answer)
    name = answer.out.decode().strip()
    return crew_git / f"{_PACK}-{name}.pack" if name else None


@effect("git.store_commits")
def _store(repo: Repository, pack: Path) -> None:
    with pack.open("rb") as file:
        count = int.from_bytes(file.read(12)[8:])
    how: tuple[str, ...] = ("unpack-objects", "-q", "--strict")
    if count > MOST_LOOSE:
        how = ("index-pack", "--stdin", "--strict", "--fix-thin")
    answer = ask(
        repo.common_dir,
        *("-c", "core.fsyncMethod=batch", *how),
        stdin=pack,
        timeout_s=LONG_S,
    )
    if answer.code != 0:
        raise _refused(answer)


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
        hint=f"to keep the worktree's commits: git branch -f {name} {head[:10]}",
        code="branch_moved",
    )


def _refused(answer: GitAnswer) -> NotTakenIn:
    lines = [line for line in answer.err.splitlines() if line.strip()]
    detail = lines[0] if lines else f"git ended with {answer.code}"
    for prefix in ("fatal: ", "error: "):
        detail = detail.removeprefix(prefix)
    return NotTakenIn(f"git refuses the commits of the task: {detail}", hint=_HINT)
