"""Loads workflows from files: the built-in ones and those in `.crew/workflows/`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.config.toml.toml_reader import Table, Wrong
from crew.config.toml.toml_spans import line_of
from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.kernel.suggest import nearest
from crew.domain.rows.workflow import (
    ALL_SIGNALS,
    OUTCOMES,
    Does,
    KeepsSession,
    Role,
    Stage,
    Workflow,
    faults,
)

BUILT_IN = Path(__file__).with_name("workflows")

_KEYS = (
    "description",
    "extends",
    "slots",
    "most_steps",
    "deepest",
    "roles",
    "stages",
    "step_stages",
)
_ROLE_KEYS = ("title", "owns", "agent", "signals", "followups", "retries", "session")
_STAGE_KEYS = (
    *("name", "role", "gate", "review", "steps", "council"),
    *("plans", "takes_back", "limit", "rounds"),
)
_ALL_OUTCOMES = tuple(dict.fromkeys(one for outcomes in OUTCOMES.values() for one in outcomes))


def workflow_files(repo_root: Path | None) -> dict[str, Path]:
    """All workflows by name. The repository's own replace built-in ones of the same name."""
    folders = [BUILT_IN, *([own_folder(repo_root)] if repo_root else [])]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def own_folder(repo_root: Path) -> Path:
    return repo_root / ".crew" / "workflows"


def find_workflow(repo_root: Path | None, name: str) -> Workflow:
    """The workflow of this name. Errors in other files do not matter."""
    files = workflow_files(repo_root)
    if name not in files:
        near = nearest(name, files)
        hint = f"did you mean {near}?" if near else f"there are: {', '.join(files)}"
        raise NotFound(f"no workflow is called {name!r}", hint=hint)
    return load_workflow(files[name])


def load_workflow(file: Path) -> Workflow:
    """The workflow in this file. An error names the file, the place and the problem."""
    try:
        text = file.read_text(encoding="utf-8")
        own = tomllib.loads(text)
        before = _extended_file(own)
        values = tomllib.loads(before.read_text(encoding="utf-8")) | own if before else own
        instructions = (_instructions(before) if before else {}) | _instructions(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"{file.name} cannot be read: {error}", hint="fix the file", code="unreadable_file"
        ) from error
    try:
        workflow = read_workflow(file.stem, values, instructions=instructions)
    except Wrong as wrong:
        raise UsageError(
            f"{_place(file, text, wrong)}: {wrong}", hint=HINT, code="invalid_workflow"
        ) from wrong
    if found := faults(workflow):
        more = f"; also: {'; '.join(found[1:])}" if found[1:] else ""
        raise UsageError(f"{file.name}: {found[0]}", hint=f"{HINT}{more}", code="invalid_workflow")
    return workflow


def _extended_file(values: Mapping[str, Any]) -> Path | None:
    """The file of the built-in workflow that this one extends."""
    name = values.get("extends")
    if name is None:
        return None
    known = workflow_files(None)
    if not isinstance(name, str) or name not in known:
        raise UsageError(
            f"extends names {name!r}, which is not a built-in workflow",
            hint=f"built-in are: {', '.join(known)}",
        )
    return known[name]


HINT = "docs/quests.md explains how to write a workflow; `crew workflows quest` draws one"


def _place(file: Path, text: str, wrong: Wrong) -> str:
    line = line_of(text, wrong.path) if wrong.path else None
    return f"{file.name}:{line}" if line else file.name


def _instructions(file: Path) -> dict[str, str]:
    """The prompt of each role, from the folder next to the workflow's file."""
    texts = file.with_suffix("").glob("*.md")
    return {text.stem: text.read_text(encoding="utf-8").strip() for text in texts}


def read_workflow(
    name: str, values: Mapping[str, Any], *, instructions: Mapping[str, str] = {}
) -> Workflow:
    """A workflow from plain values. Raises `Wrong` with the place and the problem."""
    table = Table("the workflow", values, path=())
    table.only(_KEYS)
    roles = table.table("roles", called="roles")
    return Workflow(
        name=name,
        description=table.text("description"),
        slots=table.count("slots", 3),
        most_steps=table.count("most_steps", 50),
        deepest=table.count("deepest", 3),
        roles={key: _role(key, roles, instructions.get(key, "")) for key in roles.values},
        stages=_stages(table, "stages"),
        step_stages=_stages(table, "step_stages"),
    )


def _role(name: str, roles: Table, instructions: str) -> Role:
    table = roles.table(name, called=f"role {name}")
    table.only(_ROLE_KEYS)
    return Role(
        name=name,
        title=table.text("title"),
        owns=table.text("owns"),
        instructions=instructions,
        agent=table.text("agent"),
        signals=table.texts("signals", ALL_SIGNALS),
        followups=table.texts("followups"),
        retries=table.count("retries", None),
        session=table.choice("session", tuple(KeepsSession), KeepsSession.ITEM),
    )


def _stages(table: Table, key: str) -> tuple[Stage, ...]:
    return tuple(_stage(one) for one in table.tables(key))


def _stage(values: Mapping[str, Any]) -> Stage:
    name = Table("a stage", values).text("name")
    if not name:
        raise Wrong("a stage has no name")
    table = Table(f"stage {name}", values)
    table.only((*_STAGE_KEYS, *_ALL_OUTCOMES))
    does = _does(table)
    for key in _ALL_OUTCOMES:
        if key in values and key not in OUTCOMES[does]:
            known = " or ".join(OUTCOMES[does])
            raise Wrong(f"stage {name}: {does} cannot end with {key}, only with {known}")
    return Stage(
        name=name,
        does=does,
        roles=_roles(table, does),
        plans=table.flag("plans"),
        takes_back=table.flag("takes_back"),
        limit=table.count("limit", None),
        rounds=table.count("rounds", 3),
        routes={outcome: table.text(outcome) for outcome in OUTCOMES[does] if outcome in values},
    )


def _does(table: Table) -> Does:
    named = [does for does in Does if table.values.get(does)]
    if len(named) != 1:
        raise Wrong(f"{table.name}: name exactly one of {', '.join(Does)}")
    return named[0]


def _roles(table: Table, does: Does) -> tuple[str, ...]:
    if does is Does.ROLE:
        return (table.text("role"),)
    if does in {Does.REVIEW, Does.COUNCIL}:
        return table.texts(does)
    table.flag(does)
    return ()
