"""Checks each request to the MCP server before any route: its host, origin, token and path.

A web page can send requests to this port, and with a name of its own that resolves to 127.0.0.1
(DNS rebinding) the browser treats them as same-origin. Its Host or its Origin reveals it.
"""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from crew.domain.kernel.errors import NeedsLogin
from crew.domain.kernel.frozen import frozen

log = logging.getLogger(__name__)

PATH = "/mcp"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refusal(NamedTuple):
    """An answer from the guard alone; `extra` is one more header."""

    status: int
    words: str
    extra: tuple[bytes, bytes] | None = None


@frozen
class Guard:
    """Passes on requests of this crew's steps on this machine; `prove` raises for a wrong token."""

    app: App
    port: int
    prove: Callable[[str], object]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        log.warning("refused %s %r: %s", scope["method"], scope["path"][:200], refusal.words)
        await _refuse(refusal, send)

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is refused; Host and Origin come first, so that a page learns no more."""
        hosts = allowed_hosts(self.port)
        if one_header(scope, b"host") not in hosts:
            return Refusal(421, "this server is not known by that name")
        if headers(scope, b"origin") and one_header(scope, b"origin") not in origins(self.port):
            return Refusal(403, "requests of other origins are refused")
        try:
            self.prove(bearer(scope))
        except NeedsLogin as error:
            return Refusal(401, f"{error.message}; {error.hint}", (b"www-authenticate", b"Bearer"))
        if scope["path"] != PATH:
            return Refusal(404, f"there is only {PATH}")
        if scope["method"] != "POST":
            return Refusal(405, "this server keeps no sessions: POST only", (b"allow", b"POST"))
        return None


def allowed_hosts(port: int) -> list[str]:
    return [f"127.0.0.1:{port}", f"localhost:{port}"]


def origins(port: int) -> list[str]:
    return [f"http://{host}" for host in allowed_hosts(port)]


def headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def one_header(scope: Scope, name: bytes) -> str:
    """The header's value; empty unless it occurs once, since other code might read the other."""
    found = headers(scope, name)
    return found[0] if len(found) == 1 else ""


def bearer(scope: Scope) -> str:
    """The token of the step that sent the request."""
    scheme, _, token = one_header(scope, b"authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = refusal.words.encode()
    fields = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    fields += [refusal.extra] if refusal.extra else []
    await send({"type": "http.response.start", "status": refusal.status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
