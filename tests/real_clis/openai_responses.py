"""OpenAI Responses as the scripted model speaks them: whole answers, halves and errors."""

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
    items = [_message(text)] if text or not tools else []
    items += [_call(tool) for tool in tools]
    if not streams(body):
        return json.dumps(_response(body, items, status="completed")).encode()
    return b"".join(
        [
            _event("response.created", response=_response(body, [], status="in_progress")),
            *(_streamed(index, item) for index, item in enumerate(items)),
            _event("response.completed", response=_response(body, items, status="completed")),
        ]
    )


def half_an_answer(body: dict) -> bytes:
    """A message that has begun to say something and does not end."""
    item = {**_message("let me"), "status": "in_progress", "content": []}
    return (
        _event("response.created", response=_response(body, [], status="in_progress"))
        + _event("response.output_item.added", output_index=0, item=item)
        + _event(
            "response.output_text.delta",
            item_id=item["id"],
            output_index=0,
            content_index=0,
            delta="let me",
        )
    )


def nonsense() -> bytes:
    return b"event: response.created\ndata: {not json\n\n"


def _response(body: dict, items: list[dict], *, status: str) -> dict:
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return {
        "id": f"resp_{next(_numbers):06}",
        "object": "response",
        "model": body.get("model", ""),
        "status": status,
        "output": items,
        "usage": usage if status == "completed" else None,
    }


def _message(words: str) -> dict:
    return {
        "type": "message",
        "id": f"item_{next(_numbers):06}",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }


def _call(tool) -> dict:
    """A tool of an MCP server is named `namespace/name`, for it is asked for by both."""
    namespace, _, name = tool.name.rpartition("/")
    return {
        "type": "function_call",
        "id": f"item_{next(_numbers):06}",
        "status": "completed",
        "call_id": f"call_{next(_numbers):06}",
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "arguments": json.dumps(tool.input),
    }


def _streamed(index: int, item: dict) -> bytes:
    begun = {**item, "status": "in_progress"}
    return _event("response.output_item.added", output_index=index, item=begun) + _event(
        "response.output_item.done", output_index=index, item=item
    )


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
