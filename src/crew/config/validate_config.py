"""Checks the tables of a config file against the model. Errors name file, line and key."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crew.config.layers.aliases import spellings
from crew.config.model import (
    TABLES,
    AgentSettings,
    AgentsSettings,
    KeyBinding,
    RoleSettings,
    TuiSettings,
)
from crew.config.reserved_keys import NOT_SUPPORTED, NOT_YET, not_yet_set
from crew.config.toml.key_names import key_name
from crew.config.toml.value_kinds import Reader
from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.suggest import nearest


@frozen
class Layer:
    """One file of the config: its displayed name, its text and its values."""

    name: str
    text: str
    values: Mapping[str, Any]


@functools.cache
def readers(table: type) -> Mapping[str, tuple[str, Reader]]:
    """The keys of a table, each with its field and its reader."""
    return {
        field.metadata["key"] or field.name: (field.name, field.metadata["read"])
        for field in dataclasses.fields(table)
        if "read" in field.metadata
    }


def typed_value(path: tuple[str, ...], typed: str) -> Any:
    """Convert the text that a person typed for this key to a TOML value, unchecked."""
    model = _model(path)
    read = typed_readers(model).get(path[-1]) if model else None
    return read(typed) if read else typed


def has_key(path: tuple[str, ...]) -> bool:
    """Whether this is a key of the config, set or not."""
    model = _model(path)
    return model is not None and path[-1] in readers(model)


def _model(path: tuple[str, ...]) -> type | None:
    """The table that contains the last part of a key; None for tables with free names."""
    match path:
        case ("agents", _, "env", _):
            return None
        case ("agents", key) if key in typed_readers(AgentsSettings):
            return AgentsSettings
        case ("agents", _, _):
            return AgentSettings
        case ("roles", _, _):
            return RoleSettings
        case ("tui", _):
            return TuiSettings
        case ("tui", "keybindings", _, _):
            return KeyBinding
        case (table, _):
            return TABLES.get(table)
        case _:
            return None


@functools.cache
def typed_readers(table: type) -> Mapping[str, Callable[[str], Any]]:
    """The keys of a table, each with the reader of a value without TOML quotes."""
    return {
        field.metadata["key"] or field.name: field.metadata["typed"]
        for field in dataclasses.fields(table)
        if "typed" in field.metadata
    }


def check(layer: Layer) -> None:
    """Raise for the first key or value in this layer that the model does not accept."""
    _refuse_not_yet(layer)
    for name, value in layer.values.items():
        if name in TABLES:
            _check_table(layer, (name,), _table(layer, (name,), value), TABLES[name])
        elif name == "agents":
            _check_agents(layer, _table(layer, (name,), value))
        elif name == "roles":
            _check_roles(layer, _table(layer, (name,), value))
        elif name == "tui":
            _check_tui(layer, _table(layer, (name,), value))
        elif name in NOT_YET:
            _check_empty(layer, (name,), _table(layer, (name,), value))
        else:
            raise unknown_key(layer, (name,), [*TABLES, "agents", "roles", "tui"])


def _check_agents(layer: Layer, agents: Mapping[str, Any]) -> None:
    of_all = {key: value for key, value in agents.items() if not isinstance(value, dict)}
    _check_table(layer, ("agents",), of_all, AgentsSettings)
    for name, value in agents.items():
        if isinstance(value, dict):
            _check_table(layer, ("agents", name), value, AgentSettings)


def _check_roles(layer: Layer, roles: Mapping[str, Any]) -> None:
    for name, value in roles.items():
        path = ("roles", name)
        _check_table(layer, path, _table(layer, path, value), RoleSettings)


def _check_tui(layer: Layer, tui: Mapping[str, Any]) -> None:
    path = ("tui", "keybindings")
    for key in tui:
        if key not in (*readers(TuiSettings), path[1]):
            raise unknown_key(layer, ("tui", key), [*readers(TuiSettings), path[1]])
    chosen = {key: value for key, value in tui.items() if key != path[1]}
    _check_table(layer, ("tui",), chosen, TuiSettings)
    for key, value in _table(layer, path, tui.get(path[1], {})).items():
        own = (*path, key)
        if key_name(key) is None:
            hint = 'write it like "ctrl+r", "f5" or "X"'
            raise _mistake(
                layer,
                own,
                "is not the name of a key on the keyboard",
                hint=hint,
                code="invalid_value",
            )
        _check_table(layer, own, _table(layer, own, value), KeyBinding)


def _refuse_not_yet(layer: Layer) -> None:
    """Refuse keys that this version does not support, instead of ignoring them silently."""
    if path := not_yet_set(layer.values):
        hint = f"remove {'.'.join(path)}; `crew config template` prints every key there is"
        raise _mistake(layer, path, NOT_SUPPORTED, hint=hint, code="unsupported_key")


def _check_empty(layer: Layer, path: tuple[str, ...], table: Mapping[str, Any]) -> None:
    """Refuse keys in a table for which this version supports none."""
    for key, value in table.items():
        if key not in NOT_YET[path[0]] or not isinstance(value, dict):
            raise unknown_key(layer, (*path, key), NOT_YET[path[0]])


def _check_table(
    layer: Layer, path: tuple[str, ...], table: Mapping[str, Any], model: type
) -> None:
    known = readers(model)
    for key, value in table.items():
        if key not in known:
            raise unknown_key(layer, (*path, key), known)
        try:
            known[key][1](value)
        except ValueError as error:
            raise _mistake(
                layer,
                (*path, key),
                f"is {_shown(value)}",
                hint=f"it should be {error}",
                code="invalid_value",
            ) from error


def _table(layer: Layer, path: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        hint = f"write a table: [{'.'.join(path)}]"
        raise _mistake(layer, path, f"is {_shown(value)}", hint=hint, code="invalid_value")
    return value


def unknown_key(layer: Layer, path: tuple[str, ...], known: Iterable[str]) -> UsageError:
    choices = list(known)
    near = nearest(path[-1], choices)
    hint = f"did you mean {near}?" if near else f"known here: {', '.join(choices)}"
    return _mistake(layer, path, "is not a known key", hint=hint, code="unknown_key")


def _mistake(layer: Layer, path: tuple[str, ...], what: str, *, hint: str, code: str) -> UsageError:
    line = line_in(layer, path)
    place = f"{layer.name}:{line}" if line else layer.name
    return UsageError(f"{place}: {'.'.join(path)} {what}", hint=hint, code=code)


def line_in(layer: Layer, path: tuple[str, ...]) -> int | None:
    """The line of the file that sets this key, even under an older name of its table."""
    from crew.config.toml.toml_spans import line_of  # noqa: PLC0415 - only mistakes and origins ask

    for table in (path[:1], ("workers",), ("managers",)) if path[0] == "agents" else (path[:1],):
        for last in (path[1:], (*path[1:-1], "agent")) if path[-1] == "inherit" else (path[1:],):
            if line := line_of(layer.text, (*table, *last)):
                return line
    return next(filter(None, (line_of(layer.text, one) for one in spellings(path))), None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
