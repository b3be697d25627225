"""The Gemini API as the scripted model speaks it: whole answers, halves and errors.

The address names the model and whether the answer is streamed: the server adds both to the request.
"""

import json

INPUT_TOKENS, OUTPUT_TOKENS = 100, 10


def offers_tools(body: dict) -> bool:
    return any(tool.get("functionDeclarations") for tool in body.get("tools") or ())


def streams(body: dict) -> bool:
    return bool(body.get("stream"))


def error(status: int, kind: str, message: str) -> dict:
    return {"error": {"code": status, "status": kind.upper(), "message": message}}


def answer(text: str, tools, body: dict) -> bytes:
    """The whole answer, streamed or in one piece, as it was asked for."""
    parts: list[dict] = [{"text": text}] if text or not tools else []
    parts += [{"functionCall": {"name": tool.name, "args": tool.input}} for tool in tools]
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS,
        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    said = {**_said(parts, finishReason="STOP"), "usageMetadata": usage}
    return _event(said) if streams(body) else json.dumps(said).encode()


def half_an_answer(_body: dict) -> bytes:
    """A message that has begun to say something and does not end."""
    return _event(_said([{"text": "let me"}]))


def nonsense() -> bytes:
    return b"data: {not json\n\n"


def _said(parts: list[dict], **fields: str) -> dict:
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"index": 0, "content": content, **fields}]}


def _event(fields: dict) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()
