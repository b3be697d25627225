"""Classifies failures of Claude Code by its exit codes, flags and fixed sentences."""

import re

from crew.agents.adapter import AgentSpec
from crew.agents.claude.claude_events import Conversation, Result
from crew.agents.http_status import kind_of_status
from crew.agents.step_process import last_words, process_error
from crew.domain.kernel.text import one_line
from crew.domain.rows.step import ErrorKind, StepError
from crew.system.processes.process import ProcessEnd

_BY_NAME = {
    "authentication_failed": ErrorKind.AUTH,
    "billing_error": ErrorKind.BILLING,
    "rate_limit": ErrorKind.RATE_LIMIT,
    "server_error": ErrorKind.OVERLOADED,
}
_BY_WORDS = (
    ("is already in use", ErrorKind.SESSION_IN_USE),
    ("No conversation found", ErrorKind.SESSION_UNKNOWN),
    ("cannot be used with root", ErrorKind.PERMISSION_DENIED),
    ("Prompt is too long", ErrorKind.CONTEXT_FULL),
    ("Credit balance is too low", ErrorKind.BILLING),
    ("Not logged in", ErrorKind.AUTH),
    ("Invalid API key", ErrorKind.AUTH),
    ("connection_failed", ErrorKind.OVERLOADED),
)
_ENDED_BY_US = ("stalled", "lingered")
_ENDS_A_LIMIT = re.compile(r"\|(\d{10})\b")


def judge(end: ProcessEnd, heard: Conversation, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0, and a result without an error flag."""
    if end.reason in {"timeout", "stalled", "not_found", "failed"} and not _only_waited(end, heard):
        return process_error(end, spec)
    result = heard.last_result
    if result and not result.is_good:
        return _result_error(result, end, heard)
    if end.code and end.reason not in _ENDED_BY_US:
        return _exit_error(end, spec)
    if result is None:
        return StepError(
            kind=ErrorKind.CRASHED,
            message=f"{spec.name} exited without a result{last_words(end.stderr_tail)}",
        )
    return None


def _only_waited(end: ProcessEnd, heard: Conversation) -> bool:
    """Whether its turn had ended, and it only waited for a background command."""
    return end.reason == "stalled" and heard.ended_well and not heard.is_in_turn


def _result_error(result: Result, end: ProcessEnd, heard: Conversation) -> StepError:
    said = f"{result.words}\n{end.stderr_tail}"
    kind = _kind(result, heard, said)
    ends = _ENDS_A_LIMIT.search(said)
    reset_at = heard.reset_at if ends is None else float(ends[1])
    return StepError(
        kind=kind,
        message=one_line(said, limit=300) or f"ended by {result.terminal_reason or 'an error'}",
        reset_at=reset_at if kind is ErrorKind.RATE_LIMIT else None,
    )


def _kind(result: Result, heard: Conversation, said: str) -> ErrorKind:
    if result.terminal_reason == "prompt_too_long":
        return ErrorKind.CONTEXT_FULL
    if (by_status := kind_of_status(result.api_status)) is not None:
        return by_status
    if (by_words := _by_words(said)) is not None:
        return by_words
    name = heard.error_names[-1] if heard.error_names else ""
    return _BY_NAME.get(name, ErrorKind.CRASHED)


def _exit_error(end: ProcessEnd, spec: AgentSpec) -> StepError:
    error = process_error(end, spec)
    kind = _by_words(end.stderr_tail)
    return error if kind is None else StepError(kind=kind, message=error.message)


def _by_words(said: str) -> ErrorKind | None:
    return next((kind for words, kind in _BY_WORDS if words in said), None)
