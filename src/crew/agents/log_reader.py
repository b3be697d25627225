"""Reads the log of an agent, whatever program wrote it, as entries that a person can read.

A log does not tell which program wrote a line, so each program's reader is asked in turn. A line
that none of them knows is an entry too; of an event only its name and its words, cut to one line.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from crew.agents.acp.acp_log import acp_entries, prompt_ended
from crew.agents.claude.claude_log import claude_entries
from crew.agents.codex.codex_log import app_server_entries, codex_entries
from crew.agents.event_fields import Event, mapping, text_of
from crew.agents.gemini.gemini_log import gemini_entries
from crew.agents.opencode.opencode_log import opencode_entries
from crew.agents.scripted.scripted_log import scripted_entries
from crew.domain.kernel.log_entry import Entries, LogEntry
from crew.domain.kernel.text import one_line

LONGEST_TEXT = 10_000
LONGEST_UNKNOWN = 200
_KEPT_AT_END = 2_000
_WORDS = ("summary", "message", "text", "content", "title", "description", "prompt")
"""Fields in which an event that is not known may have words."""

_NOT_PLAIN = re.compile(r"^[{=].*", re.MULTILINE)
"""A line that may be an event or crew's own; every other line is what a program printed."""

_HEADER = re.compile(r"=== (\S+: step \S+) ===")
_READERS = (claude_entries, codex_entries, opencode_entries, gemini_entries, scripted_entries)


def entries_of(line: str) -> Entries:
    """The entries of one line; empty for a line that only the program's own caller needs."""
    return _entries_of(line, _event(line))


def _entries_of(line: str, event: Event | None) -> Entries:
    if event is None:
        header = _HEADER.fullmatch(line)
        if header is not None:
            return (LogEntry(kind="step", text=header[1]),)
        is_cut = line.startswith("{") and len(line) > LONGEST_UNKNOWN  # in the middle of an event
        return (LogEntry(kind="text", text=_short(line) if is_cut else line),)
    found = _message_entries(event) if _is_message(event) else _event_entries(event)
    return (LogEntry(kind="text", text=_unknown(event, line)),) if found is None else found


class LogReader:
    """Reads line by line, and joins the parts of messages and costs."""

    def __init__(self) -> None:
        self._text: LogEntry | None = None
        self._costs: dict[bool, LogEntry] = {}  # of this step, and of the session
        self._last: LogEntry | None = None
        self._repeats_the_past = False
        self._thread = ""  # of Codex: the agent's own, beside those of its helpers

    def read(self, line: str) -> Iterator[LogEntry]:
        for entry in self._present(line):
            yield from self._take(entry)

    def read_text(self, text: str) -> Iterator[LogEntry]:
        """As `read`, for the lines of a text that ends with a newline.

        Plain lines that follow each other are one entry: a program may print millions of them.
        """
        lines = text.removesuffix("\n")
        if self._needs_each_line(text):
            for line in lines.split("\n"):
                yield from self.read(line)
            return
        at = 0
        for found in _NOT_PLAIN.finditer(lines):
            if found.start() > at:
                yield from self._plain(lines[at : found.start() - 1])
            yield from self.read(found[0])
            at = found.end() + 1
        if at <= len(lines):
            yield from self._plain(lines[at:])

    def _needs_each_line(self, text: str) -> bool:
        """Whether a line is cut, has an end of its own, or repeats what was there before."""
        is_past = self._repeats_the_past or '"protocolVersion"' in text
        is_long = any(len(line) > LONGEST_TEXT for line in text.split("\n"))
        return is_past or is_long or "\r\n" in text

    def _plain(self, lines: str) -> Iterator[LogEntry]:
        yield from self.pause()
        self._last = LogEntry(kind="text", text=lines)
        yield self._last

    def pause(self) -> Iterator[LogEntry]:
        """The message so far; more may follow."""
        if self._text is not None:
            yield from self._give(self._text)
        self._text = None

    @property
    def unfinished(self) -> LogEntry | None:
        """The message so far, which `read` still continues."""
        so_far = self._text
        return so_far and replace(so_far, text=_bounded(so_far.text), is_part=False)

    def close(self) -> Iterator[LogEntry]:
        yield from self.pause()
        for is_total in sorted(self._costs):
            yield from self._give(self._costs[is_total])
        self._costs.clear()

    def _present(self, line: str) -> Entries:
        """A resumed session of the Agent Client Protocol begins with a copy of its past."""
        if '"protocolVersion"' in line and '"result"' in line:
            self._repeats_the_past = True
        elif self._repeats_the_past and '"session/update"' in line:
            return ()
        elif line.startswith("{"):  # the answer that opens the session
            self._repeats_the_past = False
        event = _event(line)
        found = _entries_of(line, event)
        return found if event is None or not self._is_of_helper(event) else _of_helper(found)

    def _is_of_helper(self, event: Event) -> bool:
        """Whether Codex reports it of another thread than the one that the step opened."""
        opened = text_of(mapping(mapping(event, "result"), "thread"), "id")
        self._thread = opened or self._thread
        thread = text_of(mapping(event, "params"), "threadId")
        return bool(self._thread and thread) and thread != self._thread

    def _take(self, entry: LogEntry) -> Iterator[LogEntry]:
        if entry.kind == "cost" and entry.is_part:
            before = None if entry.is_total else self._costs.get(False)
            self._costs[entry.is_total] = entry if before is None else _sum(before, entry)
            return
        if entry.is_part and self._text is not None and _is_same(self._text, entry):
            self._text = _joined(self._text, entry)
            return
        yield from self.close() if entry.kind in {"ended", "step"} else self.pause()
        if entry.is_part:
            self._text = entry
        else:
            yield from self._give(entry)

    def _give(self, entry: LogEntry) -> Iterator[LogEntry]:
        """Some programs repeat an error at their end, and a tool while it runs."""
        shown = replace(entry, text=_bounded(entry.text), is_part=False)
        if shown != self._last or not _repeats(entry):
            yield shown
        self._last = shown if shown.kind != "cost" else self._last


