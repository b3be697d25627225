"""Loads the prompts for agents from data files and fills in their fields."""

import functools
from pathlib import Path
from string import Template

FOLDER = Path(__file__).with_name("prompts")


def prompt(name: str, **values: str) -> str:
    """The prompt with its `${fields}` filled in. Values are inserted verbatim.

    Extra values are ignored, so that one set serves all prompts.
    """
    return _template(name).substitute(values)


@functools.cache
def _template(name: str) -> Template:
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8").strip() + "\n")
