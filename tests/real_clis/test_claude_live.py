"""The real Claude Code is spoken to, interrupted and answered while it works."""

import asyncio
import json
import subprocess
from dataclasses import replace

import pytest

from agents.contract import run_step
from agents.running import processes_holding, wait_until, written
from crew.agents.adapter import Interrupt
from crew.agents.claude import claude_live
from crew.agents.claude.claude import claude_argv
from crew.agents.claude.claude_dialogue import user_message
from crew.domain.rows.step import ErrorKind
from crew.system.processes.ownership import owned_processes
from real_clis.company import Company
from real_clis.scripted_model import Gate, Hang, Say, Tool, bash

UNTIL_GO = "touch up; until [ -e go ]; do sleep 0.05; done"


def _queued(order):
    """How many messages the program has taken in so far; its prompt is not among them."""
    return written(order.log).count('"state":"queued"')


def _said(asked):
    return json.dumps(asked.body["messages"])


@pytest.mark.ability(
    "reads a message during its step", "claude", otherwise="a message waits for the next step"
)
def test_a_message_reaches_the_model_with_the_result_of_the_running_tool(agent, script, order):
    steps = script(bash(UNTIL_GO), Say("DONE"))
    company = Company()

    def play(on_loop):
        wait_until((order.worktree / "up").exists)
        on_loop(company.say, "m1", "use the blue one")
        on_loop(company.say, "m2", "and hurry")
        wait_until(lambda: _queued(order) == 2)
        assert company.heard == []
        (order.worktree / "go").touch()

    outcome = company.run(agent(), order, play)
    assert (outcome.error, outcome.done) == (None, True)
    assert company.heard == ["m1", "m2"]
    assert "use the blue one" in _said(steps.turns[1])
    assert len(steps.turns) == 2


def test_a_message_that_no_tool_is_left_for_is_not_heard_and_starts_no_turn(agent, script, order):
    last = Gate(Say("DONE"))
    steps = script(bash("true"), last, Say("another turn"))
    company = Company()

    def play(on_loop):
        wait_until(last.reached.is_set)
        on_loop(company.say, "m1", "too late")
        last.opened.set()

    outcome = company.run(agent(), order, play)
    assert (outcome.error, outcome.done) == (None, True)
    assert company.heard == []
    assert len(steps.turns) == 2


def test_a_message_for_a_model_that_thinks_waits_for_its_next_tool(agent, script, order):
    thinks = Gate(bash(UNTIL_GO))
    steps = script(thinks, Say("DONE"))
    company = Company()

    def play(on_loop):
        wait_until(thinks.reached.is_set)
        on_loop(company.say, "m1", "use the blue one")
        thinks.opened.set()
        wait_until(lambda: _queued(order))
        (order.worktree / "go").touch()

    outcome = company.run(agent(), order, play)
    assert (outcome.error, company.heard) == (None, ["m1"])
    assert "use the blue one" in _said(steps.turns[1])


@pytest.mark.ability(
    "can be interrupted and continues its session", "claude", otherwise="the step is ended"
)
def test_an_interrupted_step_ends_its_tool_and_its_session_goes_on(agent, script, order, marker):
    tag = f"{marker}-in-a-tool"
    script(bash(f"touch up; exec -a {tag} tail -f /dev/null"), Say("DONE"))
    company = Company()

    def play(on_loop):
        wait_until((order.worktree / "up").exists)
        on_loop(company.say, "m1", "never read")
        on_loop(company.controls.send, Interrupt())

    outcome = company.run(agent(), order, play)
    assert (outcome.error, outcome.done, company.heard) == (None, False, [])
    assert processes_holding(tag) == []
    assert owned_processes(marker) == ()
    steps = script(Say("DONE"))
    again = run_step(agent(), replace(order, resume=True, prompt="go on", session=outcome.session))
    assert (again.error, again.done) == (None, True)
    assert tag in _said(steps.turns[0])
    assert "never read" not in _said(steps.turns[0])


