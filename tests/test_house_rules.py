"""The rules a machine can check: first sentences, doors, facts, and generated documents."""

import ast
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crew.config.model import (
    TABLES,
    AgentSettings,
    AgentsSettings,
    KeyBinding,
    RoleSettings,
    TuiSettings,
)

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

PROCESS_DOORS = {"git/spawn_git.py", "system/processes/process.py", "agents/terminal/tmux.py"}
PROGRAMS = {
    "agents/scripted/script_player.py",
    "system/processes/reaper.py",
    "system/processes/terminal_job.py",
    "system/sandbox/forwarder.py",
    "system/sandbox/seal.py",
}  # run as programs, behind the doors
PROCESS_STARTERS = (
    *("subprocess.run", "subprocess.Popen", "subprocess.check_", "subprocess.call"),
    *("create_subprocess", "subprocess_exec", "subprocess_shell", "os.system", "os.popen"),
    *("os.posix_spawn", "os.spawn", "os.exec", "os.fork"),
)


def _functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, node.end_lineno - node.lineno + 1


def test_no_function_is_longer_than_a_screen():
    too_long = [
        f"{path.name}:{node.name} ({length})"
        for path in SOURCES
        for node, length in _functions(path)
        if length > 60
    ]
    assert too_long == []


def test_every_module_says_what_it_is_for():
    for path in SOURCES:
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, f"{path} does not say what it is for"
        assert docstring[0].isupper() or docstring.startswith(("`", "plan", "do", "crew"))


def test_the_domain_is_typed():
    """The lines of the domain that name `Any`; lower the number with each one that goes."""
    domain = [path for path in SOURCES if "domain" in path.parts]
    lines = [line for path in domain for line in path.read_text().splitlines()]
    assert sum(re.search(r"\bAny\b", line) is not None for line in lines) <= 3
    assert not any("asked.args" in line for line in lines)


def test_no_file_is_a_drawer_for_everything():
    names = {path.stem for path in SOURCES}
    assert names.isdisjoint({"utils", "util", "helpers", "helper", "common", "misc"})


def test_only_the_doors_start_processes():
    for path in SOURCES:
        inside = path.relative_to(ROOT / "src" / "crew").as_posix()
        if inside in PROCESS_DOORS | PROGRAMS:
            continue
        starts = [call for call in _calls(path) if any(word in call for word in PROCESS_STARTERS)]
        assert starts == [], f"{inside} starts processes: {starts}"


FACT_MAKERS = {"moved", "noted", "born"}


def test_facts_are_made_in_the_domain_alone():
    """The doers act and hand plain values over; the store reads facts that were made before."""
    made = [
        f"{inside}:{node.lineno}"
        for inside, node in _nodes_outside_domain()
        if _makes_facts(node) or (_constructs_fact(node) and not inside.startswith("store/"))
    ]
    assert made == []


def _nodes_outside_domain():
    for path in SOURCES:
        inside = path.relative_to(ROOT / "src" / "crew").as_posix()
        if not inside.startswith("domain/"):
            yield from ((inside, node) for node in ast.walk(ast.parse(path.read_text())))


def _makes_facts(node):
    """Imports a maker of facts, or reaches it through the module."""
    if isinstance(node, ast.ImportFrom) and node.module == "crew.domain.world":
        return any(name.name in FACT_MAKERS for name in node.names)
    is_attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return is_attribute and node.value.id == "world" and node.attr in FACT_MAKERS


def _constructs_fact(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"Fact", "fact.Fact"}


def test_no_row_is_forged_in_the_domain():
    """A state comes from a fact that moves there: `FactDraft` chains facts, `replace` does not."""
    forged = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "replace"
        and any(given.arg == "state" for given in node.keywords)
    ]
    assert forged == []


FLOORS = {
    "system/atomic_files.py": {"os.fsync", "tempfile.mkstemp", "NamedTemporaryFile", "os.replace"},
    "system/file_locks.py": {"fcntl.flock", "fcntl.lockf"},
    "system/threads.py": {"asyncio.shield"},
}
"""What is done in one place only, and the calls that show that it is done by hand elsewhere."""
NO_THREAD = {"front/mcp/mcp_server.py"}  # it shields a server that it then asks to end


def test_files_locks_and_threads_have_one_place_each():
    by_hand = [
        f"{inside}: {call}"
        for path in SOURCES
        if (inside := path.relative_to(ROOT / "src" / "crew").as_posix())
        not in PROGRAMS | NO_THREAD
        for call in [*_calls(path), *_moves_over(path)]
        for floor, calls in FLOORS.items()
        if inside != floor and call in calls
    ]
    assert by_hand == []


def _moves_over(path):
    """`Path.replace` has one argument; `str.replace` has two, and that of a date has keywords."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    for call in calls:
        is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "replace"
        if is_move and len(call.args) == 1 and not call.keywords:
            yield "os.replace"


def _calls(path):
    nodes = ast.walk(ast.parse(path.read_text()))
    return [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]


def test_a_module_of_the_domain_keeps_nothing():
    """No list or set that a call could fill, no cache without a limit, no global name set later."""
    for path in (ROOT / "src" / "crew" / "domain").rglob("*.py"):
        tree = ast.parse(path.read_text())
        kept = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        fillable = (ast.List, ast.Set, ast.ListComp, ast.SetComp)
        assert not [node for node in kept if isinstance(node.value, fillable)], path
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)], path
        named = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "functools.cache" not in named, path


def test_layers_import_only_what_is_below_them():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_fault_of_the_benchmark_can_still_be_put_in():
    listed = (
        "import json, bench.mutants as m; print(json.dumps([(x.file, x.old) for x in m.MUTANTS]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", listed], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for file, old in json.loads(done.stdout):
        assert (ROOT / "src" / "crew" / file).read_text().count(old) == 1, f"{file}: {old}"


def test_every_key_of_the_configuration_is_read_by_something():
    """A key that nothing reads is a promise that nothing keeps: see `config/reserved_keys.py`."""
    kinds = {**TABLES, "agents": AgentsSettings, "roles": RoleSettings, "by_name": AgentSettings}
    kinds |= {"tui": TuiSettings, "keybindings": KeyBinding}
    reading = [_names_in(path) for path in SOURCES if path.name != "model.py"]
    unread = [
        f"{table}.{field.name}"
        for table, model in kinds.items()
        for field in dataclasses.fields(model)
        if not any(field.name in names and _sees(names, table, model) for names in reading)
    ]
    assert unread == []


def _sees(names, table, model):
    """Whether a file gets hold of this table: by its name, its class, or the agent of a kind."""
    ways = {table, model.__name__} | ({"agent_settings"} if model is AgentSettings else set())
    return bool(ways & names) or (model is AgentSettings and "with_template" in names)


def _names_in(path):
    """Attributes, names and whole texts of a file; its imports and keywords are no reading."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and path.name == "inheritance.py":
            found.add(node.value)
    return found


@pytest.mark.parametrize("page", ["machines.md"])
def test_generated_pages_are_up_to_date(page):
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "docs" / page).exists()
