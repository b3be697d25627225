"""How names of branches, refs, agents and files are made, and checked by an allow-list.

`git check-ref-format` accepts `crew/$(id)`, so it does not decide what crew calls things.
"""

import re

from crew.domain.kernel.errors import UsageError

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_BRANCH = re.compile(r"crew-([A-Za-z0-9][A-Za-z0-9_-]*?)(-gh-\d+)?")


def is_task_id(text: str) -> bool:
    return _TASK_ID.fullmatch(text) is not None


def task_id(text: str) -> str:
    """A task id as a person writes it: `12`, `#12` or `crew-12`."""
    bare = text.removeprefix("#").removeprefix("crew-")
    if not is_task_id(bare):
        raise UsageError(
            f"{text!r} cannot be a task id", hint="ids look like 12, #12, crew-12 or c-abc1"
        )
    return bare


def is_agent_name(text: str) -> bool:
    return _AGENT_NAME.fullmatch(text) is not None


def agent_name(text: str) -> str:
    if not is_agent_name(text):
        raise UsageError(
            f"{text!r} cannot be an agent's name",
            hint="a name starts with a letter and has only letters, digits, - and _",
        )
    return text


def channel_name(text: str) -> str:
    if _AGENT_NAME.fullmatch(text) is None:
        raise UsageError(
            f"{text!r} cannot be a channel's name",
            hint="a name starts with a letter and has only letters, digits, - and _, at most 32",
            code="invalid_name",
        )
    return text


def next_agent_names(taken: frozenset[str], count: int) -> tuple[str, ...]:
    """A, B, … Z, A1, B1, …: the first names that are free."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names: list[str] = []
    turn = 0
    while len(names) < count:
        suffix = str(turn) if turn else ""
        names += [name for letter in letters if (name := letter + suffix) not in taken]
        turn += 1
    return tuple(names[:count])


def branch_name(task: str, issue: int | None = None) -> str:
    return f"crew-{task}" if issue is None else f"crew-{task}-gh-{issue}"


def terminal_name(task: str) -> str:
    """The name of a task's terminal."""
    return f"crew-{task}"


def task_of_branch(branch: str) -> str | None:
    match = _BRANCH.fullmatch(branch)
    return match.group(1) if match else None


def landed_ref(target: str) -> str:
    """The integration ref of a target branch, moved only by compare-and-swap."""
    return f"refs/crew/landed/{target}"


def superseded_ref(target: str) -> str:
    """The ref that keeps what a person removed from a target branch, so that it can come back.

    It is a flat name, since git cannot have the refs `a` and `a/b` beside each other.
    """
    return f"refs/crew/superseded/{target.replace('/', '%2F')}"


def rewrite_id(target: str) -> str:
    """The name of the entry in the inbox that tells what a rewrite of this target dropped."""
    return f"rewrite-{target}"


def made_ref(branch: str) -> str:
    """The ref that marks a branch as made by crew; a branch without it belongs to a person."""
    return f"refs/crew/branches/{branch}"


def checkpoint_ref(task: str, number: int) -> str:
    return f"refs/crew/checkpoints/{task}/{number}"
