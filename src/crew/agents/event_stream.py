"""Parses the JSON events of agent CLIs, and collects an agent's messages in a step."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crew.agents.event_fields import Event
from crew.agents.step_process import TEXT_TAIL
from crew.domain.kernel.text import LineSplitter, SignalScanner, Tail, one_line, plain

_LONGEST_INDENT = 16
LONGEST_EVENT = 8 * 1_048_576  # a tool's result may carry an image


class EventLines:
    """Turns chunks into events. A line that is not a JSON object is a warning and skipped."""

    def __init__(self, longest: int = LONGEST_EVENT) -> None:
        self._lines = LineSplitter(longest)

    def feed(self, chunk: bytes) -> list[Event]:
        return _events(self._lines.feed(chunk))

    def close(self) -> list[Event]:
        return _events(self._lines.close())


class AgentMessages:
    """The messages and actions of an agent in one step. Each message is complete."""

    def __init__(self, done_word: str, doing: Callable[[str], None]) -> None:
        self.tail = Tail(TEXT_TAIL)
        self.has_signal = False
        self._done_word = done_word
        self._doing = doing
        self._last_doing = ""

    def add(self, message: str) -> None:
        text = plain(message)
        if not text.strip():
            return
        self.tail.add(text + "\n")
        scanner = SignalScanner(self._done_word)
        scanner.feed(text)
        self.has_signal = self.has_signal or scanner.found
        self.report(text)

    def report(self, what: str) -> None:
        short = one_line(what)
        if short and short != self._last_doing:
            self._last_doing = short
            self._doing(short)


@dataclass(slots=True)
class EventReader(ABC):
    """Reads the events that a program prints in one step."""

    messages: AgentMessages
    _lines: EventLines = field(default_factory=EventLines, kw_only=True)

    def take(self, chunk: bytes) -> None:
        for event in self._lines.feed(chunk):
            self._read(event)

    def finish(self) -> None:
        for event in self._lines.close():
            self._read(event)
        self._end_message()

    @abstractmethod
    def _read(self, event: Event) -> None: ...

    def _end_message(self) -> None:  # noqa: B027 - most programs print whole messages
        """A message that comes in pieces is whole now."""


def _events(lines: Iterable[str]) -> list[Event]:
    parsed = (_parse_event(line) for line in lines if "{" in line[:_LONGEST_INDENT])
    return [event for event in parsed if event is not None]


def _parse_event(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: only brackets
        return None
    return event if isinstance(event, dict) else None
