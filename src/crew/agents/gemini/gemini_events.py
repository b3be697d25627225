"""Parses the stream-json output of Gemini CLI: actions, usage and errors of a step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from crew.agents.adapter import AgentSpec
from crew.agents.errors.http_status import kind_of_status
from crew.agents.errors.lasting_words import kind_of_words
from crew.agents.errors.limit_watch import LimitSeen
from crew.agents.event_fields import (
    Event,
    argument_of,
    count_of,
    mapping,
    session_name,
    text_of,
)
from crew.agents.event_stream import EventReader
from crew.agents.step_process import process_error
from crew.domain.kernel.prices import Price, TokenCounts, cost_of
from crew.domain.kernel.text import one_line, plain
from crew.domain.rows.step import ErrorKind, StepError, Usage
from crew.system.processes.process import ProcessEnd

_BY_EXIT_CODE = {
    41: ErrorKind.AUTH,
    55: ErrorKind.PERMISSION_DENIED,  # a folder that is not trusted
    **{status % 256: kind_of_status(status) for status in (401, 402, 403, 429, 500, 502, 503, 504)},
}
_BY_TEXT = (
    ("already exists", ErrorKind.SESSION_IN_USE),
    ("No previous sessions found", ErrorKind.SESSION_UNKNOWN),
    ("Invalid session identifier", ErrorKind.SESSION_UNKNOWN),
    ("exceeds the maximum number of tokens", ErrorKind.CONTEXT_FULL),
    ("is not found for API version", ErrorKind.UNKNOWN_MODEL),
    ("fetch failed", ErrorKind.OVERLOADED),
)
_REPEATED = re.compile(r"Attempt \d+ failed(?: with status 429\b|: (?!.*Max attempts reached))")
_DELAY = re.compile(r"\bRetrying after (\d+)ms\.\.\.$")
"""It ends the words of a limit, which have several lines."""
_STATUS = re.compile(r'\\?"code\\?": ?(\d{3})\b|\bstatus: (\d{3})\b')


@dataclass(slots=True)
class GeminiRun(EventReader):
    """The events of one run of the program so far."""

    session: str = ""
    usage: Usage = field(default_factory=lambda: Usage(cost_usd=None))
    has_result: bool = False
    complaint: str | None = None  # why its result is an error
    model: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)
    _message: list[str] = field(default_factory=list)  # arrives in pieces

    def _read(self, event: Event) -> None:
        match event.get("type"):
            case "message" if event.get("role") == "assistant":
                self._read_message(event)
                return
            case "init":
                self.session = session_name(event, "session_id") or self.session
                self.model = text_of(event, "model") or self.model
            case "tool_use":
                values = mapping(event, "parameters")
                self._end_message()
                self.messages.report(f"{event.get('tool_name')}: {argument_of(values)}")
            case "error":
                self.messages.report(text_of(event, "message"))
            case "result":
                self._conclude(event)
            case _:
                return
        self._end_message()

    def _read_message(self, event: Event) -> None:
        if not event.get("delta"):
            self._end_message()
        self._message.append(text_of(event, "content"))
        self.messages.report(self._message[-1])

    def _end_message(self) -> None:
        if self._message:
            self.messages.add("".join(self._message))
            self._message.clear()

    def _cost(self, stats: Event) -> float | None:
        """The cost of all models that the run used; None if one of them is unknown."""
        models = mapping(stats, "models") or {self.model: stats}
        costs = [_cost_of_model(name, mapping(models, name), self.prices) for name in models]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def _conclude(self, event: Event) -> None:
        self.has_result = True
        stats = mapping(event, "stats")
        self.usage = Usage(
            input_tokens=count_of(stats, "input_tokens"),
            output_tokens=count_of(stats, "output_tokens"),
            cost_usd=self._cost(stats),
        )
        if event.get("status") != "success":
            self.complaint = (
                text_of(mapping(event, "error"), "message") or "an error without a message"
            )


def _cost_of_model(model: str, counts: Event, prices: Mapping[str, Price]) -> float | None:
    tokens = TokenCounts(
        input=count_of(counts, "input_tokens"),
        cached=count_of(counts, "cached"),
        output=count_of(counts, "output_tokens"),
    )
    return cost_of(model, tokens, prices)


def limit_in(line: str) -> LimitSeen | None:
    """The limit in a line of stderr, of a request that the program will repeat."""
    is_first, delay = _REPEATED.match(line), _DELAY.search(line)
    if not (is_first or delay):
        return None
    return LimitSeen(
        words=line if is_first else "",
        ends_in_s=float(delay[1]) / 1000 if delay else None,
        kind=kind_of_words(line) or ErrorKind.RATE_LIMIT,
    )


def judge(end: ProcessEnd, run: GeminiRun, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0, and a result without an error.

    The result is required, since a terminated run also exits with 0.
    """
    if end.reason in {"timeout", "stalled", "not_found", "failed"}:
        return process_error(end, spec)
    if end.code or run.complaint is not None:
        return _error(end, run, spec)
    if not run.has_result:
        return StepError(
            kind=ErrorKind.CRASHED, message=f"{spec.name} exited without reporting a result"
        )
    return None


def _error(end: ProcessEnd, run: GeminiRun, spec: AgentSpec) -> StepError:
    output = f"{run.complaint or ''}\n{plain(end.stderr_tail)}"
    by_text = next((kind for part, kind in _BY_TEXT if part in output), None)
    by_text = by_text or kind_of_words(output)
    kind = by_text or _by_status(output) or _BY_EXIT_CODE.get(end.code) or ErrorKind.CRASHED
    message = run.complaint or _sentence(plain(end.stderr_tail)) or process_error(end, spec).message
    if end.reason == "killed":
        return process_error(end, spec)
    return StepError(kind=kind, message=f"{one_line(message, limit=300)} (exit code {end.code})")


def _by_status(output: str) -> ErrorKind | None:
    """The kind of the last HTTP status. Earlier ones may have been retried successfully."""
    statuses = [int(code or status) for code, status in _STATUS.findall(output)]
    kinds = [kind for status in statuses if (kind := kind_of_status(status))]
    return kinds[-1] if kinds else None


def _sentence(stderr: str) -> str:
    """The line with the error, without stack traces and advice."""
    return next((line for line in stderr.splitlines() if line.startswith("Error")), "")
