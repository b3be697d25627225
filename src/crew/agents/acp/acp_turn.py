"""Collects the updates of a turn by the Agent Client Protocol: messages, actions, usage."""

import asyncio

from crew.agents.event_fields import Event, mapping, number_of, text_of
from crew.agents.event_stream import AgentMessages
from crew.domain.rows.step import StepError


class AcpTurn:
    """The updates of a step so far. `session` is the agent's own name once it is open."""

    def __init__(self, session: str, messages: AgentMessages) -> None:
        self.session = session
        self.messages = messages
        self.is_open = False  # earlier updates repeat the session's past
        self.interrupted = asyncio.Event()
        self.stop_reason = ""
        self.failure: StepError | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.total_cost_usd: float | None = None  # of the whole session
        self._message: list[str] = []  # arrives in pieces

    def read(self, params: Event) -> None:
        """A `session/update`."""
        update = mapping(params, "update")
        kind = update.get("sessionUpdate")
        if kind == "usage_update":
            self._read_cost(mapping(update, "cost"))
        if not self.is_open:
            return
        if kind == "agent_message_chunk":
            self._message.append(text_of(mapping(update, "content"), "text"))
            self.messages.report(self._message[-1])
        elif kind in {"tool_call", "tool_call_update"}:
            self._end_message()
            self.messages.report(text_of(update, "title"))

    def finish(self) -> None:
        self._end_message()

    def _end_message(self) -> None:
        if self._message:
            self.messages.add("".join(self._message))
            self._message.clear()

    def _read_cost(self, cost: Event) -> None:
        amount = number_of(cost, "amount")
        if amount is not None and cost.get("currency") == "USD":
            self.total_cost_usd = amount
