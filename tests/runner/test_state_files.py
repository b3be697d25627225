"""`state.json` is what the world is in the end, however the last write ended."""

import asyncio
import json
from types import SimpleNamespace

from crew.domain.agent import Agent
from crew.domain.world import with_rows
from crew.runner.state_files import StateFiles


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
