"""Reads the lines of `opencode run --format json` in a log."""

from crew.agents.event_fields import Event, argument_of, count_of, mapping, number_of, text_of
from crew.domain.kernel.log_entry import Entries, LogEntry, usage_entry


def opencode_entries(event: Event) -> Entries | None:
    """None for an event that OpenCode does not print, or that is not known."""
    if "sessionID" not in event:
        return None
    part = mapping(event, "part")
    match event.get("type"):
        case "text":
            return (LogEntry(kind="said", text=text_of(part, "text")),)
        case "reasoning":
            return (LogEntry(kind="thought", text=text_of(part, "text")),)
        case "tool_use":
            return _tool(text_of(part, "tool"), mapping(part, "state"))
        case "step_start":
            return ()
        case "step_finish":
            return _call_ended(part)
        case "error":
            error = mapping(event, "error")
            message = text_of(mapping(error, "data"), "message")
            words = [word for word in (text_of(error, "name"), message) if word]
            return (LogEntry(kind="error", text=": ".join(words) or "an error"),)
        case _:
            return None


def _tool(name: str, state: Event) -> Entries:
    """A tool and its result: they come in one event."""
    error = text_of(state, "error")
    return (
        LogEntry(kind="tool", tool=name, text=argument_of(mapping(state, "input"))),
        LogEntry(kind="result", text=error or text_of(state, "output"), is_error=bool(error)),
    )


def _call_ended(part: Event) -> Entries:
    """The end of one call of the model: of the turn too, unless the model uses a tool."""
    tokens, reason = mapping(part, "tokens"), text_of(part, "reason")
    cache = mapping(tokens, "cache")
    counts = (
        sum((count_of(tokens, "input"), *(count_of(cache, name) for name in cache))),
        count_of(tokens, "output") + count_of(tokens, "reasoning"),
    )
    cost = usage_entry(counts, number_of(part, "cost") or None, is_part=True)
    if reason == "tool-calls":
        return (cost,)
    return (cost, LogEntry(kind="ended", text=reason, is_error=reason != "stop"))
