"""Which command proves a commit."""

import pytest

from crew.config.gate_command import Gate, choose_gate, detect_gate, read_gate_files
from crew.config.suggested_gate import suggest_gate

PYTEST = {"pyproject.toml": '[project]\ndependencies = ["pytest"]'}
NPM = {"package.json": '{"scripts": {"test": "vitest"}}'}
CARGO = {"Cargo.toml": ""}
MAKE = {"Makefile": "all:\n\ntest: build\n\tgo\n"}
GO = {"go.mod": ""}


@pytest.mark.parametrize(
    ("files", "command", "reason"),
    [
        (PYTEST, "pytest", "pyproject.toml mentions pytest"),
        ({"pytest.ini": ""}, "pytest", "there is a pytest.ini"),
        ({"requirements-dev.txt": "pytest==8\n"}, "pytest", "requirements-dev.txt mentions pytest"),
        ({"setup.py": "tests_require=['pytest']"}, "pytest", "setup.py mentions pytest"),
        (NPM, "npm test", "package.json has a test script"),
        (CARGO, "cargo test", "there is a Cargo.toml"),
        (MAKE, "make test", "the Makefile has a target test"),
        (GO, "go test ./...", "there is a go.mod"),
        ({"main.go": ""}, "go test ./...", "there is main.go"),
    ],
)
def test_the_files_of_a_repository_suggest_its_gate(files, command, reason):
    assert detect_gate(files) == Gate(command=command, reason=reason)


def test_the_order_of_the_rules_is_fixed():
    rest = [PYTEST, NPM, CARGO, MAKE, GO]
    commands = []
    while rest:
        commands.append(detect_gate({k: v for files in rest for k, v in files.items()}).command)
        rest.pop(0)
    assert commands == ["pytest", "npm test", "cargo test", "make test", "go test ./..."]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"pyproject.toml": "[project]"},
        {"pyproject.toml": 'name = "notpytestish"'},
        {"package.json": "{"},
        {"package.json": "[]"},
        {"package.json": '{"scripts": {"test": 3}}'},
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"Makefile": "tests:\n\tx\ntest := 1\n"},
    ],
)
def test_what_is_no_sign_of_tests_gives_no_gate(files):
    assert detect_gate(files) is None


def test_the_configured_command_wins():
    assert choose_gate("mise run ci", PYTEST).command == "mise run ci"
    assert choose_gate(None, PYTEST).command == "pytest"
    assert choose_gate(" ", {}) is None


def test_only_what_the_rules_look_at_is_read(tmp_path):
    (tmp_path / "Makefile").write_text("test:\n")
    (tmp_path / "main.go").write_text("package main")
    (tmp_path / "requirements.txt").write_bytes(b"\xffpytest")
    (tmp_path / "README.md").write_text("pytest")
    (tmp_path / "pyproject.toml").mkdir()
    files = read_gate_files(tmp_path)
    assert set(files) == {"Makefile", "main.go", "requirements.txt"}
    assert detect_gate(files).reason == "requirements.txt mentions pytest"


# What could be a gate


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({}, None),
        ({"Makefile": "all:\n\ncheck: all\n"}, "make check"),
        ({"Makefile": "check := 1\n"}, None),
        (
            {"package.json": '{"scripts": {"start": "x", "test:unit": "vitest"}}'},
            "npm run test:unit",
        ),
        ({"package.json": '{"scripts": []}'}, None),
        ({"tox.ini": ""}, "tox"),
        ({"noxfile.py": ""}, "nox"),
        (
            {".github/workflows/a.yml": "      - run: bin/build\n      - run: bin/test\n"},
            "bin/test",
        ),
        ({".github/workflows/a.yml": "      run: |\n        cd a\n        bin/test\n"}, "bin/test"),
        ({".github/workflows/a.yml": "      - run: test ${{ matrix.x }}\n"}, None),
    ],
)
def test_a_command_that_looks_like_tests_is_suggested(tmp_path, files, command):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = suggest_gate(tmp_path)
    assert (found.command if found else None) == command
