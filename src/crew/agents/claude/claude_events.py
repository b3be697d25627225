"""Parses the stream-json output of Claude Code: actions, usage and errors of a step."""

from dataclasses import dataclass, field

from crew.agents.event_fields import (
    Event,
    argument_of,
    count_of,
    mapping,
    number_of,
    session_name,
)
from crew.agents.event_stream import EventLines
from crew.agents.step_process import TEXT_TAIL
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import SignalScanner, Tail, one_line
from crew.domain.rows.step import Usage, usage_sum

_LOGIN_REFUSED = (401, 403)
MOST_REFUSALS = 2


@frozen
class Result:
    """A `result` event. Its `subtype` is "success" for API failures too, so it is ignored."""

    is_error: bool
    text: str
    terminal_reason: str
    api_status: int | None
    api_error: str
    errors: tuple[str, ...]
    total_cost_usd: float | None  # of the whole session, not of this run
    usage: Usage | None  # of the main model since the previous result, without a cost
    model_usage: Usage | None  # of all models since the previous result

    @property
    def is_good(self) -> bool:
        return not self.is_error and not self.terminal_reason.startswith("aborted")

    @property
    def error_text(self) -> str:
        """All texts in it that may contain the error."""
        return "\n".join((self.text, self.api_error, *self.errors))


@dataclass(slots=True)
class Conversation:
    """The events of one run of the program so far."""

    done_word: str
    session: str = ""
    results: list[Result] = field(default_factory=list)
    error_names: list[str] = field(default_factory=list)
    reset_at: float | None = None
    doing: str = ""
    tail: Tail = field(default_factory=lambda: Tail(TEXT_TAIL))
    has_signal: bool = False
    is_in_turn: bool = False
    refusal: str = ""  # why no further request of this run can succeed
    _lines: EventLines = field(default_factory=EventLines)
    _messages: dict[str, Usage] = field(default_factory=dict)
    _refusals: int = 0  # in a row

    def take(self, chunk: bytes) -> list[Event]:
        """Read some output. Returns the events that it completed."""
        return self._read(self._lines.feed(chunk))

    def finish(self) -> list[Event]:
        return self._read(self._lines.close())

    @property
    def last_result(self) -> Result | None:
        return self.results[-1] if self.results else None

    @property
    def ended_well(self) -> bool:
        return self.last_result is not None and self.last_result.is_good

    @property
    def usage(self) -> Usage:
        """The usage of this run: of its results, and of the messages that no result counts.

        A run whose login was refused before its first message has cost nothing.
        """
        if self.refusal and not self.results and not self._messages:
            return Usage()
        by_model = [result.model_usage for result in self.results if result.model_usage]
        by_result = [result.usage for result in self.results if result.usage]
        counted = by_model or by_result
        cut_off = [Usage(cost_usd=None)] if self.was_cut_off or not counted else []
        return usage_sum([*counted, *cut_off, *self._messages.values()])

    @property
    def was_cut_off(self) -> bool:
        """Whether it ended in a turn, whose cost no result has."""
        return self.is_in_turn or bool(self._messages)

    def _read(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._learn(event)
        return events

    def _learn(self, event: Event) -> None:
        self.session = session_name(event, "session_id") or self.session
        match event.get("type"):
            case "assistant":
                self._read_message(event)
            case "result":
                self._conclude(_result(event))
            case "system" if event.get("subtype") == "init":
                self.is_in_turn = True
            case "system" if event.get("subtype") == "api_retry":
                self._read_retry(event)
            case "rate_limit_event":
                self._read_limit(mapping(event, "rate_limit_info"))
            case _:
                pass

    def _read_retry(self, event: Event) -> None:
        """Read a failed request that the program repeats, up to ten times in three minutes.

        A login may be renewed after the first refusal, but a second one is final.
        """
        self.doing = one_line(f"waiting: {event.get('error')}, try {event.get('attempt')}")
        status = event.get("error_status")
        self._refusals = self._refusals + 1 if status in _LOGIN_REFUSED else 0
        if self._refusals >= MOST_REFUSALS:
            why = one_line(str(event.get("error")))
            self.refusal = f"the API refuses the login (HTTP {status}: {why})"

    def _read_message(self, event: Event) -> None:
        message = mapping(event, "message")
        if event.get("error"):
            self.error_names.append(str(event["error"]))
        if message.get("usage") and message.get("id"):
            # Each block has an event with the message's usage so far: the last one counts.
            self._messages[str(message["id"])] = _tokens(mapping(message, "usage"))
        is_own = event.get("parent_tool_use_id") is None
        for block in message.get("content") or ():
            if isinstance(block, dict):
                self._read_block(block, is_own=is_own)

    def _read_limit(self, limit: Event) -> None:
        """Record when a limit ends, but only of a rejected request: others report it too."""
        self.reset_at = number_of(limit, "resetsAt") if limit.get("status") == "rejected" else None

    def _read_block(self, block: Event, *, is_own: bool) -> None:
        if block.get("type") == "tool_use":
            self.doing = one_line(f"{block.get('name')}: {argument_of(mapping(block, 'input'))}")
        elif block.get("type") == "text":
            text = str(block.get("text", ""))
            self.doing = one_line(text) or self.doing
            if is_own:  # a helper's "DONE" is not the agent's
                self._say(text)

    def _conclude(self, result: Result) -> None:
        self.results.append(result)
        self.is_in_turn = False
        if result.usage or result.model_usage:
            self._messages.clear()
        if not self.tail.text:  # its text repeats the last message
            self._say(result.text)

    def _say(self, text: str) -> None:
        self.tail.add(text + "\n")
        scanner = SignalScanner(self.done_word)
        scanner.feed(text)
        self.has_signal = self.has_signal or scanner.found


def _result(event: Event) -> Result:
    errors = event.get("errors")
    status = event.get("api_error_status")
    api_error = (event.get("api_error_type"), event.get("api_error"))
    return Result(
        is_error=bool(event.get("is_error")) or str(event.get("subtype")).startswith("error"),
        text=str(event.get("result") or ""),
        terminal_reason=str(event.get("terminal_reason") or ""),
        api_status=status if isinstance(status, int) else None,
        api_error=" ".join(str(part) for part in api_error if part),
        errors=tuple(map(str, errors)) if isinstance(errors, list) else (),
        total_cost_usd=number_of(event, "total_cost_usd"),
        usage=_tokens(usage) if (usage := mapping(event, "usage")) else None,
        model_usage=_model_usage(event),
    )


def _model_usage(event: Event) -> Usage | None:
    """The usage of all models, including helpers."""
    models = mapping(event, "model_usage_since_last_result")
    parts = [_one_models_usage(entry) for entry in models.values() if isinstance(entry, dict)]
    return usage_sum(parts) if parts else None


def _one_models_usage(entry: Event) -> Usage:
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Usage(
        input_tokens=sum(count_of(entry, name) for name in read),
        output_tokens=count_of(entry, "outputTokens"),
        cost_usd=number_of(entry, "costUSD"),
    )


def _tokens(usage: Event) -> Usage:
    """Cached tokens count as input, though the API reports them separately."""
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(
        input_tokens=sum(count_of(usage, name) for name in read),
        output_tokens=count_of(usage, "output_tokens"),
        cost_usd=None,
    )
