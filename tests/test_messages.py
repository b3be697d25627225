"""The wording of every error is pinned here alone: in `messages.txt`, by code.

Other tests know an error by its code and the names in it. After a change on purpose,
`cd tests && python -m error_messages --write` records the messages anew.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from difflib import unified_diff

import pytest

from error_messages import RECORD, ErrorMessage, collected, errors_of, general_codes, recorded
from wording import Module

SEVERAL = {
    "branch_checked_out": "the other worktree is known, or not",
    "branch_in_the_way": "the branch is above the name, or below it",
    "disk_full": "crew's own folder, or wherever git writes",
    "invalid_plan": "each fault of a plan has its message",
    "invalid_value": "a key of the config, an argument, or a number of seconds",
    "invalid_workflow": "the file as a whole, or a line of it",
    "member_disabled": "for a person, and for the member itself",
    "other_tasks": "the config names another source, or `crew init` was to",
    "task_over": "each names what cannot be done any more, and the way that is left",
}
"""The precise codes with more than one message, and why the messages do not contradict."""


def several_messages(errors: Iterable[ErrorMessage]) -> dict[str, set[str]]:
    """The precise codes that stand for more than one message."""
    found = defaultdict(set)
    for one in errors:
        if one.code not in general_codes().values():
            found[one.code].add(_with_blanks(one.message))
    return {code: messages for code, messages in found.items() if len(messages) > 1}


def several_codes(errors: Iterable[ErrorMessage]) -> dict[str, set[str]]:
    """The messages that have more than one code; a message without words of its own has none."""
    found = defaultdict(set)
    for one in errors:
        message = _with_blanks(one.message)
        if re.search(r"\w", message.replace("{}", "")):
            found[message].add(one.code)
    return {message: codes for message, codes in found.items() if len(codes) > 1}


def _with_blanks(message: str) -> str:
    return re.sub(r"\{.*?\}", "{}", message)


def test_every_error_is_worded_as_recorded():
    now = recorded(collected())
    changes = unified_diff(RECORD.read_text().splitlines(), now.splitlines(), lineterm="", n=1)
    assert "\n".join(changes) == "", "record it: cd tests && python -m error_messages --write"


def test_a_precise_code_has_one_message():
    assert several_messages(collected()).keys() == SEVERAL.keys()


def test_a_message_has_one_code():
    assert several_codes(collected()) == {}


def test_every_error_of_the_source_is_collected():
    assert len(collected()) > 300
    assert [one for one in collected() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", one.code)] == []


SOURCE = """
TABLE = {"a": ("it is red", "paint it"), "b": ("it is blue", "wash it")}
NEXT = "`crew ps` shows it"

class Rain(Conflict):
    code = "rain"

    def __init__(self, where):
        super().__init__(f"it rains in {where}", hint="wait")

def found(task, number):
    state = "late" if task.late else "early"
    raise NotFound(f"task {task.id} is {state}", hint=NEXT)

def looked_up(key):
    why, remedy = TABLE.get(key, ("it has no colour", NEXT))
    raise CheckFailed(why, hint=remedy)

def passed_on(what, *, hint, code):
    return UsageError(f"wrong: {what}", hint=hint, code=code)

def calls():
    raise passed_on("a colour", hint=next_step("green"), code="colour")

def next_step(name):
    return f"take {name}"
"""


@pytest.fixture(scope="module")
def example() -> dict[str, ErrorMessage]:
    module = Module("example.py", ast.parse(SOURCE))
    return {one.code: one for one in errors_of(module, {**general_codes(), "Rain": "rain"})}


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("rain", "it rains in {where}", "wait"),
        ("not_found", "task {task.id} is (late|early)", "`crew ps` shows it"),
        (
            "check_failed",
            "(it is red|it is blue|it has no colour)",
            "(paint it|wash it|`crew ps` shows it)",
        ),
        ("colour", "wrong: a colour", "take green"),
    ],
)
def test_a_message_is_followed_to_its_words(example, code, message, hint):
    assert (example[code].message, example[code].hint) == (message, hint)


def test_the_record_lists_each_code_with_its_messages_and_their_hints():
    errors = [
        ErrorMessage("rain", message, "wait", "x.py:1") for message in ("it rains", "it\npours")
    ]
    assert recorded(errors) == "rain\n    it\\npours\n        wait\n    it rains\n        wait\n"


def test_messages_that_contradict_are_found():
    errors = [
        ErrorMessage("rain", "task {a} is wet", "wait", "x.py:1"),
        ErrorMessage("rain", "task {b} is dry", "go", "x.py:2"),
        ErrorMessage("sun", "task {c} is dry", "go", "x.py:3"),
        ErrorMessage("conflict", "one", "go", "x.py:4"),
        ErrorMessage("conflict", "another", "go", "x.py:5"),
    ]
    assert several_messages(errors) == {"rain": {"task {} is wet", "task {} is dry"}}
    assert several_codes(errors) == {"task {} is dry": {"rain", "sun"}}
