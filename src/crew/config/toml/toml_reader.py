"""Reads typed values from a TOML table. Errors carry the path of the wrong key."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from crew.domain.kernel.suggest import nearest


class Wrong(ValueError):
    """A mistake in a file, with the path of its key if that path is unique."""

    def __init__(self, words: str, path: tuple[str, ...] | None = None) -> None:
        super().__init__(words)
        self.path = path


class Table:
    """`name` is its displayed name. One of several tables under the same key has no path."""

    def __init__(
        self, name: str, values: Mapping[str, Any], *, path: tuple[str, ...] | None = None
    ) -> None:
        self.name = name
        self.values = values
        self._path = path

    def only(self, known: Iterable[str]) -> None:
        """Raise for a key that is not known, and name the nearest known one."""
        known = tuple(known)
        for key in self.values:
            if key not in known:
                near = nearest(key, known)
                hint = f"did you mean {near}?" if near else f"known: {', '.join(known)}"
                raise self.wrong(key, f"unknown key {key}, {hint}")

    def text(self, key: str) -> str:
        return str(self._read(key, "", lambda value: isinstance(value, str), "a text"))

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        words = " or ".join(choices)
        return str(self._read(key, default, lambda value: value in choices, words))

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        return tuple(self._read(key, list(default), _are_texts, "a list of texts"))

    def flag(self, key: str) -> bool:
        return bool(self._read(key, False, _is_flag, "true or false"))  # noqa: FBT003

    def count(self, key: str, default: Any) -> Any:
        if key not in self.values:
            return default
        return self._read(key, default, _is_count, "a whole number of at least 1")

    def table(self, key: str, *, called: str) -> "Table":
        values = self._read(key, {}, _is_table, "a table")
        path = None if self._path is None else (*self._path, key)
        return Table(called, values, path=path)

    def tables(self, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._read(key, [], _are_tables, f"written as [[{key}]]")
        return found

    def _read(self, key: str, default: Any, fits: Callable[[Any], bool], words: str) -> Any:
        value = self.values.get(key, default)
        if not fits(value):
            raise self.wrong(key, f"{key} must be {words}")
        return value

    def wrong(self, key: str, words: str) -> Wrong:
        path = None if self._path is None else (*self._path, key)
        return Wrong(f"{self.name}: {words}", path)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_table, value))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
