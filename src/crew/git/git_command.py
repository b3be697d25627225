"""Runs git: one hardened process for each call, judged by its exit code."""

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.domain.kernel.frozen import frozen
from crew.git import hardening, killed_git, spawn_git
from crew.git.hardening import Configured, Setting
from crew.git.spawn_git import StartedGit

if TYPE_CHECKING:
    import logging

FIRST_WAIT_S = 0.02
LAST_WAIT_S = 10.0  # the holder of a lock may itself be delayed for seconds

EXCLUDES = "crew-exclude"
"""In crew's git dir of a worktree: the patterns that git ignores in this worktree only."""

_FATAL = 128
_PREFIXES = ("fatal:", "error:")
_LOCKED = re.compile(r"Unable to create '[^']*\.lock': File exists|could not lock config file")
_DUBIOUS = re.compile(r"dubious ownership in repository at '([^\n]*)'")
DISK_FULL = ("No space left", "Disk quota exceeded")
_KNOWN = (
    (
        "not a git repository",
        "this is not a git repository",
        "change into a repository, or create one: git init",
    ),
    (
        ".lock': File exists",
        "another git command holds a lock in the repository",
        "wait until it ends and try again; if no git command is running, remove the .lock file",
    ),
    (
        "unrelated histories",
        "two branches have unrelated histories: no common commit",
        "fetch the missing history first",
    ),
    (
        "ermission denied",
        "this user may not read or write a part of the repository",
        "make the repository readable and writable for this user",
    ),
    (
        "Read-only file system",
        "the file system of the repository is read-only",
        "crew must be able to write there",
    ),
    (
        "Not a valid object name",
        "a branch or commit that crew needs is missing from the repository",
        "`git fsck` and `git branch -a` show what is there; restore the missing one",
    ),
    (
        "bad object",
        "a commit or file in git's own store is missing or damaged",
        "`git fsck` names it; fetch it again from a remote or a clone",
    ),
    (
        "already used by worktree",
        "the branch is checked out in another worktree",
        "`git worktree list` shows where; switch that worktree to another branch",
    ),
    (
        "tell me who you are",
        "git does not know who makes the commit",
        "git config --global user.name NAME, and user.email ADDRESS",
    ),
)
"""Part of git's output, its meaning, and the hint for it."""

_TO_REACH_OTHERS = ("GIT_SSH", "GIT_SSL", "GIT_HTTP", "GIT_PROXY", "GIT_ASKPASS", "GIT_CONFIG_")

_known: dict[Path | None, tuple[tuple[tuple[int, ...], ...], Configured]] = {}


@frozen
class GitAnswer:
    """The output of one git process. `err` is for people only."""

    code: int
    out: bytes
    err: str


class GitFailed(CrewError):
    """A git command failed."""

    code = "git_failed"


def git(
    where: Path,
    *args: str,
    stdin: bytes | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120,
    keep_open: int | None = None,
) -> str:
    """The output as text, without its last line end. Raises if git fails."""
    answer = ask(where, *args, stdin=stdin, env=env, timeout_s=timeout_s, keep_open=keep_open)
    if answer.code != 0:
        raise failure(args, answer)
    return answer.out.decode("utf-8", "surrogateescape").removesuffix("\n")


def ask(
    where: Path,
    *args: str,
    stdin: bytes | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120,
    keep_open: int | None = None,
) -> GitAnswer:
    """Run git and return its output, even if it fails. Waits for a busy lock.

    If another process kills this git, it is run again, without the locks that it left.

    `keep_open` is the descriptor of a lock. Git inherits it, so the lock outlives a killed crew as
    long as its git still runs.
    """
    environment = hardening.environment(_settings(where, env or {}), env or {})
    wait_s = FIRST_WAIT_S
    while True:
        answer = _run(
            where, args, stdin=stdin, env=environment, timeout_s=timeout_s, keep_open=keep_open
        )
        if answer.code == 0 or wait_s > LAST_WAIT_S or not is_locked(answer):
            return answer
        time.sleep(_shortened(wait_s))
        wait_s *= 2


def first_output(
    where: Path, *args: str, settings: Mapping[str, str], most: int, timeout_s: float = 120
) -> tuple[bytes, bool]:
    """The first `most` bytes of git's output, and whether that is all. Raises if git fails."""
    known = _settings(where, {})
    env = hardening.environment({**known, **settings}, {})
    answer = _run_once(
        where, args, env=env, stdin=None, timeout_s=timeout_s, keep_open=None, most=most
    )
    is_all = len(answer.out) < most
    if is_all and answer.code != 0:
        raise failure(args, answer)
    return answer.out[:most], is_all


