"""Reads the lines of `codex exec --json` and of `codex app-server` in a log.

Both print the same items; the app-server writes their names in camel case.
"""

import re

from crew.agents.event_fields import (
    Event,
    argument_of,
    content_text,
    count_of,
    mapping,
    text_of,
)
from crew.domain.kernel.log_entry import Entries, LogEntry, failure, usage_entry

_QUIET_METHODS = re.compile(
    r"(thread|turn|item|hook|account|mcpServer|remoteControl|skills|model|modelProvider|app|fs"
    r"|project|serverRequest|command|process|fuzzyFileSearch|autoApprovalReview)/\w[\w/]*"
)
_QUIET_ITEMS = {"todo_list", "plan", "context_compaction", "image_view"}
_HELPER_CALLS = {"collab_agent_tool_call", "collab_tool_call"}
_SHELL = re.compile(r"/\S*sh -l?c (.+)", re.DOTALL)
_INNER_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")


def codex_entries(event: Event) -> Entries | None:
    """None for an event that Codex does not print, or that is not known."""
    match event.get("type"):
        case "item.started" | "item.completed" as kind:
            return _item(mapping(event, "item"), has_ended=kind == "item.completed")
        case "thread.started" | "turn.started" | "item.updated":
            return ()
        case "turn.completed":
            usage = mapping(event, "usage")
            counts = (count_of(usage, "input_tokens"), count_of(usage, "output_tokens"))
            return (usage_entry(counts, is_total=True), LogEntry(kind="ended", text="completed"))
        case "turn.failed":
            return failure(text_of(mapping(event, "error"), "message"))
        case _:
            return None


def app_server_entries(method: str, params: Event) -> Entries | None:
    """The entries of a notification, or of a request."""
    match method:
        case "item/started" | "item/completed":
            item = {_snake(name): value for name, value in mapping(params, "item").items()}
            return _item(item, has_ended=method == "item/completed")
        case "thread/tokenUsage/updated":
            last = mapping(mapping(params, "tokenUsage"), "last")
            counts = (count_of(last, "inputTokens"), count_of(last, "outputTokens"))
            return (usage_entry(counts, is_part=True),)
        case "error":
            return (LogEntry(kind="error", text=text_of(mapping(params, "error"), "message")),)
        case "turn/completed":
            return _turn(mapping(params, "turn"))
        case "warning" | "configWarning" | "guardianWarning" | "deprecationNotice":
            text = text_of(params, "message") or text_of(params, "summary")
            return (LogEntry(kind="text", text=f"warning: {text}"),)
        case _ if method.endswith("requestApproval"):
            argument = text_of(params, "command") or text_of(params, "reason")
            return (LogEntry(kind="asked", tool=method.split("/")[-2], text=argument),)
        case _:
            return () if _QUIET_METHODS.fullmatch(method) else None


def _turn(turn: Event) -> Entries:
    status = text_of(turn, "status")
    if status == "failed":
        return failure(text_of(mapping(turn, "error"), "message"))
    return (LogEntry(kind="ended", text=status, is_error=status != "completed"),)


def _item(item: Event, *, has_ended: bool) -> Entries | None:
    """The entries of an item. A tool is shown when it starts, its result when it ends."""
    kind = _snake(text_of(item, "type"))
    if kind in {"command_execution", "mcp_tool_call", "dynamic_tool_call"}:
        return (_result(item),) if has_ended else (_tool(kind, item),)
    if kind in _HELPER_CALLS:
        return _helper_call(item, has_ended=has_ended)
    return _ended_item(kind, item) if has_ended else ()


def _ended_item(kind: str, item: Event) -> Entries | None:
    text = text_of(item, "text")
    match kind:
        case "agent_message":
            return (LogEntry(kind="said", text=text),)
        case "user_message":
            return (LogEntry(kind="prompt", text=content_text(item.get("content"))),)
        case "reasoning":
            return _thought(text or content_text(item.get("summary")))
        case "file_change":
            return _edits(item)
        case "web_search":
            return (LogEntry(kind="tool", tool="web search", text=text_of(item, "query")),)
        case "error":  # it does not end the turn
            return (LogEntry(kind="text", text=f"warning: {text_of(item, 'message')}"),)
        case _:
            return () if kind in _QUIET_ITEMS else None


def _thought(text: str) -> Entries:
    return (LogEntry(kind="thought", text=text),) if text else ()


def _tool(kind: str, item: Event) -> LogEntry:
    if kind == "command_execution":
        return LogEntry(kind="tool", tool="shell", text=_bare(text_of(item, "command")))
    name = ": ".join(part for part in (text_of(item, "server"), text_of(item, "tool")) if part)
    return LogEntry(kind="tool", tool=name, text=argument_of(mapping(item, "arguments")))


def _helper_call(item: Event, *, has_ended: bool) -> Entries:
    """A helper is started, told or waited for; what it says comes in a thread of its own."""
    if not has_ended:
        name = _snake(text_of(item, "tool")).replace("_", " ")
        return (LogEntry(kind="tool", tool=name, text=text_of(item, "prompt")),)
    is_error = text_of(item, "status") == "failed"
    return (LogEntry(kind="result", text="failed", is_error=True),) if is_error else ()


def _result(item: Event) -> LogEntry:
    code, status = item.get("exit_code"), text_of(item, "status")
    error = text_of(mapping(item, "error"), "message")
    output = text_of(item, "aggregated_output") or content_text(
        mapping(item, "result").get("content")
    )
    head = [f"exit code {code}"] if code else []
    return LogEntry(
        kind="result",
        text="\n".join(part for part in (*head, error, output) if part),
        is_error=bool(code) or bool(error) or status in {"failed", "declined"},
    )


def _edits(item: Event) -> Entries:
    changes = item.get("changes")
    listed = changes if isinstance(changes, list) else []
    paths = [text_of(change, "path") for change in listed if isinstance(change, dict)]
    edit = LogEntry(kind="tool", tool="edit", text=", ".join(path for path in paths if path))
    if text_of(item, "status") in {"failed", "declined"}:
        refused = text_of(item, "status")
        return (edit, LogEntry(kind="result", text=refused, is_error=True))
    return (edit,)


def _bare(command: str) -> str:
    """The command without the shell that Codex puts around it."""
    found = _SHELL.fullmatch(command)
    if found is None:
        return command
    import shlex  # noqa: PLC0415 - only for logs of Codex

    try:
        words = shlex.split(found[1])
    except ValueError:
        return found[1]
    return words[0] if len(words) == 1 else found[1]


def _snake(name: str) -> str:
    return _INNER_CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)
