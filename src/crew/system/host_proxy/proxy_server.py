"""Connects programs to the hosts of a list and refuses all others, each with a sentence.

A connection begins with one line of the forwarder in the sandbox: a port of this machine, or 0, and
the program's token. After 0 follows a request to a proxy.
"""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.host_list import LOOPBACK, HostList, address_of, plain_name
from crew.system.connection_limit import ConnectionLimit
from crew.system.host_proxy.name_lookup import Lookup
from crew.system.host_proxy.proxy_request import NotUnderstood, ProxyRequest, read_request

log = logging.getLogger(__name__)

KEY = "[sandbox] network"
MOST = 192
MOST_OF_ONE = 64
"""Connections of one token, so that one program leaves room for the others."""

LONGEST_HEAD = 65_536
SILENT_S = 10.0
CONNECT_WITHIN_S = 15.0
LISTEN_ON_S = 2.0
HALF_OPEN_S = 300.0
"""How long one side may still send when the other has ended."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@frozen
class Refused:
    """A connection to a host that the list does not allow."""

    token: str
    host: str
    port: int
    why: str


class _Refusal(Exception):
    """An answer that is no connection."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


@frozen
class ProxyRules:
    """The list, how names are looked up, and what happens to refusals.

    `is_own` allows ports of this machine besides the list: those of crew itself.
    """

    hosts: HostList
    look_up: Lookup
    refused: Callable[[Refused], None]
    is_own: Callable[[int], bool] = lambda _port: False


class HostProxy:
    def __init__(self, rules: ProxyRules) -> None:
        self.rules = rules
        self._limit = ConnectionLimit("the proxy of hosts", most=MOST, silent_s=SILENT_S)
        self._of_one: Counter[str] = Counter()
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve on a unix socket; at the end all connections are closed."""
        server = await asyncio.start_unix_server(self._begin, sock=listener, limit=LONGEST_HEAD)
        try:
            yield
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._attend(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._limit.enter(writer.transport)  # type: ignore[arg-type]
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError):
            return  # the program has gone, or has sent no request
        except Exception:
            log.exception("a connection to a listed host was not served")
        finally:
            self._limit.leave(writer.transport)  # type: ignore[arg-type]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port, _, token = (await reader.readline()).decode("latin-1").strip().partition(" ")
        try:
            request = await self._request(reader, int(port))
            self._limit.serve(writer.transport)  # type: ignore[arg-type]
            with self._counted(token):
                host = await self._connect(request, token)
                await self._tunnel(request, (reader, writer), host, is_asked=port == "0")
        except _Refusal as refusal:
            if port == "0":
                await _answer(reader, writer, refusal)

    async def _request(self, reader: asyncio.StreamReader, port: int) -> ProxyRequest:
        if port:
            return ProxyRequest(host=LOOPBACK, port=port)
        try:
            return read_request(await reader.readuntil(b"\r\n\r\n"))
        except NotUnderstood as problem:
            raise _Refusal(400, f"crew's proxy cannot serve this: {problem}") from None

    @contextlib.contextmanager
    def _counted(self, token: str) -> Iterator[None]:
        if self._of_one[token] >= MOST_OF_ONE:
            raise _Refusal(503, f"crew serves at most {MOST_OF_ONE} connections of one program")
        self._of_one[token] += 1
        try:
            yield
        finally:
            self._of_one[token] -= 1
            if not self._of_one[token]:
                del self._of_one[token]

    async def _connect(self, request: ProxyRequest, token: str) -> Streams:
        """Connect to an address that was checked, and look nothing up again."""
        problem = f"{request.host} has no address"
        for address in await self._addresses(request, token):
            try:
                async with asyncio.timeout(CONNECT_WITHIN_S):
                    numeric = {"flags": socket.AI_NUMERICHOST}
                    return await asyncio.open_connection(address, request.port, **numeric)
            except TimeoutError:
                problem = "it does not answer"
            except OSError as error:
                problem = error.strerror or str(error)
        raise _Refusal(502, f"crew cannot connect to {request.host}:{request.port}: {problem}")

    async def _addresses(self, request: ProxyRequest, token: str) -> tuple[str, ...]:
        """The addresses of an allowed host to which the list allows to connect."""
        host, port = plain_name(request.host), request.port
        is_own = host == LOOPBACK and self.rules.is_own(port)
        if not (is_own or self.rules.hosts.allows(host, port)):
            raise self._refuse(request, token, f"it is not in {KEY}")
        if address_of(host) is not None:
            return (host,)
        try:
            found = await self.rules.look_up(host, port)
        except (OSError, TimeoutError) as error:
            raise _Refusal(502, f"crew cannot find {host}: {error}") from None
        allowed = tuple(one for one in found if self.rules.hosts.allows_address(one, port))
        if not allowed:
            where = ", ".join(found) or "no address"
            raise self._refuse(request, token, f"it leads to {where}, not in {KEY}")
        return allowed

    def _refuse(self, request: ProxyRequest, token: str, why: str) -> _Refusal:
        host, port = plain_name(request.host), request.port
        self.rules.refused(Refused(token=token, host=host, port=port, why=why))
        return _Refusal(403, f"crew refused {host}:{port}: {why}")

    async def _tunnel(
        self, request: ProxyRequest, program: Streams, host: Streams, *, is_asked: bool
    ) -> None:
        """Pass data both ways until both have ended."""
        try:
            if is_asked and request.is_tunnel:
                program[1].write(b"HTTP/1.1 200 connected\r\n\r\n")
            host[1].write(request.first)
            ways = [
                asyncio.ensure_future(_pass_on(program[0], host[1])),
                asyncio.ensure_future(_pass_on(host[0], program[1])),
            ]
            try:
                first, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                if not any(way.exception() for way in first):
                    await asyncio.wait(ways, timeout=HALF_OPEN_S)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            host[1].close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while chunk := await source.read(LONGEST_HEAD):
        target.write(chunk)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refusal: _Refusal
) -> None:
    """Answer with the words in the first line too: many programs show only that line.

    A program that still sends would not read the answer on a closed connection.
    """
    words = refusal.words.encode("ascii", "replace").decode()
    body = f"{words}\n"
    lines = (
        f"HTTP/1.1 {refusal.status} {words}",
        "Content-Type: text/plain",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    writer.write("\r\n".join((*lines, "", body)).encode())
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTEN_ON_S):
            while await reader.read(LONGEST_HEAD):
                pass
