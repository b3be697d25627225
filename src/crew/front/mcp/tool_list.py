"""The MCP tools of agents: names, descriptions and schemas, for the server and the stdio shim."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from crew.domain.kernel.errors import CrewError, NotFound, UsageError
from crew.domain.kernel.text import as_json

INSTRUCTIONS = (
    "You work on one task of crew. When your step is finished, call signal-back once and end your "
    "turn; crew checks the work itself."
)

LONGEST_CALL = 1_048_576
"""The most bytes of one message; far above any tool's need, so that refusals can be precise."""


class Tool(NamedTuple):
    """A tool, and the request to the runner that it sends."""

    name: str
    verb: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = {}

    def view(self) -> dict[str, Any]:
        """The tool as `tools/list` returns it."""
        schema = {
            "type": "object",
            "properties": {name: dict(one) for name, one in self.properties.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"name": self.name, "description": self.description, "inputSchema": schema}


def text_field(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


SIGNAL_BACK = Tool(
    name="signal-back",
    verb="signal",
    description=(
        "Report how your step ends; the first signal counts, and you stop after it. "
        "complete needs summary. partially-complete (you run out of context) needs progress and "
        "continuationPoint. needs-user-input (only a person can help) needs question. "
        "needs-role-followup (another role of your quest must act first) needs targetRole and "
        "reason. A role of a quest may not send every signal; its instructions say which."
    ),
    properties={
        "signal": {
            "type": "string",
            "enum": [
                "complete",
                "partially-complete",
                "needs-user-input",
                "needs-role-followup",
            ],
            "description": "How the step ends.",
        },
        "stepId": text_field("Not needed: crew knows your step."),
        "summary": text_field("What was accomplished."),
        "progress": text_field("What was done."),
        "continuationPoint": text_field("Where to pick up."),
        "question": text_field("What only a person can answer."),
        "context": text_field("What is needed to answer or to act."),
        "targetRole": text_field(
            "The role of your quest that must act first, such as spiritmender."
        ),
        "reason": text_field("Why that role must act first."),
        "resume": {
            "type": "boolean",
            "description": "Whether your session continues after the other role. Default: true.",
        },
    },
    required=("signal",),
    aliases={"type": "signal"},
)


def texts_field(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


PLAN_STEPS = Tool(
    name="plan-steps",
    verb="plan_steps",
    description=(
        "Submit all items of your quest; only for a role that plans. The last plan counts: "
        "finished items stay as they are, an item you leave out is given up, a new id is a new "
        "item. A plan with a mistake is refused with the reason, and nothing is changed."
    ),
    properties={
        "steps": {
            "type": "array",
            "description": "All items of the plan, in any order.",
            "items": {
                "type": "object",
                "properties": {
                    "id": text_field("Short and unique: letters, digits, - and _, such as parser."),
                    "title": text_field("One line."),
                    "description": text_field(
                        "What to do, for an agent that knows only this text."
                    ),
                    "dependencies": texts_field(
                        "The ids of the items that must be merged before it."
                    ),
                    "files": texts_field("The files it is about."),
                    "acceptance": text_field("How to check that it is finished."),
                },
                "required": ["id", "title"],
                "additionalProperties": False,
            },
        }
    },
    required=("steps",),
)

TOOLS = (
    SIGNAL_BACK,
    Tool(
        name="get-task",
        verb="get_task",
        description="Read the task you work on: id, title, body, comments, deps, status.",
        properties={},
    ),
    Tool(
        name="get-quest",
        verb="get_quest",
        description=(
            "Read the quest that your task is a part of: the request, the plan with the state of "
            "every item, what each role reported, and the open questions."
        ),
        properties={},
    ),
    Tool(
        name="post-message",
        verb="post_message",
        description="Send a message to the agent that works on another task.",
        properties={"task": text_field("The id of that task."), "text": text_field("The message.")},
        required=("task", "text"),
    ),
    Tool(
        name="read-messages",
        verb="fetch_messages",
        description="Read the messages that arrived for you since your step began.",
        properties={},
    ),
    Tool(
        name="report-progress",
        verb="progress",
        description="Show people in one line what you are doing now.",
        properties={"text": text_field("One short line.")},
        required=("text",),
    ),
    PLAN_STEPS,
)

IGNORED = frozenset({"stepId"})

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
}


class ToolCall(NamedTuple):
    """A request to the runner, without importing the class `Request`."""

    verb: str
    args: dict[str, Any]


class ToolReply(NamedTuple):
    """The answer of a tool."""

    text: str
    is_error: bool = False

    def view(self) -> dict[str, Any]:
        """The answer as the result of `tools/call`."""
        return {"content": [{"type": "text", "text": self.text}], "isError": self.is_error}


def spoken(name: str, arguments: Any, *, token: str, tools: tuple[Tool, ...] = TOOLS) -> ToolCall:
    """The request of a tool call; an error names the argument and how to correct it.

    A null counts as a missing argument: some models fill every field of a schema.
    """
    tool = _find(name, tools)
    if not isinstance(arguments, dict):
        raise UsageError("the arguments are not an object", hint=f"send one with {_known(tool)}")
    given = _named(tool, {key: value for key, value in arguments.items() if value is not None})
    for key, value in given.items():
        _check(tool, key, value)
    if missing := [key for key in tool.required if key not in given]:
        raise UsageError(
            f"{name} needs {' and '.join(missing)}", hint=f"call it again with {_known(tool)}"
        )
    args = {key: value for key, value in given.items() if key not in IGNORED}
    return ToolCall(verb=tool.verb, args={**args, "token": token})


def _find(name: str, tools: tuple[Tool, ...]) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise NotFound(
        f"crew has no tool {name[:100]!r}", hint=f"there are {', '.join(t.name for t in tools)}"
    )


def _named(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their schema names; an alias with a different value is an error."""
    named = {key: value for key, value in given.items() if key not in tool.aliases}
    for alias, key in tool.aliases.items():
        if alias in given and named.setdefault(key, given[alias]) != given[alias]:
            raise UsageError(
                f"{alias} and {key} are the same and differ here", hint=f"send {key} alone"
            )
    return named


def _known(tool: Tool) -> str:
    return ", ".join(tool.properties) or "nothing in it"


def _check(tool: Tool, key: str, value: Any) -> None:
    if key not in tool.properties:
        raise UsageError(
            f"{tool.name} takes no {key[:100]!r}", hint=f"call it again with {_known(tool)}"
        )
    kind = tool.properties[key]["type"]
    # In Python, True is an int; in JSON it is not.
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        raise UsageError(
            f"{key} must be {_article(kind)} {kind}", hint="fix it and call the tool again"
        )


def _article(kind: str) -> str:
    return "an" if kind[0] in "aeiou" else "a"


def said(words: Mapping[str, Any]) -> ToolReply:
    """The runner's reply as the answer of a tool."""
    if "error" in words:
        error = words["error"]
        return _refused(error["message"], error["hint"])
    reply = words["reply"]
    text = reply if isinstance(reply, str) else as_json(reply)
    # A surrogate, as from a file that is not UTF-8, would break the encoding of the answer.
    return ToolReply(text.encode(errors="replace").decode())


def refusal(error: CrewError) -> ToolReply:
    return _refused(error.message, error.hint)


def _refused(message: str, hint: str) -> ToolReply:
    return ToolReply(f"refused: {message}\nhint: {hint}", is_error=True)
