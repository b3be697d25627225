"""Follows an expression of the source to the words that it can print.

What only a run can know stays as its source in braces, as in `task {task.id} is {task.state}`.
Constants, variables, arguments, tables and functions that return a text are followed to their
words, and `(one|other)` are alternatives.
"""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import crew

SOURCES = Path(crew.__file__).parent
DEEPEST = 12
"""How many names and functions an expression is followed through."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Module:
    """A file, and the meaning of the names at its top."""

    place: str
    tree: ast.Module

    @functools.cached_property
    def top(self) -> dict[str, ast.AST]:
        """Constants, functions and classes by name."""
        named: dict[str, ast.AST] = {}
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    named[name] = value
                case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                    named[name] = value
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    named[node.name] = node
        return named

    @functools.cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """The origin of a name: its module and its name there."""
        return {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    @functools.cached_property
    def calls(self) -> "list[tuple[ast.Call, Function | None]]":
        """Every call, with the function that it is in."""
        return list(_calls(self.tree, None))


@functools.cache
def module_of(file: Path) -> Module:
    return Module(str(file.relative_to(SOURCES)), ast.parse(file.read_text()))


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def named(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments that a call gives by name."""
    return {word.arg: word.value for word in call.keywords if word.arg}


@dataclass(frozen=True)
class Words:
    """The words of an expression in a function of a module.

    `caller` is the one call that decides the arguments of the function; without it, all calls in
    the module count.
    """

    module: Module
    function: Function | None
    caller: "tuple[ast.Call, Function | None] | None" = None
    seen: frozenset[ast.AST] = frozenset()

    def of(self, node: ast.AST) -> str:
        if node in self.seen or len(self.seen) > DEEPEST:
            return _blank(node)
        inner = replace(self, seen=self.seen | {node})
        match node:
            case ast.Constant(value):
                return "" if value is None else str(value)
            case ast.JoinedStr(values):
                return "".join(inner.of(value) for value in values)
            case ast.FormattedValue(value):
                return inner.of(value)
            case ast.BinOp(left, ast.Add(), right) if _is_text(left) or _is_text(right):
                return inner.of(left) + inner.of(right)
        meanings = inner.meanings(node)
        return _alternatives([words.of(value) for words, value in meanings]) or _blank(node)

    def meanings(self, node: ast.AST) -> "list[tuple[Words, ast.AST]]":
        """The expressions that this one stands for, each with the place to read it in."""
        match node:
            case ast.IfExp():
                return self._here(node.body, node.orelse)
            case ast.BoolOp(values=values):
                return self._here(*values)
            case ast.NamedExpr(value=value):
                return self._here(value)
            case ast.Name(name):
                return self._named(name)
            case ast.Call(func=ast.Name("next"), args=[ast.GeneratorExp(elt=first), default]):
                return self._here(first, default)
            case ast.Call(func=ast.Name(name)):
                return self._returned(name)
            case ast.Call(func=ast.Attribute(value=text, attr="rstrip")):
                return self._here(text)
        return self._here(*self._rows(node))

    def _here(self, *nodes: ast.AST) -> "list[tuple[Words, ast.AST]]":
        return [(self, node) for node in nodes]

    def _named(self, name: str) -> "list[tuple[Words, ast.AST]]":
        """The values that a name gets: in the function, from its callers, or at the top."""
        if self.function and (values := list(self._assigned(self.function, name))):
            return self._here(*values)
        if self.function and name in (arguments := _arguments(self.function)):
            return list(self._passed(self.function.name, name, arguments.index(name)))
        words, node = self._found(name)
        return [(words, node)] if isinstance(node, ast.expr) else []

    def _assigned(self, function: Function, name: str) -> Iterator[ast.AST]:
        for node in ast.walk(function):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(found)], value=value)
                    | ast.AnnAssign(target=ast.Name(found), value=ast.expr() as value)
                    | ast.NamedExpr(target=ast.Name(found), value=value)
                ) if found == name:
                    yield value
                case ast.Assign(targets=[ast.Tuple() as target], value=value):
                    yield from _unpacked(target, name, self._rows(value) or [value])
                case ast.For(target=target, iter=table) | ast.comprehension(target, table):
                    yield from _unpacked(target, name, self._rows(table))

    def _rows(self, node: ast.AST | None) -> list[ast.expr]:
        """The rows of a table that is written out: all, or those that a lookup can find."""
        match node:
            case ast.Name(name):
                return self._rows(self._table(name))
            case ast.Dict(values=values):
                return values
            case ast.Tuple(elts) | ast.List(elts):
                return elts
            case ast.Subscript(value=table):
                return self._rows(table)
            case ast.Call(func=ast.Attribute(value=table, attr="get" | "items"), args=args):
                return [*self._rows(table), *args[1:]]
        return []

    def _table(self, name: str) -> ast.AST | None:
        """The table that a name in the function or at the top stands for."""
        for node in ast.walk(self.function or self.module.tree):
            match node:
                case ast.Assign(targets=[ast.Name(found)], value=ast.Dict() | ast.Tuple() as table):
                    if found == name:
                        return table
        table = self._found(name)[1]
        return table if isinstance(table, ast.Dict | ast.Tuple) else None

    def _passed(self, function: str, name: str, index: int) -> "Iterator[tuple[Words, ast.AST]]":
        for call, inside in [self.caller] if self.caller else self.module.calls:
            value = named(call).get(name) or dict(enumerate(call.args)).get(index)
            if called(call) == function and value is not None:
                yield Words(self.module, inside, seen=self.seen), value

    def _returned(self, function: str) -> "list[tuple[Words, ast.AST]]":
        words, node = self._found(function)
        if not isinstance(node, Function):
            return []
        inner = replace(words, function=node)
        returns = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
        return [(inner, value) for value in returns if value is not None]

    def _found(self, name: str) -> "tuple[Words, ast.AST | None]":
        """The meaning of a name at the top of this file, also if it is imported."""
        module = self.module
        if name in module.imported:
            origin, name = module.imported[name]
            file = (SOURCES.parent / origin.replace(".", "/")).with_suffix(".py")
            if not file.is_file():
                return self, None
            module = module_of(file)
        return Words(module, None, seen=self.seen), module.top.get(name)


