"""Chooses the gate: the configured command, or the one that the repository's files suggest."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from crew.domain.kernel.frozen import frozen

_MAX_BYTES = 1024 * 1024
_READ = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "package.json", "Makefile")
_SEEN = ("pytest.ini", "Cargo.toml", "go.mod")
_NPM_PLACEHOLDER = "no test specified"
_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)


@frozen
class Gate:
    """A shell command that must exit 0 on the exact commit, and why it is the gate."""

    command: str
    reason: str


def choose_gate(configured: str | None, files: Mapping[str, str]) -> Gate | None:
    """`[complete] command` if set, else a detected gate; None if there is neither."""
    if configured and configured.strip():
        return Gate(command=configured, reason="[complete] command names it")
    return detect_gate(files)


def detect_gate(files: Mapping[str, str]) -> Gate | None:
    """The gate of the first matching rule. `files` maps names in the root to contents."""
    for rule in (_pytest, _npm, _cargo, _make, _go):
        if gate := rule(files):
            return gate
    return None


def read_gate_files(root: Path) -> dict[str, str]:
    """The files in the root that the rules need. For some the name is enough."""
    files: dict[str, str] = {}
    for path in sorted(root.iterdir()):
        if not path.is_file():
            continue
        if path.name in _READ or _is_requirements(path.name):
            with path.open("rb") as file:
                files[path.name] = file.read(_MAX_BYTES).decode(errors="replace")
        elif path.name in _SEEN or path.suffix == ".go":
            files[path.name] = ""
    return files


def _pytest(files: Mapping[str, str]) -> Gate | None:
    for name in sorted(files):
        if name == "pytest.ini":
            return Gate(command="pytest", reason="there is a pytest.ini")
        is_python = name in _READ[:4] or _is_requirements(name)
        if is_python and re.search(r"\bpytest\b", files[name]):
            return Gate(command="pytest", reason=f"{name} mentions pytest")
    return None


def _npm(files: Mapping[str, str]) -> Gate | None:
    try:
        script = json.loads(files.get("package.json", ""))["scripts"]["test"]
    except (ValueError, LookupError, TypeError):
        return None
    if not isinstance(script, str) or _NPM_PLACEHOLDER in script:
        return None
    return Gate(command="npm test", reason="package.json has a test script")


def _cargo(files: Mapping[str, str]) -> Gate | None:
    if "Cargo.toml" not in files:
        return None
    return Gate(command="cargo test", reason="there is a Cargo.toml")


def _make(files: Mapping[str, str]) -> Gate | None:
    if not _MAKE_TEST.search(files.get("Makefile", "")):
        return None
    return Gate(command="make test", reason="the Makefile has a target test")


def _go(files: Mapping[str, str]) -> Gate | None:
    found = [name for name in sorted(files) if name == "go.mod" or name.endswith(".go")]
    if not found:
        return None
    reason = "there is a go.mod" if "go.mod" in found else f"there is {found[0]}"
    return Gate(command="go test ./...", reason=reason)


def _is_requirements(name: str) -> bool:
    return name.startswith("requirements") and name.endswith(".txt")
