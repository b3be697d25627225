"""Writes the profile of `sandbox-exec`, the sandbox on macOS, from a description.

In a profile the last matching rule wins. macOS has no mounts: a folder that should be empty becomes
unreadable, and a file that should be copied can only be read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from crew.system.sandbox.allowed import Allowed
from crew.system.sandbox.mounts import Access, Mount

SEATBELT = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/stdout", "/dev/stderr")
_NAME_LOOKUP = Path("/private/var/run/mDNSResponder")
_RULES = {
    Access.EMPTY: ("(deny file-read-data file-read-xattr file-write* {place})",),
    Access.READ: ("(allow file-read* {place})", "(deny file-write* {place})"),
    Access.COPY: ("(allow file-read* {place})", "(deny file-write* {place})"),
    Access.WRITE: ("(allow file-read* file-write* {place})",),
    Access.HELD: ("(allow file-read* {place})", "(deny file-write* {place})"),
}


def seatbelt(argv: Sequence[str], allowed: Allowed, mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Run under `sandbox-exec`."""
    forwarded = allowed.by_proxy.forwarded(has_loopback=False) if allowed.by_proxy else ()
    return (SEATBELT, "-p", profile(allowed, mounts), *forwarded, *argv)


def profile(allowed: Allowed, mounts: Sequence[Mount]) -> str:
    lines = ["(version 1)", "(allow default)", *_disk(allowed), *_paths(mounts), *_network(allowed)]
    own = ("(deny signal)", "(allow signal (target same-sandbox))")
    return "\n".join((*lines, *own)) + "\n"


def _disk(allowed: Allowed) -> Iterator[str]:
    if not allowed.may_write_anywhere:
        yield "(deny file-write*)"
        yield f"(allow file-write* {' '.join(f'(literal {_text(one)})' for one in _DEVICES)})"
        yield '(allow file-write* (regex #"^/dev/ttys[0-9]+$"))'


def _paths(mounts: Sequence[Mount]) -> Iterator[str]:
    for mount in mounts:
        kind = "subpath" if mount.is_folder else "literal"
        place = f"({kind} {_text(mount.source)})"
        yield from (rule.format(place=place) for rule in _RULES[mount.access])


def _network(allowed: Allowed) -> Iterator[str]:
    if allowed.may_write_anywhere and allowed.has_network:
        return
    yield "(deny network*)" if not allowed.has_network else "(deny network* (remote unix-socket))"
    lookup = (_NAME_LOOKUP,) if allowed.has_network else ()
    for socket in (*lookup, *allowed.all_sockets):
        yield f"(allow network-outbound (remote unix-socket (path-literal {_text(socket)})))"
    if way := allowed.by_proxy:
        yield f'(allow network-bind network-inbound (local ip "localhost:{way.port}"))'
        for port in (way.port, *way.own_ports):
            yield f'(allow network-outbound (remote ip "localhost:{port}"))'


def _text(value: object) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
