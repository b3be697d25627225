"""A list of hosts that programs may reach: how its entries read, and what they allow.

An entry is a name, `*.` and a name for all names below it, or an address. It allows one port if it
names one, and else the ports of the web. The machine itself is allowed by its address alone.
"""

import ipaddress
import re
from collections.abc import Iterable

from crew.domain.kernel.frozen import frozen

WEB_PORTS = (80, 443)
LOOPBACK = "127.0.0.1"
FIRST_OWN_PORT = 1024
"""At lower ports, a program in a sandbox cannot listen for the connections to this machine."""

_ENTRY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/\[\]@?#]+))(?::([0-9]{1,5}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253
_EMBEDDING = ipaddress.IPv6Network("64:ff9b::/96")  # IPv4 addresses in a network with IPv6 alone

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@frozen
class HostEntry:
    """One entry. Port 0 is any port of the web."""

    name: str
    port: int

    def allows(self, name: str, port: int) -> bool:
        """Whether it allows this name or address, in the form of `plain_name`."""
        ports = (self.port,) if self.port else WEB_PORTS
        if port not in ports:
            return False
        is_below = self.name.startswith("*.") and name.endswith(self.name[1:])
        return self.name == name or (is_below and address_of(name) is None)


@frozen
class HostList:
    entries: tuple[HostEntry, ...]

    def allows(self, name: str, port: int) -> bool:
        """Whether a name or an address is in the list."""
        name = plain_name(name)
        return any(entry.allows(name, port) for entry in self.entries)

    def allows_address(self, address: str, port: int) -> bool:
        """Whether a listed name may lead to this address: a public one, or one that is listed."""
        found = address_of(address)
        return found is not None and (is_public(found) or self.allows(address, port))

    @property
    def own_ports(self) -> tuple[int, ...]:
        """The listed ports of this machine."""
        return tuple(entry.port for entry in self.entries if entry.name == LOOPBACK)


def host_list(texts: Iterable[str]) -> HostList:
    """The list in these texts. A ValueError describes the first text that is not an entry."""
    return HostList(entries=tuple(_entry(text) for text in texts))


def plain_name(name: str) -> str:
    """A host in the one form that is compared: lower case, an address in its shortest form."""
    name = name.lower().removesuffix(".").removeprefix("[").removesuffix("]")
    if name == "localhost":
        return LOOPBACK
    found = address_of(name)
    return name if found is None else str(found)


def address_of(name: str) -> Address | None:
    """The address in a text; an IPv4 address in the form of IPv6 counts as IPv4."""
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def is_public(address: Address) -> bool:
    """Whether it is an address of the internet: not of this machine, nor of a network around it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.sixtofour
        if address in _EMBEDDING:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def _entry(text: str) -> HostEntry:
    found = _ENTRY.fullmatch(text.lower())
    if found is None:
        without = "in brackets" if address_of(text) else "without a scheme and a path"
        raise ValueError(f'"{text}" is not a host: write it {without}')
    name, port = plain_name(found[1] or found[2]), int(found[3] or 0)
    address = address_of(name)
    if address is None and not _is_name(name):
        raise ValueError(f'"{text}" is not a host')
    if found[3] and not 0 < port < 2**16:
        raise ValueError(f'"{text}" has no port from 1 to 65535')
    if address is not None and address.is_unspecified:
        raise ValueError(f'"{text}" is not the address of a host')
    if address is not None and address.is_loopback and (name != LOOPBACK or port < FIRST_OWN_PORT):
        wanted = f'a port of it from {FIRST_OWN_PORT} on, as in "{LOOPBACK}:8080"'
        raise ValueError(f'"{text}" is this machine: write {wanted}')
    return HostEntry(name=name, port=port)


def _is_name(name: str) -> bool:
    """Whether it is a name, or `*.` before one. A number at its end would be read as an address."""
    is_name = len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
    return is_name and _NUMBER.fullmatch(name.rpartition(".")[2]) is None
