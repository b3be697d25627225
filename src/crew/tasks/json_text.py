"""Changes single fields of a JSON object. Every other byte of its text stays unchanged."""

import json
from collections.abc import Mapping
from typing import Any

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def read_object(text: str) -> dict[str, Any]:
    """The object in `text`. ValueError gives the reason if there is none."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the text is wrong, not a type
    return value


def with_fields(text: str, changes: Mapping[str, Any]) -> str:
    """The same text with these fields set. None removes a field."""
    for key, value in changes.items():
        text = _without(text, key) if value is None else _with_field(text, key, value)
    return text


def dump(fields: Mapping[str, Any]) -> str:
    return json.dumps(
        {k: v for k, v in fields.items() if v is not None}, indent=2, ensure_ascii=False
    )


def _with_field(text: str, key: str, value: Any) -> str:
    spans = _spans(text)
    written = json.dumps(value, ensure_ascii=False)
    if key in spans:
        _, start, end = spans[key]
        return text[:start] + written + text[end:]
    field = f"{json.dumps(key)}: {written}"
    if not spans:
        return "{\n  " + field + "\n}"
    last_start, _, last_end = list(spans.values())[-1]
    return text[:last_end] + "," + _space_before(text, last_start) + field + text[last_end:]


def _without(text: str, key: str) -> str:
    spans = _spans(text)
    if key not in spans:
        return text
    order = list(spans)
    at = order.index(key)
    start, _, end = spans[key]
    if at > 0:  # from the end of the field before, comma included
        return text[: spans[order[at - 1]][2]] + text[end:]
    if len(order) > 1:  # up to the start of the field after
        return text[:start] + text[spans[order[1]][0] :]
    return text[:start].rstrip(_SPACE) + text[end:].lstrip(_SPACE)


def _space_before(text: str, at: int) -> str:
    return text[len(text[:at].rstrip(_SPACE)) : at]


def _spans(text: str) -> dict[str, tuple[int, int, int]]:
    """Key to (start of the key, start of the value, end of the value), in order."""
    spans: dict[str, tuple[int, int, int]] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, after = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, after) + 1)
        _, end = _DECODER.raw_decode(text, start)
        spans[key] = (at, start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
