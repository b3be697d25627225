"""Every error of crew with its code, its message and its hint, as the source words them.

`cd tests && python -m error_messages --write` records them in `messages.txt`.
"""

import ast
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from crew.domain.kernel.errors import CrewError
from wording import SOURCES, Function, Module, Words, called, module_of, named

RECORD = Path(__file__).with_name("messages.txt")


@dataclass(frozen=True, order=True)
class ErrorMessage:
    """One error: a script gets the code, a person the message and the hint."""

    code: str
    message: str
    hint: str
    place: str = field(compare=False)
    """Where the source has it: a file and a line."""


@functools.cache
def collected() -> tuple[ErrorMessage, ...]:
    """All errors of the source, by code."""
    codes = general_codes()
    return tuple(sorted(one for module in _modules() for one in errors_of(module, codes)))


def errors_of(module: Module, codes: Mapping[str, str]) -> Iterator[ErrorMessage]:
    """Each call of an error's class; once for each caller, if a function passes on its hint."""
    for call, function in module.calls:
        hint, kind = named(call).get("hint"), _kind(call, function, module)
        # A message that is looked up in a reply of the runner has the words of another error.
        if hint is None or kind not in codes or isinstance(call.args[0], ast.Subscript):
            continue
        code = named(call).get("code", ast.Constant(codes[kind]))
        for words in _by_caller(Words(module, function), hint):
            line = words.caller[0].lineno if words.caller else call.lineno
            texts = (words.of(node) for node in (code, call.args[0], hint))
            yield ErrorMessage(*texts, place=f"{module.place}:{line}")


def recorded(messages: Iterable[ErrorMessage]) -> str:
    """Each code once, below it its messages, below each message its hint."""
    blocks = []
    for code, same in groupby(sorted(set(messages)), key=lambda one: one.code):
        lines = [f"    {_line(one.message)}\n        {_line(one.hint)}\n" for one in same]
        blocks.append(f"{code}\n{''.join(lines)}")
    return "\n".join(blocks)


@functools.cache
def general_codes() -> dict[str, str]:
    """The code of an error that is given none, by the name of its class."""
    codes = {"CrewError": CrewError.code}
    kinds = [
        node
        for module in _modules()
        for node in module.top.values()
        if isinstance(node, ast.ClassDef)
    ]
    while added := [kind for kind in kinds if kind.name not in codes and _base(kind) in codes]:
        codes |= {kind.name: _own_code(kind) or codes[_base(kind)] for kind in added}
    return codes


@functools.cache
def _modules() -> list[Module]:
    files = sorted(SOURCES.rglob("*.py"))
    return [module_of(file) for file in files if "hint=" in file.read_text()]


def _base(kind: ast.ClassDef) -> str:
    return ast.unparse(kind.bases[0]).rpartition(".")[2] if kind.bases else ""


def _own_code(kind: ast.ClassDef) -> str:
    for node in kind.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name("code")], value=ast.Constant(str(code)))
                | ast.AnnAssign(target=ast.Name("code"), value=ast.Constant(str(code)))
            ):
                return code
    return ""


def _kind(call: ast.Call, function: Function | None, module: Module) -> str:
    """The class of the error; for the call of the class above it, the class that makes it."""
    if called(call) != "__init__":
        return called(call)
    classes = (node for node in module.top.values() if isinstance(node, ast.ClassDef))
    return next((node.name for node in classes if function in node.body), "")


def _by_caller(words: Words, hint: ast.expr) -> list[Words]:
    """The same words for each call that decides the hint."""
    function = words.function
    if not function or ast.unparse(hint) not in [one.arg for one in function.args.kwonlyargs]:
        return [words]
    callers = [one for one in words.module.calls if called(one[0]) == function.name]
    return [replace(words, caller=one) for one in callers]


def _line(text: str) -> str:
    return text.replace("\n", "\\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m error_messages --write")
    RECORD.write_text(recorded(collected()))
