"""Limits and logins with real CLIs: an error that no wait mends is shown within seconds."""

import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.contract import run_step
from agents.running import wait_until
from crew.agents.adapter import AgentSpec
from crew.agents.errors import limit_watch
from crew.agents.errors.login_check import check_login
from crew.domain.rows.step import ErrorKind
from real_clis.cli_kinds import CLIS, claude_env
from real_clis.conftest import as_toml
from real_clis.scripted_model import Fail, Say, bash, too_many_requests

pytestmark = pytest.mark.timeout(240)

WRITE = "echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'"
WORK = bash(WRITE)
WRONG_KEY = Fail(401, "authentication_error", "invalid x-api-key", times=-1)


LIMITED_FOR_S = 3600


def inbox(crew):
    return json.loads(crew("inbox", "--json"))


def status(crew, task):
    return json.loads(crew("show", task, "--json"))["status"]


@pytest.fixture
def running(crew):
    """A runner that stays up until the test ends."""
    started = []

    def running(*arguments):
        started.append(crew.start("run", *arguments))
        return started[-1]

    yield running
    for runner in started:
        runner.terminate()
        try:
            runner.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            runner.kill()
            runner.communicate()


SLOW = [pytest.param(name, marks=pytest.mark.clis) for name in ("codex", "opencode", "gemini")]


@pytest.mark.ability(
    "a wrong key pauses its kind within seconds, and `crew retry` continues the task"
)
@pytest.mark.parametrize("cli", ["claude", *SLOW], indirect=True)
def test_a_wrong_key_pauses_its_kind_within_seconds_and_a_retry_continues_its_task(
    crew, script, running, cli
):
    play = script(WRONG_KEY)
    if cli.name != "claude":  # which `crew` uses already
        crew.use(cli)
    task = crew("new", "--title", "Write new.txt")
    running("--agents", "2", "--agent", cli.name)
    (entry,) = wait_until(lambda: inbox(crew), limit_s=100)
    assert (entry["kind"], entry["id"], entry["cause"]) == ("outage", cli.name, "auth")
    assert f"crew retry {cli.name}" in entry["context"]
    asked = len(play.asked)
    assert asked <= 4
    shown = json.loads(crew("show", task, "--json"))
    assert (shown["status"], shown["paused"]["kind"]) == ("in_progress", cli.name)
    assert len(play.asked) == asked  # nothing is asked of the model while the crew waits
    script(cli.run(WRITE), Say("DONE"))
    crew("retry", cli.name)
    wait_until(lambda: status(crew, task) == "merged", limit_s=150)
    assert inbox(crew) == []


