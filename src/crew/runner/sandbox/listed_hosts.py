"""Serves the hosts that `[sandbox] network` lists to programs in sandboxes, which have no network.

The proxy is part of the process that starts the programs. Each list has a socket of its own, and a
program can connect only to that of its own list.
"""

import contextlib
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.host_list import LOOPBACK, host_list
from crew.runner.prompts.mcp_connection import address_file
from crew.runner.requests.door_folder import (
    door_socket,
    listen_at,
    make_door_folder,
    proxy_socket,
    remove_door,
    sweep_proxies,
)
from crew.system.sandbox.by_proxy import PROXY_PORT, ByProxy

if TYPE_CHECKING:
    from crew.system.host_proxy.name_lookup import Lookup
    from crew.system.host_proxy.proxy_server import HostProxy, Refused
    from crew.workplace import Workplace

log = logging.getLogger(__name__)


def hosts_listed(workplace: "Workplace") -> tuple[str, ...] | None:
    """The hosts that the configuration lists; None if it has no list."""
    network = workplace.settings.sandbox.network
    return None if isinstance(network, bool) else network


def by_proxy(workplace: "Workplace", *, mcp_url: str = "") -> ByProxy | None:
    """The way of a program to the listed hosts, and to crew's own tools; None without a list."""
    hosts = hosts_listed(workplace)
    if hosts is None:
        return None
    own = dict.fromkeys((*host_list(hosts).own_ports, *filter(None, (urlsplit(mcp_url).port,))))
    return ByProxy(
        socket=proxy_socket(workplace, hosts), port=_proxy_port(own), own_ports=tuple(own)
    )


def _proxy_port(taken: "dict[int, None]") -> int:
    """A port in the sandbox. On macOS all programs share the loopback, so it must be a free one."""
    if sys.platform == "darwin":
        with socket.create_server((LOOPBACK, 0)) as free:
            return int(free.getsockname()[1])
    return next(port for port in range(PROXY_PORT, 2**16) if port not in taken)


@asynccontextmanager
async def hosts_served(
    workplace: "Workplace", refused: "Callable[[Refused], None]", look_up: "Lookup | None" = None
) -> AsyncIterator[None]:
    """Serve the listed hosts, unless another process does; a failure ends nothing else."""
    hosts = hosts_listed(workplace)
    sweep_proxies(workplace, keep=hosts)
    path = None if hosts is None else proxy_socket(workplace, hosts)
    async with contextlib.AsyncExitStack() as opened:
        if path is not None and not _answers(path):
            try:
                await opened.enter_async_context(_open_proxy(workplace, path, refused, look_up))
            except (CrewError, OSError) as error:
                log.error("programs cannot reach the listed hosts: %s", error)  # noqa: TRY400
        yield


@asynccontextmanager
async def _open_proxy(
    workplace: "Workplace",
    path: Path,
    refused: "Callable[[Refused], None]",
    look_up: "Lookup | None",
) -> AsyncIterator[None]:
    make_door_folder(workplace, path)
    listener = listen_at(path)
    own = path.stat().st_ino
    try:
        async with _proxy(workplace, refused, look_up).serving(listener):
            yield
    finally:
        with contextlib.suppress(OSError):
            if path.stat().st_ino == own:  # not that of a runner that has taken over
                # An open terminal keeps the folder of the door, and needs that of the proxy too.
                remove_door(path, keep_folder=door_socket(workplace).parent.exists())


def _proxy(
    workplace: "Workplace", refused: "Callable[[Refused], None]", look_up: "Lookup | None"
) -> "HostProxy":
    from crew.system.host_proxy.name_lookup import NameLookup  # noqa: PLC0415 - few have a list
    from crew.system.host_proxy.proxy_server import HostProxy, ProxyRules  # noqa: PLC0415

    hosts = host_list(hosts_listed(workplace) or ())
    return HostProxy(
        ProxyRules(
            hosts=hosts,
            look_up=look_up or NameLookup(),
            refused=refused,
            is_own=lambda port: _is_port_of_crew(workplace, port),
        )
    )


def _is_port_of_crew(workplace: "Workplace", port: int) -> bool:
    try:
        url = address_file(workplace.folder).read_text().strip()
    except (OSError, ValueError):
        return False
    return urlsplit(url).port == port


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1.0)
        try:
            caller.connect(str(path))
        except OSError:
            return False
    return True
