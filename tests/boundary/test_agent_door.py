"""The agent door answers tokens and nothing else, and no client can hold it up."""

import asyncio
import contextlib
import json
import resource
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from crew.domain.kernel.errors import CrewError
from crew.runner.requests import agent_door as door
from crew.runner.requests import door_folder
from crew.runner.requests.door_client import LONGEST_LINE, ask_door
from crew.runner.requests.tokens import Tokens
from crew.workplace import Workplace
from front.mcp_scene import running_crew, waiting_step


@dataclass
class Desk:
    """In place of a runner: it answers each request with its own arguments."""

    workplace: SimpleNamespace
    asked: list = field(default_factory=list)
    terminals: dict = field(default_factory=dict)

    @property
    def readers(self):
        return self

    @property
    def engine(self):
        return SimpleNamespace(world=SimpleNamespace(terminals=self.terminals))

    @property
    def tokens(self):
        return Tokens(self.workplace.folder)

    async def patiently(self, request):
        if request.args.get("wait"):
            await asyncio.sleep(3600)

    def reply_to(self, request):
        self.asked.append(request)
        return {"reply": dict(request.args)}


@pytest.fixture
def desk(tmp_path):
    folder = tmp_path / ("a long name " * 8) / ".crew"
    folder.mkdir(parents=True)
    desk = Desk(SimpleNamespace(folder=folder))
    yield desk
    door_folder.remove_door(door.door_socket(desk.workplace), keep_folder=False)


def socket_of(desk) -> str:
    return str(door.door_socket(desk.workplace))


def through(desk, talk):
    """What `talk` returns, run in a thread while the door is open."""

    async def serve():
        async with door.agent_door(desk):
            return await asyncio.to_thread(talk, socket_of(desk))

    return asyncio.run(serve())


def send(path: str, content: bytes) -> dict:
    with connected(path) as caller:
        caller.sendall(content)
        return json.loads(_all(caller))


def connected(path: str) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(30)
    while True:
        try:
            caller.connect(path)
        except BlockingIOError:
            time.sleep(0.001)
        else:
            return caller


def _all(caller) -> bytes:
    found = b""
    while piece := caller.recv(65536):
        found += piece
    return found


def test_a_request_is_one_line_each_way(desk):
    args = {"token": "t", "text": "é\n"}
    assert through(desk, lambda path: ask_door(path, "progress", args)) == {"reply": args}
    assert [request.verb for request in desk.asked] == ["progress"]


def test_the_path_is_short_and_no_other_user_can_enter_its_folder(desk):
    def look(path: str):
        folder = Path(path).parent
        assert len(path) < 100
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700

    through(desk, look)
    assert not Path(socket_of(desk)).parent.exists()


def test_a_terminal_that_outlives_the_runner_keeps_the_folder(desk):
    desk.terminals["1"] = SimpleNamespace(is_up=True)
    through(desk, lambda _path: None)
    assert [one.name for one in Path(socket_of(desk)).parent.iterdir()] == ["crew"]


def test_without_a_runner_nothing_answers(desk):
    assert ask_door(socket_of(desk), "progress", {}) is None
    door_folder.make_door_folder(desk.workplace)
    with socket.socket(socket.AF_UNIX) as dead:  # as a killed runner leaves it
        dead.bind(socket_of(desk))
    assert ask_door(socket_of(desk), "progress", {}) is None
    assert through(desk, lambda path: ask_door(path, "progress", {})) == {"reply": {"token": ""}}


def test_folders_of_crews_that_are_gone_are_swept(desk, tmp_path):
    gone = SimpleNamespace(folder=tmp_path / "gone" / ".crew")
    folder = door_folder.make_door_folder(gone)
    kept = door_folder.make_door_folder(desk.workplace)
    door_folder.sweep_doors()
    assert (folder.exists(), kept.exists()) == (False, True)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for a socket, wherever the tests keep their files."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