@pytest.mark.ability("a rate limit of a reviewer pauses its provider, and the work waits", "claude")
@pytest.mark.clis
def test_a_limit_of_a_reviewer_pauses_its_provider_and_the_finished_work_waits(
    crew, script, model, running
):
    """Nothing is asked of the reviewer's model meanwhile."""
    subscriber = {**claude_env(f"{model.address}/s/review"), "ANTHROPIC_API_KEY": ""}
    subscriber["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-dummy"
    crew.configure(
        '[review]\nmode = "single"\nagent = "claude-reviewer"\n'
        '[agents.claude-reviewer]\nprovider = "reviews"\n'
        f"[agents.claude-reviewer.env]\n{as_toml(subscriber)}"
    )
    script(WORK, Say("DONE"))
    resets_at = int(time.time()) + LIMITED_FOR_S
    review = script(too_many_requests(resets_at, times=-1), name="review")
    task = crew("new", "--title", "Write new.txt")
    running("--agents", "1")
    paused = wait_until(lambda: json.loads(crew("show", task, "--json"))["paused"])
    assert (paused["provider"], paused["resumes_at"][:19]) == ("reviews", utc(resets_at))
    assert status(crew, task) == "in_progress"
    for command in ("list", "dashboard", "show"):
        view = json.loads(crew(command, *([task] if command == "show" else []), "--json"))
        assert utc(resets_at) in json.dumps(view)
    assert "provider reviews is paused until" in crew("show", task)
    assert len(review.turns) == 1


TOO_MANY = Fail(429, "rate_limit_error", "Rate limit reached", times=-1)


@pytest.mark.ability("a rate limit of a reviewer pauses its provider, and the work waits")
@pytest.mark.parametrize("cli", SLOW, indirect=True)
def test_each_reviewer_at_its_limit_keeps_the_finished_work_waiting(crew, script, running, cli):
    """OpenCode and Gemini CLI repeat such a request for minutes, and report no event."""
    kind = f"{cli.name}-reviewer"
    crew.use(cli, "review", kind)
    crew.configure(f'[review]\nmode = "single"\nagent = "{kind}"')
    crew("config", "set", f"agents.{kind}.provider", "reviews")
    crew("config", "set", "run.max_backoff_s", "900")
    script(WORK, Say("DONE"))
    review = script(TOO_MANY, name="review")
    task = crew("new", "--title", "Write new.txt")
    running("--agents", "1")
    paused = wait_until(lambda: json.loads(crew("show", task, "--json"))["paused"], limit_s=150)
    assert (paused["provider"], status(crew, task)) == ("reviews", "in_progress")
    for command in (("list",), ("dashboard", "--once"), ("show", task), ("ps",)):
        shown = "".join(crew.start(*command).communicate(timeout=100))
        assert f"provider reviews is paused until {paused['resumes_at']}" in shown, command
    assert len(review.asked) <= 8


def utc(at):
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


NO_MODEL = "models/fake-1 is not found for API version v1beta"
LASTING = {
    "wrong key": (401, "invalid_api_key", "bad key", ErrorKind.AUTH),
    "no access": (403, "permission_error", "not for you", ErrorKind.AUTH),
    "unknown model": (404, "not_found_error", NO_MODEL, ErrorKind.UNKNOWN_MODEL),
}


@pytest.mark.ability("a wrong key, no access, an unknown model: the step ends after a few requests")
@pytest.mark.parametrize("name", LASTING)
@pytest.mark.clis
def test_each_cli_ends_its_step_after_few_requests_with_an_error_that_lasts(
    cli, agent_of, script, order, name
):
    status, code, message, kind = LASTING[name]
    play = script(Fail(status, code, message, times=-1))
    outcome = run_step(agent_of(cli), order)
    assert (outcome.error.kind, len(play.asked) <= 6) == (kind, True), (outcome, len(play.asked))
    assert f"crew retry {cli.name}" in outcome.error.remedy
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (0, 0)


@pytest.mark.clis
def test_gemini_ends_its_step_at_a_wrong_key_in_the_words_of_google(
    gemini, agent_of, script, order
):
    key = "API key not valid. Please pass a valid API key."
    play = script(Fail(400, "INVALID_ARGUMENT", key, times=-1))
    error = run_step(agent_of(CLIS["gemini"]), order).error
    assert (error.kind, len(play.asked)) == (ErrorKind.AUTH, 1)


@pytest.mark.parametrize("name", ["fake/unknown", "anthropic/claude-sonnet-4-5"])
@pytest.mark.clis
def test_opencode_ends_its_step_at_a_model_that_it_does_not_know_or_has_no_login_for(
    opencode, agent_of, script, order, name
):
    play = script(Say("DONE"))
    error = run_step(agent_of(CLIS["opencode"], *("--model", name)), order).error
    assert (error.kind, play.turns) == (ErrorKind.UNKNOWN_MODEL, [])
    assert f"Model not found: {name}" in error.message


NO_MONEY = "You exceeded your current quota, please check your plan and billing details."
REPEATING = [pytest.param(name, marks=pytest.mark.clis) for name in ("opencode", "gemini")]


@pytest.mark.parametrize("cli", REPEATING, indirect=True)
def test_an_empty_account_that_the_cli_repeats_like_a_limit_ends_its_step(
    cli, agent_of, script, order
):
    play = script(Fail(429, "insufficient_quota", NO_MONEY, times=-1))
    error = run_step(agent_of(cli), order).error
    assert (error.kind, len(play.asked) <= 2) == (ErrorKind.BILLING, True)


@pytest.mark.clis
def test_a_limit_for_the_title_of_opencode_leaves_a_command_at_work(
    opencode, agent_of, script, order, monkeypatch
):
    monkeypatch.setattr(limit_watch, "PATIENCE_S", 2.0)
    cli = CLIS["opencode"]
    play = script(cli.run("sleep 10; echo hello > new.txt"), Say("DONE"))
    play.aside = TOO_MANY
    outcome = run_step(agent_of(cli), order)
    assert (outcome.error, outcome.done) == (None, True)
    assert (order.worktree / "new.txt").exists()
    assert "small=true" in order.log.read_text()


DOCTORED = {
    "claude": ({}, {"ANTHROPIC_API_KEY": "sk-ant-dummy"}),
    "codex": ({"CODEX_API_KEY": ""}, None),
    "gemini": ({}, {"GEMINI_API_KEY": "dummy"}),
}


@pytest.mark.ability(
    "`crew doctor` finds a missing login without a request",
    "claude",
    "codex",
    "gemini",
    otherwise="some of its models need no login",
)
@pytest.mark.parametrize("name", DOCTORED)
def test_the_doctor_knows_a_missing_login_without_a_request(caller, model, request, name):
    program = request.getfixturevalue(name)
    missing, there = DOCTORED[name]
    spec = AgentSpec(name=name, adapter=name, command=program)
    assert check_login(spec, {**caller, **missing}).is_there is False
    if there is None:
        (Path(caller["HOME"]) / ".codex").mkdir(exist_ok=True)
        (Path(caller["HOME"]) / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "sk-x"}')
    assert check_login(spec, {**caller, **(there or {})}).is_there is True
    assert model.scenarios == {}
    assert model.unanswered == []
