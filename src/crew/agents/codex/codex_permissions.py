"""Translates Codex's requests to questions for a person, and back to its answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crew.agents.adapter import Inquiry, Permission
from crew.agents.asked_questions import inquiry_of, listed_questions
from crew.agents.event_fields import Event, mapping, text_of

_LONGEST_DETAIL = 2_000
_UNKNOWN_METHOD = -32601

Answer = Callable[[Event, bool], Mapping[str, Any]]


def _decision(yes: str, no: str) -> Answer:
    return lambda _params, allowed: {"decision": yes if allowed else no}


def _granted(params: Event, allowed: bool) -> Mapping[str, Any]:  # noqa: FBT001 - see Answer
    return {"permissions": mapping(params, "permissions") if allowed else {}, "scope": "turn"}


def _elicited(_params: Event, allowed: bool) -> Mapping[str, Any]:  # noqa: FBT001 - see Answer
    return {"action": "accept" if allowed else "decline", "content": {} if allowed else None}


_ANSWERS: Mapping[str, tuple[str, Answer]] = {
    "item/commandExecution/requestApproval": ("shell", _decision("accept", "decline")),
    "item/fileChange/requestApproval": ("edit", _decision("accept", "decline")),
    "item/permissions/requestApproval": ("more access", _granted),
    "mcpServer/elicitation/request": ("mcp", _elicited),
    "execCommandApproval": ("shell", _decision("approved", "denied")),
    "applyPatchApproval": ("edit", _decision("approved", "denied")),
}


USER_INPUT = "item/tool/requestUserInput"


def inquiries_of(request: Event) -> tuple[Inquiry, ...]:
    """The questions of Codex to a person; none if it asks for a permission."""
    return tuple(map(inquiry_of, _questions(request)))


def answers_to(request: Event, answers: Sequence[str]) -> Event:
    """The answers of a person, by the ids of the questions."""
    numbers = [text_of(one, "id") for one in _questions(request)]
    by_number = {number: {"answers": [said]} for number, said in zip(numbers, answers, strict=True)}
    return {"id": request["id"], "result": {"answers": by_number}}


def _questions(request: Event) -> list[Event]:
    is_inquiry = request.get("method") == USER_INPUT
    return listed_questions(mapping(request, "params")) if is_inquiry else []


def permission_of(request: Event) -> Permission | None:
    """The permission that is requested; None if crew has no answer."""
    known = _ANSWERS.get(str(request.get("method")))
    return Permission(tool=known[0], detail=_detail(request)) if known else None


def answer_to(request: Event, *, allowed: bool) -> Event:
    _, answer = _ANSWERS[str(request["method"])]
    return {"id": request["id"], "result": answer(mapping(request, "params"), allowed)}


def refusal_of(request: Event) -> Event:
    """An error as the answer, without which Codex would wait forever."""
    error = {"code": _UNKNOWN_METHOD, "message": "crew has no answer to this"}
    return {"id": request["id"], "error": error}


def _detail(request: Event) -> str:
    params = mapping(request, "params")
    details = [text_of(params, name) for name in ("command", "message", "grantRoot", "reason")]
    if not any(details):
        details = [json.dumps(params.get("permissions") or params.get("fileChanges") or {})]
    return "\n".join(word for word in details if word)[:_LONGEST_DETAIL]
