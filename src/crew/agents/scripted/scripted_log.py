"""Reads the lines of the scripted agent in a log."""

from crew.agents.event_fields import Event, count_of, number_of, text_of
from crew.domain.kernel.log_entry import Entries, LogEntry, usage_entry


def scripted_entries(event: Event) -> Entries | None:
    """None for an event that the scripted agent does not print."""
    match event:
        case {"type": "text", "text": str(text)}:
            return (LogEntry(kind="said", text=text),)
        case {"type": "tool", "name": str(name), "text": str(text)}:
            return (LogEntry(kind="tool", tool=name, text=text),)
        case {"type": "usage"}:
            counts = (count_of(event, "input_tokens"), count_of(event, "output_tokens"))
            return (usage_entry(counts, number_of(event, "cost_usd"), is_part=True),)
        case {"type": "error", "message": str()}:
            return (LogEntry(kind="error", text=text_of(event, "message")),)
        case {"type": "end"}:
            return (LogEntry(kind="ended", text="end"),)
        case _:
            return None
