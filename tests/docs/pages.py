"""What the pages for people say, in parts that a test can run or look up."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {"commands.md"}  # the help has tests of its own
PAGES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
WRITTEN = [page for page in PAGES if page.name not in GENERATED]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections(page: str) -> dict[str, str]:
    """The texts of a page in docs/ by their headings."""
    _, *parts = _HEADING.split((ROOT / "docs" / page).read_text())
    return dict(zip(parts[::2], parts[1::2], strict=True))


def section(page: str, heading: str) -> str:
    return sections(page)[heading]


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in _BLOCK.findall(text) if name == language]


def prose(text: str) -> str:
    """Without blocks of code and inline code: the sentences."""
    return re.sub(r"`[^`\n]*`", "`…`", _BLOCK.sub("", text))