def _calls(node: ast.AST, inside: Function | None) -> "Iterator[tuple[ast.Call, Function | None]]":
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, inside
        yield from _calls(child, child if isinstance(child, Function) else inside)


def _arguments(function: Function) -> list[str]:
    return [one.arg for one in [*function.args.args, *function.args.kwonlyargs]]


def _unpacked(target: ast.expr, name: str, rows: list[ast.expr]) -> Iterator[ast.expr]:
    """The part of each row that a name in the target of an assignment or a loop gets."""
    names = [ast.unparse(one) for one in getattr(target, "elts", [target])]
    if name not in names:
        return
    for row in rows:
        parts = row.elts if isinstance(row, ast.Tuple) else [row]
        if len(parts) in (1, len(names)):
            yield parts[-1] if len(parts) == 1 else parts[names.index(name)]


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.Constant(value):
            return isinstance(value, str)
        case ast.IfExp():
            return _is_text(node.body) or _is_text(node.orelse)
        case ast.BinOp(left, ast.Add(), right):
            return _is_text(left) or _is_text(right)
    return False


def _alternatives(texts: list[str]) -> str:
    """The different ones in their order; empty if none has a word or a number."""
    texts = list(dict.fromkeys(texts))
    if not any(re.search(r"\w", re.sub(r"\{.*?\}", "", text)) for text in texts):
        return ""
    return texts[0] if len(texts) == 1 else f"({'|'.join(texts)})"


def _blank(node: ast.AST) -> str:
    return f"{{{ast.unparse(node)}}}"
