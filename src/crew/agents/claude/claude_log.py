"""Reads the stream-json lines of Claude Code in a log."""

from collections.abc import Iterator
from dataclasses import replace

from crew.agents.event_fields import (
    Event,
    argument_of,
    content_text,
    count_of,
    mapping,
    number_of,
    text_of,
)
from crew.domain.kernel.log_entry import Entries, LogEntry, usage_entry

_QUIET_EVENTS = {
    *("control_response", "control_cancel_request", "command_lifecycle", "rate_limit_event"),
    *("stream_event", "tool_progress", "keep_alive", "auth_status"),
}
_QUIET_NEWS = {
    *("init", "status", "task_started", "task_progress", "task_notification", "permission_denied"),
    *("background_tasks_changed", "hook_started", "hook_progress", "hook_response"),
    *("session_state_changed", "task_updated", "thinking_tokens"),
}
_READ = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_READ_BY_MODEL = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def claude_entries(event: Event) -> Entries | None:
    """None for an event that Claude Code does not print, or that is not known."""
    match event.get("type"):
        case "assistant" | "user" if mapping(event, "message"):
            return tuple(_message(event))
        case "result" if "subtype" in event:
            return tuple(_result(event))
        case "system":
            return _news(event)
        case "control_request":
            return _request(mapping(event, "request"))
        case kind if kind in _QUIET_EVENTS:
            return ()
        case _:
            return None


def _message(event: Event) -> Iterator[LogEntry]:
    content = mapping(event, "message").get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    is_helper = event.get("parent_tool_use_id") is not None
    for block in blocks:
        if isinstance(block, dict) and (found := _block(block, event)):
            yield replace(found, is_helper=True) if is_helper else found


def _block(block: Event, event: Event) -> LogEntry | None:
    text = text_of(block, "text")
    match block.get("type"):
        case "text" if event.get("type") == "user":
            return LogEntry(kind="prompt", text=text)
        case "text":
            return LogEntry(kind="error" if event.get("error") else "said", text=text)
        case "thinking":
            return LogEntry(kind="thought", text=text_of(block, "thinking"))
        case "tool_use" | "server_tool_use":
            argument = argument_of(mapping(block, "input"))
            return LogEntry(kind="tool", tool=text_of(block, "name"), text=argument)
        case "tool_result":
            output, is_error = content_text(block.get("content")), bool(block.get("is_error"))
            return LogEntry(kind="result", text=output, is_error=is_error)
        case _:
            return None


def _result(event: Event) -> Iterator[LogEntry]:
    """The end of a turn. Its text repeats the last message, unless it is an error."""
    reason = text_of(event, "terminal_reason") or text_of(event, "subtype")
    errors = event.get("errors")
    is_error = bool(event.get("is_error")) or text_of(event, "subtype").startswith("error")
    if is_error:
        found = [text_of(event, "result"), *(errors if isinstance(errors, list) else ())]
        text = "\n".join(str(part) for part in found if part)
        yield LogEntry(kind="error", text=text or reason)
    yield _cost(event)
    is_error = is_error or reason.startswith("aborted")
    yield LogEntry(kind="ended", text=reason, is_error=is_error)


def _cost(event: Event) -> LogEntry:
    """The cost since the previous result; `total_cost_usd` is the whole session's."""
    models = mapping(event, "model_usage_since_last_result")
    parts = [part for part in models.values() if isinstance(part, dict)]
    if not parts:
        usage = mapping(event, "usage")
        read = sum(count_of(usage, name) for name in _READ_BY_MODEL)
        return usage_entry((read, count_of(usage, "output_tokens")))
    costs = [number_of(part, "costUSD") for part in parts]
    read = sum(count_of(part, name) for part in parts for name in _READ)
    return usage_entry(
        (read, sum(count_of(part, "outputTokens") for part in parts)),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _news(event: Event) -> Entries | None:
    match event.get("subtype"):
        case "api_retry":
            tries = f"try {event.get('attempt')} of {event.get('max_retries')}"
            return (LogEntry(kind="error", text=f"{event.get('error')}, {tries}"),)
        case kind if kind in _QUIET_NEWS:
            return ()
        case kind:
            text = text_of(event, "content") or text_of(event, "message")
            return (LogEntry(kind="text", text=f"{kind}: {text}"),) if text else None


def _request(request: Event) -> Entries | None:
    if request.get("subtype") != "can_use_tool":
        return ()
    argument = argument_of(mapping(request, "input"))
    return (LogEntry(kind="asked", tool=text_of(request, "tool_name"), text=argument),)
