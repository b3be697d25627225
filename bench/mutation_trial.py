"""One fault put into a copy of the tree, and the tests that are to find it.

Each worker of a pool has a copy of its own. It has loaded pytest once, and forks for each fault.
"""

import ast
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

import hypothesis  # noqa: F401 - loaded here once, and not anew for each fault
import pytest

from bench.mutation_edits import Edit
from bench.mutation_map import PROJECT, Chosen, Recorder, TestMap

COPIED = ("src", "tests", "pyproject.toml")
AT_ONCE = 2
TEST_LIMIT_S = 60
LIMIT_S = 300.0
"""A fault that makes the tests hang is found."""


@dataclass(frozen=True, slots=True)
class Outcome:
    edit: Edit
    found_by: str  # a test or the time limit; empty if the fault survived
    is_reached: bool


@contextlib.contextmanager
def copies() -> Iterator[Pool]:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="crew-mutation-") as place:
        context = multiprocessing.get_context("fork")
        with context.Pool(AT_ONCE, initializer=make_copy, initargs=(Path(place),)) as pool:
            yield pool
            pool.close()
            pool.join()


_copy = Path()
"""The copy of this worker."""


def copy_tree(place: Path) -> None:
    """Copy what the tests need; nothing in the copy changes the tree itself."""
    place.mkdir(exist_ok=True)
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, place / name)


def make_copy(place: Path) -> None:
    global _copy  # noqa: PLW0603 - a worker of a pool has no other place
    _copy = place / str(os.getpid())
    copy_tree(_copy)
    os.chdir(_copy)
    os.environ["PYTHONPATH"] = f"{_copy / 'src'}:{_copy / 'tests'}"
    os.environ |= {"CREW_HISTORIES": "100", "CREW_REQUIRE_ALL": "1"}  # a skip finds no fault
    sys.path[:0] = [str(_copy / "src"), str(_copy / "tests")]
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the pool ends, and so does a child


def record(file: str) -> TestMap:
    """Run one file of tests without a fault."""
    note = _copy / "map.json"
    recorder = Recorder(_copy / "src" / "crew")

    def work() -> int:
        code = run_tests([file], recorder)
        recorder.recorded().write(note)
        return code

    note.unlink(missing_ok=True)
    if in_child(work, limit_s=10 * LIMIT_S) not in {0, pytest.ExitCode.TESTS_FAILED}:
        raise RuntimeError(f"{file} cannot be run:\n{(_copy / 'output.txt').read_text()}")
    return TestMap.read(note)


def try_edit(given: tuple[Edit, list[list[str]]]) -> Outcome:
    """Put the fault in and run the batches of tests until one finds it."""
    edit, batches = given
    file = _copy / "src" / "crew" / edit.file
    before = file.read_bytes()
    if before[edit.start : edit.end].decode() != edit.old:
        raise RuntimeError(f"{edit.file} has changed since this run began")
    try:
        ast.parse(edit.applied(before))  # a fault of the tool, which no test may find
        rewrite(file, edit.applied(before))
        found_by = next(filter(None, map(found_among, batches)), "")
    finally:
        rewrite(file, before)
    return Outcome(edit=edit, found_by=found_by, is_reached=bool(batches))


def found_among(tests: list[str]) -> str:
    """The first of these tests that fails; empty if none does."""
    note = _copy / "found.txt"
    note.unlink(missing_ok=True)
    files = sorted({test.split("::")[0] for test in tests})
    code = in_child(lambda: run_tests([*files, "-x"], Chosen(tests, note)), limit_s=LIMIT_S)
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"none of these tests was found: {tests}")
    otherwise = {0: "", None: "the time limit"}.get(code, "the import of the module")
    return note.read_text() if note.exists() else otherwise


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
