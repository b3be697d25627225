"""Workflows as files: the built-in ones, and those of the repository in `.crew/workflows/`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.config.nearest import nearest
from crew.domain.errors import NotFound, UsageError
from crew.domain.workflow import ALL_SIGNALS, OUTCOMES, Does, Role, Stage, Workflow, faults

BUILT_IN = Path(__file__).with_name("workflows")

_KEYS = {"description", "slots", "most_steps", "deepest", "roles", "stages", "step_stages"}
_ROLE_KEYS = {"owns", "agent", "signals", "followups", "retries"}
_STAGE_KEYS = {"name", "role", "gate", "review", "steps", "plans", "takes_back", "limit"}


def load_workflows(repo_root: Path | None) -> dict[str, Workflow]:
    """All of them by name; one of the repository replaces a built-in one of the same name."""
    folders = [BUILT_IN, *([repo_root / ".crew" / "workflows"] if repo_root else [])]
    files = [file for folder in folders for file in sorted(folder.glob("*.toml"))]
    return {file.stem: load_workflow(file) for file in files}


def find_workflow(repo_root: Path, name: str) -> Workflow:
    known = load_workflows(repo_root)
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
        raise NotFound(f"no workflow is called {name!r}", hint=hint)
    return known[name]


def load_workflow(file: Path) -> Workflow:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file.name} cannot be read: {error}", hint="mend the file") from error
    try:
        workflow = read_workflow(file.stem, values, instructions=_instructions(file))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file.name}: {error}", hint="`crew workflows` shows how") from error
    if found := faults(workflow):
        raise UsageError(f"{file.name}: {found[0]}", hint="; ".join(found[1:]) or "mend it there")
    return workflow


def _instructions(file: Path) -> dict[str, str]:
    """What each role is told, from the files in the folder beside the workflow's own."""
    texts = file.with_suffix("").glob("*.md")
    return {text.stem: text.read_text(encoding="utf-8").strip() for text in texts}


def read_workflow(
    name: str, values: Mapping[str, Any], *, instructions: Mapping[str, str] = {}
) -> Workflow:
    """A workflow from plain values; TypeError and ValueError say what is wrong and where."""
    _only(values, _KEYS, "the workflow")
    return Workflow(
        name=name,
        description=_text(values, "description"),
        slots=_number(values, "slots", 3),
        most_steps=_number(values, "most_steps", 50),
        deepest=_number(values, "deepest", 3),
        roles={
            key: _role(key, table, instructions.get(key, ""))
            for key, table in values.get("roles", {}).items()
        },
        stages=tuple(_stage(table) for table in values.get("stages", ())),
        step_stages=tuple(_stage(table) for table in values.get("step_stages", ())),
    )


def _role(name: str, table: Mapping[str, Any], instructions: str) -> Role:
    _only(table, _ROLE_KEYS, f"role {name}")
    return Role(
        name=name,
        owns=_text(table, "owns"),
        instructions=instructions,
        agent=_text(table, "agent"),
        signals=_texts(table, "signals", ALL_SIGNALS),
        followups=_texts(table, "followups", ()),
        retries=_number(table, "retries", None),
    )


def _stage(table: Mapping[str, Any]) -> Stage:
    name = _text(table, "name")
    if not name:
        raise ValueError("a stage has no name")
    does, roles = _does(name, table)
    _only(table, {*_STAGE_KEYS, *OUTCOMES[does]}, f"stage {name}")
    return Stage(
        name=name,
        does=does,
        roles=roles,
        plans=table.get("plans") is True,
        takes_back=table.get("takes_back") is True,
        limit=_number(table, "limit", None),
        routes={outcome: table[outcome] for outcome in OUTCOMES[does] if outcome in table},
    )


def _does(name: str, table: Mapping[str, Any]) -> tuple[Does, tuple[str, ...]]:
    said = [does for does in Does if table.get(does)]
    if len(said) != 1:
        raise ValueError(f"stage {name}: say exactly one of {', '.join(Does)}")
    does = said[0]
    if does is Does.ROLE:
        return does, (_text(table, "role"),)
    return does, _texts(table, "review", ()) if does is Does.REVIEW else ()


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = nearest(key, known)
            raise ValueError(f"{where}: unknown key {key}" + (f", {near}?" if near else ""))


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} must be a text")
    return value


def _texts(table: Mapping[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = table.get(key, default)
    if isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"{key} must be a list of texts")
    return tuple(value)


def _number(table: Mapping[str, Any], key: str, default: Any) -> Any:
    value = table.get(key, default)
    if value is not default and (type(value) is not int or value < 1):
        raise TypeError(f"{key} must be a whole number from 1 on")
    return value
