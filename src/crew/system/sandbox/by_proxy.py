"""The way from a sandbox without network to the hosts of a list: through crew's proxy."""

import os
import sys
from pathlib import Path

from crew.domain.kernel.frozen import frozen
from crew.system.sandbox import forwarder

PROXY_PORT = 3128


@frozen
class ByProxy:
    """The socket of the proxy, and the ports of the loopback at which programs reach it."""

    socket: Path
    port: int = PROXY_PORT
    own_ports: tuple[int, ...] = ()  # ports of this machine that can be reached without the proxy

    def forwarded(self, *, has_loopback: bool) -> tuple[str, ...]:
        """The command before a program's own. Without an own loopback, all see its ports."""
        python = os.path.realpath(sys.executable)  # a virtual environment would cost time
        ports = (self.port, *(self.own_ports if has_loopback else ()))
        return (python, "-I", "-S", forwarder.__file__, str(self.socket), *map(str, ports), "--")
