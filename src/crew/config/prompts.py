"""Loads the prompts for agents from data files and fills in their fields."""

import functools
from collections.abc import Set as AbstractSet
from pathlib import Path
from string import Template

FOLDER = Path(__file__).with_name("prompts")


def prompt(name: str, **values: str) -> str:
    """The prompt with its `${fields}` filled in. Values are inserted verbatim.

    Extra values are ignored, so that one set serves all prompts.
    """
    return _template(name).substitute(values)


def prompt_names() -> tuple[str, ...]:
    """The prompts that crew sends to agents, without the help pages of `crew --help-…`."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.md") if not _is_help(path)))


def prompt_fields(name: str) -> AbstractSet[str]:
    return frozenset(_template(name).get_identifiers())


def _is_help(path: Path) -> bool:
    return path.name.startswith("help_")


@functools.cache
def _template(name: str) -> Template:
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8").strip() + "\n")
