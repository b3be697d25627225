"""A model that follows a script: an HTTP server on loopback for the real agent CLIs in tests.

Each script lives below a URL of its own (`/s/<scenario>`), so many agents can play at once. Only a
request that offers tools takes the next step; what a CLI asks on the side (titles, summaries) gets
a fixed answer. A protocol is a module (`anthropic_messages`, `openai_responses`,
`chat_completions`, `gemini_api`) and a row in `SPEAKERS`.

The server is also a proxy that lets nothing through: whoever is told to use it and asks for another
host is refused and remembered in `outside`. What no script answers is remembered in `unanswered`.
"""

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from real_clis import anthropic_messages, chat_completions, gemini_api, openai_responses

SPEAKERS = {
    "/v1/messages": anthropic_messages,
    "/v1/responses": openai_responses,
    "/v1/chat/completions": chat_completions,
    ":generateContent": gemini_api,
    ":streamGenerateContent": gemini_api,
}
SIDE_ANSWER = "A title"

Headers = Mapping[str, str]
NO_HEADERS: Headers = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool call of the model."""

    name: str
    input: dict


@dataclass(frozen=True, slots=True)
class Say:
    """A whole answer: words, then tool calls; without tools it ends the turn."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    delay_s: float = 0.0
    headers: Headers = field(default_factory=dict)


def bash(command: str, **values: object) -> Say:
    """The model has its CLI run this command."""
    values = {"command": command, "description": "a command", **values}
    return Say(tools=(Tool(name="Bash", input=values),))


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP error, `times` in a row; a negative number means for ever."""

    status: int
    kind: str
    message: str
    headers: Headers = field(default_factory=dict)
    times: int = 1


@dataclass(frozen=True, slots=True)
class Drop:
    """Half an answer, or none at all, then the connection is reset."""

    times: int = 1
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Malformed:
    """A stream that is not what the protocol says."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class Hang:
    """Half an answer, then silence until the server closes."""

    times: int = -1


@dataclass(frozen=True, slots=True)
class Gate:
    """An answer that is given once the test opens the gate."""

    then: Say
    opened: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)


