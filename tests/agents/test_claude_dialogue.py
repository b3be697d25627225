"""Words for a running Claude Code are said when they can be heard, and start no other turn."""

import asyncio
import json
import os
import shlex
import sys
from dataclasses import replace

import pytest

from agents.contract import SILENT, order
from agents.running import finish, put_clock_forward, wait_until, written
from crew.agents.adapter import AgentSpec, Controls, Interrupt, Permission, Say, adapter_for
from crew.agents.claude import claude_live
from crew.agents.claude.claude_dialogue import ClaudeQuestion, Dialogue, Woken
from crew.agents.claude.claude_session import held_session
from crew.agents.dialogue_acts import DialogueEnded, MessageRead, QuestionWithdrawn, SendMessage
from crew.domain.rows.step import ErrorKind

__all__ = ["order"]

HELLO = Say(message="m1", text="hello")
INIT = {"type": "system", "subtype": "init"}
RESULT = {"type": "result"}
IDLE = {"type": "system", "subtype": "background_tasks_changed", "tasks": []}
BUSY = {**IDLE, "tasks": [{"task_id": "b1"}]}


def tool(number, **fields):
    block = {"type": "tool_use", "id": number, "name": "Bash", "input": {}}
    return {"type": "assistant", "message": {"content": [block]}, **fields}


def tool_result(number, **fields):
    block = {"type": "tool_result", "tool_use_id": number, "content": "ok"}
    return {"type": "user", "message": {"content": [block]}, **fields}


def replay(number):
    message = {"content": [{"type": "text", "text": "hello"}]}
    return {"type": "user", "message": message, "uuid": number, "isReplay": True}


def taken_back(number):
    return {"type": "command_lifecycle", "state": "cancelled", "command_uuid": number}


def hear(dialogue, *events, is_done=False):
    return [act for event in events for act in dialogue.read(event, is_done=is_done)]


def told(dialogue, word):
    return list(dialogue.send(word))


def number_of(acts):
    (tell,) = acts
    assert tell.message["message"]["content"] == [{"type": "text", "text": "hello"}]
    return tell.message["uuid"]


def requests(acts):
    return [act.message["request"] for act in acts if isinstance(act, SendMessage)]


def test_words_are_kept_back_until_a_tool_runs():
    dialogue = Dialogue()
    assert told(dialogue, HELLO) == []
    assert number_of(hear(dialogue, INIT, tool("t1")))


def test_words_are_said_at_once_while_a_tool_runs():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"))
    assert number_of(told(dialogue, HELLO))


def test_words_are_heard_once_they_are_replayed():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"))
    number = number_of(told(dialogue, HELLO))
    hear(dialogue, tool_result("t1"))
    assert hear(dialogue, replay(number)) == [MessageRead("m1")]
    assert hear(dialogue, replay(number)) == []


def test_words_that_missed_the_result_are_taken_back_and_said_to_the_next_tool():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"))
    first = number_of(told(dialogue, HELLO))
    request = {"subtype": "cancel_async_message", "message_uuid": first}
    assert requests(hear(dialogue, tool_result("t1"))) == [request]
    assert hear(dialogue, taken_back(first)) == []
    again = number_of(hear(dialogue, tool("t2")))
    assert again != first
    assert hear(dialogue, tool_result("t2"), replay(again))[-1] == MessageRead("m1")


def test_words_are_not_taken_back_while_another_tool_still_runs():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"), tool("t2"))
    told(dialogue, HELLO)
    assert hear(dialogue, tool_result("t1")) == []
    assert len(hear(dialogue, tool_result("t2"))) == 1


def test_words_that_were_taken_in_the_last_moment_are_heard_although_they_were_called_back():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"))
    number = number_of(told(dialogue, HELLO))
    acts = hear(dialogue, tool_result("t1"), replay(number))
    assert acts[-1] == MessageRead("m1")


def test_a_helpers_tools_are_not_the_agents():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1", parent_tool_use_id="t0"))
    assert told(dialogue, HELLO) == []


def test_nothing_more_is_said_after_the_result():
    dialogue = Dialogue()
    assert hear(dialogue, INIT, tool("t1"), tool_result("t1"), RESULT) == [DialogueEnded()]
    assert told(dialogue, HELLO) == []


