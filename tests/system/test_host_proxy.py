"""The proxy of listed hosts: it connects to what was checked, and refuses with a sentence."""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crew.domain.kernel.host_list import host_list
from crew.runner.requests.door_folder import listen_at
from crew.system.host_proxy import proxy_server
from crew.system.host_proxy.name_lookup import NameLookup
from crew.system.host_proxy.proxy_request import NotUnderstood, read_request
from crew.system.host_proxy.proxy_server import HostProxy, ProxyRules, Refused

LIMIT_S = 60.0
NAMES = {
    "internet.test": ("127.0.0.1",),
    "rebound.test": ("10.0.0.1", "169.254.169.254"),
    "both.test": ("10.0.0.1", "127.0.0.1"),
    "empty.test": (),
}


class Scene:
    """A server as the internet, the proxy, and the connections of a program."""

    def __init__(self, port: int, path: Path) -> None:
        self.port = port
        self.path = path
        self.refused: list[Refused] = []
        self.looked_up: list[str] = []
        self.seen: list[bytes] = []
        self.held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.hosts = host_list(
            (
                f"127.0.0.1:{port}",
                *(f"{name}:{port}" for name in (*NAMES, "gone.test", "slow.test")),
            )
        )

    async def look_up(self, name: str, port: int) -> tuple[str, ...]:
        del port
        self.looked_up.append(name)
        if name == "slow.test":
            raise TimeoutError
        if name not in NAMES:
            raise OSError(f"{name} has no address")
        return NAMES[name]

    def proxy(self, **more) -> HostProxy:
        given = {"hosts": self.hosts, "look_up": self.look_up, "refused": self.refused.append}
        return HostProxy(ProxyRules(**{**given, **more}))

    async def connect(self, first: bytes = b"0 token\n"):
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        writer.write(first)
        return reader, writer

    async def ask(self, text: str, first: bytes = b"0 token\n") -> bytes:
        """All that comes back for a request."""
        reader, writer = await self.connect(first)
        writer.write(text.format(port=self.port).replace("\n", "\r\n").encode())
        answer = await reader.read()
        writer.close()
        return answer


def played(talk: Callable[[Scene], Awaitable[object]], **rules) -> Scene:
    """Let a program talk to the proxy; the server repeats each line, and ends after `end`."""

    async def play() -> Scene:
        async def serve(reader, writer) -> None:
            with contextlib.suppress(ConnectionError):
                while line := await reader.readline():
                    scene.seen.append(line)
                    if line == b"\r\n":
                        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfrom the host")
                        break
                    if line.startswith(b"echo"):
                        writer.write(line)
                    if line == b"end\n":
                        break
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            scene = Scene(server.sockets[0].getsockname()[1], Path(folder) / "proxy")
            async with scene.proxy(**rules).serving(listen_at(scene.path)):
                await asyncio.wait_for(talk(scene), LIMIT_S)
            left = {str(task.get_coro()) for task in asyncio.all_tasks()}
            assert not [one for one in left if "HostProxy" in one]
            for reader, writer in scene.held:
                assert await asyncio.wait_for(reader.read(), LIMIT_S) == b""
                writer.close()
        server.close()
        return scene

    return asyncio.run(play())


