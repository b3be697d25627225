"""Sets one key of the config in its file, and returns the value that is effective then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from crew.config.layers.aliases import own_path
from crew.config.layers.layer_files import RUNTIME, layer_files, user_folder
from crew.config.layers.layers import (
    load_layers,
    merged_settings,
    modern,
    parsed,
    read_file,
)
from crew.config.layers.provenance import Origin, merged_values, origin_of, value_at
from crew.config.reserved_keys import KeyPath
from crew.config.toml.toml_edit import make_config_folder, with_value, write_config
from crew.config.toml.toml_spans import key_parts
from crew.config.validate_config import Layer, check, typed_value
from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen
from crew.system.file_locks import folder_held

Scope = Literal["user", "root", "repo", "runtime"]


@frozen
class KeyChange:
    """The written value and its file, and the effective value, which a later layer may set."""

    key: tuple[str, ...]
    written: Any
    file: str
    value: Any
    origin: Origin

    @property
    def is_overridden(self) -> bool:
        return self.origin.name != self.file


def set_key(
    repo_root: Path | None, environ: Mapping[str, str], *, scope: Scope, key: str, typed: str
) -> KeyChange:
    """Write the key only if the whole config is valid with it."""
    path = own_path(key_parts(key))
    value = parse_value(path, typed)
    name, layers = set_values(repo_root, environ, scope=scope, values={path: value})
    return KeyChange(
        key=path,
        written=value,
        file=name,
        value=value_at(merged_values(layers), path),
        origin=origin_of(layers, path),
    )


def set_values(
    repo_root: Path | None,
    environ: Mapping[str, str],
    *,
    scope: Scope,
    values: Mapping[KeyPath, Any],
) -> tuple[str, tuple[Layer, ...]]:
    """Write all these keys or none; the name of the file, and all layers with it."""
    name, file = _file_of(repo_root, environ, scope)
    make_config_folder(file.parent)
    with folder_held(file.parent):
        text, _ = parsed(name, read_file(file) or b"")
        changed = text
        for path, value in values.items():
            changed = with_value(changed, path, value)
        layers = load_layers(repo_root, environ, instead={name: changed.encode()})
        merged_settings(layers)
        if changed != text:
            write_config(file, changed)
    return name, layers


def parse_value(path: tuple[str, ...], typed: str) -> Any:
    """The value for this key. Raises for an unknown key or a value of the wrong type."""
    if len(path) < 2:
        raise UsageError(
            f"{'.'.join(path)!r} is not a key", hint="name its table too, as in run.agents"
        )
    try:
        typed.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the value is not UTF-8 text", hint="TOML files hold UTF-8") from error
    value = typed_value(path, typed)
    nested = value
    for part in reversed(path):
        nested = {part: nested}
    check(Layer(name="config set", text="", values=modern(nested)))
    return value


def _file_of(repo_root: Path | None, environ: Mapping[str, str], scope: Scope) -> tuple[str, Path]:
    files = layer_files(repo_root, environ)
    folder = user_folder(environ)
    if scope == "user" and folder is None:
        raise UsageError("the path of your own config is unknown", hint="set HOME")
    endings = {"user": f"{folder}/config.toml", "root": "/.crew.toml", "repo": "/.crew/config.toml"}
    endings["runtime"] = f"/{RUNTIME}"
    return next((name, file) for name, file in files.items() if str(file).endswith(endings[scope]))
