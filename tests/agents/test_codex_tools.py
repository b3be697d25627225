"""A turn of Codex waits for crew's own tools, and for nothing else."""

import pytest

from crew.agents.adapter import Interrupt
from crew.agents.codex.codex_dialogue import AwaitTools, CodexDialogue
from crew.agents.dialogue_acts import DialogueEnded, SendMessage

INITIALIZED = {"id": 1, "result": {}}
OPENED = {"id": 2, "result": {"thread": {"id": "t1"}}}


def told(status, name="crew"):
    params = {"threadId": "t1", "name": name, "status": status}
    return {"method": "mcpServer/startupStatus/updated", "params": params}


def opened(*before, wants_tools=True):
    """A dialogue whose thread is open, and what it then does."""
    dialogue = CodexDialogue(prompt="do it", opening={}, wants_tools=wants_tools)
    for message in (None, INITIALIZED, *before):
        list(dialogue.begin() if message is None else dialogue.read(message))
    return dialogue, list(dialogue.read(OPENED))


def names(acts):
    """The methods of what is told, and the kinds of all else."""
    return [act.message["method"] if isinstance(act, SendMessage) else type(act) for act in acts]


def test_a_turn_without_tools_begins_at_once():
    assert names(opened(wants_tools=False)[1]) == ["turn/start"]


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_a_turn_begins_when_it_is_known_what_became_of_the_tools(status):
    dialogue, acts = opened()
    assert names(acts) == [AwaitTools]
    assert names(dialogue.read(told("starting"))) == []
    assert names(dialogue.read(told("ready", name="another"))) == []
    assert names(dialogue.read(told(status))) == ["turn/start"]
    assert names(dialogue.read(told(status))) == []
    assert names(dialogue.begin_turn()) == []


def test_tools_that_are_there_before_the_thread_are_not_waited_for():
    assert names(opened(told("starting"), told("ready"))[1]) == ["turn/start"]
    assert names(opened(told("starting"))[1]) == [AwaitTools]


def test_a_codex_that_tells_nothing_of_tools_is_not_waited_for_long():
    dialogue, _ = opened()
    assert names(dialogue.begin_turn(unless_starting=True)) == ["turn/start"]


def test_tools_that_never_come_are_given_up():
    dialogue, _ = opened(told("starting"))
    assert names(dialogue.begin_turn(unless_starting=True)) == []
    assert names(dialogue.begin_turn()) == ["turn/start"]


def test_an_interrupt_while_the_tools_are_awaited_starts_no_turn():
    dialogue, _ = opened()
    assert names(dialogue.send(Interrupt())) == [DialogueEnded]
    assert names(dialogue.read(told("ready"))) == []