Step = Say | Fail | Drop | Malformed | Hang | Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came; `took_step` is None for one that was only asked on the side."""

    at: float
    path: str
    headers: dict[str, str]
    body: dict
    took_step: Step | None


OVER = Fail(400, "invalid_request_error", "the script is over", times=-1)


@dataclass(slots=True)
class Scenario:
    """A script with a finger on its next step, and what was asked so far."""

    steps: list[Step]
    asked: list[Asked] = field(default_factory=list)
    aside: Step = Say(SIDE_ANSWER)  # for requests without tools, such as for a title
    _taken: int = 0  # how often the first of the steps was taken

    def next_step(self, _body: dict) -> Step:
        step = self.steps[0] if self.steps else OVER
        self._taken += 1
        if self._taken == getattr(step, "times", 1):
            self.steps, self._taken = self.steps[1:], 0
        return step

    @property
    def turns(self) -> list[Asked]:
        """The requests that took a step."""
        return [asked for asked in self.asked if asked.took_step]


def too_many_requests(resets_at: int, *, times: int = 1) -> Fail:
    """How a subscription is told of its limits; an API key never is."""
    return Fail(429, "rate_limit_error", "slow down", unified("rejected", resets_at), times)


def unified(status: str, resets_at: int) -> Headers:
    prefix = "anthropic-ratelimit-unified"
    return {
        f"{prefix}-status": status,
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-representative-claim": "five_hour",
        "retry-after": "300",
    }


class ScriptedModel:
    """The server; use it as a context."""

    def __init__(self) -> None:
        self.scenarios: dict[str, Scenario] = {}
        self.outside: list[str] = []
        self.unanswered: list[tuple[str, Headers]] = []
        self.faults: list[str] = []  # of the server itself
        self.answers_others = threading.Event()  # what no script answers waits for this
        self.answers_others.set()
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def play(self, name: str, steps: Iterable[Step]) -> str:
        """Lay out a script; the base URL under which it is played."""
        self.scenarios[name] = Scenario(list(steps))
        return f"{self.address}/s/{name}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel

    def handle_error(self, request, client_address) -> None:
        """A client that was killed in the middle of an answer is part of the play."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.model.faults.append(repr(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Keep quiet: `asked` is the log."""

    def do_CONNECT(self) -> None:
        self._refuse_outside()

    def do_GET(self) -> None:
        self._leave_unanswered()

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(length)
        speaker, scenario, named = self._addressed()
        if len(body) < length:
            self.close_connection = True  # whoever asked was killed before it had asked
        elif speaker is None or scenario is None:
            self._leave_unanswered()
        else:
            self._play(speaker, scenario, {**named, **json.loads(body)})

    def _addressed(self):
        """The protocol, the script, and what the address says beside: Gemini's names the model."""
        _, _, name_and_route = self.path.partition("?")[0].partition("/s/")
        name, slash, route = name_and_route.partition("/")
        scenario = self.server.model.scenarios.get(name)
        named = {}
        if ":" in route:
            model, _, verb = route.rpartition(":")
            slash, route = ":", verb
            named = {"model": model.rpartition("/")[2], "stream": verb.startswith("stream")}
        return SPEAKERS.get(slash + route), scenario, named

    def _leave_unanswered(self) -> None:
        if not self.path.startswith("/"):  # a proxy is asked for whole addresses
            self._refuse_outside()
            return
        self.server.model.unanswered.append((self.path, dict(self.headers)))
        while not self.server.model.answers_others.wait(0.05):
            if self.server.model.closing.is_set():
                return
        self._answer(b"{}", 404)

    def _refuse_outside(self) -> None:
        self.server.model.outside.append(self.path)
        self._answer(b"", 403)

    def _play(self, speaker, scenario: Scenario, body: dict) -> None:
        with self.server.model.lock:
            step = scenario.next_step(body) if speaker.offers_tools(body) else None
            scenario.asked.append(
                Asked(
                    at=time.time(),
                    path=self.path,
                    headers=dict(self.headers),
                    body=body,
                    took_step=step,
                )
            )
        self._perform(step or scenario.aside, speaker, body)

    def _perform(self, step: Step, speaker, body: dict) -> None:
        match step:
            case Say() as said:
                time.sleep(said.delay_s)
                send = self._stream if speaker.streams(body) else self._answer
                send(speaker.answer(said.text, said.tools, body), headers=said.headers)
            case Gate() as gate:
                gate.reached.set()
                while not gate.opened.wait(0.05) and not self.server.model.closing.is_set():
                    pass
                self._perform(gate.then, speaker, body)
            case Fail() as failed:
                words = json.dumps(
                    speaker.error(failed.status, failed.kind, failed.message)
                ).encode()
                self._answer(words, failed.status, failed.headers)
            case Malformed():
                self._stream(speaker.nonsense())
            case _:
                self._break_off(step, speaker, body)

    def _break_off(self, step: Drop | Hang, speaker, body: dict) -> None:
        if not getattr(step, "at_once", False):
            self._stream(speaker.half_an_answer(body), ends=False)
        if isinstance(step, Hang):
            self.server.model.closing.wait()
        else:
            self._reset()

    def _answer(self, body: bytes, status: int = 200, headers: Headers = NO_HEADERS) -> None:
        kind = {"content-type": "application/json", "content-length": str(len(body))}
        self._head(status, {**kind, **headers})
        self.wfile.write(body)

    def _stream(self, events: bytes, *, ends: bool = True, headers: Headers = NO_HEADERS) -> None:
        kind = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._head(200, {**kind, **headers})
        self.wfile.write(f"{len(events):x}\r\n".encode() + events + b"\r\n")
        if ends:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _head(self, status: int, headers: Headers) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _reset(self) -> None:
        no_linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
        self.close_connection = True
        self.connection.close()
