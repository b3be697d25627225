"""Carries out the MCP tools of a person's assistant: each is a command of crew, run as a process.

Text from the assistant is passed on stdin or after `=`, so that it is never taken for an option.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.text import as_json
from crew.find_crew import load_folder
from crew.front.entry_lines import entry_lines
from crew.front.mcp.person_tools import READING
from crew.front.mcp.tool_list import ToolCall, ToolReply, said
from crew.runner.by_hand.crew_command import run_crew
from crew.runner.requests.person_only import refuse_agents
from crew.runner.views.attention import ENDS, await_attention
from crew.runner.views.read_log import last_items
from crew.store.runner_lock import find_runner
from crew.workplace import find_workplace

Args = Mapping[str, Any]

WAIT_S, LONGEST_WAIT_S = 50, 600
PATIENCE_S = 50.0
LOG_LINES, MOST_LOG_LINES = 40, 500
LONGEST_REPLY = 80_000
TASK_FIELDS = ("id", "title", "status", "agent", "priority", "labels", "deps", "questions")
AGENT_FIELDS = ("name", "kind", "status", "task", "total_cost_usd", "last_error", "doing")
WANTS_A_RUNNER = frozenset({"new", "quest_new", "send", "retry"})


class CommandLine(NamedTuple):
    """The arguments of a command, and what it reads from stdin."""

    args: tuple[str, ...]
    stdin: str = ""


def done_for_a_person(asked: ToolCall) -> ToolReply:
    """Carry out a tool in the current folder; no runner is needed."""
    here = Path.cwd()
    args = {name: value for name, value in asked.args.items() if name != "token"}
    if asked.verb not in READING:
        refuse_agents(here, f"the tool for `crew {asked.verb.replace('_', ' ')}`")
    if asked.verb in IN_PROCESS:
        return _bounded(said({"reply": IN_PROCESS[asked.verb](args)}))
    command = COMMANDS[asked.verb](args)
    reply = run_crew(command.args, directory=here, stdin=command.stdin, timeout_s=PATIENCE_S)
    return _bounded(said({"reply": _shown(asked.verb, reply)}))


def _shown(verb: str, reply: Any) -> Any:
    """The reply in short, and a hint if nothing happens without a runner."""
    if verb == "list":
        return [_some(task, TASK_FIELDS) for task in reply]
    if verb == "ps":
        return [_some(agent, AGENT_FIELDS) for agent in reply]
    if verb == "answer":
        reply = f"question {reply['id']} is answered"
    if verb not in WANTS_A_RUNNER or find_runner(load_folder(Path.cwd()) / "lock") is not None:
        return reply
    text = reply if isinstance(reply, str) else as_json(reply)
    return f"{text}\nno runner is up: start-runner, or `crew run` in a terminal, starts one"


def _some(document: Args, names: Iterable[str]) -> dict[str, Any]:
    return {name: document[name] for name in names if document.get(name) not in (None, [], "")}


def _bounded(reply: ToolReply) -> ToolReply:
    more = len(reply.text) - LONGEST_REPLY
    if more <= 0:
        return reply
    note = f"\n… {more} characters left out; the same command in a terminal prints all of it"
    return ToolReply(reply.text[:LONGEST_REPLY] + note, is_error=reply.is_error)


def _options(args: Args, **names: str) -> tuple[str, ...]:
    """`--name=value` for each argument that is given; a list gives several."""
    words = []
    for key, name in names.items():
        value = args.get(key)
        values = value if isinstance(value, list) else [] if value is None else [value]
        words += [f"--{name}={one}" for one in values]
    return tuple(words)


def _list(args: Args) -> CommandLine:
    return CommandLine(("list", *_options(args, status="status", label="label")))


def _new(args: Args) -> CommandLine:
    named = _options(
        args,
        title="title",
        after="after",
        labels="label",
        priority="priority",
        agent="agent",
        base="base",
    )
    return CommandLine(("new", "--body=-", *named), stdin=args.get("body", ""))


def _quest_new(args: Args) -> CommandLine:
    named = _options(args, workflow="workflow", slots="slots", base="base")
    return CommandLine(("quest", "new", *named, "-"), stdin=args["request"])


def _run(args: Args) -> CommandLine:
    return CommandLine(("run", "--detach", *_options(args, agents="agents", agent="agent")))


COMMANDS: Mapping[str, Callable[[Args], CommandLine]] = {
    "inbox": lambda _args: CommandLine(("inbox",)),
    "answer": lambda args: CommandLine(("answer", "--", args["question"], "-"), stdin=args["text"]),
    "list": _list,
    "show": lambda args: CommandLine(("show", "--", args["task"])),
    "new": _new,
    "send": lambda args: CommandLine(("send", "--", args["task"], "-"), stdin=args["text"]),
    "retry": lambda args: CommandLine(("retry", "--", args["subject"])),
    "merge": lambda args: CommandLine(("merge", "--", args["task"])),
    "quest_new": _quest_new,
    "quest_list": lambda _args: CommandLine(("quest", "list")),
    "quest_show": lambda args: CommandLine(("quest", "show", "--", args["quest"])),
    "quest_cancel": lambda args: CommandLine(
        ("quest", "cancel", *_options(args, reason="reason"), "--", args["quest"])
    ),
    "ps": lambda _args: CommandLine(("ps",)),
    "run": _run,
}


def _wait(args: Args) -> dict[str, Any]:
    timeout_s = _within(args, "timeout_s", WAIT_S, LONGEST_WAIT_S)
    workplace = find_workplace(Path.cwd())
    with closing(workplace.db):
        subject = workplace.source.resolve(args["id"])
        wanted = frozenset(args.get("status") or ENDS)
        found = await_attention(workplace, subject, statuses=wanted, timeout_s=timeout_s)
        return {**found.view(), "timed_out": not found.is_due(wanted)}


def _log(args: Args) -> str:
    count = _within(args, "lines", LOG_LINES, MOST_LOG_LINES)
    workplace = find_workplace(Path.cwd())
    with closing(workplace.db):
        log = workplace.task_log(workplace.source.resolve(args["task"]))

    def texts(entries: Iterable[Any]) -> list[str]:
        return [line.text for entry in entries for line in entry_lines(entry)]

    return "\n".join(last_items(log, count, texts)) or "it has printed nothing yet"


def _within(args: Args, name: str, default: int, most: int) -> int:
    value = args.get(name, default)
    if not 0 < value <= most:
        raise UsageError(f"{name} cannot be {value}", hint=f"give a number from 1 to {most}")
    return int(value)


IN_PROCESS: Mapping[str, Callable[[Args], Any]] = {"wait": _wait, "log": _log}
