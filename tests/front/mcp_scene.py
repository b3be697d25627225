"""A runner whose agent waits in its step, and the three ways in which that step can speak."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from front.conftest import CREW, PATIENCE_S, CliScene, until
from warm import Forked, warm_python

AGENT = """\
#!/bin/sh
cp "$CREW_PROMPT_FILE" "$SCENE/prompt-$CREW_TASK_ID"
printf '%s\\n' "$CREW_TOKEN" "$CREW_MCP_URL" "$CREW_REPO" "$PWD" > "$SCENE/new-$CREW_TASK_ID"
mv "$SCENE/new-$CREW_TASK_ID" "$SCENE/step-$CREW_TASK_ID"
echo '{"type": "system", "subtype": "init", "session_id": "s", "tools": []}'
while [ ! -e "$SCENE/go" ] && [ ! -e "$SCENE/go-$CREW_TASK_ID" ]; do sleep 0.05; done
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID" >&2
echo '{"type": "result", "subtype": "success", "is_error": false, "result": "DONE",
 "session_id": "s", "usage": {}}' | tr -d '\\n'
echo
"""
"""Speaks as Claude does, so that crew gives it the address of the server."""

CONFIG = """
[agents.waiting]
adapter = "claude"
command = {program}
env = {{ SCENE = {scene} }}
"""


@dataclass(frozen=True)
class Heard:
    """What came back, whichever way it went."""

    text: str
    refused: bool


@dataclass(frozen=True)
class Step:
    """One step that waits, and what it has in its environment."""

    scene: CliScene
    task: str
    token: str
    url: str
    repo: str
    worktree: Path

    @asynccontextmanager
    async def http(self, *, token=None, mode="auto", **headers):
        """The SDK's client over HTTP."""
        bearer = {"Authorization": f"Bearer {self.token if token is None else token}", **headers}
        async with (
            httpx2.AsyncClient(headers=bearer, timeout=PATIENCE_S) as caller,
            Client(streamable_http_client(self.url, http_client=caller), mode=mode) as client,
        ):
            yield client

    @asynccontextmanager
    async def stdio(self, *, token=None, mode="auto"):
        """The SDK's client over `crew mcp`."""
        program = StdioServerParameters(
            command=str(CREW),
            args=["mcp"],
            cwd=self.place,
            env={"CREW_TOKEN": self.token if token is None else token, "CREW_REPO": self.repo},
        )
        with Path(os.devnull).open("w") as errors:  # noqa: ASYNC230 - opens at once
            async with Client(stdio_client(program, errlog=errors), mode=mode) as client:
                yield client

    @property
    def place(self) -> Path:
        """The worktree, or once that is gone the repository."""
        return self.worktree if self.worktree.exists() else self.scene.root

    def by_http(self, tool, *, token=None, **arguments):
        return asyncio.run(_called(self.http(token=token), tool, arguments))

    def by_stdio(self, tool, *, token=None, **arguments):
        return asyncio.run(_called(self.stdio(token=token), tool, arguments))

    def by_shell(self, tool, *, token=None, **arguments):
        """`crew signal`, which is the only tool a shell has."""
        assert tool == "signal-back"
        flags = {"continuationPoint": "continue-at", "targetRole": "role"}
        given = [
            word
            for name, text in arguments.items()
            if name != "signal"
            for word in (f"--{flags.get(name, name)}", text)
        ]
        done = self.scene.crew(
            *("signal", arguments["signal"], *given),
            cwd=self.place,
            CREW_TOKEN=self.token if token is None else token,
        )
        return Heard(done.out + done.err, refused=done.code != 0)

    def raw(self, text: bytes, **env: str) -> list:
        """Bytes straight into `crew mcp`, and the messages that it answers."""
        done = subprocess.run(
            [CREW, "mcp"],
            input=text,
            capture_output=True,
            cwd=self.place,
            env={**os.environ, "CREW_TOKEN": self.token, "CREW_REPO": self.repo, **env},
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def signals(self) -> list:
        """What crew has on record of this step's run."""
        said = self.scene.ok("events", "--json").json
        return [fact for fact in said if fact["trigger"] == "signalled"]

    def log(self) -> str:
        return (self.scene.root / ".crew/logs/crew.log").read_text()

    def end(self) -> None:
        (self.scene.folder / f"go-{self.task}").touch()


async def _called(connecting, tool, arguments):
    async with connecting as client:
        result = await client.call_tool(tool, arguments)
    return Heard("".join(block.text for block in result.content), refused=result.is_error)


WAYS = ("by_http", "by_stdio", "by_shell")


def add_waiting_agent(scene: CliScene) -> None:
    program = scene.folder / "claude"
    program.write_text(AGENT)
    program.chmod(0o755)
    scene.configure(
        CONFIG.format(program=json.dumps(str(program)), scene=json.dumps(str(scene.folder)))
    )


def waiting_step(scene: CliScene, task: str = "1") -> Step:
    """The step of a task, once its agent is there."""
    told = scene.folder / f"step-{task}"
    until(told.exists)
    token, url, repo, worktree = told.read_text().splitlines()
    return Step(scene, task, token, url, repo, Path(worktree))


@contextmanager
def running_crew(scene: CliScene, *, tasks: int = 1):
    """`crew run` with an agent a task, each of which waits in its first step."""
    add_waiting_agent(scene)
    for number in range(tasks):
        scene.ok("new", "--title", f"task {number + 1}", "--body", "What to do.")
    with serving(scene, agents=tasks) as runner:
        yield runner


@contextmanager
def serving(scene: CliScene, *, agents: int) -> Iterator[Forked]:
    """`crew run` with agents that wait; its server, which takes a second to load, is loaded."""
    err = scene.folder / "runner-err.txt"
    argv = ["crew", "run", "--agent", "waiting", "--agents", str(agents)]
    with Path(os.devnull).open("r+") as nothing, err.open("w") as narration:
        runner = warm_python(serves=True).start(
            argv,
            cwd=scene.root,
            env=os.environ,
            streams=[nothing.fileno(), nothing.fileno(), narration.fileno()],
        )
    try:
        yield runner
    finally:
        scene.let_go()
        runner.terminate()
        runner.wait(timeout=PATIENCE_S)
        assert "Traceback" not in err.read_text(), err.read_text()
