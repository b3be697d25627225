"""The page about rewritten branches names a test for each line, and each way is in it."""

import re
from pathlib import Path

from front.test_rewritten_branches import WAYS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rewritten-branches.md").read_text()


def test_each_line_names_a_test_that_exists_and_each_way_has_a_line():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and ".py::" in line]
    for line in lines:
        ((file, test),) = re.findall(r"`(tests/[^`]+)::([^`]+)`", line)
        assert f"def {test}(" in (ROOT / file).read_text(), (file, test)
    for way in WAYS:
        assert any(line.endswith(f"({way}) |") for line in lines), way
