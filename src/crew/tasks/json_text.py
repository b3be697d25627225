"""Reads and writes the JSON objects of task files, and sets single fields in them."""

import json
from collections.abc import Mapping
from typing import Any


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
    """The text of the object with these fields set. None removes a field; all others stay."""
    removed = {key for key, value in changes.items() if value is None}
    fields = {**read_object(text), **changes}
    end = text[len(text.rstrip()) :]
    return _text({key: value for key, value in fields.items() if key not in removed}) + end


def dump(fields: Mapping[str, Any]) -> str:
    return _text({key: value for key, value in fields.items() if value is not None})


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False)
