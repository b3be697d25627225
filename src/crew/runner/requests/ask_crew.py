"""Sends a short command's request to the runner, or carries it out here if no runner is up."""

import time
from collections.abc import Callable
from typing import Any

from crew.domain.commands import CommandKind
from crew.domain.kernel.errors import CrewError, TimedOut
from crew.domain.requests import Request
from crew.domain.world import World
from crew.runner.requests.runner_pipe import POLL_S, ask_runner, wake_runner
from crew.store.fact_log import load_world
from crew.store.runner_lock import COMMAND, LANDER, LockHeld, StopWatch, find_runner
from crew.workplace import Workplace

PATIENCE_S = 60.0

HOUSEKEEPING = frozenset(
    {
        CommandKind.KILL,
        CommandKind.WRITE_TASK,
        CommandKind.REMOVE_WORKTREE,
        CommandKind.TERMINAL,
        CommandKind.VACATE,
    }
)
"""The commands that any request may trigger without a runner: they clean up, and start no agent."""

CHECKING = HOUSEKEEPING | {CommandKind.INSPECT}
"""The commands that `crew complete` may trigger without a runner."""

LANDING = HOUSEKEEPING | {CommandKind.MERGE_QUEUE, CommandKind.TEST, CommandKind.DELIVER}
"""The commands that `crew merge` may trigger without a runner."""

ACCEPTING = CHECKING | LANDING
"""The commands that `crew merge --accept` may trigger without a runner."""

Settled = Callable[[World], bool]


class RequestRefused(CrewError):
    """The runner refused a request; its message, code and hint are passed on."""

    def __init__(self, error: dict[str, str], exit_code: int) -> None:
        super().__init__(error["message"], hint=error["hint"], code=error["code"])
        self.exit_code = exit_code  # type: ignore[misc]


def ask(
    workplace: Workplace,
    request: Request,
    *,
    settled: Settled | None = None,
    only: frozenset[CommandKind] = HOUSEKEEPING,
    timeout_s: float = PATIENCE_S,
) -> Any:
    """Have a request answered, and wait until `settled` is true."""
    give_up_at = time.monotonic() + timeout_s
    role = LANDER if only == LANDING else COMMAND
    answered, reply = False, None
    while True:
        if not answered:
            asked = workplace.folder, workplace.db, request
            found = ask_runner(*asked, give_up_at=give_up_at, role=role)
            answered = found is not None
            reply = reply_in(found) if found is not None else None
        if answered and _wait_until(workplace, settled, give_up_at=give_up_at, role=role):
            return reply
        try:
            if answered:  # accepted by a runner that ended before it was done
                _carry_out(workplace, _LOOK, only, role=role)
                return reply
            return _carry_out(workplace, request, only, role=role)
        except LockHeld:
            if time.monotonic() > give_up_at:
                raise


_LOOK = Request(verb="look", args={})


def reply_in(words: dict[str, Any]) -> Any:
    """The reply in the runner's words; raises if they are a refusal."""
    if "error" in words:
        raise RequestRefused(words["error"], words["exit_code"])
    return words["reply"]


def _wait_until(
    workplace: Workplace, settled: Settled | None, *, give_up_at: float, role: str
) -> bool:
    """Wait until the condition holds; False if the runner ended before that."""
    if settled is None:
        return True
    watch = StopWatch(workplace.lock_file, role=role)
    while not settled(load_world(workplace.db)):
        watch.check()
        if time.monotonic() > give_up_at:
            raise TimedOut("it takes longer than expected", hint="`crew ps` shows how far it is")
        if find_runner(workplace.lock_file, role=role) is None:
            return settled(load_world(workplace.db))
        time.sleep(POLL_S)
    return True


def _carry_out(
    workplace: Workplace, request: Request, only: frozenset[CommandKind], *, role: str
) -> Any:
    from crew.runner.requests.without_runner import answer_alone  # noqa: PLC0415 - a runner that is up does without

    return answer_alone(workplace, request, only=only, role=role)


def wake(workplace: Workplace) -> None:
    """Wake the runner, so that it looks for changes; do nothing if none is up."""
    wake_runner(workplace.folder)
