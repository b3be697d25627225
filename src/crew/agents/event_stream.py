"""Parses the JSON events of agent CLIs, and collects an agent's messages in a step."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crew.agents.step_process import TEXT_TAIL
from crew.domain.kernel.text import LineSplitter, SignalScanner, Tail, one_line, plain

_LONGEST_INDENT = 16
LONGEST_EVENT = 8 * 1_048_576  # a tool's result may carry an image

Event = Mapping[str, Any]

_SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


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


def mapping(event: Event, name: str) -> Event:
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def text_of(event: Event, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""


def count_of(event: Event, name: str) -> int:
    value = event.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def number_of(event: Event, name: str) -> float | None:
    value = event.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def session_name(event: Event, name: str) -> str:
    """A session's name from a CLI; empty if it could pass for an option or a path."""
    found = text_of(event, name)
    return found if _SESSION_NAME.fullmatch(found) else ""


def argument_of(values: Event) -> str:
    """The most informative value of a tool call."""
    for name in ("command", "file_path", "filePath", "path", "pattern", "url", "description"):
        if name in values:
            return str(values[name])
    return ", ".join(str(value) for value in values.values() if isinstance(value, str))


def _events(lines: Iterable[str]) -> list[Event]:
    parsed = (_parse_event(line) for line in lines if "{" in line[:_LONGEST_INDENT])
    return [event for event in parsed if event is not None]


def _parse_event(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: only brackets
        return None
    return event if isinstance(event, dict) else None
