"""Suggests a gate command to a person. crew does not run a suggestion by itself."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from crew.config.gate_command import Gate

_MAX_BYTES = 256 * 1024
_TARGETS = ("check", "ci", "tests", "verify")
_SCRIPTS = ("check", "ci", "tests", "test:unit", "test:ci", "verify")
_RUN = re.compile(r"^(?P<indent>\s*)(?:-\s+)?run:\s*(?P<rest>.*)$")
_TESTS = re.compile(r"\b(test|tests|pytest|ctest|check|verify)\b")


def suggest_gate(root: Path) -> Gate | None:
    """The first match: a Makefile, package.json, tox or nox, then the commands of CI."""
    for rule in (_make, _npm, _python, _workflows):
        if gate := rule(root):
            return gate
    return None


def _make(root: Path) -> Gate | None:
    text = _read(root / "Makefile")
    found = next((one for one in _TARGETS if re.search(rf"(?m)^{one}\s*:(?!=)", text)), None)
    return (
        Gate(command=f"make {found}", reason=f"the Makefile has a target {found}")
        if found
        else None
    )


def _npm(root: Path) -> Gate | None:
    try:
        scripts = json.loads(_read(root / "package.json"))["scripts"]
        found = next((one for one in _SCRIPTS if isinstance(scripts.get(one), str)), None)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    reason = f"package.json has a script {found}"
    return Gate(command=f"npm run {found}", reason=reason) if found else None


def _python(root: Path) -> Gate | None:
    if (root / "noxfile.py").is_file():
        return Gate(command="nox", reason="there is a noxfile.py")
    if (root / "tox.ini").is_file() or "[tool.tox]" in _read(root / "pyproject.toml"):
        return Gate(command="tox", reason="tox is configured")
    return None


def _workflows(root: Path) -> Gate | None:
    folder = root / ".github" / "workflows"
    for file in sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))):
        for command in _commands(_read(file)):
            if _TESTS.search(command) and "${{" not in command:
                return Gate(command=command, reason=f"{file.relative_to(root)} runs it")
    return None


def _commands(text: str) -> Iterator[str]:
    """The commands after `run:`, including a block below it."""
    block: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent > block:
            yield line.strip()
            continue
        block = None
        if found := _RUN.match(line):
            rest = found["rest"].strip()
            if rest.startswith(("|", ">")):
                block = indent
            elif rest:
                yield rest.strip("'\"")


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