def test_a_model_that_is_interrupted_while_it_speaks_is_no_error(agent, script, order):
    silent = Hang()
    steps = script(silent)
    company = Company()

    def play(on_loop):
        wait_until(lambda: steps.turns)
        on_loop(company.controls.send, Interrupt())

    outcome = company.run(agent(), order, play)
    assert (outcome.error, outcome.done) == (None, False)


WRITES = 'python3 -c \'open("made", "w")\''


@pytest.mark.ability(
    'asks a person for permission (`permissions = "ask"`)',
    "claude",
    otherwise="the sandbox alone decides",
)
@pytest.mark.parametrize("answer", [True, False])
def test_a_person_decides_what_an_agent_that_asks_may_do(agent, script, order, answer):
    steps = script(bash(WRITES), Say("DONE"))
    company = Company(answer)
    outcome = company.run(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    (permission,) = company.asked
    assert permission.tool == "Bash"
    assert WRITES in permission.detail
    assert (order.worktree / "made").exists() is answer
    assert ("not allowed" in _said(steps.turns[1])) is not answer


def test_where_nobody_can_be_asked_shell_commands_are_allowed_and_the_outside_is_not(
    agent, script, order, tmp_path
):
    outside = tmp_path / "outside.txt"
    write = Tool(name="Write", input={"file_path": str(outside), "content": "x"})
    steps = script(bash(WRITES), Say(tools=(write,)), Say("DONE"))
    assert run_step(agent(), order).error is None
    assert (order.worktree / "made").exists()
    assert not outside.exists()
    assert "not allowed" in _said(steps.turns[2])


def test_a_question_that_is_open_when_the_step_is_interrupted_is_dropped(agent, script, order):
    script(bash(WRITES))
    company = Company(True)
    asked = []

    async def never(permission):
        asked.append(permission)
        await asyncio.Event().wait()

    company._answer = never

    def play(on_loop):
        wait_until(lambda: asked)
        on_loop(company.controls.send, Interrupt())

    outcome = company.run(agent(), order, play)
    assert (outcome.error, outcome.done) == (None, False)
    assert not (order.worktree / "made").exists()


def test_a_server_left_in_the_background_does_not_keep_a_finished_step(
    agent, script, order, marker, monkeypatch
):
    monkeypatch.setattr(claude_live, "ENDS_WITHIN_S", 1.0)
    tag = f"{marker}-server"
    script(bash(f"exec -a {tag} tail -f /dev/null", run_in_background=True), Say("DONE"))
    outcome = run_step(agent(), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert processes_holding(tag) == []


def test_a_server_left_in_the_background_by_unfinished_work_is_no_failure(
    agent, script, order, marker
):
    script(bash("tail -f /dev/null", run_in_background=True), Say("It is up."))
    long_for_a_start = 12.0
    outcome = run_step(agent(), replace(order, idle_timeout_s=long_for_a_start))
    assert (outcome.error, outcome.done) == (None, False)
    assert owned_processes(marker) == ()


def test_two_steps_in_one_session_are_refused_to_the_second(agent, script, order):
    gate = Gate(Say("DONE"))
    script(gate)
    refused = []

    def play(on_loop):
        wait_until(gate.reached.is_set)
        refused.append(run_step(agent(), replace(order, resume=True)))
        gate.opened.set()

    outcome = Company().run(agent(), order, play)
    assert (outcome.error, outcome.done) == (None, True)
    assert refused[0].error.kind is ErrorKind.SESSION_IN_USE


def test_a_session_that_somebody_has_open_in_a_terminal_is_refused(
    agent, script, order, caller, remembered
):
    script(Say("hello, whoever you are"))
    adapter = agent()
    somebody = subprocess.Popen(
        claude_argv(adapter.spec, order),
        cwd=order.worktree,
        env={**caller, **adapter.spec.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        somebody.stdin.write(json.dumps(user_message("hi")).encode() + b"\n")
        somebody.stdin.flush()
        wait_until(lambda: "whoever you are" in remembered())
        error = run_step(adapter, replace(order, resume=True)).error
    finally:
        somebody.communicate(timeout=60)
    assert error.kind is ErrorKind.SESSION_IN_USE
    assert str(somebody.pid) in error.message
