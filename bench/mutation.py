"""Small faults put in by a machine: `python -m bench.mutation [--sample N] [--seed S] [AREA...]`.

Of all faults that `mutation_edits` can make in an area, a sample is tried: each is put into a copy
of the tree, and the tests that execute its line run until one fails. A fault that no test finds is
a survivor; `mutation_survivors.toml` explains those that are no gap.
Exits 1 if fewer than 80% of an area are found, or a survivor is not explained.
"""

import argparse
import ast
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401 - loaded here once, and not anew for each fault
import pytest

from bench.mutation_edits import Edit, edits_of, modules, sample
from bench.mutation_map import Chosen, Recorder, TestMap, digest, most_telling
from bench.tables import say, table, title

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "crew"
EXPLAINED = Path(__file__).with_name("mutation_survivors.toml")
KEPT = PROJECT / ".mutation"
COPIED = ("src", "tests", "pyproject.toml")
AIM = 0.8
SAMPLE, SEED = 120, 13
AT_ONCE = 2
TEST_LIMIT_S = 60
LIMIT_S = 300.0
"""A fault that makes the tests hang is found."""
TIME_LIMIT = "the time limit"


@dataclass(frozen=True, slots=True)
class Area:
    """Folders below `src/crew`, and their tests: for one fault, at most so many run."""

    folders: tuple[str, ...]
    tests: tuple[str, ...]
    at_most: int


AREAS = {
    "domain": Area(
        ("domain",),
        (
            *("domain", "simulation/test_histories.py", "config"),
            *("agents/test_output.py", "agents/test_templates.py"),
        ),
        at_most=300,
    ),
    "git": Area(("git",), ("git",), at_most=80),
    "sandbox": Area(
        ("system/sandbox", "runner/sandbox"),
        (
            *("system/test_sandbox_forms.py", "boundary/test_sandbox.py"),
            *("boundary/test_confinement.py",),
        ),
        at_most=80,
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    edit: Edit
    found_by: str  # a test or the time limit; empty if the fault survived
    is_reached: bool


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"default: {SAMPLE}")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default: {SEED}")
    asked = parser.parse_args(given)
    if unknown := sorted(set(asked.areas) - AREAS.keys()):
        parser.error(f"no such area: {', '.join(unknown)}; there are {', '.join(AREAS)}")
    results = {}
    for name in asked.areas or AREAS:
        chosen = sample(all_edits(AREAS[name]), count=asked.sample, seed=asked.seed)
        title(f"{name}: {len(chosen)} faults, seed {asked.seed}")
        results[name] = tried(AREAS[name], chosen)
    return report(results, explanations())


def all_edits(area: Area) -> list[Edit]:
    files = (file for folder in area.folders for file in modules(SOURCE / folder))
    return [edit for file in files for edit in edits_of(file, below=SOURCE)]


def explanations() -> dict[tuple[str, str, str], str]:
    """Why a survivor is no gap, by its file, its line and its edit."""
    entries = tomllib.loads(EXPLAINED.read_text())["survivor"]
    return {(one["file"], one["line"], one["edit"]): one["why"] for one in entries}


def tried(area: Area, edits: list[Edit]) -> list[Outcome]:
    """Put each fault in and run the tests that execute its line, a few faults at once."""
    outcomes = []
    with copies() as pool:
        known = load_map(area, pool)
        sizes = known.sizes()
        say(f"{len(sizes)} tests")
        tests = [most_telling(known.tests_for(edit), sizes, at_most=area.at_most) for edit in edits]
        for outcome in pool.imap_unordered(try_edit, zip(edits, tests, strict=True)):
            outcomes.append(outcome)
            say(f"{len(outcomes)}/{len(edits)} {named(outcome)}")
    return sorted(outcomes, key=lambda one: (one.edit.file, one.edit.start))


def named(outcome: Outcome) -> str:
    edit = outcome.edit
    end = f"found by {outcome.found_by}" if outcome.found_by else "SURVIVED"
    unreached = "" if outcome.is_reached else " (no test executes this line)"
    return f"{edit.file}:{edit.line}: {edit.shown}: {end}{unreached}"


def report(results: dict[str, list[Outcome]], explained: dict[tuple[str, str, str], str]) -> int:
    rows, unexplained = [], 0
    for name, outcomes in results.items():
        survivors = [one for one in outcomes if not one.found_by]
        unknown = [one for one in survivors if one.edit.key not in explained]
        title(f"{name}: {len(survivors)} survivors, {len(unknown)} not explained")
        for one in survivors:
            say(f"{named(one)}\n    in: {one.edit.text}")
            say(f"    why: {explained.get(one.edit.key, 'NOT EXPLAINED')}")
        unexplained += len(unknown)
        found = len(outcomes) - len(survivors)
        histories = sum("simulation" in one.found_by for one in outcomes)
        share = found / len(outcomes)
        rows.append((name, len(outcomes), found, histories, f"{share:.0%}", len(survivors)))
    title("Mutation testing")
    head = ("area", "faults", "found", "of these by histories", "share", "survivors")
    table(head, [tuple(map(str, row)) for row in rows])
    is_short = any(row[2] < AIM * row[1] for row in rows)
    return 1 if unexplained or is_short else 0


# Copies of the tree, one for each worker.


@contextlib.contextmanager
def copies() -> "Iterator[multiprocessing.pool.Pool]":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="crew-mutation-") as place:
        context = multiprocessing.get_context("fork")
        with context.Pool(AT_ONCE, initializer=make_copy, initargs=(Path(place),)) as pool:
            yield pool
            pool.close()
            pool.join()


