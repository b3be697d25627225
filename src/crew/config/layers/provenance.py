"""The effective values, and the layer from which each one comes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crew.config.layers.layers import built_in_values, merged
from crew.config.validate_config import Layer, line_in
from crew.domain.kernel.frozen import frozen

BUILT_IN = "built-in"


@frozen
class Origin:
    """A file with its line if known, a variable, or crew's built-in values."""

    name: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


def merged_values(layers: Sequence[Layer]) -> dict[str, Any]:
    """All values that are set, as their layers spell them."""
    values = built_in_values()
    for layer in layers:
        values = merged(values, layer.values)
    return values


def leaves(
    values: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key with its value. Plain values come before tables, as TOML requires."""
    for key, value in values.items():
        if not isinstance(value, dict):
            yield (*above, key), value
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, key))


def origin_of(layers: Sequence[Layer], path: tuple[str, ...]) -> Origin:
    for layer in reversed(layers):
        if has(layer.values, path):
            return Origin(name=layer.name, line=line_in(layer, path))
    return Origin(name=BUILT_IN)


def has(values: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def value_at(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        values = values[part]
    return values
