"""Opens a pull request for a task's branch: the person's own git pushes it, and `gh` opens it."""

import os
from pathlib import Path

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, git
from crew.git.repository import commit_of
from crew.git.worktrees.worktrees import follow
from crew.runner.by_hand.crew_command import wait_for_key
from crew.runner.by_hand.task_diff import ELSEWHERE, diff_of
from crew.store.fact_log import load_world
from crew.system.processes.process import program_path, run_in_terminal
from crew.workplace import Workplace

LONGEST_BODY = 60_000
"""GitHub takes little more."""


@frozen
class PullRequest:
    """What would be pushed and opened."""

    task: str
    title: str
    body: str
    branch: str
    base: str
    remote: str
    url: str


def pull_request_of(workplace: Workplace, task: str) -> PullRequest:
    """The pull request of a task; raises if it cannot be opened, before anything is pushed."""
    if program_path("gh", os.environ) is None:
        raise CrewError(
            "a pull request needs gh, which is not installed",
            hint="install it from cli.github.com and run `gh auth login`",
            code="not_installed",
        )
    remote, url = _remote(workplace)
    item, change = workplace.source.show(task), diff_of(workplace, task)
    row = load_world(workplace.db).tasks.get(task)
    if row is not None and row.worktree and workplace.worktree_of(row).is_dir():
        follow(workplace.repo, workplace.worktree_of(row))
    if change.landed or _is_empty(workplace, change.branch, change.base):
        raise Conflict(
            f"the branch {change.branch} has no commit that {change.base} does not have",
            hint=f"`crew diff {task}` shows what the task has changed",
            code="nothing_to_push",
        )
    closes = f"\n\nCloses #{item.issue}" if item.issue else ""
    return PullRequest(
        task=task,
        title=item.title,
        body=f"{item.body[:LONGEST_BODY]}{closes}".strip(),
        branch=change.branch,
        base=change.base,
        remote=remote,
        url=url,
    )


def _remote(workplace: Workplace) -> tuple[str, str]:
    """The remote to push to: `remote.pushDefault`, else origin, else the only one."""
    where = workplace.repo.common_dir
    names = git(where, "remote").split()
    chosen = ask(where, "config", "remote.pushDefault").out.decode(errors="replace").strip()
    for name in (chosen, "origin", *(names if len(names) == 1 else ())):
        if name in names:
            return name, git(where, "remote", "get-url", "--push", name)
    raise NotFound(
        "there is no remote to push to",
        hint="git remote add origin URL",
        code="no_remote",
    )


def _is_empty(workplace: Workplace, branch: str, base: str) -> bool:
    heads = [commit_of(workplace.repo, f"refs/heads/{name}") for name in (branch, base)]
    if None in heads:
        return heads[0] is None
    count = git(workplace.repo.common_dir, "rev-list", "--count", f"{heads[1]}..{heads[0]}")
    return int(count) == 0


def open_pull_request(root: Path, wanted: PullRequest) -> int:
    """Push the branch and open the pull request in the person's terminal; the exit code."""
    env = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    ref = f"refs/heads/{wanted.branch}"
    push = ("git", "push", wanted.remote, f"{ref}:{ref}")
    about = (f"--title={wanted.title}", f"--body={wanted.body}")
    create = ("gh", "pr", "create", f"--head={wanted.branch}", f"--base={wanted.base}", *about)
    code = 0
    for argv in (push, create):
        code, _ = run_in_terminal(argv, cwd=root, env=env)
        if code:
            break
    wait_for_key(code)
    return code
