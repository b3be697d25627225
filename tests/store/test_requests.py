"""Requests that one process leaves for another."""

import threading

import pytest

from crew.domain.kernel.errors import NotFound
from crew.domain.requests import Request
from crew.store.database import open_database
from crew.store.replies import Reply, keep_reply
from crew.store.request_queue import (
    add_request,
    drop_requests,
    find_reply,
    open_requests,
    withdraw,
)
from refusals import raises_code

KILL = Request(verb="kill", args={"agent": "Jürgen"})
STOP = Request(verb="stop", args={})


def test_requests_are_heard_as_they_were_made_and_in_that_order(connect):
    asker, runner = connect(), connect()
    numbers = [add_request(asker, request, at=1.0) for request in (KILL, STOP)]
    assert open_requests(runner) == list(zip(numbers, (KILL, STOP), strict=True))


def test_a_reply_reaches_the_one_who_asked_and_the_request_is_not_heard_again(connect):
    asker, runner = connect(), connect()
    number = add_request(asker, KILL, at=1.0)
    assert find_reply(asker, number) is None
    keep_reply(runner, Reply(number, {"reply": ["A", None]}))
    assert open_requests(runner) == []
    assert find_reply(asker, number) == {"reply": ["A", None]}


def test_a_request_is_answered_once(db):
    number = add_request(db, KILL, at=1.0)
    keep_reply(db, Reply(number, {"reply": "first"}))
    keep_reply(db, Reply(number, {"reply": "second"}))
    assert find_reply(db, number) == {"reply": "first"}


def test_a_request_can_be_withdrawn_until_it_is_answered(db):
    first, second = (add_request(db, KILL, at=1.0) for _ in range(2))
    assert withdraw(db, first)
    assert not withdraw(db, first)
    assert [number for number, _ in open_requests(db)] == [second]
    keep_reply(db, Reply(second, {"reply": None}))
    assert not withdraw(db, second)
    assert find_reply(db, second) == {"reply": None}


def test_nobody_waits_for_the_reply_to_a_request_that_is_gone(db):
    number = add_request(db, KILL, at=1.0)
    withdraw(db, number)
    keep_reply(db, Reply(number, {"reply": "late"}))
    with raises_code(NotFound, "not_found") as caught:
        find_reply(db, number)
    assert caught.value.hint == "ask again"


def test_a_new_runner_drops_what_its_predecessor_left_open_and_keeps_its_replies(db):
    answered, left_open = (add_request(db, KILL, at=1.0) for _ in range(2))
    keep_reply(db, Reply(answered, {"reply": "yes"}))
    drop_requests(db)
    assert open_requests(db) == []
    assert find_reply(db, answered) == {"reply": "yes"}
    with pytest.raises(NotFound):
        find_reply(db, left_open)


def test_the_number_of_a_withdrawn_request_is_never_given_to_another(db):
    number = add_request(db, KILL, at=1.0)
    withdraw(db, number)
    assert add_request(db, STOP, at=2.0) != number


def at_once(path, *sides):
    """Each side in a thread with a connection of its own; all start together."""
    start = threading.Barrier(len(sides))

    def do(side):
        own = open_database(path)
        start.wait()
        side(own)
        own.close()

    threads = [threading.Thread(target=do, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_either_the_reply_or_the_withdrawal_wins_and_both_sides_see_the_same(path, db):
    numbers = [add_request(db, KILL, at=1.0) for _ in range(40)]
    withdrawn = {}

    def take_back(own):
        withdrawn.update({number: withdraw(own, number) for number in numbers})

    def answer(own):
        for number in reversed(numbers):
            keep_reply(own, Reply(number, {"reply": number}))

    at_once(path, take_back, answer)
    for number, is_withdrawn in withdrawn.items():
        if is_withdrawn:
            with pytest.raises(NotFound):
                find_reply(db, number)
        else:
            assert find_reply(db, number) == {"reply": number}