def test_a_command_in_the_background_keeps_unfinished_work_open():
    assert hear(Dialogue(), INIT, BUSY, RESULT, IDLE, INIT, RESULT) == [DialogueEnded()]


def test_a_command_in_the_background_does_not_keep_finished_work_open():
    assert hear(Dialogue(), INIT, BUSY, RESULT, is_done=True) == [DialogueEnded()]


def test_whoever_is_woken_after_all_was_said_may_take_their_time():
    acts = hear(Dialogue(), INIT, BUSY, RESULT, INIT, RESULT, is_done=True)
    assert acts == [DialogueEnded(), Woken(), DialogueEnded()]


def test_an_interrupt_takes_back_what_was_said_and_is_the_last_word():
    dialogue = Dialogue()
    hear(dialogue, INIT, tool("t1"))
    number = number_of(told(dialogue, HELLO))
    acts = told(dialogue, Interrupt())
    assert requests(acts) == [
        {"subtype": "cancel_async_message", "message_uuid": number},
        {"subtype": "interrupt"},
    ]
    assert acts[-1] == DialogueEnded()
    assert hear(dialogue, taken_back(number), tool_result("t1"), INIT) == []
    assert told(dialogue, Interrupt()) == []


def asks(**request):
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}} | request
    return {"type": "control_request", "request_id": "r1", "request": request}


def test_a_question_says_what_would_be_done_and_why_it_is_asked():
    (question,) = hear(Dialogue(), asks(decision_reason="it is outside"))
    detail = "command: ls\n(it is outside)"
    assert question == ClaudeQuestion(
        request="r1", permission=Permission(tool="Bash", detail=detail), values={"command": "ls"}
    )


def test_a_question_can_be_withdrawn():
    cancel = {"type": "control_cancel_request", "request_id": "r1"}
    assert hear(Dialogue(), cancel) == [QuestionWithdrawn("r1")]


@pytest.mark.parametrize("request_", [asks(subtype="hook_callback"), {"type": "control_request"}])
def test_what_crew_cannot_answer_is_refused_rather_than_left_open(request_):
    (tell,) = hear(Dialogue(), request_)
    assert tell.message["response"]["subtype"] == "error"


PLAYER = """
import json, sys
def hear():
    return json.loads(sys.stdin.readline() or "{}")
def say(**event):
    print(json.dumps(event), flush=True)
def end(**fields):
    say(type="result", is_error=False, result="ok", terminal_reason="completed", **fields)
hear()
say(type="system", subtype="init")
"""
ASK = 'say(type="control_request", request_id="r1", request={"subtype": "can_use_tool"})\n'


@pytest.fixture
def player(tmp_path):
    """A program called claude that plays its part in Python."""

    def make(part):
        program = tmp_path / "claude"
        script = tmp_path / "part.py"
        script.write_text(PLAYER + part)
        program.write_text(
            f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(script))}\n"
        )
        program.chmod(0o755)
        return adapter_for(AgentSpec(name="claude", adapter="claude", command=str(program)))

    return make


def run(adapter, order, watch=SILENT, controls=None):
    return finish(adapter.run_step(order, watch, controls))


def test_the_answer_of_a_person_reaches_the_program(player, order):
    async def yes(permission):
        return True

    part = f'{ASK}open("answer", "w").write(json.dumps(hear()))\nend()'
    assert run(player(part), order, replace(SILENT, asked=yes)).error is None
    answer = json.loads((order.worktree / "answer").read_text())["response"]
    assert (answer["request_id"], answer["response"]["behavior"]) == ("r1", "allow")


def test_a_person_may_think_longer_than_a_program_may_be_silent(player, order):
    async def slow(permission):
        put_clock_forward(100.0)
        await asyncio.sleep(0.1)  # a limit that counts is noticed now
        return True

    step = replace(order, timeout_s=6000.0)
    outcome = run(player(f"{ASK}hear()\nend()"), step, replace(SILENT, asked=slow))
    assert outcome.error is None


