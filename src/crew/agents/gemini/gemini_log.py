"""Reads the stream-json lines of Gemini CLI in a log."""

from crew.agents.event_fields import Event, argument_of, count_of, mapping, text_of
from crew.domain.kernel.log_entry import Entries, LogEntry, failure, usage_entry


def gemini_entries(event: Event) -> Entries | None:
    """None for an event that Gemini CLI does not print, or that is not known."""
    match event.get("type"):
        case "message" if event.get("role") in {"user", "assistant"}:
            is_own = event["role"] == "assistant"
            is_part = bool(event.get("delta"))
            text = text_of(event, "content")
            return (LogEntry(kind="said" if is_own else "prompt", text=text, is_part=is_part),)
        case "init" if "session_id" in event:
            return ()
        case "tool_use" if "tool_name" in event:
            argument = argument_of(mapping(event, "parameters"))
            return (LogEntry(kind="tool", tool=text_of(event, "tool_name"), text=argument),)
        case "tool_result" if "status" in event:
            error = text_of(mapping(event, "error"), "message")
            text = text_of(event, "output") or error
            return (LogEntry(kind="result", text=text, is_error=event["status"] != "success"),)
        case "error" if "severity" in event:
            return (LogEntry(kind="error", text=text_of(event, "message")),)
        case "result" if "status" in event:
            return _result(event)
        case _:
            return None


def _result(event: Event) -> Entries:
    stats = mapping(event, "stats")
    cost = usage_entry((count_of(stats, "input_tokens"), count_of(stats, "output_tokens")))
    if event.get("status") != "success":
        return (cost, *failure(text_of(mapping(event, "error"), "message")))
    return (cost, LogEntry(kind="ended", text="success"))
