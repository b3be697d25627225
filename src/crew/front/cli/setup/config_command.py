"""`crew config`: shows the merged configuration or one key, sets a key, prints a template."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crew.config.layers.aliases import own_path
from crew.config.layers.inheritance import with_inherited
from crew.config.layers.layer_files import BUILT_IN_FILES
from crew.config.layers.layers import merged_settings
from crew.config.layers.provenance import has, leaves, merged_values, origin_of, value_at
from crew.config.reserved_keys import NOT_SUPPORTED, is_not_yet
from crew.config.set_key import KeyChange, Scope, set_key
from crew.config.toml.toml_spans import key_parts, written_key, written_value
from crew.config.validate_config import Layer, has_key
from crew.domain.kernel.errors import CrewError, NotFound
from crew.domain.kernel.suggest import nearest
from crew.find_crew import load_folder
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import CrewGroup, command
from crew.front.cli.output import narrate, print_json, say
from crew.store.runner_lock import find_runner
from crew.trusted_config import FOLDER, approve_key, trusted_layers
from crew.workplace import find_root

READ_BY_COMMANDS = frozenset({"channel", "diff", "tui"})
READ_BY_NEW = frozenset({("tasks", "new_task_base")})
"""Settings that no runner uses: each command reads them anew."""

WHEN = {
    "now": "it is in effect now",
    "next_task": "the runner that is up (pid {pid}) uses it from the next task that an agent "
    "takes; an agent kind that is at work keeps its settings until then",
    "next_runner": "the runner that is up (pid {pid}) keeps the value it started with; to apply "
    "the new one: `crew stop`, then `crew run`",
}


@click.group(
    "config", cls=CrewGroup, example="crew config show --origin\ncrew config set run.agents 5"
)
def config() -> None:
    """Show and change the configuration."""


@command("show", example="crew config show\ncrew config show --origin")
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@pass_call
def show(call: Call, *, origin: bool) -> None:
    """Show every value in force here, merged from all files and variables."""
    layers = _layers(call)
    values = merged_values(layers)
    if call.json:
        print_json(_origins(layers, values) if origin else values)
        return
    table = None
    for path, value in leaves(values):
        if path[:-1] != table:
            table = path[:-1]
            say(f"\n[{written_key(table)}]")
        came = f"  # {origin_of(layers, path)}" if origin else ""
        say(f"{written_key(path[-1:])} = {written_value(value)}{came}")


@command("get", example="crew config get run.agents\ncrew config get agents.claude.command")
@click.argument("key")
@pass_call
def get(call: Call, key: str) -> None:
    """Print the value of one key, or of a whole table.

    The keys of an agent include those that it inherits.
    """
    values = merged_values(_layers(call))
    values["agents"] = with_inherited(values["agents"])
    path = own_path(key_parts(key))
    if not path or not has(values, path):
        raise _not_set(key, values)
    found = value_at(values, path)
    if call.json:
        print_json(found)
    elif isinstance(found, dict):
        for below, value in leaves(found):
            say(f"{written_key(below)} = {written_value(value)}")
    else:
        say(found if isinstance(found, str) else written_value(found))


@command(
    "set",
    example="crew config set run.agents 5\n"
    "crew config set agents.claude.default_model opus --user\n"
    "crew config set worktree.copy .env,.env.local --root",
)
@click.argument("key")
@click.argument("value")
@click.option(
    "--user", "scope", flag_value="user", help="In your own config, for all repositories."
)
@click.option("--root", "scope", flag_value="root", help="In .crew.toml, which may be committed.")
@click.option(
    "--repo", "scope", flag_value="repo", default="repo", help="In .crew/config.toml.  [default]"
)
@pass_call
def set_(call: Call, key: str, value: str, scope: Scope) -> None:
    """Set one key; the rest of the file stays as it is, comments too.

    Values are written plainly: 5, true, 10m, a,b,c. TOML works as well. Put `--` before a value
    that begins with a dash. If a runner is up, it says when that runner uses the value.
    """
    root = _root_if_any(call) if scope == "user" else load_folder(call.directory).parent
    change = set_key(root, os.environ, scope=scope, key=key, typed=value)
    if root is not None:
        approve_key(root, change.file, change.key, change.written)
    if change.is_overridden:
        narrate(
            call,
            f"{change.file} has {written_value(change.written)}, but a later layer overrides it",
        )
    runner = find_runner(root / FOLDER / "lock") if root is not None else None
    takes_effect = _takes_effect(change.key) if runner is not None else "now"
    if call.json:
        print_json({**_change(change), "takes_effect": takes_effect})
        return
    say(f"{written_key(change.key)} = {written_value(change.value)}  # {change.origin}")
    if runner is not None and not change.is_overridden:
        narrate(call, WHEN[takes_effect].format(pid=runner["pid"]))


def _takes_effect(key: tuple[str, ...]) -> str:
    """When the runner that is up uses a new value of this key."""
    if key[0] == "agents":
        return "next_task"
    return "now" if key[0] in READ_BY_COMMANDS or key in READ_BY_NEW else "next_runner"


@command("template", example="crew config template > .crew/config.toml")
@pass_call
def template(call: Call) -> None:
    """Print all keys with their defaults, commented out."""
    lines = [line for file in BUILT_IN_FILES for line in file.read_text("utf-8").splitlines()]
    text = "\n".join(
        f"# {line}" if line and not line.startswith(("#", "[")) else line for line in lines
    )
    if call.json:
        print_json({"template": f"{text}\n"})
    else:
        say(text)


for _command in (show, get, set_, template):
    config.add_command(_command)


def _layers(call: Call) -> tuple[Layer, ...]:
    """The configuration layers, checked together too: a kind's parent may be in another file."""
    layers = trusted_layers(find_root(call.directory))
    merged_settings(layers)
    return layers


def _root_if_any(call: Call) -> Path | None:
    try:
        return find_root(call.directory)
    except CrewError:  # a user's own config needs no repository
        return None


def _origins(layers: Sequence[Layer], values: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for path, value in leaves(values):
        origin = origin_of(layers, path)
        key = written_key(path)
        found.append({"key": key, "value": value, "origin": origin.name, "line": origin.line})
    return found


def _change(change: KeyChange) -> dict[str, Any]:
    return {
        "key": written_key(change.key),
        "value": change.value,
        "origin": change.origin.name,
        "line": change.origin.line,
        "file": change.file,
        "written": change.written,
        "overridden": change.is_overridden,
    }


def _not_set(key: str, values: dict[str, Any]) -> NotFound:
    if is_not_yet(key_parts(key)):
        return NotFound(
            f"{key} {NOT_SUPPORTED}",
            hint="`crew config template` prints every key",
            code="key_not_supported",
        )
    if has_key(own_path(key_parts(key))):
        return NotFound(f"nothing is set for {key!r}", hint=f"`crew config set {key} …` sets it")
    near = nearest(key, [written_key(path) for path, _ in leaves(values)])
    hint = f"did you mean {near}?" if near else "`crew config show` lists all keys that are set"
    return NotFound(f"nothing is set for {key!r}", hint=hint)
