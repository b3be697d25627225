"""Anthropic Messages as the scripted model speaks them: whole answers, halves and errors."""

import itertools
import json

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10

_numbers = itertools.count(1)


def offers_tools(body: dict) -> bool:
    return bool(body.get("tools"))


def streams(body: dict) -> bool:
    return bool(body.get("stream"))


def error(_status: int, kind: str, message: str) -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}}


def answer(text: str, tools, body: dict) -> bytes:
    """The whole answer, streamed or in one piece, as it was asked for."""
    blocks = [_text(text)] if text or not tools else []
    blocks += [_tool_use(tool) for tool in tools]
    stop = {"stop_reason": "tool_use" if tools else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    if not streams(body):
        content = [block for block, _ in blocks]
        return json.dumps({**_message(body), "content": content, **stop, "usage": usage}).encode()
    return b"".join(
        [
            _start(body),
            *(_streamed(index, block, delta) for index, (block, delta) in enumerate(blocks)),
            _event("message_delta", delta=stop, usage=usage),
            _event("message_stop"),
        ]
    )


def half_an_answer(body: dict) -> bytes:
    """A message that has begun to say something and does not end."""
    block, delta = _text("let me")
    return (
        _start(body)
        + _event("content_block_start", index=0, content_block=_emptied(block))
        + _event("content_block_delta", index=0, delta=delta)
    )


def nonsense() -> bytes:
    return b"event: message_start\ndata: {not json\n\n"


def _message(body: dict) -> dict:
    return {
        "id": f"msg_{next(_numbers):06}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }


def _text(words: str) -> tuple[dict, dict]:
    return {"type": "text", "text": words}, {"type": "text_delta", "text": words}


def _tool_use(tool) -> tuple[dict, dict]:
    name = {"id": f"toolu_{next(_numbers):06}", "name": tool.name}
    block = {"type": "tool_use", **name, "input": tool.input}
    return block, {"type": "input_json_delta", "partial_json": json.dumps(tool.input)}


def _emptied(block: dict) -> dict:
    """A block as its stream begins: what it holds comes after it."""
    return {**block, **({"text": ""} if block["type"] == "text" else {"input": {}})}


def _streamed(index: int, block: dict, delta: dict) -> bytes:
    return (
        _event("content_block_start", index=index, content_block=_emptied(block))
        + _event("content_block_delta", index=index, delta=delta)
        + _event("content_block_stop", index=index)
    )


def _start(body: dict) -> bytes:
    return _event("message_start", message=_message(body))


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