def test_a_tunnel_leads_to_the_address_of_a_listed_name():
    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect()
        writer.write(f"CONNECT internet.test:{scene.port} HTTP/1.1\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 connected\r\n\r\n"
        for _ in range(2):
            writer.write(b"echo one\n")
            assert await reader.readline() == b"echo one\n"
        writer.write(b"end\n")
        assert await reader.read() == b""
        writer.close()

    scene = played(talk)
    assert (scene.looked_up, scene.refused) == (["internet.test"], [])


def test_a_plain_request_is_sent_to_its_host_without_the_words_for_the_proxy():
    async def talk(scene: Scene) -> None:
        answer = await scene.ask(
            "GET http://me:x@Internet.Test:{port}/a?b HTTP/1.1\nHost: evil.test\nA: b\n"
            "Proxy-Authorization: secret\nProxy-Connection: keep-alive\nConnection: keep-alive\n\n"
        )
        assert answer.endswith(b"from the host")

    scene = played(talk)
    assert scene.seen == [
        b"GET /a?b HTTP/1.1\r\n",
        f"Host: Internet.Test:{scene.port}\r\n".encode(),
        b"A: b\r\n",
        b"Connection: close\r\n",
        b"\r\n",
    ]


def test_a_connection_to_a_port_of_this_machine_needs_no_request():
    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect(f"{scene.port} token\n".encode())
        writer.write(b"echo direct\n")
        assert await reader.readline() == b"echo direct\n"
        writer.close()
        assert await scene.ask("echo", f"{scene.port + 1} token\n".encode()) == b""

    scene = played(talk)
    assert [(one.host, one.port) for one in scene.refused] == [("127.0.0.1", scene.port + 1)]


def test_the_port_of_crews_own_tools_is_allowed():
    own: list[int] = []

    async def talk(scene: Scene) -> None:
        own.append(scene.port)
        assert (await scene.ask("GET http://localhost:{port}/ HTTP/1.1\n\n")).endswith(b"host")
        assert b" 403 " in await scene.ask("CONNECT 10.0.0.1:{port} HTTP/1.1\n\n")

    played(talk, hosts=host_list(()), is_own=own.__contains__)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("evil.test:443", "evil.test:443: it is not in [sandbox] network"),
        ("internet.test:1", "internet.test:1: it is not in"),
        ("127.0.0.1:1", "127.0.0.1:1: it is not in"),
        ("[::1]:{port}", "::1:{port}: it is not in"),
        ("2130706433:{port}", "2130706433:{port}: it is not in"),
        ("rebound.test:{port}", "it leads to 10.0.0.1, 169.254.169.254, not in [sandbox] network"),
        ("empty.test:{port}", "it leads to no address"),
    ],
)
def test_what_is_not_listed_is_refused_with_a_sentence_and_reported(target, why):
    async def talk(scene: Scene) -> None:
        answer = (await scene.ask(f"CONNECT {target} HTTP/1.1\nHost: x\n\n")).decode()
        first, _, rest = answer.partition("\r\n")
        words = why.format(port=scene.port)
        assert first.startswith("HTTP/1.1 403 crew refused ")
        assert words in first
        assert words in rest
        assert scene.refused[0].token == "token"
        assert scene.refused[0].why in first

    scene = played(talk)
    assert (len(scene.refused), scene.seen) == (1, [])


def test_of_two_addresses_only_the_allowed_one_is_connected():
    async def talk(scene: Scene) -> None:
        assert b"from the host" in await scene.ask("GET http://both.test:{port}/ HTTP/1.1\n\n")

    assert played(talk).refused == []


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("GET / HTTP/1.1\n\n", 400, "a whole http:// address"),
        ("GET https://internet.test/ HTTP/1.1\n\n", 400, "a whole http:// address"),
        ("CONNECT internet.test HTTP/1.1\n\n", 400, "a host and its port"),
        ("CONNECT internet.test:0 HTTP/1.1\n\n", 400, "0 is no port"),
        ("CONNECT internet.test:65536 HTTP/1.1\n\n", 400, "is no port"),
        ("nonsense\n\n", 400, "not a request of HTTP/1.1"),
        ("CONNECT gone.test:{port} HTTP/1.1\n\n", 502, "gone.test has no address"),
        ("CONNECT slow.test:{port} HTTP/1.1\n\n", 502, "crew cannot find slow.test"),
    ],
)
def test_what_cannot_be_served_is_answered_and_not_reported(text, status, words):
    async def talk(scene: Scene) -> None:
        answer = (await scene.ask(text)).decode()
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert words in answer.partition("\r\n")[0]

    assert played(talk).refused == []


def test_a_host_that_does_not_listen_is_answered_with_its_reason():
    async def talk(scene: Scene) -> None:
        free = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = free.sockets[0].getsockname()[1]
        free.close()
        await free.wait_closed()
        answer = await scene.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\n\n")
        assert b" 502 crew cannot connect to 127.0.0.1:" in answer.partition(b"\r\n")[0]

    played(talk, is_own=lambda _port: True)


def test_a_refusal_is_read_by_a_program_that_still_sends():
    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect()
        writer.write(b"POST http://evil.test/ HTTP/1.1\r\nContent-Length: 999999\r\n\r\n")
        writer.write(b"x" * 999_999)
        writer.write_eof()
        assert b" 403 " in await reader.readline()
        writer.close()

    played(talk)


def test_a_refusal_is_complete_for_a_program_that_reads_to_the_end(monkeypatch):
    monkeypatch.setattr(proxy_server, "LISTEN_ON_S", 10 * LIMIT_S)

    async def talk(scene: Scene) -> None:
        answer = await scene.ask("CONNECT evil.test:80 HTTP/1.1\n\n")
        assert answer.startswith(b"HTTP/1.1 403 ")

    played(talk)


