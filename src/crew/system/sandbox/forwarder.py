"""Brings the connections of a program in a sandbox to crew's proxy, and becomes that program.

It is started as `python -I -S forwarder.py SOCKET PROXY_PORT PORT… -- PROGRAM ARGUMENT…`. A process
beside the program listens on the loopback of the sandbox: on the proxy's port, and on each further
port, which means the same port of the machine outside. Each connection is passed on to the unix
socket of the proxy, after one line: the port that is meant, or 0, and the program's token.
"""

# With `signal` and `socket`, the start takes three times as long.
import _signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

LOOPBACK = "127.0.0.1"
DIRECT = f"localhost,{LOOPBACK},::1"
"""Hosts that a program connects to directly: its own servers are in its sandbox."""

_MOST = 128  # connections
_CHUNK = 65_536
_PROXY_WITHIN_S = 10.0
_LOOK_EVERY_MS = 1_000
_NO_PROXY = (
    b"HTTP/1.1 503 no crew with this list of hosts is up\r\nContent-Type: text/plain\r\n"
    b"Connection: close\r\n\r\nThe network of this sandbox is a list of hosts, which a crew that "
    b"is up connects to. Start one: crew run\n"
)


class _End:
    """One end of a connection: what is still to be sent to it, and the end that it reads for."""

    def __init__(self, socket: "_socket.socket") -> None:
        self.socket = socket
        self.other: _End | None = None
        self.pending = b""
        self.is_read_out = False

    @property
    def events(self) -> int:
        is_full = self.other is not None and bool(self.other.pending)
        reads = 0 if self.is_read_out or is_full else select.POLLIN
        return reads | (select.POLLOUT if self.pending else 0)


class _Forwarder:
    """Passes connections on, in one thread: the program's limits also count processes of ours."""

    def __init__(self, listeners: dict[int, tuple["_socket.socket", int]], path: str) -> None:
        self.listeners = listeners
        self.path = path
        self.token = os.environ.get("CREW_TOKEN") or os.environ.get("CREW_REPORT_TOKEN", "")
        self.ends: dict[int, _End] = {}
        self.poll = select.poll()

    def turn(self, wait_ms: int | None) -> None:
        """Wait for the next events and handle them."""
        for fd in self.listeners:
            self._watch(fd, select.POLLIN if len(self.ends) < 2 * _MOST else 0)
        for fd, _ in self.poll.poll(wait_ms):
            if fd in self.listeners:
                self._accept(*self.listeners[fd])
            elif end := self.ends.get(fd):
                self._move(end)

    def _accept(self, listener: "_socket.socket", port: int) -> None:
        try:
            fd, _ = listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - as `socket` does
        except OSError:  # it has gone again
            return
        end = _End(_socket.socket(fileno=fd))
        end.socket.settimeout(0)
        end.other = self._proxy_end(port)
        if end.other is None and port:
            end.socket.close()
            return
        for one in filter(None, (end, end.other)):
            self.ends[one.socket.fileno()] = one
            self._watch(one.socket.fileno(), one.events)
        if end.other is not None:
            end.other.other = end

    def _proxy_end(self, port: int) -> _End | None:
        """A new connection to the proxy; None if there is none."""
        end = _End(_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM))
        try:
            end.socket.settimeout(_PROXY_WITHIN_S)
            end.socket.connect(self.path)
            end.socket.sendall(f"{port} {self.token}\n".encode())
            end.socket.settimeout(0)
        except OSError:
            end.socket.close()
            return None
        return end

    def _move(self, end: _End) -> None:
        """Send what is pending, or read more."""
        try:
            if end.pending:
                end.pending = end.pending[end.socket.send(end.pending) :]
            else:
                self._read(end)
        except BlockingIOError:
            return
        except OSError:
            self._close(end)
            return
        self._go_on(end)

    def _read(self, end: _End) -> None:
        chunk = end.socket.recv(_CHUNK)
        end.is_read_out = not chunk
        if end.other is None:
            end.socket.send(_NO_PROXY)
            raise BrokenPipeError
        end.other.pending = chunk

    def _go_on(self, end: _End) -> None:
        """Pass an end of the data on, close what is over, and watch for what can follow."""
        other = end.other
        if other is None:
            return
        for one, source in ((end, other), (other, end)):
            if source.is_read_out and not one.pending:
                self._shut(one)
        if all(one.is_read_out and not one.pending for one in (end, other)):
            self._close(end)
            return
        for one in (end, other):
            self._watch(one.socket.fileno(), one.events)

    def _shut(self, end: _End) -> None:
        try:
            end.socket.shutdown(_socket.SHUT_WR)
        except OSError:  # a repeat, or it has gone
            return

    def _close(self, end: _End) -> None:
        for one in filter(None, (end, end.other)):
            fd = one.socket.fileno()
            self._watch(fd, 0)
            self.ends.pop(fd, None)
            one.socket.close()

    def _watch(self, fd: int, events: int) -> None:
        if events:
            self.poll.register(fd, events)
            return
        try:
            self.poll.unregister(fd)
        except KeyError:
            return


def main(words: list[str]) -> None:
    split = words.index("--")
    path, proxy, *others = words[:split]
    found = [(_listen(int(port)), int(port)) for port in (proxy, *others)]
    listeners = {one.fileno(): (one, 0 if str(port) == proxy else port) for one, port in found}
    program = os.getpid()
    if os.fork() == 0:
        if os.fork() == 0:  # not a child of the program, which may wait for all its children
            _serve(_Forwarder(listeners, path), program)
        os._exit(0)
    os.wait()
    _become(words[split + 1 :], f"http://{LOOPBACK}:{proxy}")


def _listen(port: int) -> "_socket.socket":
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(_MOST)
    except OSError as error:
        os.write(2, f"crew cannot use port {port} in the sandbox: {error.strerror}\n".encode())
        os._exit(126)
    listener.settimeout(0)
    return listener


def _serve(forwarder: _Forwarder, program: int) -> None:
    """Serve until the sandbox ends. Without a namespace, that is the end of the program."""
    os.setsid()  # Ctrl-C is for the program
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, _signal.SIG_IGN)  # it may need its connections to the end
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    has_namespace = sys.platform == "linux"
    while has_namespace or _is_alive(program):
        forwarder.turn(None if has_namespace else _LOOK_EVERY_MS)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _become(command: list[str], proxy: str) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ[name] = os.environ[name.lower()] = proxy
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = DIRECT
    os.environ["NODE_USE_ENV_PROXY"] = "1"
    for ignored_by_python in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(ignored_by_python, _signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - argv comes from crew, no shell is meant
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
