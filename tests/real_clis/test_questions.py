"""Real CLIs ask a person during a step: the answer reaches the model, also days later."""

import json
import re
import time

import pytest

from agents.running import wait_until
from real_clis.cli_kinds import CLIS
from real_clis.company import Company
from real_clis.scripted_model import Say, Tool, bash

COLOURS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
COLOUR = {"question": "Which colour?", "header": "Colour", "options": COLOURS}
SIZE = {"question": "Which size?", "header": "Size", "options": COLOURS}

WRITES = "python3 -c 'print(\"hello\")' > new.txt"
COMMITS = "git add new.txt && git commit -qm new"


def said(asked):
    return json.dumps(asked.body.get("messages") or asked.body["input"])


@pytest.mark.ability(
    "its own questions reach the inbox with their choices",
    "claude",
    otherwise="it asks no questions in a step; `signal-back` asks",
)
def test_the_questions_of_claude_are_answered_in_its_own_form(agent, script, order):
    asks = {"questions": [COLOUR, {**SIZE, "multiSelect": True}]}
    play = script(Say(tools=(Tool(name="AskUserQuestion", input=asks),)), Say("DONE"))
    company = Company()
    outcome = company.run(agent(), order, watch=company.watch_with("Blue", "as you like"))
    assert (outcome.error, outcome.done) == (None, True)
    colour, size = company.inquired
    assert (colour.question, colour.choices) == ("Which colour?", ("Red", "Blue"))
    assert colour.context == "Red: warm\nBlue: cold"
    assert size.context.endswith("Several of them may be chosen.")
    assert '\\"Which colour?\\"=\\"Blue\\"' in said(play.turns[1]).replace('\\\\"', '\\"')
    assert "as you like" in said(play.turns[1])


@pytest.mark.ability(
    "a person approves its plan (plan mode)", "claude", otherwise="it has no plan mode in a step"
)
@pytest.mark.parametrize(
    ("answer", "heard"),
    [("yes", "approved"), ("no, smaller steps", "answered: no, smaller steps")],
)
def test_a_person_approves_the_plan_of_claude_or_says_what_is_wrong(
    agent, script, order, answer, heard
):
    play = script(Say(tools=(Tool(name="ExitPlanMode", input={}),)), Say("DONE"))
    company = Company()
    adapter = agent("--permission-mode", "plan")
    outcome = company.run(adapter, order, watch=company.watch_with(answer))
    assert (outcome.error, company.inquired[0].choices) == (None, ("yes", "no"))
    assert heard in said(play.turns[1])


@pytest.mark.ability("its own questions reach the inbox with their choices", "codex")
@pytest.mark.clis
def test_the_questions_of_codex_are_answered_in_its_own_form(codex, agent_of, script, order):
    """Codex asks only in its plan mode, unless this feature of it is on."""
    asks = {"questions": [{**COLOUR, "id": "colour"}]}
    play = script(Say(tools=(Tool(name="request_user_input", input=asks),)), Say("DONE"))
    company = Company()
    adapter = agent_of(CLIS["codex"], "--enable", "default_mode_request_user_input")
    outcome = company.run(adapter, order, watch=company.watch_with("Blue"))
    assert (outcome.error, outcome.done) == (None, True)
    assert company.inquired[0].choices == ("Red", "Blue")
    assert re.search(r"colour.{1,20}answers.{1,20}Blue", said(play.turns[1]))


def _question(crew):
    found = []

    def is_asked():
        found[:] = json.loads(crew("inbox", "--json"))
        return found

    wait_until(is_asked)
    return found[0]


@pytest.mark.clis
def test_a_permission_that_is_given_when_the_runner_is_dead_is_in_the_next_prompt(
    crew, script, repo
):
    crew.configure('[agents.claude]\npermissions = "ask"')
    play = script(bash(WRITES), bash(WRITES), bash(COMMITS), Say("DONE"))
    crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1")
    try:
        question = _question(crew)
    finally:
        runner.kill()
        runner.communicate()
    assert (question["kind"], question["choices"]) == ("permission", ["yes", "no"])
    runner = crew.start("run", "--agents", "1")  # it asks nothing, and waits without a step
    try:
        wait_until(lambda: json.loads(crew("ps", "--json"))[0]["status"] == "idle")
        assert [one["id"] for one in json.loads(crew("inbox", "--json"))] == [question["id"]]
        assert len(play.turns) == 1
        crew("answer", question["id"], "yes")
        wait_until(lambda: len(play.turns) > 1)
        assert "May the agent use Bash?" in said(play.turns[1])
        _allow_what_follows(crew, runner, repo)
    finally:
        runner.kill()
        runner.communicate()


@pytest.mark.ability(
    "gets the text of a refused permission request in the same step",
    "claude",
    otherwise="a message brings it",
)
@pytest.mark.clis
def test_what_a_person_says_with_a_no_reaches_the_agent_in_the_same_step(crew, script):
    crew.configure('[agents.claude]\npermissions = "ask"')
    play = script(bash(WRITES), bash(COMMITS), Say("DONE"))
    crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1")
    try:
        crew("answer", _question(crew)["id"], "no, use printf for it")
        wait_until(lambda: len(play.turns) > 1)
    finally:
        runner.kill()
        runner.communicate()
    assert "use printf for it" in said(play.turns[1])


def _allow_what_follows(crew, runner, repo):
    """Answer what else it asks, and see that the allowed command is not among it."""
    give_up_at = time.monotonic() + 100
    while not (repo / "new.txt").exists():
        assert runner.poll() is None
        assert time.monotonic() < give_up_at
        for question in json.loads(crew("inbox", "--json")):
            assert WRITES not in (question["context"] or "")
            crew("answer", question["id"], "yes")
