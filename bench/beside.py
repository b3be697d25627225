"""The same benchmarks in an older checkout and in this one, in turn: `--beside COMMIT`.

The older commit is cloned and set up once, in the virtual environment's folder. Each benchmark then
runs there and here, as often as asked; the first of each pair changes, since a machine is not the
same from one minute to the next. The medians stand side by side. An older checkout has benchmarks
of its own, so only figures of the same name are compared.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench import disk
from bench.tables import number, say, table, title

PROJECT = Path(__file__).parents[1]
_COLUMNS = re.compile(r"\s{2,}")
_VALUE = re.compile(r"(-?[\d,.]+)(?: (.*))?$")

Found = dict[str, tuple[float, str]]
"""Value and unit of each figure, by its name."""


def compare(commit: str, names: Sequence[str], *, times: int, is_quick: bool) -> None:
    """Run the benchmarks in both checkouts, and print the medians side by side."""
    there = _checkout(commit)
    seen: dict[str, dict[Path, list[float]]] = defaultdict(lambda: defaultdict(list))
    units: dict[str, str] = {}
    for name in names:
        for turn in range(times):
            for tree in (there, PROJECT) if turn % 2 == 0 else (PROJECT, there):
                for figure, (value, unit) in _measured(tree, name, is_quick=is_quick).items():
                    seen[figure][tree].append(value)
                    units[figure] = unit
    title(f"Beside {commit}, medians of {times}")
    head = ("figure", "", commit, "here", "here / there", "range there", "range here")
    table(head, [_row(name, units[name], at[there], at[PROJECT]) for name, at in seen.items()])


def _checkout(commit: str) -> Path:
    """A clone of the older commit with an environment of its own."""
    tree = Path(sys.prefix, "beside", commit)
    if not tree.exists():
        _run(["git", "clone", "-q", "--no-checkout", str(PROJECT), str(tree)], PROJECT)
        _run(["git", "checkout", "-q", commit], tree)
    _run(["make", "--quiet", ".venv/.ready"], tree)
    return tree


def _run(argv: Sequence[str], cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(argv)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _measured(tree: Path, name: str, *, is_quick: bool) -> Found:
    where = "this checkout" if tree == PROJECT else tree.name
    say(f"{name} in {where}, files in {disk.folder_for(name)} …")
    options = ["--quick"] if is_quick else []
    with disk.chosen(name):
        printed = _run([str(tree / ".venv/bin/python"), "-m", "bench", *options, name], tree)
    return dict(figures_in(printed))


def figures_in(printed: str) -> Iterator[tuple[str, tuple[float, str]]]:
    """The figures of a printed summary. Their aims and verdicts are left out."""
    for line in printed.partition("\nSummary\n")[2].splitlines():
        name, *cells = _COLUMNS.split(line.strip())
        values = [cell for cell in cells if not cell.startswith(("<=", ">="))]
        if values and (found := _VALUE.match(values[0])):
            yield name, (float(found[1].replace(",", "")), found[2] or "")


def _row(name: str, unit: str, there: list[float], here: list[float]) -> tuple[str, ...]:
    if not there or not here:
        return (name, unit, _middle(there), _middle(here), "", "", "")
    ratio = f"{median(here) / median(there):.2f}" if median(there) else ""
    return (name, unit, _middle(there), _middle(here), ratio, _range(there), _range(here))


def _middle(values: list[float]) -> str:
    return number(median(values)) if values else "-"


def _range(values: list[float]) -> str:
    return f"{number(min(values))} to {number(max(values))}"
