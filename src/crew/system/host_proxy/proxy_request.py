"""Reads the first request on a connection to the proxy: where it leads, and what is sent there."""

import re
from collections.abc import Iterator

from crew.domain.kernel.frozen import frozen

_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+) (HTTP/1\.[01])")
_TUNNEL = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/]+):([0-9]{1,5})")
_PLAIN = re.compile(
    r"http://(?:[^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s:@/?#]+)(?::([0-9]{1,5}))?([/?]\S*)?",
    re.IGNORECASE,
)
_BETWEEN_US = frozenset({"host", "connection", "keep-alive", "proxy-connection"})
"""Headers that are written anew for the host, besides those for the proxy itself."""


class NotUnderstood(ValueError):
    """A proxy cannot serve this request; the message is the reason."""


@frozen
class ProxyRequest:
    """A connection that a program wants. `first` is what is sent to the host before all else."""

    host: str
    port: int
    is_tunnel: bool = True
    first: bytes = b""


def read_request(head: bytes) -> ProxyRequest:
    """Read `CONNECT host:port`, or a request with a whole `http://` address."""
    line, *headers = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    found = _REQUEST.fullmatch(line)
    if found is None:
        raise NotUnderstood("this is not a request of HTTP/1.1")
    method, target, version = found.groups()
    if method == "CONNECT":
        return _tunnel(target)
    plain = _PLAIN.fullmatch(target)
    if plain is None:
        raise NotUnderstood("send CONNECT and a host with its port, or a whole http:// address")
    host, port, path = plain[1], plain[2], plain[3] or "/"
    path = path if path.startswith("/") else f"/{path}"
    authority = f"{host}:{port}" if port else host
    lines = (f"{method} {path} {version}", f"Host: {authority}", *_passed_on(headers))
    first = "\r\n".join((*lines, "", "")).encode("latin-1")
    return ProxyRequest(host=host, port=_port(port or "80"), is_tunnel=False, first=first)


def _tunnel(target: str) -> ProxyRequest:
    found = _TUNNEL.fullmatch(target)
    if found is None:
        raise NotUnderstood("CONNECT needs a host and its port")
    return ProxyRequest(host=found[1], port=_port(found[2]))


def _port(text: str) -> int:
    if not 0 < int(text) < 2**16:
        raise NotUnderstood(f"{text} is no port")
    return int(text)


def _passed_on(headers: list[str]) -> Iterator[str]:
    """The headers for the host. The connection serves one request, since the next may differ."""
    named = [(line.partition(":")[0].strip().lower(), line) for line in headers]
    for name, line in named:
        if name not in _BETWEEN_US and not name.startswith("proxy-"):
            yield line
    is_upgrade = any(name == "upgrade" for name, _ in named)
    yield f"Connection: {'Upgrade' if is_upgrade else 'close'}"
