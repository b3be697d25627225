"""What Claude Code prints as stream-json, read into what a step did, used and ran into."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crew.agents.output import LineSplitter, SignalScanner, Tail, one_line
from crew.agents.step_process import TEXT_TAIL
from crew.domain.step import Usage

_LONGEST_EVENT = 8 * 1_048_576  # a tool's result may carry an image


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A `result` event. `subtype` says "success" for API failures too, so it decides nothing."""

    is_error: bool
    text: str
    terminal_reason: str
    api_status: int | None
    api_error: str
    errors: tuple[str, ...]
    total_cost_usd: float | None  # of the whole session, not of this run
    usage: Usage | None  # of the main model since the result before it; its cost is never known
    model_usage: Usage | None  # of all models since the result before it

    @property
    def is_good(self) -> bool:
        return not self.is_error and not self.terminal_reason.startswith("aborted")

    @property
    def words(self) -> str:
        """Everything in it that may say what went wrong."""
        return "\n".join((self.text, self.api_error, *self.errors))


@dataclass(slots=True)
class Conversation:
    """All that one run of the program has told so far."""

    done_word: str
    session: str = ""
    results: list[Result] = field(default_factory=list)
    error_names: list[str] = field(default_factory=list)
    reset_at: float | None = None
    doing: str = ""
    tail: Tail = field(default_factory=lambda: Tail(TEXT_TAIL))
    has_signal: bool = False
    is_in_turn: bool = False
    _lines: LineSplitter = field(default_factory=lambda: LineSplitter(_LONGEST_EVENT))
    _messages: dict[str, Usage] = field(default_factory=dict)

    def take(self, chunk: bytes) -> list[Mapping[str, Any]]:
        """Take in some output; the events that were whole with it."""
        return self._read(self._lines.feed(chunk))

    def finish(self) -> list[Mapping[str, Any]]:
        return self._read(self._lines.close())

    @property
    def last_result(self) -> Result | None:
        return self.results[-1] if self.results else None

    @property
    def ended_well(self) -> bool:
        return self.last_result is not None and self.last_result.is_good

    @property
    def usage(self) -> Usage:
        """What this run used; when no result came, what its messages showed."""
        by_model = [result.model_usage for result in self.results if result.model_usage]
        by_result = [result.usage for result in self.results if result.usage]
        by_message = [Usage(cost_usd=None), *self._messages.values()]
        return _sum(by_model or by_result or by_message)

    def _read(self, lines: list[str]) -> list[Mapping[str, Any]]:
        events = [event for line in lines if (event := _event(line)) is not None]
        for event in events:
            self._learn(event)
        return events

    def _learn(self, event: Mapping[str, Any]) -> None:
        self.session = str(event.get("session_id") or self.session)
        match event.get("type"):
            case "assistant":
                self._hear(event)
            case "result":
                self._conclude(_result(event))
            case "system" if event.get("subtype") == "init":
                self.is_in_turn = True
            case "system" if event.get("subtype") == "api_retry":
                self.doing = one_line(f"waiting: {event.get('error')}, try {event.get('attempt')}")
            case "rate_limit_event":
                self._hear_of_limit(_mapping(event, "rate_limit_info"))
            case _:
                pass

    def _hear(self, event: Mapping[str, Any]) -> None:
        message = _mapping(event, "message")
        if event.get("error"):
            self.error_names.append(str(event["error"]))
        if message.get("usage") and message.get("id"):
            # One event a block, each with the message's usage so far: the last one counts.
            self._messages[str(message["id"])] = _tokens(_mapping(message, "usage"))
        is_own = event.get("parent_tool_use_id") is None
        for block in message.get("content") or ():
            if isinstance(block, dict):
                self._hear_block(block, is_own=is_own)

    def _hear_of_limit(self, limit: Mapping[str, Any]) -> None:
        """Good answers tell of the window's end too: it matters once a request is turned down."""
        self.reset_at = (
            _number(limit.get("resetsAt")) if limit.get("status") == "rejected" else None
        )

    def _hear_block(self, block: Mapping[str, Any], *, is_own: bool) -> None:
        if block.get("type") == "tool_use":
            self.doing = one_line(f"{block.get('name')}: {_argument(_mapping(block, 'input'))}")
        elif block.get("type") == "text":
            text = str(block.get("text", ""))
            self.doing = one_line(text) or self.doing
            if is_own:  # a helper's "DONE" is not the agent's
                self._say(text)

    def _conclude(self, result: Result) -> None:
        self.results.append(result)
        self.is_in_turn = False
        if not self.tail.text:  # its text is the last message again
            self._say(result.text)

    def _say(self, text: str) -> None:
        self.tail.add(text + "\n")
        scanner = SignalScanner(self.done_word)
        scanner.feed(text)
        self.has_signal = self.has_signal or scanner.found


def _event(line: str) -> Mapping[str, Any] | None:
    """None for a line that is no event: a warning, or half of one."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _argument(values: Mapping[str, Any]) -> str:
    """The one thing that tells most about a tool call."""
    for name in ("command", "file_path", "path", "pattern", "url", "description", "prompt"):
        if name in values:
            return str(values[name])
    return ", ".join(str(value) for value in values.values() if isinstance(value, str))


def _result(event: Mapping[str, Any]) -> Result:
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
        total_cost_usd=_number(event.get("total_cost_usd")),
        usage=_tokens(usage) if (usage := _mapping(event, "usage")) else None,
        model_usage=_model_usage(event),
    )


def _model_usage(event: Mapping[str, Any]) -> Usage | None:
    """What all models used that took part, helpers included."""
    models = _mapping(event, "model_usage_since_last_result")
    parts = [_one_models_usage(entry) for entry in models.values() if isinstance(entry, dict)]
    return _sum(parts) if parts else None


def _one_models_usage(entry: Mapping[str, Any]) -> Usage:
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Usage(
        input_tokens=sum(_count(entry, name) for name in read),
        output_tokens=_count(entry, "outputTokens"),
        cost_usd=_number(entry.get("costUSD")),
    )


def _tokens(usage: Mapping[str, Any]) -> Usage:
    """Cached tokens are input too, though the API counts them apart."""
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(
        input_tokens=sum(_count(usage, name) for name in read),
        output_tokens=_count(usage, "output_tokens"),
        cost_usd=None,
    )


def _sum(parts: list[Usage]) -> Usage:
    costs = [part.cost_usd for part in parts]
    return Usage(
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mapping(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    return value if isinstance(value, dict) else {}
