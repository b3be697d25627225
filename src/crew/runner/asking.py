"""How a short command gets something done: it asks the runner, or does it itself if none is up."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from crew.domain.effects import effect
from crew.domain.errors import CrewError, NotFound, TimedOut
from crew.domain.requests import Request
from crew.domain.world import World
from crew.runner.loop import HOUSEKEEPING, holding_the_lock, make_runner
from crew.runner.workplace import Workplace
from crew.store.facts import load_world
from crew.store.lock import LockHeld, find_runner
from crew.store.requests import add_request, find_reply, withdraw

POLL_S = 0.02
PATIENCE_S = 60.0

Settled = Callable[[World], bool]


class Refused(CrewError):
    """The runner said no; its words, code and hint are passed on."""

    def __init__(self, error: dict[str, str], exit_code: int) -> None:
        super().__init__(error["message"], hint=error["hint"])
        self.code = error["code"]  # type: ignore[misc]
        self.exit_code = exit_code  # type: ignore[misc]


def ask(
    workplace: Workplace,
    request: Request,
    *,
    settled: Settled = lambda _world: True,
    only: frozenset[str] = HOUSEKEEPING,
    timeout_s: float = PATIENCE_S,
) -> Any:
    """Have a request answered and wait until what it asked for is done."""
    give_up_at = time.monotonic() + timeout_s
    answered, reply = False, None
    while True:
        if find_runner(workplace.lock_file) is not None:
            if not answered:
                answered, reply = _ask_runner(workplace, request, give_up_at)
            if answered and _wait_until(workplace, settled, give_up_at):
                return reply
        try:
            if answered:  # by a runner that went away before it was done
                _do_it_here(workplace, _LOOK, only)
                return reply
            return _do_it_here(workplace, request, only)
        except LockHeld:
            if time.monotonic() > give_up_at:
                raise


_LOOK = Request(verb="look", args={})


def _ask_runner(workplace: Workplace, request: Request, give_up_at: float) -> tuple[bool, Any]:
    """False when the runner went away before it answered."""
    number = add_request(workplace.db, request, at=time.time())
    wake(workplace)
    try:
        found = _reply(workplace, number, give_up_at)
    except NotFound:
        return False, None
    if found is None:
        return False, None
    if "error" in found:
        raise Refused(found["error"], found["exit_code"])
    return True, found["reply"]


def _reply(workplace: Workplace, number: int, give_up_at: float) -> Any | None:
    """The runner's reply; None when it went away and the request could be taken back."""
    db = workplace.db
    while (found := find_reply(db, number)) is None:
        if time.monotonic() > give_up_at:
            withdraw(db, number)
            raise TimedOut(
                "the runner does not answer", hint="`crew ps` shows it; `crew stop --now` ends it"
            )
        if find_runner(workplace.lock_file) is None and withdraw(db, number):
            return None
        time.sleep(POLL_S)
    return found


def _wait_until(workplace: Workplace, settled: Settled, give_up_at: float) -> bool:
    """False when the runner went away before it was so."""
    while not settled(load_world(workplace.db)):
        if time.monotonic() > give_up_at:
            raise TimedOut("it takes longer than expected", hint="`crew ps` shows how far it is")
        if find_runner(workplace.lock_file) is None:
            return settled(load_world(workplace.db))
        time.sleep(POLL_S)
    return True


def _do_it_here(workplace: Workplace, request: Request, only: frozenset[str]) -> Any:
    with holding_the_lock(workplace):
        return asyncio.run(_do(workplace, request, only))


async def _do(workplace: Workplace, request: Request, only: frozenset[str]) -> Any:
    runner = make_runner(workplace, drain=True)
    runner.engine.only = only
    runner.engine.taking_work = False
    runner.take_in()
    reply = runner.heed(request)
    await runner.run()
    return reply


@effect("runner.wake")
def wake(workplace: Workplace) -> None:
    """Tell the runner that there is something to look at; nothing happens when none is up."""
    try:
        pipe = os.open(workplace.wake_file, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.write(pipe, b".")
    except BlockingIOError:
        return
    finally:
        os.close(pipe)
