"""Programs in a sandbox reach the hosts that `[sandbox] network` lists, and no others."""

import asyncio
import contextlib
import http.server
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agents.conftest import need
from boundary.proxy_scene import served
from boundary.sandbox_scene import Place
from crew.domain.kernel.host_list import host_list
from crew.runner.prompts.mcp_connection import address_file
from crew.runner.requests.door_folder import door_socket, make_door_folder, proxy_socket
from crew.runner.sandbox import listed_hosts
from crew.runner.sandbox.hosts_in_runner import how_to_allow
from crew.system.host_proxy.proxy_server import Refused
from crew.system.processes.process import working_bwrap
from crew.system.sandbox import forwarder
from crew.system.sandbox.by_proxy import PROXY_PORT
from crew.workplace import Workplace
from front.conftest import until

FETCH = "import sys; from urllib.request import urlopen as u; print(u(sys.argv[1]).read().decode())"
COMMIT = "1234567890" * 4


class Internet(http.server.BaseHTTPRequestHandler):
    """A host that answers with the path, and has a repository without commits of its own."""

    def do_GET(self):
        words = f"{self.path} of {self.headers['Host'].partition(':')[0]}"
        if self.path.startswith("/repo.git/info/refs"):
            words = f"{COMMIT}\trefs/heads/main\n"
        self.send_response(404 if self.path.endswith("/HEAD") else 200)
        self.end_headers()
        self.wfile.write(words.encode())

    def log_message(self, *_words):
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Internet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def shut_in(described) -> Place:
    need(working_bwrap(), "bwrap")
    return described


def lines(said) -> list[str]:
    return said.out.splitlines()


def test_listed_hosts_are_reached_by_name_and_address_and_no_others(place, port):
    place.configure(
        f'[sandbox]\nnetwork = ["127.0.0.1:{port}", "*.web.test:{port}", "inside.test"]\n'
    )
    script = f"""
curl -sS http://127.0.0.1:{port}/address; echo
curl -sS http://a.web.test:{port}/name; echo
curl -sSp http://a.web.test:{port}/tunnel; echo
git ls-remote http://a.web.test:{port}/repo.git
{sys.executable} -c '{FETCH}' http://a.web.test:{port}/python
curl -sS http://evil.test/; curl -sS http://inside.test/
curl -sS http://127.0.0.1:1/; curl -sSp http://evil.test/
curl -sS --noproxy '*' http://127.0.0.2:{port}/ || echo no way around
curl -sS --noproxy '*' http://a.web.test:{port}/ || echo no name
"""
    with served(place.workplace) as refused:
        for said in (place.step(script), place.gate(script)):
            assert lines(said)[:5] == [
                "/address of 127.0.0.1",
                "/name of a.web.test",
                "/tunnel of a.web.test",
                f"{COMMIT}\trefs/heads/main",
                "/python of a.web.test",
            ]
            assert "crew refused evil.test:80: it is not in [sandbox] network" in said.out
            assert "crew refused inside.test:80: it leads to 10.0.0.1, not in" in said.out
            assert "Failed to connect to 127.0.0.1 port 1" in said.out
            assert "CONNECT tunnel failed, response 403" in said.out
            assert "no way around" in said.out
            assert lines(said)[-1] == "no name"
    assert {(one.host, one.port) for one in refused} == {("evil.test", 80), ("inside.test", 80)}


@pytest.mark.parametrize(
    ("host", "port", "entry"),
    [
        ("x.org", 443, "x.org"),
        ("x.org", 8080, "x.org:8080"),
        ("2001:db8::7", 80, "[2001:db8::7]"),
        ("2001:db8::7", 5432, "[2001:db8::7]:5432"),
    ],
)
def test_the_entry_that_a_refusal_proposes_allows_the_host(host, port, entry):
    refused = Refused(token="", host=host, port=port, why="it is not in [sandbox] network")
    assert f'add "{entry}" to' in how_to_allow(refused)
    assert host_list((entry,)).allows(host, port)


def test_the_socket_of_an_earlier_list_goes(described):
    described.configure('[sandbox]\nnetwork = ["former.org"]\n')
    former = proxy_socket(described.workplace, ("former.org",))
    make_door_folder(described.workplace, former)
    former.touch()  # its runner was killed
    described.configure('[sandbox]\nnetwork = ["x.org"]\n')
    with served(described.workplace):
        assert not former.parent.exists()
        assert proxy_socket(described.workplace, ("x.org",)).is_socket()


