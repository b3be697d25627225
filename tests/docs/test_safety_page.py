"""The page about safety names a test for each line, and each exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "safety.md").read_text()


def test_each_line_of_the_table_names_tests_that_exist():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "tests/" in line]
    assert len(lines) >= 15
    for line in lines:
        named = re.findall(r"`(tests/[^`]+)`", line.split("|")[-2])
        assert named, line
        for test in named:
            assert (ROOT / test).is_file(), test