def test_a_question_that_cannot_be_put_to_anybody_is_answered_no_and_told(player, order):
    async def fails(permission):
        raise RuntimeError("no inbox")

    part = f'{ASK}open("answer", "w").write(json.dumps(hear()))\nend()'
    with pytest.raises(RuntimeError, match="no inbox"):
        run(player(part), order, replace(SILENT, asked=fails))
    assert '"behavior": "deny"' in (order.worktree / "answer").read_text()


def test_a_program_that_goes_on_after_its_result_is_ended_and_the_result_counts(
    player, order, monkeypatch
):
    monkeypatch.setattr(claude_live, "ENDS_WITHIN_S", 0.5)
    outcome = run(player("end(); import time; time.sleep(600)"), order)
    assert outcome.error is None
    assert outcome.text == "ok\n"


def test_a_program_that_does_not_heed_an_interrupt_is_ended_without_an_error(
    player, order, monkeypatch
):
    monkeypatch.setattr(claude_live, "ENDS_WITHIN_S", 0.5)
    controls = Controls()
    controls.send(Interrupt())
    outcome = run(player("import time; time.sleep(600)"), order, controls=controls)
    assert (outcome.error, outcome.done) == (None, False)


def test_work_that_was_finished_before_the_interrupt_stays_finished(player, order):
    controls = Controls()
    controls.send(Interrupt())
    outcome = run(player('say(type="result", result="DONE")'), order, controls=controls)
    assert (outcome.error, outcome.done) == (None, True)


def test_a_second_step_in_the_same_session_is_refused_while_the_first_runs(player, order):
    adapter = player('open("up", "w").write("up")\nwhile hear(): pass\nend()')

    async def both():
        controls = Controls()
        first = asyncio.ensure_future(adapter.run_step(order, SILENT, controls))
        await asyncio.to_thread(wait_until, lambda: written(order.worktree / "up"))
        second = await adapter.run_step(replace(order, resume=True), SILENT)
        controls.send(Interrupt())
        return await first, second

    first, second = asyncio.run(both())
    assert first.error is None
    assert second.error.kind is ErrorKind.SESSION_IN_USE
    assert run(player("end()"), replace(order, resume=True)).error is None


def test_a_process_that_is_just_being_started_does_not_keep_the_session(order, monkeypatch):
    """It shares what is open until it becomes its program; a copy is as good as that."""
    opened, really_open = [], os.open
    monkeypatch.setattr(os, "open", lambda *of: opened.append(really_open(*of)) or opened[-1])
    with held_session(order, {}):
        copy = os.dup(opened[0])
    with held_session(order, {}):
        assert os.fstat(copy).st_ino == os.fstat(opened[-1]).st_ino
    os.close(copy)


def test_a_flood_of_events_and_of_words_for_the_agent_do_not_block_each_other(player, order):
    part = """
tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}
say(type="assistant", message={"content": [tool]})
for _ in range(200):
    say(type="assistant", message={"content": [{"type": "text", "text": "y" * 50_000}]})
for _ in range(30):
    word = hear()
    say(type="user", uuid=word["uuid"], isReplay=True, message=word["message"])
end()
"""
    controls, heard = Controls(), []
    for number in range(30):
        controls.send(Say(message=f"m{number}", text="z" * 100_000))
    outcome = run(player(part), order, replace(SILENT, heard=heard.append), controls)
    assert outcome.error is None
    assert heard == [f"m{number}" for number in range(30)]


def test_words_for_a_program_that_does_not_read_wait_with_whoever_says_them(player, order):
    part = """
import os, time
tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}
say(type="assistant", message={"content": [tool]})
while not os.path.exists("go"):
    time.sleep(0.02)
end()
"""
    controls = Controls()

    async def both():
        doing = []
        watch = replace(SILENT, doing=doing.append)
        step = asyncio.ensure_future(player(part).run_step(order, watch, controls))
        await asyncio.to_thread(wait_until, lambda: doing)
        for number in range(20):
            controls.send(Say(message=f"m{number}", text="z" * 200_000))
        await asyncio.to_thread(wait_until, lambda: controls._queue.qsize() < 20)
        left = controls._queue.qsize()
        (order.worktree / "go").touch()
        return await step, left

    outcome, left = asyncio.run(both())
    assert outcome.error is None
    assert left >= 15
