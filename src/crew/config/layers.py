"""The config: built-in defaults and the repository's files, later ones winning, as `Settings`."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crew.config.checking import Layer, check, readers
from crew.config.inheritance import resolved_agents, with_template
from crew.config.model import TABLES, AgentsSettings, KeyBinding, Settings
from crew.domain.errors import UsageError

DEFAULTS = Path(__file__).with_name("defaults.toml")


def layer_files(repo_root: Path) -> tuple[Path, ...]:
    """The files of the config, the later one winning; a further layer is one more line here."""
    return (
        repo_root / ".crew.toml",
        repo_root / ".crew" / "config.toml",
    )


def load_settings(repo_root: Path) -> Settings:
    """What holds for this repository; a mistake in a file names the file, the line and the key."""
    return merged_settings(load_layers(repo_root))


def default_settings() -> Settings:
    return merged_settings(())


def load_layers(repo_root: Path) -> tuple[Layer, ...]:
    """The files that exist, each checked by itself, in the order in which they are merged."""
    found = []
    for path in layer_files(repo_root):
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}", hint="check who may read it"
            ) from error
        found.append(read_layer(str(path.relative_to(repo_root)), content))
    return tuple(found)


def read_layer(name: str, content: bytes) -> Layer:
    try:
        text = content.decode("utf-8-sig")
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text", hint="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found[1] if found else text.count("\n") + 1
        raise UsageError(f"{name}:{line}: {error}", hint="mend the TOML there") from error
    layer = Layer(name=name, text=text, values=modern(values))
    check(layer)
    return layer


def modern(values: Mapping[str, Any]) -> dict[str, Any]:
    """One shape for all that an agent may be written as.

    The older `[workers.x]` and `[managers.x]` are agents with a role, and `agent` was `inherit`.
    Whoever gives an agent a template means that, also where a layer below names an adapter.
    """
    result = dict(values)
    for table, role in (("workers", "worker"), ("managers", "manager")):
        older = result.get(table)
        if isinstance(older, dict) and all(isinstance(one, dict) for one in older.values()):
            del result[table]
            renamed = {name: _renamed(fields, role) for name, fields in older.items()}
            result["agents"] = merged(renamed, result.get("agents", {}))
    agents = result.get("agents")
    if isinstance(agents, dict):
        result["agents"] = {
            name: with_template(fields) if isinstance(fields, dict) else fields
            for name, fields in agents.items()
        }
    return result


def _renamed(fields: Mapping[str, Any], role: str) -> dict[str, Any]:
    named = {"inherit" if key == "agent" else key: value for key, value in fields.items()}
    return {"role": role, **named}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key, everything else is replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def merged_settings(layers: Iterable[Layer]) -> Settings:
    values: dict[str, Any] = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))
    values["merge"]["slots"] = max(1, (os.cpu_count() or 1) // 2)
    for layer in layers:
        values = merged(values, layer.values)
    agents = values["agents"]
    of_all = {key: value for key, value in agents.items() if not isinstance(value, dict)}
    bindings = values.get("tui", {}).get("keybindings", {})
    return Settings(
        **{name: model(**_fields(model, values[name])) for name, model in TABLES.items()},
        agents=AgentsSettings(**_fields(AgentsSettings, of_all), by_name=resolved_agents(agents)),
        keybindings={
            key: KeyBinding(**_fields(KeyBinding, value)) for key, value in bindings.items()
        },
    )


def _fields(model: type, table: Mapping[str, Any]) -> dict[str, Any]:
    known = readers(model)
    return {known[key][0]: known[key][1](value) for key, value in table.items()}
