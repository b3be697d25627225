"""Tests of work that no cancellation cuts short."""

import asyncio
import threading

import pytest

from crew.system.threads import in_thread


def cancelled_twice(work):
    """Run it in a thread, cancel it twice while it waits, and let it go on then."""

    async def scene():
        begun, may_end = threading.Event(), threading.Event()

        def function():
            begun.set()
            may_end.wait(60)
            work()

        task = asyncio.create_task(in_thread(function))
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        await task

    asyncio.run(scene())


def test_a_thread_ends_before_its_cancellation_is_raised():
    done = []
    with pytest.raises(asyncio.CancelledError):
        cancelled_twice(lambda: done.append(1))
    assert done == [1]


def test_the_error_of_a_cancelled_thread_is_the_cause_of_its_cancellation():
    with pytest.raises(asyncio.CancelledError) as raised:
        cancelled_twice(lambda: int("x"))
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_thread_gives_its_result_or_its_error():
    assert asyncio.run(in_thread(int, "7")) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(in_thread(int, "x"))
