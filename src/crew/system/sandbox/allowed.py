"""The one description of what a program may reach, from which every sandbox is made."""

from pathlib import Path
from typing import Literal

from crew.domain.kernel.frozen import frozen
from crew.system.sandbox.by_proxy import ByProxy

Sandbox = Literal["auto", "strict", "bwrap", "off"]
"""`strict` refuses to start what cannot be confined; `bwrap` is its older name."""


@frozen
class Allowed:
    """What a program may reach. By default everything, in a pid namespace of its own.

    A rule for a folder covers everything below it, except paths with a rule of their own. If a path
    has two rules, the later one in this list holds: empty, readable, copied, writable, held. Paths
    that do not exist are skipped.
    """

    may_write_anywhere: bool = True  # the disk, apart from the rules below
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()  # at least: in a writable folder they stay writable
    held: tuple[Path, ...] = ()  # at most readable, also in a writable folder
    empty: tuple[Path, ...] = ()  # folders of its own, empty at first; a file becomes unreadable
    copied: tuple[Path, ...] = ()  # files of which it gets a copy that it may change
    stand_ins: tuple[tuple[Path, Path], ...] = ()  # a file, and the one that is read in its place
    sockets: tuple[Path, ...] = ()  # unix sockets to which it may connect; it sees their folders
    has_own_devices: bool = False  # /dev has only the harmless ones
    has_network: bool = True
    by_proxy: ByProxy | None = None  # without network: the way to the hosts of a list
    has_terminal: bool = False  # it shares the caller's terminal, and so its session
    memory_mb: int = 0  # the data of each process; 0: no limit
    max_processes: int = 0  # 0: no limit

    @property
    def all_sockets(self) -> tuple[Path, ...]:
        return (*self.sockets, *((self.by_proxy.socket,) if self.by_proxy else ()))


EVERYTHING = Allowed()