def test_many_programs_may_connect_in_the_same_moment(described):
    described.configure('[sandbox]\nnetwork = ["x.org"]\n')
    path = str(proxy_socket(described.workplace, ("x.org",)))

    async def crowd() -> None:
        async with listed_hosts.hosts_served(described.workplace, lambda _refused: None):
            with contextlib.ExitStack() as opened:
                for _ in range(32):
                    caller = opened.enter_context(socket.socket(socket.AF_UNIX))
                    caller.setblocking(False)
                    caller.connect(path)

    asyncio.run(crowd())


def test_on_macos_the_proxy_has_a_port_that_no_other_program_uses(described, monkeypatch):
    """All programs share the loopback there."""
    monkeypatch.setattr(listed_hosts, "sys", SimpleNamespace(platform="darwin"))
    described.configure('[sandbox]\nnetwork = ["x.org"]\n')
    port = listed_hosts.by_proxy(described.workplace).port
    with socket.create_server(("127.0.0.1", port)):
        others = {listed_hosts.by_proxy(described.workplace).port, PROXY_PORT}
    assert port not in others


def test_a_program_behind_the_forwarder_is_as_it_would_be_without(shut_in):
    """Its own servers, its limits, its signals and its children are its own."""
    shut_in.configure("[sandbox]\nnetwork = []\nmemory_mb = 500\n")
    said = shut_in.step(f"""
{sys.executable} -m http.server -d /dev/shm --bind 127.0.0.1 8123 >/dev/null 2>&1 &
until curl -s http://127.0.0.1:8123/ >/dev/null; do sleep 0.05; done; kill $!; wait
echo "own server"; ulimit -d; grep SigIgn /proc/$$/status; cat /proc/$$/task/$$/children; echo
ls -l /proc/$$/fd 2>/dev/null | grep -c socket; env | grep -ic _proxy=; exit 7
""")
    assert said.code == 7
    assert lines(said)[0] == "own server"
    ignored = int(lines(said)[2].split()[1], 16) & (1 << 31) - 1  # 32 and 33 are the C library's
    assert (lines(said)[1], ignored) == (str(500 << 10), 0)
    assert len(lines(said)[3].split()) <= 1, "only the command that reads the list"
    assert lines(said)[4:] == ["0", "9"]


def test_crews_own_tools_are_reached_although_they_are_not_listed(shut_in, port):
    shut_in.configure('[sandbox]\nnetwork = ["x.org"]\n')
    url = f"http://127.0.0.1:{port}/mcp"
    env = {**shut_in.order().env, "CREW_MCP_URL": url}
    with served(shut_in.workplace) as refused:
        assert shut_in.step(f"curl -sS {url}", env=env).code != 0
        address_file(shut_in.workplace.folder).write_text(f"{url}\n")
        said = shut_in.step(f"curl -sS {url}", env=env)
    assert said.out == "/mcp of 127.0.0.1"
    assert [(one.host, one.port) for one in refused] == [("127.0.0.1", port)]


