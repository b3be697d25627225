"""What agents are told."""

import pytest

from crew.config.prompts import prompt, prompt_fields, prompt_names
from crew.domain.run import Ask

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
}

ENDINGS = {
    "reviewer": "your verdict alone",
    "interactive": "crew complete",
    "sent_back": "run `crew complete` again",
    "manager": "the `crew` command",
    "role": "send your signal",
    "followed": "send your signal",
    "no_plan": "send complete",
    "no_signal": "send your signal",
    "role_system": "exactly one signal",
    "channel_system": "end it with TURN_COMPLETE",
    "channel_turn": "end with TURN_COMPLETE",
    "channel_again": "end with TURN_COMPLETE",
    "channel_council": "before TURN_COMPLETE",
}
"""How those end who do not end with the word: by a verdict, a command, a signal, or not at all."""


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_holds_its_values_exactly_as_they_are(name):
    told = prompt(name, **VALUES)
    for field in prompt_fields(name):
        assert VALUES[field] in told
    assert told.endswith((".\n", "DONE\n"))


def test_every_reason_to_call_an_agent_has_its_prompt():
    assert set(Ask) <= set(prompt_names())
    assert "system" in prompt_names()


@pytest.mark.parametrize("name", sorted({*prompt_names()} - {*ENDINGS}))
def test_every_step_is_told_the_word_that_ends_the_work(name):
    assert "done_word" in prompt_fields(name)
    assert "alone on a line" in prompt(name, **VALUES)


@pytest.mark.parametrize("name", ENDINGS)
def test_those_who_end_otherwise_are_told_how(name):
    assert "done_word" not in prompt_fields(name)
    assert ENDINGS[name] in prompt(name, **VALUES)


NOTES = ["red_gate", "uncommitted", "conflict", "lost_side", "resumed", "review", "partial"]
NOTES += ["answer", "changes", "role", "followed"]


@pytest.mark.parametrize("name", NOTES)
def test_what_crew_found_out_is_told(name):
    assert "notes" in prompt_fields(name)


def test_the_first_and_a_fresh_session_get_the_whole_task():
    assert {"title", "body"} <= prompt_fields("first")
    assert {"title", "body"} <= prompt_fields("resumed")


def test_a_value_that_is_missing_is_a_fault_in_crew():
    with pytest.raises(KeyError):
        prompt("first", title="t")
