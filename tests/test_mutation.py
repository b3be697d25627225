"""The mutation tool: which faults it makes, which it tries, and that it tells found from missed."""

import dataclasses
import functools
import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

from bench.mutation import SOURCE, explanations
from bench.mutation_edits import edits_of, sample
from bench.mutation_map import TestMap, in_batches

ROOT = Path(__file__).parents[1]

MODULE = '''
"""A module with one fault of each kind."""

from typing import Literal

Kind = Literal["a", "b"]
LIMIT: int = 400


@frozen(slots=True)
def grade(points: "int", *, best=3) -> str:
    """Not 5."""
    assert points is not None
    if points < best and not best == 7:
        raise ValueError(f"only {points} points", hint="more")
    log.note("done")
    return f"{points}/{best}"


def both(first, second) -> bool:
    return first or second


def parts(name):
    return (*name, *[one for one in name if one]) if name else ()
'''


def made(tmp_path, text):
    file = tmp_path / "module.py"
    file.write_text(text)
    return edits_of(file, below=tmp_path)


def test_a_module_gives_the_usual_faults_and_none_in_words_types_and_asserts(tmp_path):
    assert [edit.shown for edit in made(tmp_path, MODULE)] == [
        "400 → 0",
        "3 → 4",
        "points < best and not best == 7 → not (points < best and (not best == 7))",
        "points < best and not best == 7 → points < best or not best == 7",
        "points < best → points <= best",
        "not best == 7 → best == 7",
        "best == 7 → best != 7",
        "7 → 8",
        'raise ValueError(f"only {points} points", hint="more") → pass',
        'log.note("done") → pass',
        "\"done\" → 'XXdone'",
        'f"{points}/{best}" → None',
        'f"{points}/{best}" → f\'{points}/{best}\' + "XX"',
        "first or second → not (first or second)",
        "first or second → first and second",
        "(*name, *[one for one in name if one]) if name else () → None",
        "(*name, *[one for one in name if one]) if name else () → () if name else (*name, *[one for one in name if one])",  # noqa: E501
        "*name → *()",
        "*[one for one in name if one] → *()",
        "one → not one",
    ]


def test_every_fault_is_python_and_changes_the_module(tmp_path):
    source = MODULE.encode()
    for edit in made(tmp_path, MODULE):
        compile(edit.applied(source), "module.py", "exec")
        assert edit.applied(source) != source


def test_a_fault_in_a_long_statement_is_executed_with_all_of_it(tmp_path):
    calls = "def f():\n    g(\n        1,\n        2,\n    )\n"
    edits = made(tmp_path, f"{calls}    if (\n        3\n    ):\n        pass\n")
    around = {edit.shown: (edit.line, edit.around) for edit in edits}
    assert around["2 → 3"] == (4, range(2, 6))
    assert around["3 → 4"] == (7, range(7, 8))


def test_a_changed_line_leaves_the_other_faults_of_a_sample(tmp_path):
    before = {edit.key for edit in sample(made(tmp_path, MODULE), count=8, seed=1)}
    moved = made(tmp_path, MODULE.replace("LIMIT: int = 400", "\n\nMOST = 4"))
    assert len(before - {edit.key for edit in sample(moved, count=8, seed=1)}) <= 1
    other = sample(made(tmp_path, MODULE), count=8, seed=2)
    assert {edit.key for edit in other} != before


def test_a_fault_meets_the_tests_that_execute_its_line(tmp_path):
    top, *_, last = made(tmp_path, MODULE)
    known = TestMap({"module.py": {last.line: ["a::here", "b::all"], 12: ["b::all", "b::else"]}})
    assert known.tests_for(last) == {"a::here", "b::all"}
    assert known.tests_for(top) == {"a::here", "b::all", "b::else"}
    assert known.sizes() == {"a::here": 1, "b::all": 2, "b::else": 1}


def test_a_fault_that_no_test_executes_here_meets_the_tests_that_import_its_module(tmp_path):
    """Such as a program that runs in a process of its own."""
    unseen = made(tmp_path, MODULE)[-1]
    importing, other = "tests/domain/test_error_row.py::x", "tests/domain/test_names.py::x"
    known = TestMap({"else.py": {1: [importing, other]}})
    assert known.tests_for(unseen) == set()
    unseen = dataclasses.replace(unseen, file="domain/kernel/error_row.py")
    assert known.tests_for(unseen) == {importing}


def test_of_many_tests_the_most_specific_ones_of_each_file_run_first():
    sizes = Counter({"a::1": 1, "a::2": 2, "a::3": 3, "b::8": 8, "b::9": 9})
    chosen = functools.partial(in_batches, sizes, sizes, module="domain/kernel/error_row.py")
    assert chosen(size=3) == [["a::1", "a::2", "b::8"], ["a::3", "b::9"]]
    assert chosen(size=9) == [list(sizes)]
    assert in_batches((), sizes, module="x.py", size=9) == []
    importing = "tests/domain/test_error_row.py::x"
    sizes[importing] = 99
    assert chosen(size=1)[0] == [importing]


TRY = """
    import dataclasses, json, pathlib, sys
    from bench import mutation, mutation_trial
    mutation_trial.AT_ONCE = 1
    mutation.KEPT = pathlib.Path(sys.argv[1])
    area = mutation.Area(("domain/kernel",), ("domain/test_error_row.py",), batch=9)
    (wrong,) = [one for one in mutation.all_edits(area) if one.shown == "before + 1 → before - 1"]
    harmless = dataclasses.replace(wrong, new="1 + before")
    outcomes = mutation.tried(area, [wrong, harmless])
    print(json.dumps({one.edit.new: one.found_by for one in outcomes}))
"""


def test_a_fault_is_found_by_a_test_that_executes_it_and_a_harmless_edit_by_none(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TRY), tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found_by = json.loads(done.stdout.splitlines()[-1])
    assert found_by["before - 1"].startswith("tests/domain/test_error_row.py::")
    assert found_by["1 + before"] == ""


def test_every_explained_survivor_is_still_a_possible_fault():
    files = {file for file, _line, _edit in explanations()}
    possible = {edit.key for file in files for edit in edits_of(SOURCE / file, below=SOURCE)}
    gone = [key for key in explanations() if key not in possible]
    assert gone == [], "the line has changed: change the entry in bench/mutation_survivors.toml too"
