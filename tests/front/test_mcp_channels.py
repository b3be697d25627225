"""The official MCP client joins a channel, takes turns, is refused out of turn, and goes away."""

import asyncio
import json
import os
import signal
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from crew.front.mcp.channel_tools import CHANNEL_TOOLS
from crew.system.processes.ownership import find_process
from front.conftest import CREW, until
from front.mcp_scene import running_crew, waiting_step

NAMES = [
    *("join-channel", "read-messages", "post-message"),
    *("turn-complete", "wait", "heartbeat"),
]


class Guest:
    """An agent that connects by itself, over HTTP or over `crew mcp`."""

    def __init__(self, invitation, way):
        self.invitation, self.way = invitation, way

    @asynccontextmanager
    async def connected(self):
        if self.way == "http":
            headers = {"Authorization": f"Bearer {self.invitation['token']}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as caller,
                Client(
                    streamable_http_client(self.invitation["url"], http_client=caller)
                ) as client,
            ):
                yield client
            return
        shim = self.invitation["mcpServers"]["crew-by-stdio"]
        program = StdioServerParameters(command=str(CREW), args=shim["args"], env=shim["env"])
        with open(os.devnull, "w") as errors:  # noqa: PTH123, ASYNC230
            async with Client(stdio_client(program, errlog=errors)) as client:
                yield client


