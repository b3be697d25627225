"""What a CLI sends to its model, read alike in both protocols: instructions, prompts and tools."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`told` is everything in it, `prompt` the last thing asked, `calls` the tools used since."""

    told: str
    prompt: str
    calls: int
    tools: tuple[str, ...]

    def tool(self, word: str) -> str:
        """The name under which a tool is offered here; empty where it is not."""
        return next((name for name in self.tools if word in name.replace("_", "-")), "")


def conversation(body: dict) -> Conversation:
    turns = list(_responses(body) if "input" in body else _messages(body))
    asked = max(number for number, (role, _) in enumerate(turns) if role == "user")
    return Conversation(
        told="\n".join(text for _, text in turns),
        prompt=turns[asked][1],
        calls=sum(role == "call" for role, _ in turns[asked:]),
        tools=tuple(_tools(body)),
    )


Turn = tuple[str, str]


def _messages(body: dict) -> Iterator[Turn]:
    """Anthropic Messages; the results of tools come in messages of the user."""
    yield "system", _text(body.get("system", ""))
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        kinds = [block["type"] for block in blocks]
        yield from (("call", "") for kind in kinds if kind == "tool_use")
        role = "result" if "tool_result" in kinds else message["role"]
        yield role, _text(message["content"])


def _responses(body: dict) -> Iterator[Turn]:
    """OpenAI Responses: items one after the other."""
    yield "system", body.get("instructions", "")
    for item in body["input"]:
        match item["type"]:
            case "function_call":
                yield "call", ""
            case "message":
                yield item["role"], _text(item["content"])
            case _:
                yield "result", ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())


def _tools(body: dict) -> Iterator[str]:
    for tool in body["tools"]:
        if tool.get("type") == "namespace":
            yield from (f"{tool['name']}/{one['name']}" for one in tool["tools"])
        elif "name" in tool:
            yield tool["name"]
