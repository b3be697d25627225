"""Reads an issue of GitHub with `gh`, GitHub's command line."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.domain.kernel.errors import CrewError, NeedsLogin, NotFound, TimedOut
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import one_line
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import ProcessEnd, ProcessOrder, run_process

MAX_BYTES = 1024 * 1024
TIMEOUT_S = 60.0
_NEEDS_LOGIN = 4
"""The exit code of `gh` without a login."""

_NO_SUCH_ISSUE = "Could not resolve to"
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
_BY_HAND = "or give the task a --title yourself"


@frozen
class Issue:
    """Title and text of an issue, possibly written by a stranger."""

    number: int
    title: str
    body: str
    labels: tuple[str, ...]


async def fetch_issue(
    number: int, *, repo_root: Path, caller: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> Issue:
    """The issue with this number in the repository's GitHub project."""
    output = bytearray()
    order = ProcessOrder(
        argv=("gh", "issue", "view", str(number), "--json", "title,body,labels"),
        cwd=repo_root,
        env=_environment(caller),
        log=Path(os.devnull),
        marker=f"gh/{os.getpid()}/{number}",
        timeout_s=timeout_s,
        idle_timeout_s=timeout_s,
        sandbox="off",
    )

    def collect(chunk: bytes) -> None:
        output.extend(chunk[: MAX_BYTES + 1 - len(output)])

    end = await run_process(order, on_started=lambda _pid: None, on_output=collect)
    if end.reason != "exited" or end.code != 0:
        raise _refusal(number, end)
    if len(output) > MAX_BYTES:
        raise CrewError(
            f"issue {number} is larger than 1 MiB",
            hint=f"shorten it, {_BY_HAND}",
            code="issue_too_large",
        )
    return _read(number, bytes(output))


def _environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent, plus the token and the settings of `gh`."""
    own = {n: v for n, v in caller.items() if n.startswith("GH_") or n == "GITHUB_TOKEN"}
    return {**allowed_environment(caller), **own, **_QUIET}


def _refusal(number: int, end: ProcessEnd) -> CrewError:
    if end.reason == "not_found":
        return CrewError(
            "gh is not installed",
            hint=f"install it from cli.github.com, {_BY_HAND}",
            code="not_installed",
        )
    if end.reason in {"timeout", "stalled"}:
        return TimedOut(f"gh did not answer: {end.message}", hint=f"try again, {_BY_HAND}")
    if end.code == _NEEDS_LOGIN:
        return NeedsLogin("gh is not logged in", hint=f"gh auth login, {_BY_HAND}")
    if _NO_SUCH_ISSUE in end.stderr_tail:
        return NotFound(
            f"there is no issue {number}", hint=f"`gh issue list` shows them, {_BY_HAND}"
        )
    reason = one_line(end.stderr_tail) or end.message or f"exit code {end.code}"
    return CrewError(
        f"gh cannot read issue {number}: {reason}",
        hint=f"run `gh issue view {number}`, {_BY_HAND}",
        code="issue_unreadable",
    )


def _read(number: int, answer: bytes) -> Issue:
    try:
        fields = json.loads(answer)
        return Issue(
            number=number,
            title=_text(fields["title"]),
            body=_text(fields["body"]),
            labels=tuple(_text(label["name"]) for label in fields["labels"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CrewError(
            f"gh printed something other than issue {number}",
            hint=f"update gh, {_BY_HAND}",
            code="unknown_gh_output",
        ) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
