"""Makes the page of what each agent CLI can do, from the marks on the tests with the real CLIs."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "real_clis"
CLIS = {"claude": "Claude Code", "codex": "Codex", "opencode": "OpenCode", "gemini": "Gemini CLI"}

INTRODUCTION = """\
# What each agent CLI can do

Generated from the tests in `tests/real_clis/`, which run the real CLIs with a scripted model.
`make clis` runs them all, and `make clis QUICK=1` those of Claude Code and Codex.
An empty cell means that no test shows it; the column `otherwise` shows what happens instead.
[Configuration](configuration.md#agents) explains how to choose and configure an agent.
"""


@dataclass
class Ability:
    """A row: the CLIs that have the ability, and what the others do instead."""

    clis: set[str] = field(default_factory=set)
    otherwise: str = ""
    files: set[str] = field(default_factory=set)


def page() -> str:
    rows = _abilities()
    lines = [
        INTRODUCTION,
        f"| what | {' | '.join(CLIS.values())} | otherwise | shown by |",
        f"|---|{'---|' * len(CLIS)}---|---|",
    ]
    for what, one in rows.items():
        cells = ["yes" if name in one.clis else "" for name in CLIS]
        files = ", ".join(f"`{name}`" for name in sorted(one.files))
        lines.append(f"| {' | '.join([what, *cells, one.otherwise, files])} |")
    return "\n".join(lines) + "\n"


def _abilities() -> dict[str, Ability]:
    """The rows by name; those of the most CLIs come first."""
    found: dict[str, Ability] = {}
    for file in sorted(TESTS.glob("test_*.py")):
        for what, clis, otherwise in _marks(ast.parse(file.read_text())):
            one = found.setdefault(what, Ability())
            one.clis |= clis
            one.otherwise = one.otherwise or otherwise
            one.files.add(str(file.relative_to(ROOT)))
    by_width = sorted(found, key=lambda what: (-len(found[what].clis), what))
    return {what: found[what] for what in by_width}


def _marks(tree: ast.Module) -> Iterator[tuple[str, set[str], str]]:
    """Each `@pytest.mark.ability(what, *clis, otherwise=…)`; a test with `cli` is for all CLIs."""
    for test in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        for mark in test.decorator_list:
            if not isinstance(mark, ast.Call) or not ast.unparse(mark.func).endswith(".ability"):
                continue
            what, *named = [ast.literal_eval(value) for value in mark.args]
            takes_each = any(argument.arg == "cli" for argument in test.args.args)
            otherwise = "".join(ast.literal_eval(one.value) for one in mark.keywords)
            yield what, set(named) or (set(CLIS) if takes_each else set()), otherwise
