"""Collects the events of a turn of `codex app-server`: messages, actions, tokens, end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crew.agents.codex.codex_errors import turn_error
from crew.agents.event_fields import Event, count_of, mapping, number_of, text_of
from crew.agents.event_stream import AgentMessages
from crew.domain.kernel.prices import Price, TokenCounts, cost_of
from crew.domain.rows.step import StepError, Usage

TOKENS = ("inputTokens", "cachedInputTokens", "outputTokens")


@dataclass(slots=True)
class AppTurn:
    """The events so far, only of the step's own thread."""

    messages: AgentMessages
    status: str = ""  # completed, interrupted or failed, once it has ended
    error: StepError | None = None
    total: Usage | None = None  # of the whole thread
    model: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)
    _reset_at: float | None = None

    def read(self, method: str, params: Event) -> None:
        match method:
            case "item/started" | "item/completed":
                self._read_item(mapping(params, "item"), is_whole=method == "item/completed")
            case "thread/tokenUsage/updated":
                self._read_total(mapping(mapping(params, "tokenUsage"), "total"))
            case "error":
                self.messages.report(text_of(mapping(params, "error"), "message"))
            case "turn/completed" if not self.status:
                self._conclude(mapping(params, "turn"))
            case _:
                pass

    def read_model(self, answer: Event) -> None:
        """Read which model an opened thread uses."""
        self.model = text_of(answer, "model") or self.model

    def _read_total(self, total: Event) -> None:
        """Keep the last real count: once its context is full, Codex reports a total of 0 tokens."""
        counted = priced(self.model, TOKENS, total, self.prices)
        if counted.input_tokens or counted.output_tokens:
            self.total = counted

    def read_limits(self, params: Event) -> None:
        """Read when the used-up windows of the account end."""
        limits = mapping(params, "rateLimits")
        windows = [mapping(limits, name) for name in ("primary", "secondary")]
        spent = [window for window in windows if (number_of(window, "usedPercent") or 0) >= 100]
        ends = [at for window in spent if (at := number_of(window, "resetsAt")) is not None]
        self._reset_at = max(ends, default=self._reset_at)

    def _read_item(self, item: Event, *, is_whole: bool) -> None:
        if item.get("type") != "agentMessage":
            self.messages.report(_what_it_does(item))
        elif is_whole:
            self.messages.add(text_of(item, "text"))

    def _conclude(self, turn: Event) -> None:
        self.status = text_of(turn, "status")
        if self.status == "failed":
            error = mapping(turn, "error")
            self.error = turn_error(
                text_of(error, "message"),
                info=error.get("codexErrorInfo"),
                details=text_of(error, "additionalDetails"),
                reset_at=self._reset_at,
            )


def _what_it_does(item: Event) -> str:
    match item.get("type"):
        case "commandExecution":
            actions = item.get("commandActions")
            first = actions[0] if isinstance(actions, list) and actions else None
            bare = text_of(first, "command") if isinstance(first, dict) else ""
            return bare or text_of(item, "command")
        case "mcpToolCall":
            return f"{item.get('server')}: {item.get('tool')}"
        case "fileChange":
            changes = item.get("changes")
            first = changes[0] if isinstance(changes, list) and changes else None
            return f"edits {text_of(first, 'path')}" if isinstance(first, dict) else ""
        case "webSearch":
            return f"searches {text_of(item, 'query')}"
        case _:
            return ""


def priced(
    model: str, names: tuple[str, str, str], usage: Event, prices: Mapping[str, Price]
) -> Usage:
    """The usage of a thread, with its cost if the price of the model is known.

    `names`: the fields of the input, which includes cached tokens, of these, and of the output,
    which includes reasoning.
    """
    counts = [count_of(usage, name) for name in names]
    tokens = TokenCounts(input=counts[0], cached=counts[1], output=counts[2])
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cost_usd=cost_of(model, tokens, prices),
    )
