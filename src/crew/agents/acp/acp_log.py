"""Reads the messages of the Agent Client Protocol in a log."""

from crew.agents.event_fields import (
    Event,
    argument_of,
    content_text,
    count_of,
    mapping,
    number_of,
    text_of,
)
from crew.domain.kernel.log_entry import Entries, EntryKind, LogEntry, usage_entry

_PIECES: dict[str, EntryKind] = {
    "agent_message_chunk": "said",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "prompt",
}
_QUIET = {
    *("plan", "available_commands_update", "current_mode_update", "config_option_update"),
    *("session_info_update",),
}


def acp_entries(method: str, params: Event) -> Entries | None:
    """The entries of a notification, or of a request."""
    if method == "session/request_permission":
        call = mapping(params, "toolCall")
        return (LogEntry(kind="asked", tool=text_of(call, "kind"), text=text_of(call, "title")),)
    if method != "session/update":
        return () if method.startswith("_") else None  # an extension of one agent
    update = mapping(params, "update")
    kind = text_of(update, "sessionUpdate")
    if kind in _PIECES:
        text = text_of(mapping(update, "content"), "text")
        return (LogEntry(kind=_PIECES[kind], text=text, is_part=True),)
    if kind in {"tool_call", "tool_call_update"}:
        return _tool(update)
    if kind == "usage_update":
        amount = number_of(mapping(update, "cost"), "amount")
        total = usage_entry((0, 0), amount, is_part=True, is_total=True)
        return () if amount is None else (total,)
    return () if kind in _QUIET else None


def prompt_ended(result: Event) -> Entries:
    """The answer to a prompt: how its turn ended, and its tokens."""
    usage, reason = mapping(result, "usage"), text_of(result, "stopReason")
    counts = (count_of(usage, "inputTokens"), count_of(usage, "outputTokens"))
    ended = LogEntry(kind="ended", text=reason, is_error=reason != "end_turn")
    return (usage_entry(counts, is_part=True), ended) if usage else (ended,)


def _tool(update: Event) -> Entries:
    """A tool is named first, perhaps several times; its result is the last update."""
    status = text_of(update, "status")
    if status in {"completed", "failed"}:
        text = _output(update)
        return (LogEntry(kind="result", text=text, is_error=status == "failed"),)
    argument = argument_of(mapping(update, "rawInput")) or text_of(update, "title")
    name = text_of(update, "name") or text_of(update, "kind")
    call = text_of(update, "toolCallId")
    has_news = bool(argument or name)
    tool = LogEntry(kind="tool", tool=name, text=argument, call=call, is_part=True)
    return (tool,) if has_news else ()


def _output(update: Event) -> str:
    """The raw output: the content of some programs is formatted for an editor."""
    raw = update.get("rawOutput")
    if isinstance(raw, dict):
        raw = raw.get("output")
    if isinstance(raw, str):
        return raw
    content = update.get("content")
    blocks = content if isinstance(content, list) else []
    return content_text([block.get("content") for block in blocks if isinstance(block, dict)])
