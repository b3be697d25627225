"""Finds the repository, reads its branches, and checks that crew can work on it."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError, UsageError
from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, configured_branch, failure, git
from crew.git.task_repository.agent_refs import main_repository_of
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.file_locks import held
from crew.system.foreign_files import read_foreign

_OBJECT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BRANCH_OF_TASK = re.compile(r"crew-\d+(-.*)?")
_LONGEST_REF = 4096
_FACTS = ("--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")


@frozen
class Repository:
    """`root` is the main worktree (or the bare repository), `common_dir` its git dir.

    `is_confined`: programs in its worktrees run in a sandbox, which may show other owners of files.
    """

    root: Path
    common_dir: Path
    is_confined: bool = False


def find_repository(start: Path) -> Repository:
    """The repository around `start`: also from a subfolder, a linked worktree or a bare one."""
    answer = ask(start, "rev-parse", *_FACTS)
    lines = os.fsdecode(answer.out).splitlines()
    if len(lines) < 2:
        raise _not_found(start, failure(("rev-parse",), answer))
    git_dir, common_dir = Path(lines[0]), Path(lines[1])
    main = main_repository_of(Path(lines[2])) if len(lines) == 3 else None
    if main is not None:
        return Repository(root=_main_root(main), common_dir=main)
    if len(lines) == 3 and git_dir == common_dir:
        return Repository(root=Path(lines[2]), common_dir=common_dir)
    return Repository(root=_main_root(common_dir), common_dir=common_dir)


def head_commit(repo: Repository) -> str | None:
    """The commit the main checkout is on; None before the first commit."""
    return _resolve(repo.root, "HEAD^{commit}")


def is_object_id(name: str) -> bool:
    return _OBJECT_ID.fullmatch(name) is not None


def commit_of(repo: Repository, rev: str) -> str | None:
    return _resolve(repo.common_dir, f"{rev}^{{commit}}")


def ref_tip(repo: Repository, ref: str) -> str | None:
    """The commit of a branch or another ref (full name). Runs git only if files do not show it.

    Git replaces a ref's own file atomically, and deletes it only after the ref is in the file of
    packed refs, or deleted. Therefore the packed refs are read second.
    """
    try:
        content = read_foreign(f"{repo.common_dir}/{ref}", max_bytes=_LONGEST_REF).decode().strip()
        if is_object_id(content):
            return content
    except (FileNotFoundError, NotADirectoryError):
        if not may_be_packed(repo, ref):
            return None
    except (OSError, ValueError):
        pass  # git knows more forms
    return commit_of(repo, ref)


def may_be_packed(repo: Repository, ref: str) -> bool:
    """Whether git has the ref in a file with others, or could have it there."""
    if os.path.lexists(f"{repo.common_dir}/reftable"):
        return True
    try:
        packed = (repo.common_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return False
    return b" " + os.fsencode(ref) + b"\n" in packed


def refs_like(repo: Repository, *patterns: str) -> dict[str, str]:
    """The full name of every ref that is like one of these, and the object that it is at."""
    listed = git(repo.common_dir, "for-each-ref", "--format=%(refname) %(objectname)", *patterns)
    parts = (line.partition(" ") for line in listed.splitlines())
    return {ref: at for ref, _, at in parts}


def landed_commits(repo: Repository) -> Iterator[str]:
    """The commits that crew landed last, as far as files show them without git."""
    for file in (repo.common_dir / "refs" / "crew" / "landed").rglob("*"):
        if file.is_file() and is_object_id(commit := file.read_text(errors="replace").strip()):
            yield commit


def current_branch(repo: Repository) -> str | None:
    """The branch of the main checkout; None if HEAD is detached."""
    branch = _points_to(repo, "HEAD")
    return branch.removeprefix("refs/heads/") if branch else None


def branch_around(repo: Repository, place: Path, *, agents: Path) -> str | None:
    """The branch of the person's worktree that contains `place`; None if its HEAD is detached.

    In a worktree of an agent, below `agents`, it is the branch of the main checkout.
    """
    start = place.resolve()
    folder = next((one for one in (start, *start.parents) if (one / ".git").exists()), repo.root)
    if folder == repo.root or (folder / ".git").is_dir() or agents.resolve() in folder.parents:
        return current_branch(repo)
    answer = ask(folder, "symbolic-ref", "--quiet", "HEAD")
    return answer.out.decode().strip().removeprefix("refs/heads/") or None


def has_branch(repo: Repository, branch: str) -> bool:
    return ref_tip(repo, f"refs/heads/{branch}") is not None


def target_branch(repo: Repository, configured: str | None) -> str:
    """The target of merges: `crew.defaultBranch`, else the config's, origin/HEAD or main."""
    wanted = configured_branch(repo.common_dir) or configured or _origin_head(repo) or "main"
    if has_branch(repo, wanted):
        return wanted
    checked_out = current_branch(repo)
    if checked_out is not None and has_branch(repo, checked_out):
        return checked_out
    if only := _only_branch(repo):
        return only
    raise UsageError(
        f"there is no branch {wanted!r} to land on, and no other branch is checked out",
        hint="name the branch to land on: git config crew.defaultBranch BRANCH",
        code="no_branch",
    )


