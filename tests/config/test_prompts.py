"""What agents are told."""

from string import Template

import pytest

from crew.config.prompts import FOLDER, prompt
from crew.domain.rows.run import Ask

VALUES = {
    "agent": "A",
    "task": "12",
    "title": "Fix ${body} {x} {{.Title}} $",
    "body": "Text with ${title}, $task and %s",
    "branch": "crew-12",
    "target": "main",
    "worktree": "/w/12",
    "notes": "some ${notes}",
    "done_word": "DONE",
    "commit": "0123abc",
    "root": "/repo",
    "board": "12 todo Fix it",
    "orders": "Make ${title} better.",
    "role": "codeweaver",
    "owns": "the code",
    "instructions": "Build ${title}.",
    "signals": "complete",
    "followups": "Often asked: others.",
    "channel": "reviews",
    "others": "dev, qa",
    "messages": "#1 ann (a person):\nIs ${title} sound?",
    "given": "3 to 5",
    "why": "a person asked for changes",
    "help": "What `crew` can do: ${title}.",
    "held": "some commits",
    "quest": "7",
    "request": "Make ${title}.",
    "settled": "Nobody decided ${title}.",
    "plan": "1. a: ${title}",
    "built": "The parser of ${title}.",
    "brief": "The request: ${title}",
    "unfinished": "Nobody said ${done_word}.\n",
    "ending": "How it ends: ${ending}.",
}

ENDINGS = {
    "ending_task": "alone on a line",
    "ending_role": "send one signal and stop",
    "ending_terminal": "crew complete",
    "ending_member": "TURN_COMPLETE",
}
"""How each kind of session ends. Every prompt of such a session has these words from here."""

OTHERS = {
    "reviewer": "your verdict alone",
    "manager": "the `crew` command",
    "manager_auto": "alone on a line",
    "manager_plan": "with `crew new`",
    "role_system": "exactly one signal",
    "channel_council": "before TURN_COMPLETE",
    "recap": "called for now",
    "brief": "get-quest",
    "review_unfinished": "Judge whether it is",
}
"""Prompts whose session ends otherwise, or that are a part of another prompt."""

NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if not path.name.startswith("help_"))
"""All that crew says to agents; pages for `crew --help-…` are not among it."""


def prompt_fields(name):
    return set(Template((FOLDER / f"{name}.md").read_text()).get_identifiers())


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_holds_its_values_exactly_as_they_are(name):
    told = prompt(name, **VALUES)
    for field in prompt_fields(name):
        assert VALUES[field] in told
    assert told.endswith((".\n", "DONE\n"))


def test_every_reason_to_call_an_agent_has_its_prompt():
    assert set(Ask) <= set(NAMES)
    assert "system" in NAMES


@pytest.mark.parametrize("name", sorted({*NAMES} - {*ENDINGS, *OTHERS}))
def test_every_prompt_has_the_ending_of_its_session_from_one_place(name):
    assert "ending" in prompt_fields(name)
    text = prompt(name, **VALUES)
    assert not [words for words in ("alone on a line", "send your signal") if words in text]


@pytest.mark.parametrize(("name", "words"), {**ENDINGS, **OTHERS}.items())
def test_each_ending_is_said_once(name, words):
    assert "ending" not in prompt_fields(name)
    assert words in prompt(name, **VALUES)


NOTES = [
    "red_gate",
    "refused",
    "nested",
    "unpushed",
    "off_head",
    "uncommitted",
    "conflict",
    "lost_side",
    "resumed",
]
NOTES += ["review", "partial", "answer", "changes", "role", "followed"]


@pytest.mark.parametrize("name", NOTES)
def test_what_crew_found_out_is_told(name):
    assert "notes" in prompt_fields(name)


def test_the_first_and_a_fresh_session_get_the_whole_task():
    assert {"title", "body"} <= prompt_fields("first")
    assert {"title", "body"} <= prompt_fields("resumed")


def test_a_value_that_is_missing_is_a_fault_in_crew():
    with pytest.raises(KeyError):
        prompt("first", title="t")
