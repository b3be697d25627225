"""Classifies failures of the Agent Client Protocol by its codes, then by agents' messages."""

import json

from crew.agents.acp.acp_turn import AcpTurn
from crew.agents.adapter import AgentSpec
from crew.agents.errors.http_status import kind_of_status
from crew.agents.step_process import last_words, process_error
from crew.domain.kernel.text import one_line
from crew.domain.rows.step import ErrorKind, StepError
from crew.system.processes.process import ProcessEnd

_BY_CODE = {-32000: ErrorKind.AUTH, -32002: ErrorKind.SESSION_UNKNOWN}  # unknown id
_BY_TEXT = (
    ("authentication required", ErrorKind.AUTH),
    ("unauthorized", ErrorKind.AUTH),
    ("invalid api key", ErrorKind.AUTH),
    ("invalid session", ErrorKind.SESSION_UNKNOWN),
    ("session not found", ErrorKind.SESSION_UNKNOWN),
    ("usage limit", ErrorKind.RATE_LIMIT),
    ("rate limit", ErrorKind.RATE_LIMIT),
    ("too many requests", ErrorKind.RATE_LIMIT),
    ("quota exceeded", ErrorKind.BILLING),
    ("credit balance", ErrorKind.BILLING),
    ("overloaded", ErrorKind.OVERLOADED),
    ("prompt is too long", ErrorKind.CONTEXT_FULL),
    ("context window", ErrorKind.CONTEXT_FULL),
    ("context length", ErrorKind.CONTEXT_FULL),
)


class CannotLoad(Exception):
    """The agent cannot load an earlier session."""


class AcpRefused(Exception):
    """The agent does not support what is configured."""


def ended_badly(error: Exception, *, is_opening: bool) -> StepError | None:
    """The error of a broken conversation; None if the end of the process explains it better."""
    if isinstance(error, CannotLoad):
        return StepError(kind=ErrorKind.SESSION_UNKNOWN, message=str(error))
    code = getattr(error, "code", None)
    if isinstance(error, ConnectionError):
        return None
    message_text = " ".join((str(error), _message_of(getattr(error, "data", None))))
    kind = _kind(code, getattr(error, "data", None), message_text)
    message = one_line(message_text, limit=300) or type(error).__name__
    return StepError(kind=kind, message=message if not is_opening else f"cannot start: {message}")


def judge(end: ProcessEnd, turn: AcpTurn, spec: AgentSpec) -> StepError | None:
    """None for a good step: a completed or interrupted turn and exit code 0."""
    if end.reason in {"timeout", "stalled", "not_found", "failed"}:
        return process_error(end, spec)
    if turn.interrupted.is_set() and turn.stop_reason:
        return None  # one agent reports a reason other than `cancelled`
    if turn.failure:
        return turn.failure
    if end.code and end.reason != "lingered":
        return process_error(end, spec)
    if turn.stop_reason == "end_turn":
        return None
    what = f"stopped: {turn.stop_reason}" if turn.stop_reason else "ended without an answer"
    message = f"{spec.name} {what}{last_words(end.stderr_tail)}"
    return StepError(kind=ErrorKind.CRASHED, message=message)


def _kind(code: object, data: object, message_text: str) -> ErrorKind:
    if isinstance(code, int) and code in _BY_CODE:
        return _BY_CODE[code]
    status = data.get("statusCode") or data.get("status") if isinstance(data, dict) else None
    lower = message_text.lower()
    by_text = next((kind for part, kind in _BY_TEXT if part in lower), None)
    return kind_of_status(code) or kind_of_status(status) or by_text or ErrorKind.CRASHED


def _message_of(data: object) -> str:
    if isinstance(data, str):
        return data
    return json.dumps(data, default=str) if data else ""