def _shortened(wait_s: float) -> float:
    """Shorten the wait by up to a half, so that waiting processes do not retry together."""
    import random  # noqa: PLC0415 - slow to load, and a lock is seldom busy

    return wait_s * random.uniform(0.5, 1)  # noqa: S311 - no secret


@contextmanager
def start_git(
    where: Path, *args: str, env: Mapping[str, str], keep_open: int, timeout_s: float = 120
) -> Iterator[StartedGit]:
    """Start git now and send its input later, when each millisecond counts."""
    env = hardening.environment(_settings(where, env), env)
    git_there = spawn_git.started_git(
        _argv(where, args), env=env, timeout_s=timeout_s, keep_open=keep_open
    )
    with ExitStack() as stack:
        try:
            started = stack.enter_context(git_there)
        except spawn_git.Ended as ended:
            raise _ended(args) from ended
        except OSError as problem:
            raise _cannot_start(problem) from problem
        yield started


def is_locked(answer: GitAnswer) -> bool:
    """Whether another git holds a lock. A moved ref ("but expected") does not count."""
    return _LOCKED.search(answer.err) is not None and "but expected" not in answer.err


def failure(args: tuple[str, ...], answer: GitAnswer) -> GitFailed:
    """A sentence and a next step. The log has the command and all its output."""
    command = " ".join(("git", *args))[:200]
    _log().info("%s ended with %d: %s", command, answer.code, answer.err.strip())
    if any(sign in answer.err for sign in DISK_FULL):
        return GitFailed(
            "the disk is full", hint="free some disk space and try again", code="disk_full"
        )
    if found := _DUBIOUS.search(answer.err):
        return _not_trusted(Path(found[1]))
    for sign, means, hint in _KNOWN:
        if sign in answer.err:
            return GitFailed(means, hint=hint)
    lines = [line for line in answer.err.splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith(_PREFIXES)), None)
    message = message or (lines[0] if lines else f"exit code {answer.code}")
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix).strip()
    return GitFailed(
        f"`git {args[0]}` failed: {message}",
        hint="all its output is in `.crew/logs/crew.log`, if the runner called it",
    )


def _not_trusted(named: Path) -> GitFailed:
    """Name both paths: git compares the work tree with the list, and in the git dir that one."""
    git_dir = hardening.git_dir_of(named)
    common = Path(os.path.realpath(hardening.common_dir_of(git_dir))) if git_dir else named
    root = common.parent if common.name == ".git" else common
    add = "git config --global --add safe.directory"
    commands = (
        shlex.join([*add.split(), str(one)]) for one in dict.fromkeys((named, root, common))
    )
    return GitFailed(
        "git does not trust this repository, because another user owns it",
        hint=f"if you trust it: {' && '.join(commands)}",
        code="other_owner",
    )


def _log() -> "logging.Logger":
    import logging  # noqa: PLC0415 - slow to load, and git seldom fails

    return logging.getLogger(__name__)


def configured_filters(where: Path) -> frozenset[str]:
    """The filter drivers that are configured here. crew never runs them."""
    return _configured(where, {}).filters


def configured_branch(where: Path) -> str:
    """`crew.defaultBranch`, or nothing. Uses the same process as the drivers."""
    return _configured(where, {}).default_branch


def handed_on_settings(where: Path) -> Mapping[str, str]:
    """The settings of a person's repository that hold in a task's own repository too."""
    return _configured(where, {}).handed_on


def persons_settings(where: Path) -> tuple[Setting, ...]:
    """Everything that a person's files set for this repository, in git's order."""
    return _configured(where, {}).settings


def lfs_wanted(where: Path) -> hardening.LfsWanted | None:
    """Which contents of git-lfs a person wants here; None unless it is configured and installed."""
    configured = _configured(where, {})
    return configured.lfs_wanted if configured.lfs else None


def promising_remotes(where: Path) -> tuple[str, ...]:
    """The remotes of a partial clone, which promise objects that are not here."""
    return _configured(where, {}).promising