_copy = Path()
"""The copy of this worker."""


def make_copy(place: Path) -> None:
    global _copy  # noqa: PLW0603 - a worker of a pool has no other place
    _copy = place / str(os.getpid())
    for name in COPIED:
        source = PROJECT / name
        (_copy / name).parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, _copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, _copy / name)
    os.chdir(_copy)
    os.environ["PYTHONPATH"] = f"{_copy / 'src'}:{_copy / 'tests'}"
    os.environ |= {"CREW_HISTORIES": "100", "CREW_REQUIRE_ALL": "1"}  # a skip finds no fault
    sys.path[:0] = [str(_copy / "src"), str(_copy / "tests")]
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the pool ends, and so does a child


def load_map(area: Area, pool: "multiprocessing.pool.Pool") -> TestMap:
    """The map of an area. It is kept as long as no module and no test changes."""
    places = [PROJECT / "tests" / name for name in area.tests]
    kept = KEPT / f"{digest([*(SOURCE / folder for folder in area.folders), *places])}.json"
    if not kept.exists():
        known = TestMap()
        files = [file for one in places for file in ([one] if one.is_file() else tests_in(one))]
        for part in pool.imap_unordered(record, [str(file.relative_to(PROJECT)) for file in files]):
            known.add(part)
        known.write(kept)
    return TestMap.read(kept)


def tests_in(folder: Path) -> Iterable[Path]:
    return sorted(folder.rglob("test_*.py"))


def record(file: str) -> TestMap:
    """Run one file of tests without a fault."""
    note = _copy / "map.json"
    recorder = Recorder(_copy / "src" / "crew")

    def work() -> int:
        code = run_tests([file], recorder)
        recorder.recorded().write(note)
        return code

    note.unlink(missing_ok=True)
    if in_child(work, limit_s=10 * LIMIT_S) != 0:
        raise RuntimeError(f"{file} fails without any fault:\n{(_copy / 'output.txt').read_text()}")
    return TestMap.read(note)


def try_edit(given: tuple[Edit, list[str]]) -> Outcome:
    edit, tests = given
    if not tests:
        return Outcome(edit=edit, found_by="", is_reached=False)
    file, note = _copy / "src" / "crew" / edit.file, _copy / "found.txt"
    before = file.read_bytes()
    note.unlink(missing_ok=True)
    try:
        ast.parse(edit.applied(before))  # a fault of the tool, which no test may find
        rewrite(file, edit.applied(before))
        files = sorted({test.split("::")[0] for test in tests})
        code = in_child(lambda: run_tests([*files, "-x"], Chosen(tests, note)), limit_s=LIMIT_S)
    finally:
        rewrite(file, before)
    found_by = note.read_text() if note.exists() else {0: "", None: TIME_LIMIT}.get(code, "import")
    return Outcome(edit=edit, found_by=found_by, is_reached=True)


def rewrite(file: Path, content: bytes) -> None:
    """Python takes bytecode for current if its source has the same second and size."""
    file.write_bytes(content)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def run_tests(args: list[str], plugin: object) -> int:
    options = ("-q", "-m", "not faults", "-p", "no:cacheprovider", "-p", "no:randomly")
    warm = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed", "0")
    limits = ("--timeout", str(TEST_LIMIT_S), "--basetemp", str(_copy / "t"))
    return int(pytest.main([*args, *options, *warm, *limits], [plugin]))


def in_child(work: Callable[[], int], *, limit_s: float) -> int | None:
    """A fork of this warm process does the work; None if it did not end in time."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            output = os.open(_copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = work()
        except BaseException:  # noqa: BLE001 - this process ends below, whatever it is
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    try:
        return waited(child, limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def waited(child: int, limit_s: float) -> int | None:
    give_up_at = time.monotonic() + limit_s
    while time.monotonic() < give_up_at:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
