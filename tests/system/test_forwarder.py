"""The forwarder in this process: it passes connections on to the proxy, and loses no data."""

import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crew.system.sandbox import forwarder

LIMIT_S = 60.0
SIZE = 2_000_000


class Scene:
    """A forwarder with two ports, and the socket of a proxy."""

    def __init__(self, folder: Path) -> None:
        self.listeners = [forwarder._listen(0), forwarder._listen(0)]
        self.ports = [one.getsockname()[1] for one in self.listeners]
        self.path = folder / "proxy"
        found = zip(self.listeners, (0, 5432), strict=True)
        self.forwarder = forwarder._Forwarder(
            {one.fileno(): (one, p) for one, p in found}, str(self.path)
        )
        self.is_over = False
        self.thread = threading.Thread(target=self._turn, daemon=True)
        self.thread.start()

    def _turn(self) -> None:
        while not self.is_over:
            self.forwarder.turn(5)

    def proxy(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.path))
        server.listen()
        server.settimeout(LIMIT_S)
        return server

    def program(self, number: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[number]), LIMIT_S)

    def close(self) -> None:
        self.is_over = True
        self.thread.join(LIMIT_S)
        for end in list(self.forwarder.ends.values()):
            end.socket.close()
        for one in self.listeners:
            one.close()


@pytest.fixture
def scene(monkeypatch) -> Iterator[Scene]:
    monkeypatch.setenv("CREW_TOKEN", "my/token")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        scene = Scene(Path(folder))
        yield scene
        scene.close()


def first_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += connection.recv(1)
    return line


def all_of(connection: socket.socket) -> bytes:
    chunks = []
    while chunk := connection.recv(65_536):
        chunks.append(chunk)
    return b"".join(chunks)


@pytest.mark.parametrize(("number", "line"), [(0, b"0 my/token\n"), (1, b"5432 my/token\n")])
def test_a_connection_begins_with_its_port_and_the_token(scene, number, line):
    with scene.proxy() as server, scene.program(number) as program:
        proxy = server.accept()[0]
        with proxy:
            assert first_line(proxy) == line
            program.sendall(b"to the host")
            assert proxy.recv(100) == b"to the host"
            proxy.sendall(b"to the program")
            assert program.recv(100) == b"to the program"


def test_a_proxy_that_is_slow_to_read_holds_up_no_other_connection(scene):
    with scene.proxy(), scene.program() as program:
        program.sendall(b"begin")
        give_up_at = time.monotonic() + LIMIT_S
        while len(scene.forwarder.ends) < 2 and time.monotonic() < give_up_at:
            time.sleep(0.01)
        assert [end.socket.gettimeout() for end in scene.forwarder.ends.values()] == [0.0, 0.0]


def test_the_token_of_a_command_is_used_without_one_of_an_agent(monkeypatch):
    monkeypatch.delenv("CREW_TOKEN", raising=False)
    monkeypatch.setenv("CREW_REPORT_TOKEN", "gate:1/x")
    assert forwarder._Forwarder({}, "").token == "gate:1/x"
    monkeypatch.delenv("CREW_REPORT_TOKEN")
    assert forwarder._Forwarder({}, "").token == ""


def test_large_data_arrives_whole_both_ways_although_it_is_read_late(scene):
    with scene.proxy() as server, scene.program() as program:
        proxy = server.accept()[0]
        proxy.settimeout(LIMIT_S)
        with proxy:
            first_line(proxy)
            sent = (b"a" * SIZE, b"b" * SIZE)
            senders = [
                threading.Thread(target=lambda one=one, data=data: _send(one, data), daemon=True)
                for one, data in zip((program, proxy), sent, strict=True)
            ]
            for sender in senders:
                sender.start()
            assert all_of(proxy) == sent[0]
            assert all_of(program) == sent[1]
            for sender in senders:
                sender.join(LIMIT_S)


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def test_an_answer_arrives_after_the_program_has_ended_its_request(scene):
    with scene.proxy() as server, scene.program() as program:
        proxy = server.accept()[0]
        with proxy:
            first_line(proxy)
            _send(program, b"request")
            assert all_of(proxy) == b"request"
            proxy.sendall(b"answer")
        assert all_of(program) == b"answer"
    _until(lambda: not scene.forwarder.ends)


def _until(is_true) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    while not is_true():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.005)


def test_a_connection_whose_program_is_gone_ends_at_the_proxy(scene):
    with scene.proxy() as server:
        with scene.program() as program:
            proxy = server.accept()[0]
            first_line(proxy)
            program.sendall(b"x")
        with proxy:
            assert all_of(proxy) == b"x"
    _until(lambda: not scene.forwarder.ends)


def test_without_a_proxy_a_request_is_answered_and_another_port_is_closed(scene):
    with scene.program() as program:
        program.sendall(b"GET http://x.org/ HTTP/1.1\r\n\r\n")
        answer = all_of(program)
    assert answer.startswith(b"HTTP/1.1 503 no crew with this list of hosts is up\r\n")
    assert answer.endswith(b"Start one: crew run\n")
    with scene.program(1) as program:
        assert all_of(program) == b""
    _until(lambda: not scene.forwarder.ends)


def test_no_more_than_so_many_connections_are_open(scene, monkeypatch):
    monkeypatch.setattr(forwarder, "_MOST", 2)
    with scene.proxy() as server:
        programs = [scene.program() for _ in range(3)]
        proxies = [server.accept()[0] for _ in range(2)]
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
        server.settimeout(LIMIT_S)
        programs[0].close()
        proxies[0].close()
        proxies.append(server.accept()[0])
        for one in (*programs, *proxies):
            one.close()


def test_a_port_in_use_ends_the_start_with_a_sentence():
    taken = forwarder._listen(0)
    port = str(taken.getsockname()[1])
    argv = (sys.executable, "-I", "-S", forwarder.__file__, "/no/proxy", port, "--", "true")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (126, "")
    assert f"crew cannot use port {port} in the sandbox" in done.stderr
    taken.close()