def fetch_as_person(where: Path, remote: str, objects: Iterable[str]) -> GitAnswer:
    """Fetch objects with the person's git: with their settings, programs and credentials.

    It changes no ref and asks nothing. Only in the person's own repository.
    """
    env = {name: value for name, value in os.environ.items() if _is_persons(name)}
    settings = ("fetch.negotiationAlgorithm=noop", "gc.auto=0", "maintenance.auto=false")
    words = (word for setting in settings for word in ("-c", setting))
    asked = ("--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
    args = (*words, "fetch", "-q", *asked, "--stdin", "--end-of-options", remote)
    stdin = "".join(f"{one}\n" for one in objects).encode()
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    return _run_once(where, args, env=env, stdin=stdin, timeout_s=1800, keep_open=None)


def _is_persons(variable: str) -> bool:
    """Whether a variable says how git reaches others, not which repository it works on."""
    return not variable.startswith("GIT_") or variable.startswith(_TO_REACH_OTHERS)


def forget_settings(git_dir: Path) -> None:
    """Forget the settings of a temporary git dir."""
    _known.pop(git_dir, None)


def _settings(where: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    silenced = _configured(where, env).silenced
    named = env.get("GIT_DIR", "")
    excludes = Path(named, EXCLUDES)
    ignored = {"core.excludesFile": str(excludes)} if named and excludes.exists() else {}
    return hardening.FIXED | dict(silenced) | ignored


def _configured(where: Path, env: Mapping[str, str]) -> Configured:
    """The configured drivers. Git runs again only if one of the config files changed."""
    named = env.get("GIT_DIR")
    git_dir = Path(named) if named else hardening.git_dir_of(where.absolute())
    shared = hardening.shares_config_with(git_dir)
    for known in (git_dir, shared):
        if known in _known:
            stamp, configured = _known[known]
            if stamp == hardening.stamp_of(configured.files):
                return configured
    standard = hardening.standard_files(git_dir)
    before = hardening.stamp_of(standard)
    listing = _run(
        where,
        ("config", "--list", "--show-scope", "--show-origin", "-z"),
        env=hardening.environment(hardening.FIXED, env),
    )
    if listing.code < 0:  # an unread setting could run a program
        raise failure(("config",), listing)
    configured = hardening.parse_listing(listing.out, cwd=where, git_dir=git_dir)
    if before == hardening.stamp_of(standard):
        place = git_dir if configured.is_conditional else shared
        _known[place] = (hardening.stamp_of(configured.files), configured)
    return configured


def _run(
    where: Path,
    args: tuple[str, ...],
    *,
    env: Mapping[str, str],
    stdin: bytes | Path | None = None,
    timeout_s: float = 120,
    keep_open: int | None = None,
) -> GitAnswer:
    for _ in range(killed_git.MOST_RUNS):
        answer = _run_once(
            where, args, env=env, stdin=stdin, timeout_s=timeout_s, keep_open=keep_open
        )
        if not killed_git.was_killed(answer.code, answer.err) or not killed_git.can_repeat(args):
            break
        _log().info("git %s %s", " ".join(args)[:200], killed_git.RUN_AGAIN)
        killed_git.clear_locks_of(where, args, env=env, stdin=stdin)
    return answer


def _run_once(
    where: Path,
    args: tuple[str, ...],
    *,
    env: Mapping[str, str],
    stdin: bytes | Path | None,
    timeout_s: float,
    keep_open: int | None,
    most: int | None = None,
) -> GitAnswer:
    argv = _argv(where, args)
    try:
        done = spawn_git.run(
            argv, env=env, stdin=stdin, timeout_s=timeout_s, keep_open=keep_open, most=most
        )
    except TimeoutError as late:
        raise TimedOut(
            f"git {args[0]} took longer than {timeout_s:g} s in {where}",
            hint="check whether the disk is slow or full, then try again",
        ) from late
    except spawn_git.Ended as ended:
        raise _ended(args) from ended
    except OSError as problem:
        raise _cannot_start(problem) from problem
    if done.code == _FATAL and not where.is_dir():
        raise GitFailed(
            f"there is no folder {where}",
            hint="create it, or name another folder",
            code="no_folder",
        )
    return GitAnswer(code=done.code, out=done.out, err=done.err.decode("utf-8", "replace"))


def _argv(where: Path, args: tuple[str, ...]) -> tuple[str, ...]:
    return ("git", "-C", str(where), *hardening.guarded(args))


def _ended(args: tuple[str, ...]) -> GitFailed:
    return GitFailed(
        f"`git {args[0]}` was ended, because crew ends",
        hint="the next `crew run` continues from here",
        code="git_ended",
    )


def _cannot_start(problem: OSError) -> GitFailed:
    if isinstance(problem, FileNotFoundError):
        return GitFailed(
            "git is not installed", hint="install git 2.38 or newer", code="not_installed"
        )
    return GitFailed(f"git does not start: {problem.strerror}", hint="check the git on your PATH")