def test_without_a_crew_that_is_up_programs_read_why_they_reach_nothing(shut_in, port):
    shut_in.configure(f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n')
    said = shut_in.gate(
        f"curl -sS http://x.org/; curl -sS http://127.0.0.1:{port}/ && echo reached"
    )
    assert "Start one: crew run" in said.out
    assert "reached" not in said.out
    with served(shut_in.workplace):
        shut_in.configure('[sandbox]\nnetwork = ["another.org"]\n')
        assert "Start one: crew run" in shut_in.gate("curl -sS http://x.org/").out


def test_a_network_that_is_off_reaches_no_proxy(shut_in, port):
    shut_in.configure(f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n')
    with served(shut_in.workplace):
        path = proxy_socket(shut_in.workplace, (f"127.0.0.1:{port}",))
        assert path.is_socket()
        shut_in.configure("[sandbox]\nnetwork = false\n")
        assert shut_in.gate(f"test -e {path.parent}").code != 0
        assert door_socket(shut_in.workplace).parent not in path.parents
    assert not path.parent.exists()


def test_a_large_answer_arrives_whole_and_slowly_read(shut_in):
    size = 3_000_000

    class Large(Internet):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x" * size)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Large) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shut_in.configure(f'[sandbox]\nnetwork = ["127.0.0.1:{server.server_port}"]\n')
        fetch = f"curl -sS http://127.0.0.1:{server.server_port}/ | (sleep 0.2; wc -c)"
        with served(shut_in.workplace):
            said = shut_in.gate(f"{fetch} & {fetch} & wait")
        server.shutdown()
    assert said.out.split() == [str(size)] * 2


AGENT = """\
curl -sS http://worker.test/
crew show "$CREW_TASK_ID" --json | grep -q '"title"' && echo through the door
"""


def forwarders(proxy: Path) -> set[str]:
    """The processes that forward to this proxy, as their command lines show."""
    found = set()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if {forwarder.__file__.encode(), os.fsencode(proxy)} <= set(words):
                found.add(process.name)
    return found


def test_hosts_that_a_run_wanted_are_in_the_inbox_with_the_way_to_allow_them(scene, port):
    need(working_bwrap(), "bwrap")
    agent = scene.folder / "agent.sh"
    agent.write_text(AGENT + agent.read_text())
    fetch = f"curl -sS http://127.0.0.1:{port}/ || exit 1; curl -sS"
    scene.configure(
        f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n'
        f'[worktree]\nsetup_command = "{fetch} http://setup.test:81/"\n'
        f'[complete]\ncommand = "{fetch} http://gate.test/; {fetch} http://gate.test/"\n'
    )
    scene.ok("new", "--title", "one")
    said = scene.ok("run", "--drain", "--agents", "1")
    assert "not confined: the hosts that [sandbox] network names, " in said.err
    assert scene.status("1") == "merged"
    assert "through the door" in scene.ok("logs", "1").out.splitlines()
    entries = scene.ok("inbox", "--json").json
    assert {(one["role"], one["task"], one["act"], one["count"]) for one in entries} >= {
        ("worker", "1", "to connect to worker.test:80", 1),
        ("gate", "1", "to connect to gate.test:80", 1),
        ("setup", "1", "to connect to setup.test:81", 1),
    }
    (setup,) = [one for one in entries if one["role"] == "setup" and one["task"] == "1"]
    assert 'add "setup.test:81" to that list' in setup["context"]
    words = scene.ok("inbox").out
    assert "the worker of task 1 tried to connect to worker.test:80" in words


def test_a_killed_runner_leaves_no_forwarder_and_the_next_one_serves_again(
    scene, port, running, monkeypatch
):
    need(working_bwrap(), "bwrap")
    monkeypatch.setenv("CREW_SANDBOX_ALLOW_WRITE", str(scene.folder))
    proxy = proxy_socket(Workplace(root=scene.root), (f"127.0.0.1:{port}",))
    scene.plan("1", "wait")
    scene.configure(f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n')
    scene.ok("new", "--title", "one")
    running("--agents", "1")
    until(lambda: forwarders(proxy) != set())
    fetch = ("exec", "1", "--", "curl", "-sS", f"http://127.0.0.1:{port}/exec")
    until(lambda: scene.crew(*fetch).out == "/exec of 127.0.0.1")
    os.kill(scene.runner_pid(), signal.SIGKILL)
    until(lambda: forwarders(proxy) == set())
    assert scene.crew(*fetch).code != 0
    scene.let_go()
    scene.ok("run", "--drain", "--agents", "1")
    assert scene.status("1") == "merged"
    assert not proxy.parent.exists()


def test_a_review_by_hand_connects_by_itself_and_terminals_wait_for_a_runner(scene, port):
    need(working_bwrap(), "bwrap")
    scene.plan("1", "fail")
    scene.ok("new", "--title", "one")
    scene.crew("run", "--drain")
    eye = scene.folder / "eye.sh"
    eye.write_text(
        f"curl -sS http://127.0.0.1:{port}/eye; curl -sS http://no.test/; echo; echo PASS"
    )
    scene.configure(
        f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n[agents.eye]\ncommand_template = "sh {eye}"\n'
        '[agents.head]\nrole = "manager"\ncommand_template = "sh"\n'
    )
    scene.ok("review", "1", "--agent", "eye")
    said = (scene.root / ".crew/logs/review-1.log").read_text()
    assert "/eye of 127.0.0.1crew refused no.test:80" in said
    (entry,) = scene.ok("inbox", "--json").json
    assert (entry["role"], entry["act"]) == ("reviewer", "to connect to no.test:80")
    scene.ok("new", "--title", "two")
    scene.refused(5, "no_runner_for_manager", "manager", "head")
    assert "only while a runner is up" in scene.crew("start", "2").err
