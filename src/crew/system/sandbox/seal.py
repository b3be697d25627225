"""Closes to programs what no mount can hide: the person's keys in the kernel, abstract sockets.

A seal holds for a thread and for all programs that are started from it, and cannot be taken off. As
a program, `python -I -S seal.py PROGRAM ARGUMENT…`, it becomes the sealed program.
"""

import os
import struct
import sys

KEYS = "the person's keys in the kernel"
SOCKETS = "abstract sockets, such as those of X11 and dbus"

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_VERSION = 1
_SCOPE_ABSTRACT_UNIX_SOCKET = 1
_VERSION_WITH_SCOPES = 6

_FIRST_OF_KEYS = {
    0xC000003E: 248,  # x86_64
    0xC00000B7: 217,  # aarch64
    0x40000003: 286,  # 32 bits on x86_64
    0x40000028: 309,  # 32 bits on aarch64
}
"""For each kind of system calls the number of `add_key`; the next are `request_key`, `keyctl`."""
_WITHOUT_X32 = 0xBFFFFFFF  # x86_64 has a second kind, with the same numbers and this bit
_LOAD, _AND, _IS, _IS_AT_LEAST, _IS_ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_NUMBER, _KIND = 0, 4  # where they are in what the filter sees
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001


def keys_filter() -> bytes:
    """The program of the kernel's filter: any system call about keys ends with EPERM.

    It has only instructions for which the kernel remembers that a call is always allowed.
    """
    blocks = [_block(kind, first) for kind, first in _FIRST_OF_KEYS.items()]
    return b"".join((*blocks, _step(_RETURN, _ALLOW)))


def _block(kind: int, first: int) -> bytes:
    steps = (
        _step(_LOAD, _KIND),
        _step(_IS, kind, no=6),
        _step(_LOAD, _NUMBER),
        _step(_AND, _WITHOUT_X32),
        _step(_IS_AT_LEAST, first, no=2),
        _step(_IS_ABOVE, first + 2, yes=1),
        _step(_RETURN, _EPERM),
        _step(_RETURN, _ALLOW),
    )
    return b"".join(steps)


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are the numbers of instructions to skip."""
    return struct.pack("=HBBI", code, yes, no, value)


def seal_thread() -> frozenset[str]:
    """Seal this thread as far as the kernel can; what is closed from now on."""
    if sys.platform != "linux" or _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return frozenset()
    closed = {SOCKETS} if _closes_sockets() else set[str]()
    if os.uname().machine in {"x86_64", "aarch64"} and _closes_keys():
        closed.add(KEYS)
    return frozenset(closed)


def _closes_sockets() -> bool:
    """Whether the kernel keeps the programs from abstract sockets that others made."""
    version = _call("syscall", _LANDLOCK_CREATE_RULESET, 0, 0, _LANDLOCK_VERSION)
    if version < _VERSION_WITH_SCOPES:
        return False
    rules = struct.pack("=QQQ", 0, 0, _SCOPE_ABSTRACT_UNIX_SOCKET)
    handle = _call("syscall", _LANDLOCK_CREATE_RULESET, rules, len(rules), 0)
    if handle < 0:
        return False
    try:
        return _call("syscall", _LANDLOCK_RESTRICT_SELF, handle, 0) == 0
    finally:
        os.close(handle)


def _closes_keys() -> bool:
    import ctypes  # noqa: PLC0415 - as in `_call`

    content = keys_filter()
    kept = ctypes.create_string_buffer(content, len(content))
    program = struct.pack("@HP", len(content) // 8, ctypes.addressof(kept))
    return _call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program) == 0


def _call(name: str, *values: int | bytes) -> int:
    """Call a function of the C library."""
    import ctypes  # noqa: PLC0415 - costs milliseconds, and few processes seal anything

    words = (ctypes.c_ulong(one) if isinstance(one, int) else one for one in values)
    return int(getattr(ctypes.CDLL(None), name)(*words))


def main(command: list[str]) -> None:
    seal_thread()
    try:
        os.execvp(command[0], command)  # noqa: S606 - argv comes from crew, no shell is meant
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
