"""A type checker knows the fields of each row, and refuses a misspelt one in a change."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from crew.domain import row_changes
from crew.domain.world import TABLES

ROOT = Path(__file__).parents[2]
NOT_CHANGED = {"id", "state", "at", "to"}
"""A fact names its subject, its states and its time itself."""


@pytest.mark.parametrize("row", TABLES.values(), ids=lambda row: row.__name__)
def test_each_row_has_its_fields_with_their_types(row):
    changes = getattr(row_changes, f"{row.__name__}Fields")
    hints = get_type_hints(row)
    named = {one.name: hints[one.name] for one in fields(row) if one.name not in NOT_CHANGED}
    assert get_type_hints(changes) == named


def test_each_row_can_be_noted_and_each_with_a_machine_moved():
    noted = {row.__name__ for row in TABLES.values()}
    moved = {row.__name__ for row in TABLES.values() if row.machine.moves}
    found = {
        node.name: {ast.unparse(one.args.args[1].annotation) for one in node.body}
        for node in ast.parse(Path(row_changes.__file__).read_text()).body
        if isinstance(node, ast.ClassDef) and node.name in ("MovedFact", "NotedFact")
    }
    assert found == {"MovedFact": moved, "NotedFact": noted}


def test_mypy_refuses_a_field_that_the_row_does_not_have(tmp_path):
    sample = tmp_path / "sample.py"
    sample.write_text(
        "from crew.domain.rows.task import Task\n"
        "from crew.domain.world import noted\n"
        'noted(Task(id="1"), "edited", at=1.0, title="new")\n'
        'noted(Task(id="1"), "edited", at=1.0, titel="new")\n'
        'noted(Task(id="1"), "edited", at=1.0, title=3)\n'
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(sample)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert set(found) == {"4", "5"}, done.stdout
