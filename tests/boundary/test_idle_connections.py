"""Connections without a request cost the runner nothing: they are few, and they end."""

import asyncio
import contextlib
import http.client
import logging
import resource
import socket
from types import SimpleNamespace

from crew.front.mcp import mcp_server
from crew.front.mcp.mcp_address import open_listener
from crew.runner.requests.tokens import Tokens
from crew.system.log_limit import MOST_ALIKE, WINDOW_S, LogLimit


def beside_server(folder, talk):
    """What `talk` returns with the server's port, while the server runs."""

    async def run():
        with open_listener(folder) as listener:
            serving = asyncio.ensure_future(
                mcp_server.serve(listener, SimpleNamespace(tokens=Tokens(folder)))
            )
            try:
                return await asyncio.to_thread(talk, listener.getsockname()[1])
            finally:
                serving.cancel()
                await asyncio.wait([serving])

    return asyncio.run(run())


def status(port: int) -> int:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(asking):
        asking.request("POST", "/mcp")
        return asking.getresponse().status


def test_a_thousand_idle_connections_delay_no_request(tmp_path, caplog):
    def flood(port: int) -> int:
        with contextlib.ExitStack() as opened:
            for number in range(1024):
                opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                if number % 256 == 0:
                    assert status(port) == 401
            return status(port)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        assert beside_server(tmp_path, flood) == 401
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    closed = [one for one in caplog.records if "connections without" in one.getMessage()]
    assert len(closed) == 1
    assert len(caplog.records) < 20


def test_a_client_that_never_ends_its_request_is_sent_away(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_server, "SILENT_S", 0.05)

    def stay(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
            with contextlib.suppress(ConnectionResetError):
                return slow.recv(100)
            return b""

    assert beside_server(tmp_path, stay) == b""


def test_the_same_line_is_logged_only_so_often(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("crew.system.log_limit.time.monotonic", lambda: now[0])
    limit = LogLimit()

    def logged(text: str, *args: object) -> str | None:
        record = logging.LogRecord("crew.x", logging.WARNING, "", 0, text, args, None)
        return record.getMessage() if limit.filter(record) else None

    said = [logged("refused %s", number) for number in range(1000)]
    assert said[:MOST_ALIKE] == [f"refused {number}" for number in range(MOST_ALIKE)]
    assert set(said[MOST_ALIKE:]) == {None}
    assert logged("something else") == "something else"
    now[0] += WINDOW_S
    assert logged("refused %s", "last") == "refused last (970 more like it were left out)"
    assert logged("refused %s", "x") == "refused x"
