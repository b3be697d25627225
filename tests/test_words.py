"""Plain English in what crew prints: help, hints and errors. `tests/docs` checks the pages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from error_messages import collected

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

BANNED = (
    r"\b(some|no|any|every)body\b",
    r"\bwhoever\b",
    r"\bso many\b",
    r"\bworks? at\b",
    r"\bgoes on\b|\bgo on\b|\bgoing on\b",
    r"\ba leave\b|\bleave to\b",
    r"(?:^|[.:;!?]\s+|\n\s*)(?:Who|Whoever)\b(?![^.?!]*\?)",
    r"(?:^|[.!?]\s+)What\b(?![^.?!]*[?:])[^.?!]*\b(?:is|are|was|were|has|have)\b",
)
"""Constructions that make an English reader read twice; see `docs/words.md` for better words."""

_CALLS = frozenset(
    {"say", "narrate", "fail", "echo", "print", "Entry", "note", "Point", "Finding", "Option"}
)


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            text = "".join(
                value.value if isinstance(value, ast.Constant) else "X" for value in part.values
            )
            yield part.lineno, text
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def _is_command(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        "command" in ast.unparse(one) or "group" in ast.unparse(one) for one in node.decorator_list
    )


def _visible(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a module that reach a person: errors, hints, help, printed text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from _strings(node.exc)
        elif isinstance(node, ast.keyword) and node.arg in {"hint", "help", "reply", "remedy"}:
            yield from _strings(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _CALLS:
            yield from _strings(node)
        elif _is_command(node) and (doc := ast.get_docstring(node)):
            yield node.lineno, doc


def _faults(text: str) -> list[str]:
    return [
        found.group().strip() for rule in BANNED if (found := re.search(rule, text, re.MULTILINE))
    ]


def test_what_a_program_prints_is_plain_english():
    found = {
        f"{path.name}:{line}: {text}": faults
        for path in SOURCES
        for line, text in _visible(ast.parse(path.read_text()))
        if (faults := _faults(text))
    }
    assert found == {}


def test_errors_are_plain_english_also_where_their_words_come_from_a_table():
    words = {text for one in collected() for text in (one.message, one.hint)}
    assert {text: faults for text in words if (faults := _faults(text))} == {}


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("nobody knows the role x", False),
        ("Whoever asks is told. ", False),
        ("It is done. Who conflicts is sent back.", False),
        ("What landed is kept.", False),
        ("Who may do this?", True),
        ("What a checkpoint holds: everything", True),
        ("The agent continues in its own session.", True),
        ("An agent goes on with it", False),
    ],
)
def test_the_rules_know_plain_english(text, is_plain):
    assert (not _faults(text)) is is_plain