@pytest.mark.parametrize("squat", ["link", "file", "open"])
def test_a_folder_that_is_not_private_is_not_used(desk, monkeypatch, short_path, squat):
    base = short_path / "base"
    if squat == "link":
        (short_path / "elsewhere").mkdir(mode=0o700)
        base.symlink_to(short_path / "elsewhere")
    elif squat == "file":
        base.touch()
    else:
        base.mkdir()
        base.chmod(0o777)
    monkeypatch.setattr(door_folder, "_base", lambda: base)
    with pytest.raises(CrewError, match="not a private folder"):
        door_folder.make_door_folder(desk.workplace)
    through(desk, lambda path: ask_door(path, "progress", {}))  # the runner continues without it
    assert desk.asked == []


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"\n",
        b"[]\n",
        b'{"verb": "progress"}\n',
        b'{"token": 1, "verb": "progress", "args": {}}\n',
        b'{"token": "t", "verb": ["progress"], "args": {}}\n',
        b'{"token": "t", "verb": "progress", "args": []}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
    ],
)
def test_a_line_that_is_no_request_is_refused_by_name(desk, line):
    answer = through(desk, lambda path: send(path, line))
    assert (answer["error"]["code"], answer["exit_code"]) == ("usage", 2)
    assert desk.asked == []


def test_a_line_without_end_is_refused_once_it_is_too_long(desk):
    answer = through(desk, lambda path: send(path, b"x" * (LONGEST_LINE + 1)))
    assert answer["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "verb", ["answer", "close", "stop", "merge", "kill", "retry", "changes", "mcp_url", "look", "x"]
)
def test_the_requests_of_people_are_refused(desk, verb):
    answer = through(desk, lambda path: ask_door(path, verb, {"token": "t"}))
    assert (answer["error"]["code"], answer["exit_code"]) == ("for_people", 4)
    assert desk.asked == []


def test_a_second_line_is_not_served(desk):
    line = b'{"token": "t", "verb": "progress", "args": {}}\n'
    assert through(desk, lambda path: send(path, line + line)) == {"reply": {"token": "t"}}
    assert len(desk.asked) == 1


def test_a_silent_caller_is_sent_away(desk, monkeypatch):
    monkeypatch.setattr(door, "SILENT_S", 0.05)

    def stay(path: str):
        with connected(path) as silent, connected(path) as slow:
            slow.sendall(b'{"token"')
            assert [_all(silent), _all(slow)] == [b"", b""]

    through(desk, stay)


@contextlib.contextmanager
def few_files(most: int):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_idle_callers_keep_no_other_from_its_answer(desk, caplog):
    def flood(path: str):
        with contextlib.ExitStack() as open_:
            for number in range(1024):
                open_.enter_context(connected(path))
                if number % 128 == 0:
                    assert ask_door(path, "progress", {"token": str(number)}) is not None
            assert ask_door(path, "progress", {"token": "last"}) == {"reply": {"token": "last"}}

    with few_files(4096):
        through(desk, flood)
    assert len(caplog.records) <= 2


def test_a_caller_that_waits_or_leaves_holds_up_no_other(desk):
    wait = json.dumps({"token": "t", "verb": "channel_read", "args": {"wait": True}}).encode()

    def talk(path: str):
        with connected(path) as waiting, connected(path) as leaving:
            waiting.sendall(wait + b"\n")
            leaving.sendall(wait + b"\n")
            leaving.close()
            assert ask_door(path, "progress", {"token": "t"}) == {"reply": {"token": "t"}}

    through(desk, talk)


def test_a_step_speaks_through_the_door_alone(scene, tmp_path):
    """In a folder without a crew, as a sandbox shows it."""
    with running_crew(scene):
        step = waiting_step(scene)
        inside = {"CREW_DOOR": socket_of(Desk(Workplace(scene.root))), "CREW_TOKEN": step.token}
        told = scene.ok(
            *("signal", "complete", "--summary", "did it", "--json"), cwd=tmp_path, **inside
        )
        assert told.json["signal"] == "complete"
        assert len(step.signals()) == 1
        forged = scene.crew(
            *("signal", "complete", "--json"), cwd=tmp_path, **{**inside, "CREW_TOKEN": "1/1/x"}
        )
        assert (forged.code, forged.json["error"]["code"]) == (4, "needs_login")
    gone = scene.crew("signal", "complete", "--json", cwd=tmp_path, **inside)
    assert (gone.code, gone.json["error"]["code"]) == (75, "no_runner")
