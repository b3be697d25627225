"""Builds `Settings` from built-in values, files and variables. Later layers win."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crew.config.layers.aliases import agent_with_own_names, with_own_names
from crew.config.layers.environment_layer import variable_layers
from crew.config.layers.inheritance import resolved_agents, with_template
from crew.config.layers.layer_files import BUILT_IN_FILES, layer_files
from crew.config.model import (
    TABLES,
    AgentsSettings,
    KeyBinding,
    RoleSettings,
    Settings,
    TuiSettings,
)
from crew.config.toml.key_names import key_name
from crew.config.validate_config import Layer, check, readers
from crew.domain.kernel.errors import UsageError


def load_settings(repo_root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this repository. An error names the file, line and key, or the variable."""
    return merged_settings(load_layers(repo_root, environ))


def load_layers(
    repo_root: Path | None,
    environ: Mapping[str, str] | None = None,
    *,
    instead: Mapping[str, bytes] | None = None,
    judged: Mapping[str, Layer | None] | None = None,
) -> tuple[Layer, ...]:
    """All layers in the order in which they are merged, each checked on its own.

    `instead` replaces the text of a file by its name, and `judged` the layer of a file.
    """
    environ = os.environ if environ is None else environ
    found: list[Layer] = []
    for name, path in layer_files(repo_root, environ).items():
        if judged is not None and name in judged:
            found += [one for one in (judged[name],) if one is not None]
            continue
        content = instead[name] if instead and name in instead else read_file(path)
        if content is not None:
            found.append(read_layer(name, content))
    return (*found, *variable_layers(environ))


def read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint="check the permissions of the file",
            code="unreadable_file",
        ) from error


def read_layer(name: str, content: bytes) -> Layer:
    text, values = parsed(name, content)
    layer = Layer(name=name, text=text, values=modern(values))
    check(layer)
    return layer


def parsed(name: str, content: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = content.decode("utf-8")
        values = tomllib.loads(text.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text", hint="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found[1] if found else text.count("\n") + 1
        raise UsageError(
            f"{name}:{line}: {error}", hint="fix the TOML there", code="invalid_toml"
        ) from error
    return text, values


def modern(values: Mapping[str, Any]) -> dict[str, Any]:
    """Bring all spellings of an agent into one shape, with one name for each setting.

    The older `[workers.x]` and `[managers.x]` are agents with a role, and `agent` means `inherit`.
    A template overrides an adapter that a lower layer names.
    """
    result = with_own_names(values)
    for table, role in (("workers", "worker"), ("managers", "manager")):
        older = result.get(table)
        if isinstance(older, dict) and all(isinstance(one, dict) for one in older.values()):
            del result[table]
            renamed = {name: _rename_keys(fields, role) for name, fields in older.items()}
            result["agents"] = merged(renamed, result.get("agents", {}))
    agents = result.get("agents")
    if isinstance(agents, dict):
        result["agents"] = {
            name: with_template(agent_with_own_names(fields))
            if isinstance(fields, dict)
            else fields
            for name, fields in agents.items()
        }
    return result


def _rename_keys(fields: Mapping[str, Any], role: str) -> dict[str, Any]:
    named = {"inherit" if key == "agent" else key: value for key, value in fields.items()}
    return {"role": role, **named}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables key by key and replace everything else."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def built_in_values() -> dict[str, Any]:
    values: dict[str, Any] = {}
    for file in BUILT_IN_FILES:
        values = merged(values, tomllib.loads(file.read_text(encoding="utf-8")))
    values["merge"]["slots"] = max(1, (os.cpu_count() or 1) // 2)
    return values


def merged_settings(layers: Iterable[Layer]) -> Settings:
    values = built_in_values()
    for layer in layers:
        values = merged(values, layer.values)
    agents = values["agents"]
    of_all = {key: value for key, value in agents.items() if not isinstance(value, dict)}
    return Settings(
        **{name: model(**_fields(model, values[name])) for name, model in TABLES.items()},
        tui=_tui(values["tui"]),
        agents=AgentsSettings(**_fields(AgentsSettings, of_all), by_name=resolved_agents(agents)),
        roles={
            name: RoleSettings(**_fields(RoleSettings, role))
            for name, role in values.get("roles", {}).items()
        },
    )


def _tui(table: Mapping[str, Any]) -> TuiSettings:
    chosen = {key: value for key, value in table.items() if not isinstance(value, dict)}
    bound: dict[str, dict[str, Any]] = {}
    for key, fields in table.get("keybindings", {}).items():
        bound.setdefault(str(key_name(key)), {}).update(fields)
    keys = {key: _binding(key, fields) for key, fields in bound.items()}
    return TuiSettings(**_fields(TuiSettings, chosen), keybindings=keys)


def _binding(key: str, fields: Mapping[str, Any]) -> KeyBinding:
    if not fields.get("command"):
        raise UsageError(
            f"the key {key!r} of [tui.keybindings] has no command",
            hint='write it like "ctrl+r" = { command = "make check", description = "Check" }',
        )
    return KeyBinding(key=key, **_fields(KeyBinding, fields))


def _fields(model: type, table: Mapping[str, Any]) -> dict[str, Any]:
    known = readers(model)
    return {known[key][0]: known[key][1](value) for key, value in table.items()}
