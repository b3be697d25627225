"""A CLI that repeats a request at a rate limit, and tells of it on stderr alone, is ended."""

import json
import time
from dataclasses import replace

import pytest

from agents.contract import order, program, run_step
from crew.agents.adapter import AgentSpec, adapter_for
from crew.agents.errors import limit_watch
from crew.domain.rows.step import ErrorKind

__all__ = ["order"]

BACKOFF = (
    "Attempt 1 failed with status 429. Retrying with backoff... _ApiError: "
    '{"error":{"code":429,"message":"Too many requests"}}'
)
NAMED = "Attempt 1 failed: You exceeded your current quota. Retrying after 34074ms..."
GOOGLES = """\
Attempt 1 failed: You exceeded your current quota, please check your plan and billing details. For \
more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.
* Quota exceeded for metric: generate_content_free_tier_requests, limit: 10
Please retry in 34.07s.
Suggested retry after 34s.. Retrying after 34856ms..."""
BARE_DELAY = "Suggested retry after 34s.. Retrying after 34856ms..."
NO_CREDITS = BACKOFF.replace(
    "Too many requests",
    "Your prepayment credits are depleted. Please go to AI Studio to manage your project.",
)
OVERLOADED = "Attempt 1 failed with status 503. Retrying with backoff... _ApiError: {}"
LOGGED = (
    'timestamp=2026-11-17T04:56:05.710Z level=ERROR run=0 message="stream error" providerID=fake '
    'small=false error.error="AI_APICallError: Rate limit reached for this model"'
)
NO_MONEY = LOGGED.replace(
    "Rate limit reached for this model",
    "You exceeded your current quota, please check your plan and billing details.",
)
OF_A_TITLE = LOGGED.replace("small=false", "small=true agent=title mode=primary")
ANOTHER = LOGGED.replace("Rate limit reached for this model", "overloaded")

EVENTS = {
    "gemini": [
        {"type": "init", "session_id": "6a2f41a3-c54c-4e5b-a1f0-5b8a2f6fbb10", "model": "m"},
        {"type": "message", "role": "assistant", "content": "DONE"},
        {"type": "result", "status": "success", "stats": {}},
    ],
    "opencode": [
        {"type": "text", "sessionID": "ses_1", "part": {"text": "DONE"}},
        {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "stop"}},
    ],
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """The adapter of a program that prints one line on stderr and then its events, or hangs."""
    monkeypatch.setattr(limit_watch, "PATIENCE_S", 0.3)

    def fake(name, line, *, then):
        lines = "".join(f"{json.dumps(event)}\n" for event in EVENTS[name])
        (tmp_path / "events").write_text(lines)
        (tmp_path / "line").write_text(f"{line}\n")
        script = f"cat > /dev/null; cat {tmp_path}/line >&2\n{then.format(place=tmp_path)}\n"
        command = program(tmp_path / name, script)
        return adapter_for(AgentSpec(name=name, adapter=name, command=str(command)))

    return fake


@pytest.mark.parametrize(
    ("name", "line", "ends_in_s"),
    [
        ("gemini", BACKOFF, None),
        ("gemini", NAMED, 34.0),
        ("gemini", GOOGLES, 34.0),
        ("opencode", LOGGED, None),
    ],
)
def test_a_limit_that_lasts_ends_the_step(fake, order, name, line, ends_in_s):
    begun = time.time()
    error = run_step(fake(name, line, then="sleep 600"), order).error
    assert error.kind is ErrorKind.RATE_LIMIT
    assert error.message in line
    if ends_in_s is None:
        assert error.reset_at is None
    else:
        assert ends_in_s <= error.reset_at - begun < ends_in_s + 30


@pytest.mark.parametrize(("name", "line"), [("gemini", NO_CREDITS), ("opencode", NO_MONEY)])
def test_an_empty_account_ends_the_step_at_once(fake, order, monkeypatch, name, line):
    monkeypatch.setattr(limit_watch, "PATIENCE_S", 600)
    error = run_step(fake(name, line, then="sleep 600"), order).error
    assert (error.kind, error.reset_at) == (ErrorKind.BILLING, None)
    assert error.message in line
    assert "crew retry" in error.remedy


@pytest.mark.parametrize(("name", "line"), [("gemini", BACKOFF), ("opencode", LOGGED)])
def test_a_limit_that_passes_does_no_harm(fake, order, name, line):
    then = "head -n 1 {place}/events; sleep 1; tail -n +2 {place}/events"
    assert run_step(fake(name, line, then=then), order).error is None


def test_a_limit_of_the_small_model_leaves_the_main_one_at_work(fake, order):
    then = "sleep 1; cat {place}/events"
    outcome = run_step(fake("opencode", OF_A_TITLE, then=then), order)
    assert (outcome.error, outcome.done) == (None, True)


@pytest.mark.parametrize(
    ("name", "line"), [("gemini", OVERLOADED), ("gemini", BARE_DELAY), ("opencode", ANOTHER)]
)
def test_other_requests_that_are_repeated_are_waited_for(fake, order, name, line):
    outcome = run_step(fake(name, line, then="sleep 600"), replace(order, idle_timeout_s=1.0))
    assert outcome.error.kind is ErrorKind.STALLED
