"""OpenAI Chat Completions as the scripted model speaks them: whole answers, halves and errors."""

import itertools
import json

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10

_numbers = itertools.count(1)


def offers_tools(body: dict) -> bool:
    return bool(body.get("tools"))


def streams(body: dict) -> bool:
    return bool(body.get("stream"))


def error(_status: int, kind: str, message: str) -> dict:
    return {"error": {"type": kind, "code": kind, "message": message}}


def answer(text: str, tools, body: dict) -> bytes:
    """The whole answer, streamed or in one piece, as it was asked for."""
    calls = [_call(index, tool) for index, tool in enumerate(tools)]
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    end = "tool_calls" if calls else "stop"
    if not streams(body):
        choice = {"index": 0, "message": message, "finish_reason": end}
        return json.dumps(_completion(body, [choice], usage=_usage())).encode()
    return (
        _chunk(body, message)
        + _chunk(body, {}, finish_reason=end)
        + _event(_completion(body, [], usage=_usage()))
        + b"data: [DONE]\n\n"
    )


def half_an_answer(body: dict) -> bytes:
    """A message that has begun to say something and does not end."""
    return _chunk(body, {"role": "assistant", "content": "let me"})


def nonsense() -> bytes:
    return b"data: {not json\n\n"


def _call(index: int, tool) -> dict:
    called = {"name": tool.name, "arguments": json.dumps(tool.input)}
    number = f"call_{next(_numbers):06}"
    return {"index": index, "id": number, "type": "function", "function": called}


def _usage() -> dict:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def _completion(body: dict, choices: list[dict], **fields: object) -> dict:
    kind = "chat.completion.chunk" if streams(body) else "chat.completion"
    return {
        "id": f"chatcmpl-{next(_numbers):06}",
        "object": kind,
        "created": 0,
        "model": body.get("model", ""),
        "choices": choices,
        **fields,
    }


def _chunk(body: dict, delta: dict, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _event(_completion(body, [choice]))


def _event(fields: dict) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()
