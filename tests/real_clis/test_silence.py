"""While the crew waits for a person or for work, nothing is asked of a model."""

import json
import subprocess
import time

import pytest

from agents.running import wait_until
from real_clis.cli_kinds import CLIS
from real_clis.scripted_model import Fail, Say, Tool, bash, too_many_requests

pytestmark = pytest.mark.timeout(240)

COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": one, "description": one} for one in ("Red", "Blue")],
}
ASKS = Say(tools=(Tool(name="AskUserQuestion", input={"questions": [COLOUR]}),))
SIGNALS = Say(
    tools=(
        Tool(
            name="mcp__crew__signal-back",
            input={"signal": "needs-user-input", "question": "Which colour?"},
        ),
    )
)

QUIET_FOR_S = 5.0
SETTLED_AFTER_S = 2.0  # titles are asked for beside the first answer
LIMITED_FOR_S = 3600


@pytest.fixture
def running(crew, repo, model):
    """A runner in the background, which is ended with all terminals."""
    started = []

    def running(*more):
        started.append(crew.start("run", "--agents", "1", *more))

    yield running
    for runner in started:
        runner.terminate()
        runner.communicate(timeout=60)  # a step that waits for a person does not hold it up
    command = ["tmux", "-S", "tmux.sock", "kill-server"]
    subprocess.run(command, cwd=repo / ".crew", capture_output=True, check=False)
    model.outside.clear()  # at a terminal, CLIs look for news by themselves


def waits(crew, *, for_):
    if for_ == "idle terminal":
        return lambda: "ready when you are" in crew("peek", "1", "--lines", "100")
    if for_ == "limit":
        return lambda: json.loads(crew("show", "1", "--json"))["paused"]
    if for_ == "rested channel":
        said = "I said what I have to say."
        return lambda: said in crew("channel", "tail", "room")
    if for_ == "empty queue":
        return lambda: json.loads(crew("show", "1", "--json"))["status"] == "merged"
    return lambda: json.loads(crew("inbox", "--json"))


PLAYS = {
    "question of the agent": (SIGNALS, Say("I wait.")),
    "question of the CLI": (ASKS,),
    "permission": (bash("python3 -c 'print(1)' > x"),),
    "limit": (too_many_requests(int(time.time()) + LIMITED_FOR_S, times=-1),),
    "rested channel": (Say("I said what I have to say.\nTURN_COMPLETE"),),
    "idle terminal": (Say("ready when you are"),),
    "empty queue": (
        bash("echo hello > new.txt && git add new.txt && git commit -qm new"),
        Say("DONE"),
    ),
}


def begin(crew, running, *, what, kind):
    if what == "rested channel":
        crew("channel", "new", "room", "--member", kind, "--topic", "Which colour?")
    else:
        crew("new", "--title", "Write new.txt")
    if what == "idle terminal":
        crew("start", "1", kind)
    running("--agent", kind)


def settle(play):
    """Wait for the requests that come beside the last one."""
    known = -1
    while known != len(play.asked):
        known = len(play.asked)
        time.sleep(SETTLED_AFTER_S)


@pytest.mark.clis
@pytest.mark.parametrize("what", PLAYS)
def test_a_crew_that_waits_asks_nothing_of_a_model(crew, script, running, what):
    if what == "permission":
        crew.configure('[agents.claude]\npermissions = "ask"')
    if what == "limit":  # only a subscription is told when its limit ends
        crew("config", "set", "agents.claude.env.ANTHROPIC_API_KEY", "")
        crew("config", "set", "agents.claude.env.CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-dummy")
    play = script(*PLAYS[what], Say("too much"), Say("too much"))
    begin(crew, running, what=what, kind="claude")
    expected = len(PLAYS[what])
    wait_until(lambda: len(play.turns) == expected)
    wait_until(waits(crew, for_=what))
    settle(play)
    before = len(play.asked)
    time.sleep(QUIET_FOR_S)  # the only way to see that nothing happens
    assert (len(play.asked), len(play.turns)) == (before, expected)


OTHERS = [pytest.param(name, marks=pytest.mark.clis) for name in CLIS if name != "claude"]


def _asks(cli):
    values = {"signal": "needs-user-input", "question": "Which colour?"}
    return (Say(tools=(Tool(name=cli.signal, input=values),)), Say("I wait."))


def _works(cli):
    work = "echo hello > new.txt && git add new.txt && git commit -qm new"
    return (cli.run(work), Say("DONE"))


def _is_limited(_cli):
    return (Fail(429, "rate_limit_error", "Rate limit reached", times=-1),)


def _says(what):
    return lambda _cli: PLAYS[what]


PLAYS_OF_EACH = {
    "question of the agent": _asks,
    "limit": _is_limited,
    "rested channel": _says("rested channel"),
    "idle terminal": _says("idle terminal"),
    "empty queue": _works,
}


@pytest.mark.ability(
    "sends its model no request while it waits", "claude", "codex", "opencode", "gemini"
)
@pytest.mark.parametrize("what", PLAYS_OF_EACH)
@pytest.mark.parametrize("cli", OTHERS, indirect=True)
def test_each_crew_that_waits_asks_nothing_of_a_model(cli, what, crew, script, running):
    """What the test above shows for Claude Code."""
    crew.use(cli)
    crew("config", "set", "run.max_backoff_s", "900")
    steps = PLAYS_OF_EACH[what](cli)
    play = script(*steps, Say("too much"), Say("too much"))
    begin(crew, running, what=what, kind=cli.name)
    wait_until(lambda: what == "limit" or len(play.turns) == len(steps), limit_s=150)
    wait_until(waits(crew, for_=what), limit_s=150)
    settle(play)
    before = (len(play.asked), len(play.turns))
    time.sleep(QUIET_FOR_S)
    assert (len(play.asked), len(play.turns)) == before
