"""From `crew init` to a merged task with a real CLI as the agent, mostly Claude Code."""

import json
import os
import signal
import time

import pytest

from agents.running import processes_holding, wait_until
from real_clis.anthropic_messages import INPUT_TOKENS
from real_clis.conftest import as_toml, has_queued
from real_clis.scripted_model import Say, Tool, bash, too_many_requests

pytestmark = pytest.mark.timeout(240)  # several commands and several starts of the agent


WORK = bash("echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'")


def status(crew, task):
    return json.loads(crew("show", task, "--json"))["status"]


def test_a_task_is_worked_on_in_one_session_gated_and_merged(crew, script, repo, git):
    play = script(Say("I looked around."), WORK, Say("Committed.\nDONE"))
    task = crew("new", "--title", "Write new.txt", "--body", "with hello in it")
    crew("run", "--agents", "1", "--drain")
    shown = json.loads(crew("show", task, "--json"))
    assert shown["status"] == "merged"
    assert git("log", "--format=%s", "--no-merges", at=repo) == "add new.txt\nfirst"
    assert (repo / "new.txt").read_text() == "hello\n"
    assert "Write new.txt" in json.dumps(play.turns[0].body)
    assert "I looked around." in json.dumps(play.turns[1].body["messages"])
    (agent,) = json.loads(crew("ps", "--json"))
    assert agent["total_input_tokens"] == 3 * INPUT_TOKENS
    assert agent["total_cost_usd"] > 0


def test_a_runner_killed_in_the_middle_of_a_tool_is_started_again_and_finishes(
    crew, script, remembered, repo, marker
):
    script(bash(f"echo half > half.txt; exec -a {marker} tail -f /dev/null"))
    task = crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1", "--drain")
    try:
        wait_until(lambda: processes_holding(marker) and marker in remembered())
    finally:
        os.kill(runner.pid, signal.SIGKILL)
        runner.communicate()
    play = script(bash("rm half.txt"), WORK, Say("DONE"))
    crew("run", "--drain")
    assert json.loads(crew("show", task, "--json"))["status"] == "merged"
    told = json.dumps(play.turns[0].body["messages"])
    assert "half.txt" in told  # it knows what it did
    assert told.count("Start now") == 1  # in its first prompt, and not again
    assert processes_holding(marker) == []
    assert (repo / "new.txt").read_text() == "hello\n"


def test_a_second_session_reviews_the_commit_and_its_notes_come_back_to_the_first(
    crew, script, model, model_env, repo
):
    reviews_at = {**model_env, "ANTHROPIC_BASE_URL": f"{model.address}/s/review"}
    crew.configure(
        '[review]\nmode = "single"\nagent = "claude-reviewer"\n'
        f"[agents.claude-reviewer.env]\n{as_toml(reviews_at)}"
    )
    mends = bash("echo goodbye >> new.txt && git commit -qam 'say goodbye'")
    work = script(WORK, Say("DONE"), mends, Say("DONE"))
    review = script(
        bash("git show --stat"),
        Say("It never says goodbye.\nFAIL"),
        Say("Good.\nPASS"),
        name="review",
    )
    task = crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--drain")
    assert status(crew, task) == "merged"
    assert (repo / "new.txt").read_text() == "hello\ngoodbye\n"
    assert "It never says goodbye." in json.dumps(work.turns[2].body["messages"])
    assert "It never says goodbye." not in json.dumps(review.turns[2].body["messages"])
    shown = json.loads(crew("show", task, "--json"))
    assert shown["review_count"] == 2
    asked = len(work.turns) + len(review.turns)
    assert shown["run"]["input_tokens"] == asked * INPUT_TOKENS  # a review costs as a step does


def test_a_signal_over_mcp_ends_the_round(crew, script):
    signal_back = Tool(
        name="mcp__crew__signal-back", input={"signal": "complete", "summary": "It says hello."}
    )
    play = script(WORK, Say(tools=(signal_back,)), Say("I am at the end."))
    task = crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--drain")
    assert status(crew, task) == "merged"
    assert "complete is recorded" in json.dumps(play.turns[2].body["messages"])


