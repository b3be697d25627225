"""Every small fault that `bench.mutation` can put into a module: one edit of one piece of code.

Left out is what no test should depend on: docstrings, messages and hints, type annotations,
decorators, asserts (they state what a type checker cannot see), and edits equal to another one.
"""

import ast
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROSE_ARGUMENTS = frozenset(("message", "hint", "words", "fix", "reason", "why", "title", "help"))
TYPE_NAMES = frozenset(("Literal", "Callable", "Mapping", "Sequence", "tuple", "list", "dict"))
TYPE_CALLS = frozenset(("cast", "TypeVar", "NewType"))
OPERATORS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EMPTIES = {ast.List: "[]", ast.ListComp: "[]", ast.Tuple: "()", ast.Dict: "{}", ast.DictComp: "{}"}
DELETED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
SHOWN = 80
"""How many characters of a piece of code are shown, and name it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One fault: `new` for the bytes from `start` to `end` of a file below `src/crew`."""

    file: str
    line: int
    text: str  # the line on which the edit begins, without its indent
    old: str
    new: str
    start: int
    end: int
    in_function: bool
    around: range  # the lines of the statement, of which Python executes one or a few

    @property
    def shown(self) -> str:
        return f"{_short(self.old)} → {_short(self.new)}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Names the edit wherever its line moves to."""
        return self.file, self.text, self.shown

    def applied(self, source: bytes) -> bytes:
        new = self.new if self.new == "pass" or self.new.startswith("*") else f"({self.new})"
        return source[: self.start] + new.encode() + source[self.end :]


def edits_of(file: Path, *, below: Path) -> list[Edit]:
    """All edits of a module, in the order of their lines."""
    finder = _Finder(file.read_bytes(), file.relative_to(below).as_posix())
    finder.visit(ast.parse(finder.source))
    return sorted(finder.edits, key=lambda edit: edit.start)


def sample(edits: list[Edit], *, count: int, seed: int) -> list[Edit]:
    """Some edits, at least one of each module. A change of one line leaves the others chosen."""
    times: Counter[tuple[str, str, str]] = Counter()
    ranked = []
    for edit in edits:
        times[edit.key] += 1
        name = f"{seed} {times[edit.key]} {edit.key}"
        ranked.append((hashlib.sha256(name.encode()).digest(), edit))
    ordered = [edit for _, edit in sorted(ranked, key=lambda one: one[0])]
    first = {edit.file: edit for edit in reversed(ordered)}
    chosen = [*first.values(), *(edit for edit in ordered if edit is not first[edit.file])]
    return sorted(chosen[:count], key=lambda edit: (edit.file, edit.start))


class _Finder(ast.NodeVisitor):
    """Walks through a module and collects edits; a `visit_…` without `generic_visit` ends there."""

    def __init__(self, source: bytes, file: str) -> None:
        self.source = source
        self.file = file
        self.edits: list[Edit] = []
        self._lines = source.splitlines(keepends=True)
        self._offsets = [0, *itertools.accumulate(map(len, self._lines))]
        self._returns: list[ast.expr | None] = []
        self._statement: ast.stmt | None = None  # the simple one, if we are in one

    def visit(self, node: ast.AST) -> None:
        before = self._statement
        if isinstance(node, ast.stmt):
            self._statement = None if hasattr(node, "body") or hasattr(node, "cases") else node
        super().visit(node)
        self._statement = before

    def _add(self, node: ast.expr | ast.stmt, new: str) -> None:
        around = self._statement or node
        start = self._offsets[node.lineno - 1] + node.col_offset
        end = self._offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        if self.source[start:end].decode() == new:
            return
        self.edits.append(
            Edit(
                file=self.file,
                line=node.lineno,
                text=self._lines[node.lineno - 1].decode().strip(),
                old=self.source[start:end].decode(),
                new=new,
                start=start,
                end=end,
                in_function=bool(self._returns),
                around=range(around.lineno, (around.end_lineno or 0) + 1),
            )
        )

    # What is left out.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._returns.append(node.returns)
        for statement in node.body:
            self.visit(statement)
        self._returns.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """A wrong assert is a wrong comment: the type checker needs it, no behaviour does."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in PROSE_ARGUMENTS:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not (isinstance(node.value, ast.Name) and node.value.id in TYPE_NAMES):
            self.generic_visit(node)

    # What is put in.

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & {"__slots__", "__all__", "__match_args__"}:
            return
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add(node, "pass")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._add(node, "pass")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "pass")

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._add(node, _code(ast.IfExp(node.test, node.orelse, node.body)))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        """A comparison that has no order, and a `not`, are negated by their own edits."""
        is_compare = isinstance(test, ast.Compare) and not isinstance(test.ops[0], ORDERS)
        if not is_compare and not isinstance(test, ast.UnaryOp):
            self._add(test, _code(ast.UnaryOp(ast.Not(), test)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, _code(node.operand))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, op in enumerate(node.ops):
            ops = [*node.ops[:place], OPERATORS[type(op)](), *node.ops[place + 1 :]]
            self._add(node, _code(ast.Compare(node.left, ops, node.comparators)))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add(node, _code(ast.BoolOp(OPERATORS[type(node.op)](), node.values)))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if (other := OPERATORS.get(type(node.op))) is not None:
            self._add(node, _code(ast.BinOp(node.left, other(), node.right)))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None or isinstance(node.value, ast.Constant) or _is_prose(node.value):
            return
        returned = self._returns[-1]
        if isinstance(returned, ast.Name) and returned.id == "bool":
            self._negate(node.value)
        else:
            self._add(node.value, EMPTIES.get(type(node.value), "None"))
        self.visit(node.value)

    def visit_Starred(self, node: ast.Starred) -> None:
        """One of the parts that are put together is left out: `(*a, *b)` becomes `(*a, *())`."""
        self._add(node, "*()")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in TYPE_CALLS):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if (new := _other_constant(node.value)) is not None:
            self._add(node, new)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if not _is_prose(node):
            self._add(node, f'{_code(node)} + "XX"')

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, DELETED):
            self._add(node, "pass")
        super().generic_visit(node)


def _other_constant(value: object) -> str | None:
    """Small numbers are one off. A large one is a limit or a time, and becomes zero."""
    match value:
        case bool():
            return str(not value)
        case int() | float():
            return repr(value + 1) if abs(value) < 10 else "0"
        case str() if not _is_wording(value):
            return repr(f"XX{value}") if value else "'XX'"
        case bytes():
            return repr(b"XX" + value)
    return None


def _is_prose(node: ast.expr) -> bool:
    """Whether this is a text for people with values in it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else ()
    return any(_is_wording(part.value) for part in parts if isinstance(part, ast.Constant))


def _is_wording(text: str) -> bool:
    """Words for people, or whitespace, whose exact amount is a matter of taste."""
    return " " in text or (bool(text) and not text.strip())


def _code(node: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def _short(code: str) -> str:
    words = " ".join(code.split())
    return words if len(words) <= SHOWN else f"{words[:SHOWN]}…"


def modules(folder: Path) -> Iterator[Path]:
    yield from (file for file in sorted(folder.rglob("*.py")) if file.name != "__init__.py")
