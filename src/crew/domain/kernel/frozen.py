"""`@frozen`: a frozen, slotted, keyword-only dataclass that is cheap to define.

`dataclass` writes and compiles six functions for each class; that was a third of the start time of
a short command. Here all classes share five of them, and `__init__` is compiled when the first
value of its class is made: a command makes values of few classes.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from types import FunctionType
from typing import ClassVar, Protocol, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class Frozen(Protocol):
    """A value of a class that `frozen` made; `_values` reads all its fields at once."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @staticmethod
    def _values(value: object, /) -> object: ...


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class frozen: each field is a keyword of `__init__`, with or without a default."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else `dataclass` computes one, slowly
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    for name, own in _own_methods(cast("type[Frozen]", made)).items():
        setattr(made, name, own)
    for name, shared in _SHARED.items():
        if name not in cls.__dict__:
            setattr(made, name, shared)
    return made


def _own_methods(cls: type[Frozen]) -> dict[str, object]:
    names = [one.name for one in fields(cls)]
    values = attrgetter(*names) if names else lambda _self: ()
    return {"_values": staticmethod(values), "__init__": _init_written_later(cls)}


def _init_written_later(cls: type[Frozen]) -> Callable[..., None]:
    def __init__(self: object, *args: object, **given: object) -> None:  # noqa: N807 - a method
        written = _written_init(cls)
        setattr(cls, written.__name__, written)
        written(self, *args, **given)

    return __init__


def _written_init(cls: type[Frozen]) -> FunctionType:
    """The compiled `__init__`, which puts each value into its slot, past `__setattr__`."""
    known: dict[str, object] = {"MISSING": MISSING}
    parameters, lines = ["self"], ["pass"]
    for one in fields(cls):
        name, value = one.name, one.name
        known[f"put_{name}"] = getattr(cls, name).__set__
        known[f"default_{name}"] = one.default
        if one.default_factory is not MISSING:
            known[f"make_{name}"] = one.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        has_default = one.default_factory is not MISSING or one.default is not MISSING
        parameters += ["*"] if len(parameters) == 1 else []
        parameters.append(f"{name}=default_{name}" if has_default else name)
        lines.append(f"put_{name}(self, {value})")
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines)
    exec(text, known)  # noqa: S102 - made of the names of fields alone
    written = known["__init__"]
    assert isinstance(written, FunctionType)
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    return written


def _equal(self: Frozen, other: object) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._values(self) == self._values(other)


def _hash(self: Frozen) -> int:
    return hash(self._values(self))


def _text(self: Frozen) -> str:
    values = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self))
    return f"{self.__class__.__qualname__}({values})"


def _refuse_set(self: object, name: str, value: object) -> None:  # noqa: ARG001 - Python's
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:  # noqa: ARG001 - Python's
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _text,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
}