def test_a_person_allows_a_command_that_the_agent_asks_for(crew, script, repo):
    crew.configure('[agents.claude]\npermissions = "ask"')
    script(bash("python3 -c 'print(\"hello\")' > new.txt"), WORK, Say("DONE"))
    crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1", "--drain")
    try:
        answered = set()
        while runner.poll() is None:
            for question in json.loads(crew("inbox", "--json")):
                if question["id"] not in answered:
                    crew("answer", question["id"], "yes")
                    answered.add(question["id"])
        _, said = runner.communicate(timeout=100)
    finally:
        runner.kill()
        runner.communicate()
    assert runner.returncode == 0, said
    assert answered
    assert (repo / "new.txt").read_text() == "hello\n"


def test_a_message_of_a_person_reaches_the_step_under_way(crew, script, repo, sign):
    play = script(sign.awaited, WORK, Say("DONE"))
    task = crew("new", "--title", "Write new.txt")
    runner = crew.start("run", "--agents", "1", "--drain")
    try:
        wait_until(lambda: len(play.turns) == 1)
        sent = json.loads(crew("send", task, "use the blue one", "--json"))
        assert (sent["message"], sent["state"], sent["given_at"]) == ("m1", "queued", None)
        wait_until(lambda: has_queued(repo / ".crew" / "logs" / f"task-{task}.log"))
        sign.give()
        _, said = runner.communicate(timeout=100)
    finally:
        runner.kill()
        runner.communicate()
    assert runner.returncode == 0, said
    told = [json.dumps(asked.body["messages"]).count("use the blue one") for asked in play.turns]
    assert told[-1] == 1
    (message,) = json.loads(crew("show", task, "--json"))["messages"]
    assert (message["state"], message["given_at"] <= message["read_at"]) == ("read", True)
    assert "got the message m1" in crew("logs", task)


@pytest.mark.ability("works on a task in a worktree, commits, and signals over MCP")
def test_each_cli_works_commits_and_signals_over_mcp(crew, script, cli, repo):
    if cli.name != "claude":
        crew.use(cli)
    work = "echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'"
    play = script(cli.run(work), cli.complete("It says hello."), Say("I am at the end."))
    task = crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--agent", cli.name, "--drain")
    assert status(crew, task) == "merged"
    assert "complete is recorded" in json.dumps(play.turns[2].body)
    assert (repo / "new.txt").read_text() == "hello\n"


LIMITED_FOR_S = 30


@pytest.mark.faults
def test_a_rate_limit_pauses_its_provider_alone_until_it_ends_and_survives_a_kill(
    crew, script, model, model_env, repo
):
    subscriber = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}
    elsewhere = {**model_env, "ANTHROPIC_BASE_URL": f"{model.address}/s/other"}
    crew.configure(
        f'[agents.limited]\ninherit = "claude"\n[agents.limited.env]\n{as_toml(subscriber)}'
        '[agents.other]\ninherit = "claude"\nprovider = "elsewhere"\n'
        f"[agents.other.env]\n{as_toml(elsewhere)}"
    )
    resets_at = int(time.time()) + LIMITED_FOR_S
    play = script(too_many_requests(resets_at), WORK, Say("DONE"))
    script(WORK, Say("DONE"), name="other")
    waits = crew("new", "--title", "Write new.txt", "--agent", "limited")
    goes_on = crew("new", "--title", "Write new.txt too", "--agent", "other")
    runner = crew.start("run", "--agents", "2", "--drain")
    try:
        wait_until(lambda: status(crew, goes_on) == "merged", limit_s=60)
        assert status(crew, waits) == "in_progress"
    finally:
        os.kill(runner.pid, signal.SIGKILL)
        runner.communicate()
    crew("run", "--drain")
    assert status(crew, waits) == "merged"
    assert play.turns[0].at < resets_at <= play.turns[1].at