async def called(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    text = "".join(block.text for block in result.content)
    return text if result.is_error else json.loads(text)


@pytest.fixture
def open_channel(scene, running):
    """Opens a channel of two guests, with a runner that serves it."""

    def opened(*flags):
        scene.ok("channel", "new", "room", "--member", "pm", "--member", "dev", *flags)
        running("--agents", "1")
        until(lambda: _invite(scene, "pm")["url"])
        return scene

    return opened


@pytest.fixture
def channel(open_channel):
    return open_channel()


@pytest.fixture
def impatient_channel(open_channel):
    """Whoever says nothing for a moment is missed."""
    return open_channel("--heartbeat", "2s")


def _invite(scene, name):
    return scene.ok("channel", "invite", "room", name, "--json").json


def _texts(scene):
    return [one["text"] for one in scene.ok("channel", "tail", "room", "--json").json]


def _states(scene):
    shown = scene.ok("channel", "show", "room", "--json").json
    return {one["name"]: one["state"] for one in shown["members"]}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_two_guests_join_and_take_turns(channel, way):
    pm, dev = (Guest(_invite(channel, name), way) for name in ("pm", "dev"))

    async def talk():
        async with pm.connected() as one, dev.connected() as two:
            listed = await one.list_tools()
            assert [tool.name for tool in listed.tools] == NAMES
            assert "join-channel" in one.instructions
            assert (await called(one, "join-channel"))["state"] == "active"
            assert (await called(two, "join-channel"))["state"] == "queued"
            refused = await called(two, "post-message", text="me first")
            assert "not your turn (you are queued, pm has it)" in refused
            reading = asyncio.ensure_future(called(two, "read-messages", waitSeconds=50))
            await asyncio.sleep(0)
            said = await called(one, "post-message", text="Good morning.\nTURN_COMPLETE")
            assert said["turn"] == "dev"
            heard = await reading
            while heard["state"] != "active":  # the message may come before the turn is seen
                heard = await called(two, "read-messages", waitSeconds=50)
            assert heard["turn"] == "dev"
            await called(two, "post-message", text="Hello pm.")
            waits = await called(two, "wait", **{"for": "the build", "seconds": 30})
            assert waits["state"] == "waiting"
            assert (await called(two, "wait", over=True))["state"] == "active"
            assert (await called(two, "turn-complete"))["turn"] == "pm"
            got = await called(one, "read-messages")
            assert [(m["sequence"], m["from"], m["text"]) for m in got["messages"]] == [
                (2, "dev", "Hello pm.")
            ]
            assert (await called(one, "heartbeat"))["state"] == "active"

    asyncio.run(talk())
    assert _texts(channel) == ["Good morning.", "Hello pm."]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_guests_that_go_away_are_missed(impatient_channel, way):
    channel = impatient_channel
    pm, dev = (Guest(_invite(channel, name), way) for name in ("pm", "dev"))

    async def joins():
        async with pm.connected() as one, dev.connected() as two:
            assert (await called(one, "join-channel"))["state"] == "active"
            await called(two, "join-channel")

    asyncio.run(joins())
    until(lambda: set(_states(channel).values()) == {"offline"})
    assert _texts(channel)[-1] == "⚠️ No agents available in this channel"
    moves = [
        (one["agentId"], one["from"], one["to"], one["trigger"], one["channel"])
        for one in channel.ok("events", "--json").json
        if one["event"] == "state_transition" and one["subject"] == "member:room/pm"
    ]
    assert moves[-1] == ("pm", "active", "offline", "agent_crashes", "room")


def test_a_read_waits_without_asking_again_and_ends_at_its_limit(channel):
    guest = Guest(_invite(channel, "pm"), "http")

    async def read():
        async with guest.connected() as client:
            await called(client, "join-channel")
            await called(client, "turn-complete")
            began = time.monotonic()
            channel.ok("channel", "remove", "room", "pm")
            heard = await called(client, "read-messages", waitSeconds=1)
            return heard, time.monotonic() - began

    heard, took_s = asyncio.run(read())
    assert (heard["state"], heard["messages"]) == ("idle", [])
    assert took_s >= 1


def test_a_person_speaks_and_a_waiting_guest_hears_it(channel):
    guest = Guest(_invite(channel, "pm"), "http")

    async def listen():
        async with guest.connected() as client:
            await called(client, "join-channel")
            channel.ok("channel", "say", "room", "mind the tests")
            return await called(client, "read-messages", waitSeconds=50)

    heard = asyncio.run(listen())
    assert [(one["by"], one["text"]) for one in heard["messages"]] == [("person", "mind the tests")]


def test_guests_find_a_runner_again_that_was_killed(channel, running):
    """Over HTTP at the same address; over stdio in the very connection that it had before."""
    invited = _invite(channel, "dev")
    one, two = Guest(_invite(channel, "pm"), "stdio"), Guest(invited, "http")

    async def joins(guest):
        async with guest.connected() as client:
            return await called(client, "join-channel")

    async def lives_on():
        async with one.connected() as client:
            assert (await called(client, "join-channel"))["state"] == "active"
            killed = channel.runner_pid()
            os.kill(killed, signal.SIGKILL)
            until(lambda: find_process(killed) is None)
            refused = await called(client, "turn-complete")
            running("--agents", "1")
            said = await called(client, "post-message", text="where was I? TURN_COMPLETE")
            return refused, said

    assert asyncio.run(joins(two))["state"] == "active"
    assert asyncio.run(joins(one))["state"] == "queued"
    channel.ok("channel", "override", "room", "dev", "queued")
    refused, said = asyncio.run(lives_on())
    assert "the runner is restarting, try again" in refused
    assert (said["state"], said["turn"]) == ("queued", "dev")
    assert Path(invited["address_file"]).read_text() == f"{invited['url']}\n"
    until(lambda: _invite(channel, "dev")["url"] == invited["url"])
    assert asyncio.run(joins(two))["state"] == "active"


def test_a_token_is_for_its_own_tools_only(scene):
    scene.ok("channel", "new", "room", "--member", "pm")
    with running_crew(scene):
        step = waiting_step(scene)
        guest = _invite(scene, "pm")["token"]
        for way in ("by_http", "by_stdio"):
            call = getattr(step, way)
            heard = call("get-task", token=guest)
            assert heard.refused
            assert "crew has no tool 'get-task'" in heard.text
            assert call("join-channel").refused
        forged = f"channel:room/dev/{guest.rpartition('/')[2]}"
        assert "not one of crew's" in step.by_stdio("join-channel", token=forged).text
        assert not step.by_http("get-task").refused


def test_the_tools_of_a_member_are_these():
    assert [tool.name for tool in CHANNEL_TOOLS] == NAMES
