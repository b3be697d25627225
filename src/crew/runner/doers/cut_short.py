"""Runs a step to its end, or ends it after a grace period once it was asked to stop."""

import asyncio
from collections.abc import Awaitable, Callable

from crew.domain.rows.step import UNREPORTED, StepOutcome


async def outcome_of(
    step: Awaitable[StepOutcome],
    *,
    stopped_by: Awaitable[object],
    grace_s: float,
    session: str,
    stop: Callable[[], None] = lambda: None,
) -> StepOutcome:
    """The step's outcome; once `stopped_by` completes, the step has `grace_s` to end by itself."""
    stopped = asyncio.ensure_future(stopped_by)  # starts before the step, so that no fact is missed
    running = asyncio.ensure_future(step)
    try:
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            stop()
        await asyncio.wait({running}, timeout=grace_s)
        if running.done():
            return running.result()
        return StepOutcome(session=session, usage=UNREPORTED)
    finally:
        stopped.cancel()
        running.cancel()
        await asyncio.gather(running, stopped, return_exceptions=True)
