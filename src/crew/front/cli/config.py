"""`crew config`: the merged configuration, one key of it, or a template to start from."""

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from crew.config.checking import Layer
from crew.config.layers import DEFAULTS, load_layers, merged, merged_settings
from crew.domain.errors import NotFound
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command, common_flags
from crew.front.cli.output import print_json, say
from crew.git.repository import find_repository

BUILT_IN = "built-in"


@click.group("config", params=common_flags())
def config() -> None:
    """Show the configuration."""


@command("show", example="crew config show\ncrew config show --origin")
@click.option("--origin", is_flag=True, help="Also say where each value came from.")
@pass_call
def show(call: Call, *, origin: bool) -> None:
    """Show every value that holds here, of all files together."""
    layers = _layers(call)
    values = _values(layers)
    if call.json:
        print_json(_origins(layers, values) if origin else values)
        return
    table = None
    for path, value in _leaves(values):
        if path[:-1] != table:
            table = path[:-1]
            say(f"\n[{'.'.join(table)}]")
        came = f"  # {_origin(layers, path)}" if origin else ""
        say(f"{path[-1]} = {_toml(value)}{came}")


@command("get", example="crew config get run.agents\ncrew config get agents.claude.command")
@click.argument("key")
@pass_call
def get(call: Call, key: str) -> None:
    """Print the value of one key, or of a whole table."""
    values = _values(_layers(call))
    found: Any = values
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            raise _unknown(key, values)
        found = found[part]
    if call.json:
        print_json(found)
    elif isinstance(found, dict):
        for path, value in _leaves(found):
            say(f"{'.'.join(path)} = {_toml(value)}")
    else:
        say(found if isinstance(found, str) else _toml(found))


@command("template", example="crew config template > .crew/config.toml")
def template() -> None:
    """Print all keys with their defaults, commented out."""
    for line in DEFAULTS.read_text(encoding="utf-8").splitlines():
        is_value = line and not line.startswith(("#", "["))
        say(f"# {line}" if is_value else line)


for _command in (show, get, template):
    config.add_command(_command)


def _layers(call: Call) -> tuple[Layer, ...]:
    """Checked as a whole too: an agent may inherit from one that does not exist."""
    layers = load_layers(find_repository(call.directory).root)
    merged_settings(layers)
    return layers


def _values(layers: tuple[Layer, ...]) -> dict[str, Any]:
    values = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))
    for layer in layers:
        values = merged(values, layer.values)
    return values


def _leaves(
    values: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Plain values before tables, as TOML wants them."""
    for key, value in values.items():
        if not isinstance(value, dict):
            yield (*above, key), value
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))


def _origin(layers: tuple[Layer, ...], path: tuple[str, ...]) -> str:
    return next((layer.name for layer in reversed(layers) if _has(layer.values, path)), BUILT_IN)


def _has(values: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _origins(layers: tuple[Layer, ...], values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": ".".join(path), "value": value, "origin": _origin(layers, path)}
        for path, value in _leaves(values)
    ]


def _toml(value: Any) -> str:
    """JSON's spelling of texts, numbers, flags and lists is TOML's too."""
    return json.dumps(value, ensure_ascii=False)


def _unknown(key: str, values: dict[str, Any]) -> NotFound:
    known = [".".join(path) for path, _ in _leaves(values)]
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`crew config show` lists all keys"
    return NotFound(f"nothing is set for {key!r}", hint=hint)
