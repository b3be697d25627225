"""`state.json` is what the world is in the end, however the last write ended."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.world import with_rows
from crew.runner.views.state_files import StateFiles
from runner.scene import PATIENCE_S


def test_a_manifest_that_waits_for_a_pause_comes_with_its_end_although_nothing_more_happens(
    tmp_path,
):
    task = Task(id="1", title="one")
    run = Run(id="1.1", task="1", number=1, agent_kind="scripted")
    agent = Agent(id="A", agent_kind="scripted")
    worlds = [
        with_rows([task, agent]),
        with_rows([task, replace(agent, state=AgentState.READY), run]),
    ]
    workplace = SimpleNamespace(
        state_file=tmp_path / "state.json", folder=tmp_path, root=tmp_path, rules=Rules()
    )

    async def happens():
        files = StateFiles(workplace=workplace, world=lambda: worlds[0], failed=failures.append)
        files.keep()
        await _until((tmp_path / "state.json").exists)
        del worlds[0]
        files.keep()
        await _until(lambda: _state(tmp_path) == "ready")
        await _until((tmp_path / "runs" / "1.1" / "manifest.json").exists)
        await _until(lambda: files._timer is None)

    failures: list[BaseException] = []
    asyncio.run(happens())
    assert failures == []


async def _until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - a file cannot set an event
            await asyncio.sleep(0.01)


def _state(folder):
    return json.loads((folder / "state.json").read_text())["agents"][0]["status"]


def test_the_last_state_is_kept_also_when_a_write_has_ended_and_nobody_was_told_yet(tmp_path):
    file = tmp_path / "state.json"
    world = with_rows([Agent(id="A", agent_kind="scripted")])
    failures = []

    async def ends():
        files = StateFiles(
            workplace=SimpleNamespace(state_file=file),
            world=lambda: world,
            failed=failures.append,
        )
        files._writing = asyncio.get_running_loop().create_future()
        files._writing.add_done_callback(files._ended)
        files._writing.set_result(None)
        await files.keep_last()

    asyncio.run(ends())
    assert [agent["name"] for agent in json.loads(file.read_text())["agents"]] == ["A"]
    assert failures == []
