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
}


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_holds_its_values_exactly_as_they_are(name):
    told = prompt(name, **VALUES)
    for field in prompt_fields(name):
        assert VALUES[field] in told
    assert told.endswith(".\n")


def test_every_reason_to_call_an_agent_has_its_prompt():
    assert set(Ask) <= set(prompt_names())
    assert "system" in prompt_names()


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_says_how_to_end(name):
    assert "done_word" in prompt_fields(name)
    assert "alone on a line" in prompt(name, **VALUES)


@pytest.mark.parametrize("name", ["red_gate", "uncommitted", "conflict", "lost_side", "resumed"])
def test_what_crew_found_out_is_told(name):
    assert "notes" in prompt_fields(name)


def test_the_first_and_a_fresh_session_get_the_whole_task():
    assert {"title", "body"} <= prompt_fields("first")
    assert {"title", "body"} <= prompt_fields("resumed")


def test_a_value_that_is_missing_is_a_fault_in_crew():
    with pytest.raises(KeyError):
        prompt("first", title="t")
