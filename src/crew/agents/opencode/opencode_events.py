"""Parses the output of `opencode run --format json`: actions, usage and errors of a step."""

import re
from dataclasses import dataclass

from crew.agents.adapter import AgentSpec
from crew.agents.errors.http_status import kind_of_status
from crew.agents.errors.lasting_words import kind_of_words
from crew.agents.errors.limit_watch import LimitSeen
from crew.agents.event_fields import (
    Event,
    argument_of,
    count_of,
    mapping,
    number_of,
    session_name,
    text_of,
)
from crew.agents.event_stream import EventReader
from crew.agents.step_process import process_error
from crew.domain.kernel.text import one_line
from crew.domain.rows.step import ErrorKind, StepError, Usage
from crew.system.processes.process import ProcessEnd

_MOST_ERRORS = 5
"""A full context is compacted and full again, without end, with an error each time."""

_HELPER = "task"
"""The tool that starts a helper, in a session of its own."""

_BY_NAME = {
    "ContextOverflowError": ErrorKind.CONTEXT_FULL,
    "ProviderAuthError": ErrorKind.AUTH,
    "ProviderModelNotFoundError": ErrorKind.UNKNOWN_MODEL,
}
_BY_TEXT = (
    ("Session not found", ErrorKind.SESSION_UNKNOWN),
    ("context length", ErrorKind.CONTEXT_FULL),
    ("context window", ErrorKind.CONTEXT_FULL),
    ("prompt is too long", ErrorKind.CONTEXT_FULL),
)

_REPEATED = re.compile(
    r'message="stream error" (?!.* small=true .*error\.error=).*error\.error="(.*)"'
)
"""Not of its small model, which only writes a title: the main model may be at work."""
_FAILED = re.compile(r'message=failed ref=(\S+) error="((?:[^"\\]|\\.)*)"')
_LIMIT = re.compile(r"rate.?limit|too many requests|quota|usage limit|\b429\b", re.IGNORECASE)


@dataclass(slots=True)
class OpenCodeRun(EventReader):
    """The events of one run of the program so far. The last one decides how it ended."""

    session: str = ""
    reason: str = ""  # why its last message ended
    error: StepError | None = None  # None if it recovered
    reference: str = ""  # of this error, in its log
    errors: int = 0
    _is_in_call: bool = False
    _had_helper: bool = False
    _input: int = 0
    _output: int = 0
    _cost_usd: float = 0.0

    @property
    def is_hopeless(self) -> bool:
        return self.errors >= _MOST_ERRORS

    def usage(self, end: ProcessEnd) -> Usage:
        """The usage. A reported cost of 0 means that the price is unknown.

        So is the cost of a call that was cut off, and that of a helper: no event has it. After a
        tool the next call follows at once, unless the program has ended.
        """
        is_over = end.reason == "exited" or self.reason not in {"", "tool-calls"}
        is_whole = is_over and not self._is_in_call and not self._had_helper
        cost = self._cost_usd or None if is_whole else None
        return Usage(input_tokens=self._input, output_tokens=self._output, cost_usd=cost)

    def _read(self, event: Event) -> None:
        self.session = session_name(event, "sessionID") or self.session
        part = mapping(event, "part")
        match event.get("type"):
            case "text":
                self.messages.add(text_of(part, "text"))
            case "tool_use":
                values = mapping(mapping(part, "state"), "input")
                self.messages.report(f"{part.get('tool')}: {argument_of(values)}")
                self._had_helper = self._had_helper or part.get("tool") == _HELPER
            case "step_start":
                self.reason = ""
                self._is_in_call = True
            case "step_finish":
                self._conclude(part)
            case "error":
                self.errors += 1
                error = mapping(event, "error")
                self.error = _error(error)
                self.reference = text_of(mapping(error, "data"), "ref")
                self.messages.report(self.error.message)
            case _:
                pass

    def _conclude(self, part: Event) -> None:
        self.reason = text_of(part, "reason")
        self._is_in_call = False
        if self.reason == "stop":
            self.error = None
        tokens = mapping(part, "tokens")
        cache = mapping(tokens, "cache")
        self._input += sum((count_of(tokens, "input"), *(count_of(cache, n) for n in cache)))
        self._output += count_of(tokens, "output") + count_of(tokens, "reasoning")
        self._cost_usd += number_of(part, "cost") or 0.0


def limit_in(line: str) -> LimitSeen | None:
    """The limit in a line of its log, of a request that the program will repeat."""
    found = _REPEATED.search(line)
    if found is None:
        return None
    kind = kind_of_words(found[1]) or (ErrorKind.RATE_LIMIT if _LIMIT.search(found[1]) else None)
    return LimitSeen(words=found[1], kind=kind) if kind else None


def judge(end: ProcessEnd, run: OpenCodeRun, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0, a complete last message, and no error after it."""
    error = run.error and (_logged_error(end.stderr_tail, run.reference) or run.error)
    if run.is_hopeless and error:
        return error
    if end.reason in {"timeout", "stalled", "not_found", "failed"}:
        return process_error(end, spec)
    if error:
        return error
    if end.code:
        return _exit_error(end, spec)
    if run.reason == "stop":
        return None
    if run.reason == "tool-calls":
        message = f"{spec.name} ended after a tool that it was not allowed to use"
        return StepError(kind=ErrorKind.PERMISSION_DENIED, message=message)
    what = f"for this reason: {run.reason}" if run.reason else "without finishing its message"
    return StepError(kind=ErrorKind.CRASHED, message=f"{spec.name} ended {what}")


def _exit_error(end: ProcessEnd, spec: AgentSpec) -> StepError:
    error = process_error(end, spec)
    return StepError(kind=_by_text(end.stderr_tail) or error.kind, message=error.message)


def _logged_error(log: str, reference: str) -> StepError | None:
    """The error that only the log names: the event has its reference."""
    found = [words for one, words in _FAILED.findall(log) if one == reference]
    name, _, message = found[-1].partition(": ") if found else ("", "", "")
    return _error({"name": name, "data": {"message": message}}) if found else None


def _error(error: Event) -> StepError:
    name, data = text_of(error, "name"), mapping(error, "data")
    message = text_of(data, "message") or name or "an error without a message"
    kind = _BY_NAME.get(name) or _by_text(message) or kind_of_status(data.get("statusCode"))
    what = message if name in message else f"{name}: {message}"
    return StepError(kind=kind or ErrorKind.CRASHED, message=one_line(what, limit=300))


def _by_text(text: str) -> ErrorKind | None:
    lower = text.lower()
    found = next((kind for part, kind in _BY_TEXT if part.lower() in lower), None)
    return found or kind_of_words(text)
