"""The page about safety names a test for each line, and each exists."""

import re
from pathlib import Path

from git.test_own_vectors import VECTORS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "safety.md").read_text()


def test_each_line_of_the_table_names_tests_that_exist():
    table = PAGE.partition("## Who can do what")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ") and "tests/" in line]
    assert len(lines) >= 15
    for line in lines:
        named = re.findall(r"`(tests/[^`]+)`", line.split("|")[-2])
        assert named, line
        for test in named:
            assert (ROOT / test).is_file(), test


IN_A_WORKTREE = re.compile(
    r"`git [^`]*` in (its|the|that|their|an agent's) (worktree|folder)"
    r"|git -C \S*worktrees|cd \S*-worktrees",
)
SAID_TO_PEOPLE = (
    ROOT / "tests" / "messages.txt",
    *(path for path in (ROOT / "docs").glob("*.md") if path.name != "safety.md"),
    *(ROOT / "src/crew/config/prompts").glob("help_*.md"),
    *(ROOT / "src/crew/front").rglob("*.py"),
    ROOT / "README.md",
)


def test_nothing_sends_a_person_to_run_git_in_an_agent_s_folder():
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in SAID_TO_PEOPLE
        for match in IN_A_WORKTREE.finditer(path.read_text())
    ]
    assert found == []


def test_each_attack_names_tests_that_exist():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and ".py::" in line]
    assert len(lines) >= 30
    for line in lines:
        named = re.findall(r"`(tests/[^`]+)::([^`]+)`", line.split("|")[-2])
        assert named, line
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(), (file, test)


def test_the_page_lists_every_planted_setting():
    assert f"{', '.join(VECTORS)}." in PAGE
    assert len(VECTORS) >= 17
