"""The dialogue with `codex app-server`, without I/O: messages in, acts out.

A step is one turn: initialize, open the thread, start the turn, read it to its end. Messages for
the agent are steered into the current turn, and Codex reports when the model has them. A turn does
not wait until tools are connected, so crew does: a model without crew's tools could not signal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crew import __version__
from crew.agents.adapter import Inquiry, Interrupt, Permission, Say
from crew.agents.codex.codex_permissions import (
    answer_to,
    answers_to,
    inquiries_of,
    permission_of,
    refusal_of,
)
from crew.agents.dialogue_acts import (
    DialogueEnded,
    MessageRead,
    QuestionWithdrawn,
    SendMessage,
)
from crew.agents.event_fields import Event, mapping, session_name, text_of
from crew.domain.kernel.frozen import frozen


@frozen
class CodexQuestion:
    """The program waits for permission, or for the answers to its own questions.

    `request` is its whole request, for the answer.
    """

    number: str
    permission: Permission | None
    request: Event
    inquiries: tuple[Inquiry, ...] = ()

    def answer(self, *, allowed: bool) -> Event:
        return answer_to(self.request, allowed=allowed)

    def answer_inquiries(self, answers: Sequence[str]) -> Event:
        return answers_to(self.request, answers)

    def refuse(self) -> Event:
        """The answer if no person can be asked."""
        return refusal_of(self.request) if self.permission is None else self.answer(allowed=False)


@dataclass(frozen=True, slots=True)
class AwaitTools:
    """The turn waits for crew's tools. The caller limits this wait."""


Act = SendMessage | MessageRead | CodexQuestion | QuestionWithdrawn | AwaitTools | DialogueEnded

TOOLS = "crew"
"""The name of crew's tool server. Its state is unknown until Codex reports its start."""

STARTING = "starting"


@dataclass(slots=True)
class CodexDialogue:
    """The state of one turn. `opening` are the parameters that open the thread."""

    prompt: str
    opening: dict[str, Any]
    thread: str = ""  # the thread to resume, then the open one
    turn: str = ""
    wants_tools: bool = False
    is_ready: bool = False  # it has answered once
    is_interrupted: bool = False
    refusal: str = ""  # why no turn could be started
    _asked: dict[int, str] = field(default_factory=dict)  # our unanswered requests
    _count: int = 0
    _kept_back: list[Say] = field(default_factory=list)
    _can_steer: bool = False
    _tools: str = ""  # the state of crew's tools, in Codex's word
    _awaits_tools: bool = False

    def begin(self) -> Iterator[Act]:
        client = {"name": "crew", "title": "crew", "version": __version__}
        yield self._request("initialize", clientInfo=client)

    def send(self, control: Say | Interrupt) -> Iterator[Act]:
        """Handle a message for the agent. It waits until the turn has begun."""
        if isinstance(control, Interrupt):
            self.is_interrupted = True
            yield from self._interrupt()
            yield from self.begin_turn()
        else:
            self._kept_back.append(control)
            yield from self._steer()

    def begin_turn(self, *, unless_starting: bool = False) -> Iterator[Act]:
        """Stop waiting for crew's tools."""
        if self._awaits_tools and not (unless_starting and self._tools == STARTING):
            self._awaits_tools = False
            yield from self._start_turn()

    def read(self, message: Event) -> Iterator[Act]:
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            yield self._question(message)
        elif isinstance(method, str):
            yield from self._read_event(method, mapping(message, "params"))
        elif isinstance(number := message.get("id"), int) and number in self._asked:
            asked = self._asked.pop(number)
            if "error" in message:
                yield from self._read_refusal(asked, text_of(mapping(message, "error"), "message"))
            else:
                yield from self._read_answer(asked, mapping(message, "result"))

    def is_about_us(self, method: str, params: Event) -> bool:
        """Whether this is our thread, not a helper's, and not the end of an older turn."""
        if not self.thread or params.get("threadId") != self.thread:
            return False
        turn = mapping(params, "turn").get("id")
        return method != "turn/completed" or not self.turn or turn == self.turn

    def _read_answer(self, asked: str, result: Event) -> Iterator[Act]:
        match asked:
            case "initialize":
                self.is_ready = True
                yield SendMessage({"method": "initialized"})
                known = {"threadId": self.thread, "excludeTurns": True} if self.thread else {}
                method = "thread/resume" if self.thread else "thread/start"
                yield self._request(method, **known, **self.opening)
            case "thread/start" | "thread/resume":
                self.thread = session_name(mapping(result, "thread"), "id") or self.thread
                self._awaits_tools = self.wants_tools and self._tools in {"", STARTING}
                yield from [AwaitTools()] if self._awaits_tools else self._start_turn()
            case "turn/start":
                self.turn = text_of(mapping(result, "turn"), "id") or self.turn
                yield from self._interrupt()
            case _:
                pass

    def _read_refusal(self, asked: str, message: str) -> Iterator[Act]:
        """End if the turn cannot start. A message that came too late waits for the next step."""
        if asked not in {"turn/steer", "turn/interrupt"}:
            self.refusal = f"{asked}: {message or 'refused without a reason'}"
            yield DialogueEnded()

    def _start_turn(self) -> Iterator[Act]:
        if self.is_interrupted:
            yield DialogueEnded()
        else:
            words = [{"type": "text", "text": self.prompt}]
            yield self._request("turn/start", threadId=self.thread, input=words)

    def _read_event(self, method: str, params: Event) -> Iterator[Act]:
        if method == "mcpServer/startupStatus/updated" and params.get("name") == TOOLS:
            self._tools = text_of(params, "status")
            yield from self.begin_turn(unless_starting=True)
        if not self.is_about_us(method, params):
            return
        match method:
            case "turn/started":
                self.turn = text_of(mapping(params, "turn"), "id") or self.turn
                self._can_steer = True
                yield from self._steer()
            case "item/started":
                if client := text_of(mapping(params, "item"), "clientId"):
                    yield MessageRead(client)
            case "serverRequest/resolved":
                yield QuestionWithdrawn(str(params.get("requestId")))
            case "turn/completed":
                self._can_steer = False
                yield DialogueEnded()
            case _:
                pass

    def _steer(self) -> Iterator[Act]:
        if not self._can_steer or self.is_interrupted:
            return
        place = {"threadId": self.thread, "expectedTurnId": self.turn}
        for message in self._kept_back:
            content = [{"type": "text", "text": message.text}]
            yield self._request(
                "turn/steer", **place, input=content, clientUserMessageId=message.message
            )
        self._kept_back.clear()

    def _interrupt(self) -> Iterator[Act]:
        if self.is_interrupted and self.turn:
            yield self._request("turn/interrupt", threadId=self.thread, turnId=self.turn)

    def _question(self, request: Event) -> Act:
        permission, inquiries = permission_of(request), inquiries_of(request)
        if permission is None and not inquiries:
            return SendMessage(refusal_of(request))
        return CodexQuestion(
            number=str(request["id"]), permission=permission, request=request, inquiries=inquiries
        )

    def _request(self, method: str, **params: Any) -> SendMessage:
        self._count += 1
        self._asked[self._count] = method
        return SendMessage({"id": self._count, "method": method, "params": params})
