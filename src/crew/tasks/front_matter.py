"""Reads and edits the `key: value` lines between two `---` at the top of a file."""

from collections.abc import Iterable
from dataclasses import replace

from crew.domain.kernel.frozen import frozen

FENCE = "---"


@frozen
class FrontMatter:
    """The raw lines of the file, and the raw text after the closing fence."""

    lines: tuple[str, ...]
    rest: str

    def get(self, key: str) -> str | None:
        """The value of the first line with that key, or None."""
        for line in self.lines:
            name, colon, value = line.partition(":")
            if colon and name.strip() == key:
                return value.strip()
        return None

    def with_value(self, key: str, value: str) -> "FrontMatter":
        """Change that line in place, or add it as the last one."""
        line = f"{key}: {value}" if value else f"{key}:"
        for at, old in enumerate(self.lines):
            if old.partition(":")[0].strip() == key:
                return replace(self, lines=(*self.lines[:at], line, *self.lines[at + 1 :]))
        return replace(self, lines=(*self.lines, line))

    def without(self, key: str) -> "FrontMatter":
        kept = (line for line in self.lines if line.partition(":")[0].strip() != key)
        return replace(self, lines=tuple(kept))

    def with_rest(self, rest: str) -> "FrontMatter":
        return replace(self, rest=rest)

    def text(self) -> str:
        return "\n".join((FENCE, *self.lines, FENCE)) + "\n" + self.rest


def parse(text: str) -> FrontMatter:
    """The front matter of a text. ValueError gives the reason if there is none."""
    lines = text.split("\n")
    if lines[0] != FENCE:
        raise ValueError("it does not begin with a line ---")
    try:
        end = lines.index(FENCE, 1)
    except ValueError:
        raise ValueError("the front matter has no closing line ---") from None
    if end == len(lines) - 1:
        # The fence is the last line and has no newline. Writing adds one.
        return FrontMatter(lines=tuple(lines[1:end]), rest="")
    return FrontMatter(lines=tuple(lines[1:end]), rest="\n".join(lines[end + 1 :]))


def parse_list(value: str) -> tuple[str, ...]:
    """The items of `a, b` or `[a, b]` in order, without duplicates."""
    inner = value.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    return tuple(dict.fromkeys(part for raw in inner.split(",") if (part := raw.strip())))


def inline_list(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"
