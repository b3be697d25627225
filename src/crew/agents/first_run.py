"""Answers an agent CLI's first-run questions in its config file before it asks a person.

Only missing keys and missing entries of lists are added. A person's choices stay.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crew.domain.kernel.text import as_json
from crew.system.atomic_files import rewrite_file
from crew.system.crash_points import effect
from crew.system.file_locks import folder_held

_KEY_TAIL = 20  # Claude Code identifies a key by this many last characters


def answer_first_run(
    answers: Iterable[Mapping[str, Any]], *, worktree: Path, home: Path, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Merge the answers into their files. Returns the problems.

    An answer has `file` (below the home), `key` (its path), `value`, and optionally `env`: a
    variable that must be set. Key and value may contain {{.Worktree}} and {{.EnvTail}}.
    """
    by_file: dict[Path, list[tuple[list[str], Any]]] = {}
    for answer in answers:
        variable = answer.get("env")
        if variable and not environ.get(variable):
            continue
        tail = environ.get(variable, "")[-_KEY_TAIL:] if variable else ""
        names = {"{{.Worktree}}": str(worktree), "{{.EnvTail}}": tail}
        wanted = by_file.setdefault(home / answer["file"], [])
        wanted.append((_fill_in(answer["key"], names), _fill_in(answer["value"], names)))
    problems = [_merge_into(file, wanted) for file, wanted in by_file.items()]
    return tuple(problem for problem in problems if problem)


def _merge_into(file: Path, wanted: list[tuple[list[str], Any]]) -> str | None:
    """Add the missing keys. A file with an unexpected structure stays unchanged."""
    try:
        make_folder(file.parent)
        with folder_held(file.parent):
            document = json.loads(file.read_bytes()) if file.exists() else {}
            added = [_add(document, key, value) for key, value in wanted]
            if any(added):
                _write(file, as_json(document, indent=2) + "\n")
    except (OSError, ValueError, TypeError) as error:
        return f"{file} is unchanged, since it cannot be read or written as JSON: {error}"
    return None


def _add(document: Any, key: list[str], value: Any) -> bool:
    """Whether something was added. TypeError if the path to it is not an object."""
    *way, last = key
    for part in way:
        document = _object(document).setdefault(part, {})
    present = _object(document).get(last)
    if isinstance(present, list) and isinstance(value, list):
        missing = [one for one in value if not _is_listed(document, one)]
        present += missing
        return bool(missing)
    if last in document:
        return False
    document[last] = value
    return True


def _is_listed(document: dict[str, Any], entry: Any) -> bool:
    """Whether a list beside the named one has it, such as that of rejected keys."""
    return any(entry in listed for listed in document.values() if isinstance(listed, list))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {json.dumps(value)[:40]}")
    return value


def _fill_in(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, list):
        return [_fill_in(one, names) for one in value]
    if isinstance(value, dict):
        return {key: _fill_in(one, names) for key, one in value.items()}
    return value


@effect("agents.first_run_folder")
def make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


@effect("agents.first_run")
def _write(file: Path, text: str) -> None:
    """Replace a person's file, synced to disk."""
    rewrite_file(file, text.encode(), mode=0o600, is_durable=True)
