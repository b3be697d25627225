"""The dialogue with a running Claude Code, without I/O: events and messages in, acts out.

If a message arrives while a tool runs, the model reads it with the tool's result. At any other time
it waits in Claude's own queue and starts another turn after the step's. Therefore crew holds
messages until a tool runs, and withdraws those that its result did not include.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crew.agents.adapter import YES, Inquiry, Interrupt, Permission, Say
from crew.agents.asked_questions import inquiry_of, listed_questions
from crew.agents.dialogue_acts import (
    DialogueEnded,
    MessageRead,
    QuestionWithdrawn,
    SendMessage,
)
from crew.agents.event_fields import Event, mapping
from crew.domain.kernel.frozen import frozen

_DENIAL = "This is not allowed. Do it in another way, or say what you need, and why."
_LONGEST_DETAIL = 2_000
LONGEST_PLAN = 20_000
_PLAN = "ExitPlanMode"
_QUESTIONS = "AskUserQuestion"


@frozen
class ClaudeQuestion:
    """The program waits for permission, or for the answers to its own questions."""

    request: str
    permission: Permission
    values: Event
    inquiries: tuple[Inquiry, ...] = ()


@dataclass(frozen=True, slots=True)
class Woken:
    """The program continues although its input has ended, and may take its time."""


Act = SendMessage | MessageRead | ClaudeQuestion | QuestionWithdrawn | DialogueEnded | Woken


@dataclass(slots=True)
class Dialogue:
    """The state of one run of the program, from its prompt to the end of its input."""

    is_interrupted: bool = False
    _is_over: bool = False
    _kept_back: list[Say] = field(default_factory=list)
    _sent: dict[str, Say] = field(default_factory=dict)  # by their numbers
    _tools: set[str] = field(default_factory=set)  # running
    _has_background: bool = False

    def send(self, control: Say | Interrupt) -> Iterator[Act]:
        """Handle a message for the agent."""
        if isinstance(control, Say):
            self._kept_back.append(control)
            yield from self._speak()
        elif not self.is_interrupted:
            self.is_interrupted = True
            yield from self._take_back()
            yield SendMessage(_request("interrupt"))
            yield from self._end()

    def read(self, event: Event, *, is_done: bool) -> Iterator[Act]:
        """Handle an event of the program. `is_done`: the agent has finished its work."""
        match event.get("type"):
            case "assistant" if _is_own(event):
                self._tools |= {str(block.get("id")) for block in _blocks(event, "tool_use")}
                yield from self._speak()
            case "user" if _is_own(event):
                yield from self._read_user(event)
            case "command_lifecycle" if event.get("state") == "cancelled":
                yield from self._read_withdrawn(str(event.get("command_uuid")))
            case "control_request":
                yield _question(event)
            case "control_cancel_request":
                yield QuestionWithdrawn(str(event.get("request_id")))
            case "system" | "result":
                yield from self._read_turn(event, is_done=is_done)
            case _:
                pass

    def _read_user(self, event: Event) -> Iterator[Act]:
        number = str(event.get("uuid"))
        if event.get("isReplay") and number in self._sent:
            yield MessageRead(self._sent.pop(number).message)
        if results := {str(block.get("tool_use_id")) for block in _blocks(event, "tool_result")}:
            self._tools -= results
            if not self._tools:
                yield from self._take_back()

    def _read_withdrawn(self, number: str) -> Iterator[Act]:
        if number in self._sent:
            self._kept_back.insert(0, self._sent.pop(number))
            yield from self._speak()

    def _read_turn(self, event: Event, *, is_done: bool) -> Iterator[Act]:
        if event.get("subtype") == "init" and self._is_over and not self.is_interrupted:
            yield Woken()
        elif event.get("subtype") == "background_tasks_changed":
            self._has_background = bool(event.get("tasks"))
        elif event.get("type") == "result":
            self._tools.clear()
            # A command in the background wakes the agent when it ends, unless its work is done.
            if is_done or not self._has_background:
                yield from self._end()

    def _end(self) -> Iterator[Act]:
        self._is_over = True
        yield DialogueEnded()

    def _speak(self) -> Iterator[Act]:
        if not self._tools or self.is_interrupted:
            return
        for control in self._kept_back:
            number = str(uuid.uuid4())
            self._sent[number] = control
            yield SendMessage(user_message(control.text, number=number))
        self._kept_back.clear()

    def _take_back(self) -> Iterator[Act]:
        """Withdraw messages. Harmless if the model has just read one: its replay follows."""
        for number in self._sent:
            yield SendMessage(_request("cancel_async_message", message_uuid=number))


def user_message(text: str, *, number: str = "") -> Event:
    content = [{"type": "text", "text": text}]
    message = {"type": "user", "message": {"role": "user", "content": content}}
    return {**message, "uuid": number} if number else message


def answer(question: ClaudeQuestion, *, allowed: bool) -> Event:
    decision: Event = {"behavior": "deny", "message": _DENIAL}
    if allowed:
        decision = {"behavior": "allow", "updatedInput": question.values}
    return _decided(question, decision)


def answer_inquiries(question: ClaudeQuestion, answers: Sequence[str]) -> Event:
    """The answers of a person in the form that the asking tool expects."""
    if question.permission.tool == _PLAN:
        if answers[0].strip().lower() in YES:
            return answer(question, allowed=True)
        words = f"A person did not approve the plan, and answered: {answers[0]}"
        return _decided(question, {"behavior": "deny", "message": words})
    by_question = {
        one.question: said for one, said in zip(question.inquiries, answers, strict=True)
    }
    values = {**question.values, "answers": by_question}
    return _decided(question, {"behavior": "allow", "updatedInput": values})


def _decided(question: ClaudeQuestion, decision: Event) -> Event:
    return _response(question.request, subtype="success", response=decision)


def _inquiries(tool: str, values: Event) -> tuple[Inquiry, ...]:
    """What its own tools ask a person: about a plan, or questions with options."""
    if tool == _PLAN:
        plan = str(values.get("plan") or "")[:LONGEST_PLAN]
        asked = "May the agent carry out its plan?"
        return (Inquiry(question=asked, context=plan, choices=("yes", "no")),)
    if tool != _QUESTIONS:
        return ()
    return tuple(map(inquiry_of, listed_questions(values)))


def _question(event: Event) -> Act:
    """A permission request, or an error for other requests: without one it waits forever."""
    request, number = mapping(event, "request"), str(event.get("request_id"))
    if request.get("subtype") != "can_use_tool":
        return SendMessage(
            _response(number, subtype="error", error="crew does not know this request")
        )
    values = mapping(request, "input")
    tool = str(request.get("tool_name"))
    return ClaudeQuestion(
        request=number,
        permission=Permission(tool=tool, detail=_detail(request, values)),
        values=values,
        inquiries=_inquiries(tool, values),
    )


def _detail(request: Event, values: Event) -> str:
    """The action and the reason of the request, for a person to decide."""
    wishes = [f"{name}: {value}" for name, value in values.items()]
    reason = request.get("decision_reason")
    return "\n".join([*wishes, *([f"({reason})"] if reason else [])])[:_LONGEST_DETAIL]


def _request(subtype: str, **values: str) -> Event:
    request = {"subtype": subtype, **values}
    return {"type": "control_request", "request_id": str(uuid.uuid4()), "request": request}


def _response(number: str, **values: Any) -> Event:
    return {"type": "control_response", "response": {"request_id": number, **values}}


def _is_own(event: Event) -> bool:
    """Whether it is the agent's own event, not a helper's, which runs inside a tool."""
    return event.get("parent_tool_use_id") is None


def _blocks(event: Event, kind: str) -> list[Event]:
    content = mapping(event, "message").get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]
