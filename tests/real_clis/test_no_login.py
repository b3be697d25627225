"""Without a login, an attempt ends within seconds, and crew says what to do."""

import json

import pytest

from agents.conftest import need
from agents.running import wait_until
from real_clis.cli_kinds import CLIS
from real_clis.conftest import find_cli

pytestmark = [pytest.mark.timeout(240), pytest.mark.clis]

LOGINS = {
    "claude": "claude auth login",
    "codex": "codex login",
    "gemini": "GEMINI_API_KEY",
}


@pytest.fixture
def runner(crew):
    """Starts a runner, which is ended with the test."""
    started = []

    def runner(kind):
        started.append(crew.start("run", "--agents", "1", "--agent", kind))

    yield runner
    for one in started:
        one.terminate()
        one.communicate(timeout=100)


@pytest.fixture
def paused(crew, runner):
    """The entry of the inbox after a task was started with this agent kind."""

    def paused(kind):
        task = crew("new", "--title", "Write new.txt")
        runner(kind)
        (entry,) = wait_until(lambda: json.loads(crew("inbox", "--json")), limit_s=100)
        shown = json.loads(crew("show", task, "--json"))
        assert (entry["kind"], entry["id"]) == ("outage", kind)
        assert (shown["status"], shown["paused"]["kind"]) == ("in_progress", kind)
        assert f"crew retry {kind}" in entry["context"]
        assert f"crew retry {kind}" in "".join(crew.start("ps").communicate(timeout=100))
        return entry

    return paused


NOTHING = {
    "claude": {"ANTHROPIC_API_KEY": ""},
    "codex": {"FAKE_KEY": ""},
    "gemini": {"GEMINI_API_KEY": ""},
}
"""What takes the key away from a CLI that is pointed at the script."""


@pytest.mark.ability(
    "a missing login pauses its kind within seconds, and crew prints the next step",
    "claude",
    "codex",
    "gemini",
    otherwise="some of its models need no login",
)
@pytest.mark.parametrize("name", NOTHING)
def test_a_missing_login_pauses_its_kind(crew, script, paused, model, name):
    need(find_cli(name), name)
    play = script()
    if name != "claude":  # which `crew` uses already
        crew.use(CLIS[name])
    for key, value in NOTHING[name].items():
        crew("config", "set", f"agents.{name}.env.{key}", value)
    entry = paused(name)
    assert entry["cause"] == "auth", entry
    assert LOGINS[name] in entry["context"]
    assert (play.asked, model.unanswered) == ([], [])
