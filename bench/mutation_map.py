"""Which tests execute which line: recorded once, so that a fault meets only tests that reach it."""

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest

from bench.mutation_edits import Edit

PROJECT = Path(__file__).parents[1]
Lines = dict[str, dict[int, list[str]]]
ALL = ""
"""In place of a file: every test, also one that executes no line of the area."""


@dataclass(slots=True)
class TestMap:
    """The tests that execute each line of each file below `src/crew`."""

    __test__ = False  # it is no test itself

    lines: Lines = field(default_factory=dict)

    def add(self, other: "TestMap") -> None:
        for file, lines in other.lines.items():
            mine = self.lines.setdefault(file, {})
            for line, tests in lines.items():
                mine.setdefault(line, []).extend(tests)

    def sizes(self) -> Counter[str]:
        """How many lines each test executes."""
        return Counter(
            test for lines in self.lines.values() for one in lines.values() for test in one
        )

    def tests_for(self, edit: Edit) -> set[str]:
        """The tests that execute the edited lines.

        What an import executes, it executes once: then all tests of the module count, or all tests
        if there are none. A line that is never executed may belong to a program that runs in a
        process of its own: then the tests that import the module count.
        """
        lines = self.lines.get(edit.file, {})
        found = {test for line in edit.around for test in lines.get(line, ())}
        if edit.in_function and found:
            return found
        tests = set(self.sizes())
        importing = {test for test in tests if _imports(test, edit.file)}
        if edit.in_function and not any(line in lines for line in edit.around):
            return importing
        return {test for found in lines.values() for test in found} | importing or tests

    def write(self, file: Path) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(self.lines))

    @classmethod
    def read(cls, file: Path) -> "TestMap":
        read = json.loads(file.read_text())
        return cls(
            {name: {int(n): tests for n, tests in lines.items()} for name, lines in read.items()}
        )


def _imports(test: str, module: str) -> bool:
    """Whether the file of a test imports this module, whose constants it may compare."""
    return Path(module).stem in _imported_by(test.partition("::")[0])


@functools.cache
def _imported_by(file: str) -> frozenset[str]:
    """The last names of everything that a file imports from crew."""
    path = PROJECT / file
    lines = path.read_text().splitlines() if path.is_file() else ()
    words = (word for line in lines if line.startswith("from crew") for word in line.split())
    return frozenset(word.strip(",").rpartition(".")[2] for word in words)


def in_batches(
    tests: Iterable[str], sizes: Counter[str], *, module: str, size: int
) -> list[list[str]]:
    """The tests in batches: first some of each file, those that execute the fewest lines.

    The file that is named like the module comes first, then those that import it.
    """
    ranked = sorted(tests, key=lambda test: (sizes[test], test))
    of_file: Counter[str] = Counter()
    turns = {}
    for test in ranked:
        file = test.partition("::")[0]
        of_file[file] += 1
        is_own = Path(file).stem == f"test_{Path(module).stem}"
        turns[test] = (not is_own, not _imports(test, module), of_file[file])
    ordered = sorted(ranked, key=turns.__getitem__)
    batches = (ordered[start : start + size] for start in range(0, len(ordered), size))
    return [sorted(one, key=lambda test: (sizes[test], test)) for one in batches]


class Recorder:
    """A plugin of pytest that notes the lines that each test executes."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._coverage = coverage.Coverage(
            data_file=None, include=[f"{source}/*"], config_file=False
        )
        self._run: set[str] = set()
        self._failed: set[str] = set()

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._run.add(report.nodeid)
        if report.failed:
            self._failed.add(report.nodeid)

    def recorded(self) -> TestMap:
        """Without the tests that fail without any fault, and so would prove nothing."""
        self._coverage.stop()
        data = self._coverage.get_data()
        found = TestMap({ALL: {0: sorted(self._run - self._failed)}})
        for file in data.measured_files():
            contexts = data.contexts_by_lineno(file)
            found.lines[Path(file).relative_to(self._source).as_posix()] = {
                line: sorted({*tests} - self._failed - {""}) for line, tests in contexts.items()
            }
        return found


class Chosen:
    """A plugin of pytest that runs only these tests, in this order, and notes the first failure."""

    def __init__(self, tests: list[str], note: Path) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self._note = note

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._note.exists():
            self._note.write_text(report.nodeid)


def digest(folders: Iterable[Path]) -> str:
    """Changes with every file in these folders."""
    total = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            total.update(file.as_posix().encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:12]