def test_one_program_leaves_room_for_the_others(monkeypatch):
    monkeypatch.setattr(proxy_server, "MOST_OF_ONE", 2)

    async def talk(scene: Scene) -> None:
        held = [await scene.connect() for _ in range(2)]
        connect = "CONNECT internet.test:{port} HTTP/1.1\n\n"
        for reader, writer in held:
            writer.write(connect.format(port=scene.port).replace("\n", "\r\n").encode())
            assert b" 200 " in await reader.readline()
        assert b" 503 crew serves at most 2 " in await scene.ask(connect)
        plain = "GET http://internet.test:{port}/ HTTP/1.1\n\n"
        assert b"from the host" in await scene.ask(plain, b"0 another\n")
        for _, writer in held:
            writer.close()
        while b" 503 " in await scene.ask(plain):
            pass

    played(talk)


def test_a_program_that_sends_no_request_is_disconnected(monkeypatch):
    monkeypatch.setattr(proxy_server, "SILENT_S", 0.05)

    async def talk(scene: Scene) -> None:
        for first in (b"", b"0 token\n", b"0 token\nGET "):
            reader, writer = await scene.connect(first)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    played(talk)


@pytest.mark.parametrize("first", [b"x\n", b"\n", b"-1 t\n", b"0 t\n" + b"x" * 200_000])
def test_a_line_that_is_not_the_forwarders_is_ignored(first):
    async def talk(scene: Scene) -> None:
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in await scene.ask("echo\n\n", first)
        assert b"from the host" in await scene.ask("GET http://internet.test:{port}/ HTTP/1.1\n\n")

    played(talk)


def test_a_connection_that_one_side_has_ended_does_not_stay(monkeypatch):
    monkeypatch.setattr(proxy_server, "HALF_OPEN_S", 0.05)

    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect(f"{scene.port} token\n".encode())
        writer.write(b"end\n")
        assert await reader.read() == b""
        with pytest.raises(ConnectionError):
            await send_for_ever(writer)
        writer.close()

    played(talk)


async def send_for_ever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"more\n")
        await writer.drain()
        await asyncio.sleep(0.001)


def test_what_a_host_sends_after_the_program_has_ended_still_arrives():
    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect(f"{scene.port} token\n".encode())
        writer.write(b"echo " + b"x" * 60_000 + b"\n")
        writer.write_eof()
        assert len(await reader.read()) == 60_006
        writer.close()

    played(talk)


def test_connections_end_with_the_proxy():
    async def talk(scene: Scene) -> None:
        reader, writer = await scene.connect(f"{scene.port} token\n".encode())
        writer.write(b"echo here\n")
        assert await reader.readline() == b"echo here\n"
        scene.held.append((reader, writer))

    assert [one.at_eof() for one, _ in played(talk).held] == [True]


def test_an_upgrade_keeps_its_connection():
    request = read_request(
        b"GET http://x.org HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    )
    assert request.first.split(b"\r\n") == [
        *(
            b"GET / HTTP/1.1",
            b"Host: x.org",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"",
            b"",
        )
    ]
    assert (request.host, request.port, request.is_tunnel) == ("x.org", 80, False)
    assert read_request(b"GET http://[::1]:8?q HTTP/1.0\r\n\r\n").first.startswith(
        b"GET /?q HTTP/1.0\r\nHost: [::1]:8\r\n"
    )


@pytest.mark.parametrize(
    "line", [b"CONNECT a b HTTP/1.1", b"GET http://a\x00b/ HTTP/2", b"CONNECT a:1@b:2 HTTP/1.1"]
)
def test_a_line_of_another_form_is_not_understood(line):
    with pytest.raises(NotUnderstood):
        read_request(line + b"\r\n\r\n")


def test_names_are_looked_up_on_this_machine(monkeypatch):
    def found(name, port, type):  # noqa: A002 - as in the module
        del type
        if name == "gone.test":
            raise OSError("unknown")
        return [(0, 0, 0, "", (address, port)) for address in ("1.2.3.4", "1.2.3.4", "::1")]

    monkeypatch.setattr("socket.getaddrinfo", found)

    async def look() -> None:
        names = NameLookup()
        assert await names("x.test", 1) == ("1.2.3.4", "::1")
        with pytest.raises(OSError, match=r"gone\.test has no address"):
            await names("gone.test", 1)

    asyncio.run(look())


def test_a_lookup_that_hangs_is_given_up_and_ends_nothing(monkeypatch):
    monkeypatch.setattr("crew.system.host_proxy.name_lookup.WITHIN_S", 0.05)
    waiting: list[Callable[[], None]] = []

    def hang(*_args, **_more):
        over = threading.Event()
        waiting.append(over.set)
        over.wait(LIMIT_S)
        return []

    monkeypatch.setattr("socket.getaddrinfo", hang)

    async def look() -> None:
        with pytest.raises(TimeoutError):
            await NameLookup()("x.test", 1)

    before = set(threading.enumerate())
    asyncio.run(look())
    assert [one.daemon for one in set(threading.enumerate()) - before] == [True]
    waiting[0]()
