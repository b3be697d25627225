"""Classifies failures of Claude Code by its exit codes, flags and fixed sentences."""

import re

from crew.agents.adapter import AgentSpec
from crew.agents.claude.claude_events import Conversation, Result
from crew.agents.errors.http_status import kind_of_status
from crew.agents.step_process import last_words, process_error
from crew.domain.kernel.text import one_line
from crew.domain.rows.step import ErrorKind, StepError
from crew.system.processes.process import ProcessEnd

_BY_NAME = {
    "authentication_failed": ErrorKind.AUTH,
    "billing_error": ErrorKind.BILLING,
    "rate_limit": ErrorKind.RATE_LIMIT,
    "server_error": ErrorKind.OVERLOADED,
    "model_not_found": ErrorKind.UNKNOWN_MODEL,
}
_BY_TEXT = (
    ("is already in use", ErrorKind.SESSION_IN_USE),
    ("No conversation found", ErrorKind.SESSION_UNKNOWN),
    ("cannot be used with root", ErrorKind.PERMISSION_DENIED),
    ("Prompt is too long", ErrorKind.CONTEXT_FULL),
    ("Credit balance is too low", ErrorKind.BILLING),
    ("Not logged in", ErrorKind.AUTH),
    ("Invalid API key", ErrorKind.AUTH),
    ("Could not find native binary", ErrorKind.NOT_INSTALLED),
    ("connection_failed", ErrorKind.OVERLOADED),
)
_ENDED_BY_US = ("stalled", "lingered")
_ENDS_A_LIMIT = re.compile(r"\|(\d{10})\b")


def judge(end: ProcessEnd, conversation: Conversation, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0, and a result without an error flag."""
    if conversation.refusal and not conversation.ended_well:
        return StepError(kind=ErrorKind.AUTH, message=conversation.refusal)
    has_failed = end.reason in {"timeout", "stalled", "not_found", "failed"}
    if has_failed and not _only_waited(end, conversation):
        return process_error(end, spec)
    result = conversation.last_result
    if result and not result.is_good:
        return _result_error(result, end, conversation)
    if end.code and end.reason not in _ENDED_BY_US:
        return _exit_error(end, spec)
    if result is None:
        return StepError(
            kind=ErrorKind.CRASHED,
            message=f"{spec.name} exited without a result{last_words(end.stderr_tail)}",
        )
    return None


def _only_waited(end: ProcessEnd, conversation: Conversation) -> bool:
    """Whether its turn had ended, and it only waited for a background command."""
    return end.reason == "stalled" and conversation.ended_well and not conversation.is_in_turn


def _result_error(result: Result, end: ProcessEnd, conversation: Conversation) -> StepError:
    text = f"{result.error_text}\n{end.stderr_tail}"
    kind = _kind(result, conversation, text)
    ends = _ENDS_A_LIMIT.search(text)
    reset_at = conversation.reset_at if ends is None else float(ends[1])
    return StepError(
        kind=kind,
        message=one_line(text, limit=300) or f"ended by {result.terminal_reason or 'an error'}",
        reset_at=reset_at if kind is ErrorKind.RATE_LIMIT else None,
    )


def _kind(result: Result, conversation: Conversation, text: str) -> ErrorKind:
    if result.terminal_reason == "prompt_too_long":
        return ErrorKind.CONTEXT_FULL
    if (by_status := kind_of_status(result.api_status)) is not None:
        return by_status
    if (by_text := _by_text(text)) is not None:
        return by_text
    name = conversation.error_names[-1] if conversation.error_names else ""
    return _BY_NAME.get(name, ErrorKind.CRASHED)


def _exit_error(end: ProcessEnd, spec: AgentSpec) -> StepError:
    error = process_error(end, spec)
    kind = _by_text(end.stderr_tail)
    return error if kind is None else StepError(kind=kind, message=error.message)


def _by_text(text: str) -> ErrorKind | None:
    return next((kind for part, kind in _BY_TEXT if part in text), None)
