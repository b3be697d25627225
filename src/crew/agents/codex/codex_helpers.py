"""Counts what the helpers of a Codex turn use: agents that it started, each in a thread of its own.

A thread's total may include earlier turns, so only its growth since the first report counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crew.agents.codex.codex_turn import TOKENS, priced
from crew.agents.event_fields import Event, count_of, mapping, text_of
from crew.domain.kernel.prices import Price
from crew.domain.rows.step import Usage, usage_sum

_GIVES_WORK = frozenset({"spawnAgent", "sendInput", "resumeAgent"})


@dataclass(slots=True)
class CodexHelpers:
    """The threads of helpers so far."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    _models: dict[str, str] = field(default_factory=dict)
    _before: dict[str, Event] = field(default_factory=dict)
    _used: dict[str, Event] = field(default_factory=dict)
    _at_work: set[str] = field(default_factory=set)

    def read(self, method: str, params: Event, *, own: str) -> None:
        """An event of any thread; `own` is the agent's."""
        thread = text_of(params, "threadId")
        if method == "item/completed":
            self._read_call(mapping(params, "item"))
        elif own and thread and thread != own:
            self._read_event(thread, method, params)

    def _read_call(self, item: Event) -> None:
        """Learn from a call which threads work, and with which model."""
        threads = item.get("receiverThreadIds")
        for thread in filter(_is_name, threads if isinstance(threads, list) else ()):
            self._models[thread] = text_of(item, "model") or self._models.get(thread, "")
            if item.get("tool") in _GIVES_WORK:
                self._at_work.add(thread)

    def _read_event(self, thread: str, method: str, params: Event) -> None:
        match method:
            case "turn/started":
                self._at_work.add(thread)
            case "turn/completed" if mapping(params, "turn").get("status") == "completed":
                self._at_work.discard(thread)
            case "thread/tokenUsage/updated":
                self._read_tokens(thread, mapping(params, "tokenUsage"))
            case _:
                pass

    def usage(self, model: str) -> Usage:
        """The usage of all helpers; without a model of their own they have this one.

        The cost of a helper that still works, or was interrupted, is unknown.
        """
        found = [self._usage_of(thread, model) for thread in self._used]
        return usage_sum([*found, *([Usage(cost_usd=None)] if self._at_work else ())])

    def _read_tokens(self, thread: str, usage: Event) -> None:
        total, last = mapping(usage, "total"), mapping(usage, "last")
        if any(count_of(total, name) for name in TOKENS):  # 0 once its context is full
            first = {name: count_of(total, name) - count_of(last, name) for name in TOKENS}
            self._before.setdefault(thread, first if last else {})
            self._used[thread] = total

    def _usage_of(self, thread: str, model: str) -> Usage:
        total, before = self._used[thread], self._before[thread]
        grown = {name: count_of(total, name) - count_of(before, name) for name in TOKENS}
        return priced(self._models.get(thread) or model, TOKENS, grown, self.prices)


def _is_name(value: object) -> bool:
    return isinstance(value, str)
