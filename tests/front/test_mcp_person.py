"""A person's own assistant does over `crew mcp` what the person does with commands."""

import json
from dataclasses import replace

import pytest

from crew.front.mcp.person_tools import PERSON_TOOLS, READING
from crew.front.mcp.stdio_shim import respond
from crew.runner.views.attention import ENDS, Attention
from front.conftest import until


@pytest.fixture
def ask(scene, monkeypatch):
    """Call a tool in the repository: its text, or the document in it."""
    monkeypatch.chdir(scene.root)
    monkeypatch.delenv("CREW_TOKEN", raising=False)

    def ask(tool, *, refused=False, **arguments):
        params = {"name": tool, "arguments": arguments}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        result = respond(line.encode())["result"]
        text = result["content"][0]["text"]
        assert result["isError"] is refused, text
        try:
            return json.loads(text.partition("\nno runner is up")[0])
        except ValueError:
            return text

    return ask


def test_tasks_are_created_listed_shown_and_messages_left(scene, ask):
    odd = "--json is a title"
    made = ask("create-task", title=odd, body="-", labels=["a", "b"], priority=1)
    assert (made["id"], made["title"], made["body"], made["labels"]) == ("1", odd, "-", ["a", "b"])
    assert ask("create-task", title="two", after=["1"])["deps"] == ["1"]
    assert ask("list-tasks", label=["a"]) == [
        {"id": "1", "title": odd, "status": "todo", "priority": 1, "labels": ["a", "b"]}
    ]
    assert ask("list-tasks", status=["merged"]) == []
    assert ask("show-task", task="#2")["title"] == "two"
    assert "there is no task" in ask("show-task", task="9", refused=True)
    assert "--help" in ask("show-task", task="--help", refused=True)
    assert ask("read-log", task="1") == "it has printed nothing yet"
    assert scene.ok("list", "--json").json[0]["title"] == odd


def test_work_is_waited_for_read_and_retried(scene, ask):
    ask("create-task", title="one")
    still = ask("wait-for", id="1")
    assert (still["status"], still["runner_up"], still["timed_out"]) == ("todo", False, False)
    assert ask("start-runner", agents=1)["pid"] > 0
    try:
        until(lambda: ask("wait-for", id="1", timeout_s=30)["status"] == "merged")
        assert "working on 1" in ask("read-log", task="1", lines=10)
        assert ask("list-agents")[0]["name"] == "A"
        assert "lines cannot be 0" in ask("read-log", task="1", lines=0, refused=True)
        assert "is merged" in ask("retry", subject="1", refused=True)
        assert ask("merge-task", task="1")["status"] == "merged"
    finally:
        scene.ok("stop", "--now")


def test_a_task_and_a_quest_can_name_their_branch(scene, ask):
    scene.git("branch", "other")
    assert ask("create-task", title="one", base="other")["base"] == "other"
    made = ask("create-quest", request="two", workflow="solo", base="other")
    assert made["base"] == "other"
    assert "no branch 'nowhere'" in ask("create-task", title="x", base="nowhere", refused=True)


def test_quests_are_begun_listed_shown_and_cancelled(scene, ask):
    made = ask("create-quest", request="-f\nA page for logins.", workflow="solo")
    assert made["title"] == "-f"
    assert [quest["state"] for quest in ask("list-quests")] == ["open"]
    assert ask("show-quest", quest=made["id"])["request"].startswith("-f")
    assert ask("wait-for", id=made["id"])["status"] == "open"
    assert ask("cancel-quest", quest=made["id"], reason="--no")["state"] == "cancelled"
    assert ask("wait-for", id=made["id"])["status"] == "cancelled"


def test_what_needs_a_runner_says_so(ask, scene):
    line = {"name": "create-task", "arguments": {"title": "one"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": line}
    text = respond(json.dumps(message).encode())["result"]["content"][0]["text"]
    assert text.endswith("no runner is up: start-runner, or `crew run` in a terminal, starts one")


def test_outside_of_a_crew_a_tool_names_the_next_step(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git init" in ask("list-tasks", refused=True)
    assert "git init" in ask("wait-for", id="1", refused=True)


@pytest.mark.parametrize("tool", [tool.name for tool in PERSON_TOOLS])
def test_a_token_of_an_agent_has_none_of_these_tools(tool, ask, monkeypatch):
    monkeypatch.setenv("CREW_TOKEN", "1.1/1/x")
    assert f"crew has no tool {tool!r}" in ask(tool, refused=True)


def test_a_wait_ends_when_a_person_is_needed():
    idle = Attention(id="1", status="in_progress", questions=(), stuck=(), runner_up=True)
    assert not idle.is_due(ENDS)
    for due in ({"status": "merged"}, {"questions": ("q1",)}, {"stuck": ("A",)}):
        assert replace(idle, **due).is_due(ENDS)
    assert replace(idle, runner_up=False).is_due(ENDS)


def test_each_tool_that_changes_something_is_for_people():
    assert {tool.verb for tool in PERSON_TOOLS} - READING == {
        *("answer", "new", "quest_new", "quest_cancel", "send", "retry", "merge", "run"),
    }
