"""Agents reach crew's tools over HTTP, over stdio and from a shell, and hear the same words."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from crew.front.mcp import autostart
from crew.front.mcp.mcp_address import keep_address, open_listener, url_of
from crew.front.mcp.tool_list import TOOLS
from crew.runner.prompts.mcp_connection import address_file
from front.conftest import PATIENCE_S, until
from front.mcp_scene import WAYS, running_crew, waiting_step

MCP_WAYS = ("by_http", "by_stdio")
NAMES = [
    "signal-back",
    "get-task",
    "get-quest",
    "post-message",
    "read-messages",
    "report-progress",
    "plan-steps",
]

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture
def step(scene):
    with running_crew(scene):
        yield waiting_step(scene)


def test_the_official_client_finds_the_same_tools_over_http_and_over_stdio(step):
    async def look(connecting):
        async with connecting as client:
            listed = await client.list_tools()
            shapes = [(tool.name, tool.description, tool.input_schema) for tool in listed.tools]
            return client.protocol_version, client.instructions, shapes

    new, old, shim, old_shim = (
        asyncio.run(look(connecting))
        for connecting in (
            step.http(),
            step.http(mode="legacy"),
            step.stdio(),
            step.stdio(mode="legacy"),
        )
    )
    assert (new[0], old[0], shim[0]) == ("2026-07-28", "2025-11-25", "2025-11-25")
    assert new[1:] == old[1:] == shim[1:] == old_shim[1:]
    assert [name for name, _, _ in new[2]] == NAMES == [tool.name for tool in TOOLS]
    assert "signal-back" in new[1]


def test_an_agent_reads_its_task_and_shows_its_progress(step):
    for way in MCP_WAYS:
        heard = getattr(step, way)("get-task")
        assert json.loads(heard.text) == {
            "id": "1",
            "title": "task 1",
            "body": "What to do.",
            "comments": [],
            "deps": [],
            "status": "in_progress",
        }
        words = f"looking around {way}\x1b[31m\x00"
        assert getattr(step, way)("report-progress", text=words).text == "noted"
        shown = f"looking around {way}"
        until(lambda shown=shown: shown in step.scene.ok("dashboard", "--once").out)


def test_agents_write_to_each_other_under_their_proven_names(scene):
    with running_crew(scene, tasks=2):
        one, two = waiting_step(scene, "1"), waiting_step(scene, "2")
        assert json.loads(two.by_http("read-messages").text) == []
        for way, task in zip(MCP_WAYS, ("2", "#2"), strict=True):
            assert not getattr(one, way)("post-message", task=task, text=f"hello by {way}").refused
        messages = json.loads(two.by_stdio("read-messages").text)
        assert [m["text"] for m in messages] == ["hello by by_http", "hello by by_stdio"]
        (sender,) = {m["from"] for m in messages}
        assert sender.endswith("task 1")
        assert json.loads(one.by_http("read-messages").text) == []
        assert json.loads(two.by_http("read-messages").text) == []
        gone = one.by_http("post-message", task="77", text="hello")
        assert gone.refused
        assert "there is no task '77'" in gone.text


@pytest.mark.parametrize("way", WAYS)
def test_a_signal_is_recorded_once_and_ends_the_work(step, way):
    summary = "all \u00e9 done"
    first = getattr(step, way)("signal-back", signal="complete", summary=summary)
    assert not first.refused, first
    assert "complete is recorded; end your step now" in first.text
    for other in WAYS:
        again = getattr(step, other)("signal-back", signal="complete", summary="once more")
        assert again.refused
        assert "this step has signalled complete already" in again.text
        assert "end your step now" in again.text
    assert len(step.signals()) == 1
    step.end()
    until(lambda: step.scene.status("1") == "merged")


def test_a_signal_may_be_called_a_type_as_well(step):
    heard = step.by_http("signal-back", type="complete", summary="s", stepId="1")
    assert "complete is recorded" in heard.text


def test_a_word_after_the_end_of_the_step_changes_nothing(step):
    step.end()
    until(lambda: step.scene.status("1") == "merged")
    for way in WAYS:
        late = getattr(step, way)("signal-back", signal="complete", summary="late")
        assert late.refused
        assert "that step has ended; nothing was changed" in late.text
    for tool in ("plan-steps", "get-task", "read-messages", "report-progress", "post-message"):
        given = {"text": "late"} if tool in {"report-progress", "post-message"} else {}
        given |= {"task": "1"} if tool == "post-message" else {}
        given |= {"steps": [{"id": "a", "title": "late"}]} if tool == "plan-steps" else {}
        for way in MCP_WAYS:
            assert "that step has ended" in getattr(step, way)(tool, **given).text
    assert step.signals() == []
    assert step.scene.status("1") == "merged"
    assert "refused signal: that step has ended" in step.log()


def test_a_question_goes_to_a_person_and_its_answer_comes_back(step):
    asked = step.by_http(
        "signal-back", signal="needs-user-input", stepId="x", question="Which?", resume=None
    )
    assert not asked.refused, asked
    (step.scene.folder / "step-1").unlink()
    step.end()
    until(lambda: step.scene.agent()["status"] == "idle")
    (question,) = step.scene.ok("inbox", "--json").json
    assert question["question"] == "Which?"
    (step.scene.folder / "go-1").unlink()
    step.scene.ok("answer", question["id"], "the blue one")
    again = waiting_step(step.scene)
    assert "the blue one" in (step.scene.folder / "prompt-1").read_text()
    assert again.token != step.token
    assert "that step has ended" in step.by_http("get-task").text
    assert not again.by_http("get-task").refused


def _listening_ports(pid: int) -> list[str]:
    """The addresses at which a process listens, as the kernel writes them."""
    own = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            own.add(str(link.readlink()))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


COMMAND = """\
printf '%s\\n' "$CREW_TOKEN" "$CREW_MCP_URL" "$CREW_REPO" "$PWD" > "$SCENE/new"
mv "$SCENE/new" "$SCENE/step-$CREW_TASK_ID"
while [ ! -e "$SCENE/go" ]; do sleep 0.05; done
"""


def _has_loaded_the_server(pid: int) -> bool:
    return "pydantic_core" in Path(f"/proc/{pid}/maps").read_text()


@linux_only
def test_any_program_is_told_the_address_and_nothing_is_loaded_before_somebody_connects(scene):
    (scene.folder / "agent.sh").write_text(COMMAND)
    scene.ok("new", "--title", "for a command")
    runner = scene.start_anew("run")  # a fork has loaded more than it does
    step = waiting_step(scene)
    ports = []
    until(lambda: ports.extend(_listening_ports(runner.pid)) or ports)
    assert len(ports) == 1
    assert ports[0].startswith("0100007F:")
    assert not _has_loaded_the_server(runner.pid)
    assert not step.by_http("get-task").refused
    assert _has_loaded_the_server(runner.pid)


def test_the_server_ends_with_its_runner(scene):
    with running_crew(scene) as runner:
        step = waiting_step(scene)
        assert not step.by_http("get-task").refused
        port = int(step.url.rpartition(":")[2].removesuffix("/mcp"))
        scene.ok("stop", "--now")
        runner.wait(timeout=PATIENCE_S)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    silent = step.by_stdio("get-task")
    assert silent.refused
    assert "the runner is restarting, try again" in silent.text


def _runner(adapter: str, folder):
    """As much of a runner as is looked at before the server serves."""
    kinds = {"kind": SimpleNamespace(adapter=adapter)}
    return SimpleNamespace(
        workplace=SimpleNamespace(
            folder=folder, settings=SimpleNamespace(agents=SimpleNamespace(by_name=kinds))
        ),
        engine=SimpleNamespace(
            world=SimpleNamespace(crew={"A": SimpleNamespace(agent_kind="kind")}, members={})
        ),
        outside=SimpleNamespace(mcp_url=""),
    )


@pytest.mark.parametrize("adapter", ["claude", "command"])
def test_a_server_that_crashes_is_logged_and_the_runner_goes_on(
    monkeypatch, caplog, tmp_path, adapter
):
    """It is there for Claude before anybody connects, and for any program once somebody does."""
    urls = []

    async def crash(_listener, runner):
        urls.append(runner.outside.mcp_url)
        raise RuntimeError("out of luck")

    monkeypatch.setattr("crew.front.mcp.mcp_server.serve", crash)

    async def live():
        runner = _runner(adapter, tmp_path)
        async with autostart.mcp_server(runner):
            assert runner.outside.mcp_url.startswith("http://127.0.0.1:")
            port = int(runner.outside.mcp_url.rpartition(":")[2].removesuffix("/mcp"))
            if adapter == "command":
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            async with asyncio.timeout(20):
                while runner.outside.mcp_url:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
            return runner.outside.mcp_url

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(live()) == ""
    assert len(urls) == 1
    assert "the MCP server failed" in caplog.text
    assert "out of luck" in caplog.text


def test_without_the_sdk_there_is_no_server(monkeypatch, tmp_path):
    monkeypatch.setattr(autostart, "is_server_installed", lambda: False)

    async def live():
        runner = _runner("claude", tmp_path)
        async with autostart.mcp_server(runner):
            await asyncio.sleep(0)
            return runner.outside.mcp_url

    assert asyncio.run(live()) == ""


def _port(folder):
    with open_listener(folder) as listener:
        keep_address(folder, url_of(listener))
        return listener.getsockname()[1]


def test_the_port_is_kept_while_it_is_free(tmp_path):
    port = _port(tmp_path)
    assert _port(tmp_path) == port
    with socket.create_server(("127.0.0.1", port)):
        other = _port(tmp_path)
    assert other != port
    assert address_file(tmp_path).read_text() == f"http://127.0.0.1:{other}/mcp\n"
    assert address_file(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "nonsense", "http://127.0.0.1:99999/mcp", "\udcff"])
def test_an_address_that_is_none_is_written_anew(tmp_path, text):
    address_file(tmp_path).write_bytes(text.encode(errors="surrogateescape"))
    port = _port(tmp_path)
    assert address_file(tmp_path).read_text() == f"http://127.0.0.1:{port}/mcp\n"


def test_an_address_that_cannot_be_kept_stops_nothing(tmp_path, caplog):
    address_file(tmp_path).mkdir()
    assert _port(tmp_path)
    assert "cannot be kept" in caplog.text


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_runner_that_dies_as_it_keeps_the_address_leaves_a_whole_one(tmp_path, when):
    port = _port(tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from crew.front.mcp.mcp_address import keep_address\n"
        "keep_address(Path(sys.argv[1]), 'http://127.0.0.1:4711/mcp')"
    )
    env = {**os.environ, "CREW_CRASH_AT": f"mcp.keep_address.{when}"}
    died = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=False)
    assert died.returncode == -signal.SIGKILL
    kept = port if when == "before" else 4711
    assert address_file(tmp_path).read_text() == f"http://127.0.0.1:{kept}/mcp\n"
