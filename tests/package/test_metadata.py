"""The names under which crew is installed: the distribution, its programs and its extras."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from crew.tasks.task_source import BUILT_IN, GROUP

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
IMPORTED_AS = {"agent-client-protocol": "acp"}
FOLDERS = [ROOT / name for name in ("src", "docs", "examples")]
TEXTS = [
    *ROOT.glob("*.md"),
    *(path for folder in FOLDERS for path in folder.rglob("*.*") if path.suffix in {".py", ".md"}),
]


def test_the_distribution_is_git_crew_with_two_names_for_one_program():
    assert PROJECT["name"] == "git-crew"
    assert set(PROJECT["scripts"]) == {"crew", "git-crew"}
    assert len(set(PROJECT["scripts"].values())) == 1
    assert PROJECT["entry-points"][GROUP] == BUILT_IN


def test_an_extra_installs_what_the_code_imports_and_all_installs_every_extra():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    others = sorted(set(EXTRAS) - {"all"})
    assert others == ["acp", "cluster", "mcp", "telemetry", "tui", "web"]
    assert EXTRAS["all"] == [f"git-crew[{','.join(others)}]"]
    for extra in others:
        for requirement in EXTRAS[extra]:
            name = re.split(r"[<>=]", requirement)[0]
            module = IMPORTED_AS.get(name, name)
            assert re.search(rf"^\s*(from|import) {module}\b", source, re.MULTILINE), requirement


def test_the_documents_name_each_extra_and_which_of_them_install_nothing_yet():
    text = (ROOT / "docs" / "install.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    assert set(rows) == set(EXTRAS)
    for extra, installs in rows.items():
        assert (installs == "nothing yet") == (EXTRAS[extra] == []), extra


def test_hints_and_documents_install_git_crew_by_its_name():
    """`pip install crew` would install a stranger's package."""
    wrong = re.compile(r"(?<!git-)\bcrew\[(acp|all|cluster|mcp|telemetry|tui|web)|install '?crew\b")
    assert [str(path) for path in TEXTS if wrong.search(path.read_text())] == []


LOADED = """
import runpy, sys
import {declared}
import hatchling.builders.hooks.plugin.interface
before = set(sys.modules)
runpy.run_path(sys.argv[1])["pages"]()
files = {{name: getattr(module, "__file__", None) for name, module in sys.modules.items()}}
print([name for name in files if name not in before and "site-packages" in (files[name] or "")])
"""


def test_a_build_loads_only_the_packages_that_it_declares():
    declared = [re.split(r"[<>=]", one)[0] for one in PYPROJECT["build-system"]["requires"]]
    script = LOADED.format(declared=", ".join(declared))
    argv = [sys.executable, "-c", script, ROOT / "docs" / "man_pages.py"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ast.literal_eval(done.stdout)}
    assert loaded <= set(declared)