def _unknown(event: Event, line: str) -> str:
    """The name of an event and the first words in it, or the beginning of its line."""
    levels = [event, mapping(event, "params")]
    levels += [inner for level in levels for inner in level.values() if isinstance(inner, dict)]
    names = [text_of(level, name) for level in levels for name in ("method", "type", "subtype")]
    words = next((w for level in levels for n in _WORDS if (w := text_of(level, n))), "")
    name = " ".join(dict.fromkeys(filter(None, names)))
    return _short(f"{name}: {words}" if name and words else line)


def _short(text: str) -> str:
    is_short = len(text) <= LONGEST_UNKNOWN and "\n" not in text
    return text if is_short else one_line(text, limit=LONGEST_UNKNOWN)


def _event(line: str) -> Event | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: only brackets
        return None
    return event if isinstance(event, dict) else None


def _is_message(event: Event) -> bool:
    """Whether it is a message of JSON-RPC."""
    return "type" not in event and ("method" in event or "id" in event)


def _message_entries(message: Event) -> Entries | None:
    method, params = text_of(message, "method"), mapping(message, "params")
    if method:
        found = acp_entries(method, params)
        return app_server_entries(method, params) if found is None else found
    if error := mapping(message, "error"):
        details = text_of(mapping(error, "data"), "details")
        words = [word for word in (text_of(error, "message"), details) if word]
        return (LogEntry(kind="error", text=": ".join(words) or "an error"),)
    result = message.get("result")
    if isinstance(result, dict) and "stopReason" in result:
        return prompt_ended(result)
    return () if "result" in message else None


def _event_entries(event: Event) -> Entries | None:
    found = (read(event) for read in _READERS)
    return next((entries for entries in found if entries is not None), None)


def _of_helper(entries: Entries) -> Entries:
    """The entries of a helper. Its cost is a part of the step's, and its end does not end that."""
    own = (one for one in entries if one.kind != "ended")
    return tuple(one if one.kind == "cost" else replace(one, is_helper=True) for one in own)


def _is_same(before: LogEntry, part: LogEntry) -> bool:
    return (before.kind, before.call) == (part.kind, part.call)


def _repeats(entry: LogEntry) -> bool:
    """Whether an equal entry before it is the same event; a tool may be used twice."""
    return entry.kind == "error" or bool(entry.call)


def _joined(before: LogEntry, part: LogEntry) -> LogEntry:
    if part.kind == "tool":
        return replace(before, tool=part.tool or before.tool, text=part.text or before.text)
    return replace(before, text=before.text + part.text)


def _sum(before: LogEntry, part: LogEntry) -> LogEntry:
    """Two parts of a cost; a price that only one of them has counts."""
    costs = [cost for cost in (before.cost_usd, part.cost_usd) if cost is not None]
    return replace(
        before,
        input_tokens=before.input_tokens + part.input_tokens,
        output_tokens=before.output_tokens + part.output_tokens,
        cost_usd=sum(costs) if costs else None,
    )


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    head, tail = text[: LONGEST_TEXT - _KEPT_AT_END], text[-_KEPT_AT_END:]
    return f"{head}\n… {len(text) - LONGEST_TEXT} characters left out …\n{tail}"