def _only_branch(repo: Repository) -> str | None:
    """The one branch of the person's, for a HEAD that is detached."""
    named = (ref.removeprefix("refs/heads/") for ref in refs_like(repo, "refs/heads"))
    persons = [branch for branch in named if not _BRANCH_OF_TASK.fullmatch(branch)]
    return persons[0] if len(persons) == 1 else None


def check_usable(repo: Repository) -> None:
    """Raise if crew cannot work on this repository."""
    if git(repo.common_dir, "rev-parse", "--is-shallow-repository") == "true":
        raise UsageError(
            "this is a shallow clone; merges need the whole history",
            hint="fetch the rest with: git fetch --unshallow",
            code="shallow_clone",
        )
    branches = git(repo.common_dir, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    if not branches and head_commit(repo) is None:
        first = "create a first commit: git commit --allow-empty -m start"
        if repo.root == repo.common_dir:
            first = "the repository is bare: push a first commit to it"
        raise UsageError("this repository has no commits yet", hint=first, code="no_commits")
    for branch in branches.splitlines():
        _refuse_clash(branch)
    _refuse_unreadable(repo)


def exclude_locally(repo: Repository, patterns: Iterable[str]) -> None:
    """Exclude paths from git in this repository only, for all its worktrees."""
    exclude = repo.common_dir / "info" / "exclude"
    with held(repo.common_dir / "crew.lock"):
        present = exclude.read_bytes() if exclude.is_file() else b""
        known = set(present.splitlines())
        lines = [os.fsencode(pattern) for pattern in dict.fromkeys(patterns)]
        missing = [line for line in lines if line not in known]
        if missing:
            gap = b"" if present.endswith(b"\n") or not present else b"\n"
            _replace(exclude, present + gap + b"".join(line + b"\n" for line in missing))


@effect("git.exclude")
def _replace(file: Path, content: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    write_file(file, content, unfinished=file.with_name(file.name + ".crew-new"))


def _not_found(start: Path, problem: CrewError) -> CrewError:
    if "not a git repository" not in problem.message:
        return problem
    return UsageError(
        f"{start} is not in a git repository",
        hint="change into a repository, or create one: git init",
        code="no_repository",
    )


def _main_root(common_dir: Path) -> Path:
    """The main worktree of a repository, found from another worktree."""
    at = {"GIT_DIR": str(common_dir)}
    config = ask(common_dir, "config", "--type=bool", "core.bare", env=at)
    if config.out.strip() == b"true":
        return common_dir
    elsewhere = ask(common_dir, "config", "core.worktree", env=at)
    if elsewhere.code == 0:
        return (common_dir / os.fsdecode(elsewhere.out).rstrip("\n")).resolve()
    return common_dir.parent if common_dir.name == ".git" else common_dir


def _resolve(where: Path, rev: str) -> str | None:
    answer = ask(where, "rev-parse", "--verify", "--quiet", "--end-of-options", rev)
    return answer.out.decode().strip() if answer.code == 0 else None


def _origin_head(repo: Repository) -> str | None:
    branch = _points_to(repo, "refs/remotes/origin/HEAD")
    return branch.removeprefix("refs/remotes/origin/") if branch else None


def _points_to(repo: Repository, name: str) -> str | None:
    """The ref that a symbolic ref names. Runs git only if its file does not show it."""
    try:
        content = os.fsdecode((repo.common_dir / name).read_bytes()).strip()
    except OSError:
        content = ""
    if content.startswith("ref: ") and not content.endswith("/.invalid"):  # not with reftable
        return content.removeprefix("ref: ")
    if is_object_id(content) or (not content and not (repo.common_dir / "reftable").exists()):
        return None
    answer = ask(repo.common_dir, "symbolic-ref", "--quiet", name)
    return answer.out.decode().strip() or None


def _refuse_clash(branch: str) -> None:
    first, slash, _ = branch.partition("/")
    if slash and first.startswith("crew-") and first.removeprefix("crew-").isdigit():
        raise Conflict(
            f"the branch {branch!r} blocks the name {first!r}, which crew needs for a branch",
            hint=f"rename it: git branch -m {branch} OTHER-NAME",
            code="branch_in_the_way",
        )


def _refuse_unreadable(repo: Repository) -> None:
    named = _resolve(repo.common_dir, "HEAD")
    if named is not None and ask(repo.common_dir, "cat-file", "-e", f"{named}^{{tree}}").code != 0:
        raise CrewError(
            f"the repository at {repo.root} cannot be read",
            hint="`git fsck` shows what is damaged",
            code="unreadable_repository",
        )
