"""Reads the text of a unified diff: files, hunks, lines. Any text is read, even a truncated one."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from crew.domain.kernel.frozen import frozen

Kind = Literal["context", "added", "removed", "note"]

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.DOTALL)
_KINDS: dict[str, Kind] = {" ": "context", "+": "added", "-": "removed"}
_FILE, _NO_NEWLINE = "diff --git ", "\\"
_ESCAPE = re.compile(rb"\\([abtnvfr\"\\]|[0-7]{3})")
_ESCAPES = dict(zip((b"a", b"b", b"t", b"n", b"v", b"f", b"r"), range(7, 14), strict=False)) | {
    b'"': 34,
    b"\\": 92,
}


class DiffLine(NamedTuple):
    """One line, without its sign; `old` and `new` are its numbers, 0 on the side without it."""

    kind: Kind
    text: str
    old: int = 0
    new: int = 0


@frozen
class Hunk:
    """Lines that follow one another; `heading` is what git names, such as a function."""

    heading: str
    lines: tuple[DiffLine, ...]


@frozen
class FileDiff:
    """The change of one file; `notes` are what lines do not show, such as another mode."""

    path: str
    old_path: str = ""
    what: str = "changed"
    notes: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    is_binary: bool = False
    added: int = 0
    removed: int = 0


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of a diff in their order."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    # A line of a hunk always begins with a sign, so it cannot look like the beginning of a file.
    starts = [number for number, line in enumerate(lines) if line.startswith(_FILE)]
    return tuple(_file(lines[a:b]) for a, b in pairwise([*starts, len(lines)]))


def _file(lines: list[str]) -> FileDiff:
    """One file: git's lines about it, then its hunks."""
    first = next((n for n, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    head = lines[:first]
    old, new = _names(head)
    hunks = tuple(_hunks(lines[first:]))
    return FileDiff(
        path=new,
        old_path=old if old != new else "",
        what=_what(head),
        notes=tuple(_notes(head)),
        hunks=hunks,
        is_binary=any(line.startswith(("Binary files ", "GIT binary patch")) for line in head),
        added=sum(line.kind == "added" for hunk in hunks for line in hunk.lines),
        removed=sum(line.kind == "removed" for hunk in hunks for line in hunk.lines),
    )


def _hunks(lines: list[str]) -> Iterator[Hunk]:
    heading: str | None = None
    found: list[DiffLine] = []
    old = new = old_left = new_left = 0
    for line in lines:
        match = _HUNK.fullmatch(line) if not (old_left or new_left) else None
        if match:
            if heading is not None:
                yield Hunk(heading=heading, lines=tuple(found))
            heading, found = match[5], []
            old, new = int(match[1]), int(match[3])
            old_left, new_left = int(match[2] or 1), int(match[4] or 1)
        elif line.startswith(_NO_NEWLINE):
            found.append(DiffLine("note", "no newline at end of file"))
        elif (kind := _KINDS.get(line[:1])) is not None:
            has_old, has_new = kind != "added", kind != "removed"
            found.append(DiffLine(kind, line[1:], old * has_old, new * has_new))
            old, new = old + has_old, new + has_new
            old_left, new_left = max(0, old_left - has_old), max(0, new_left - has_new)
    if heading is not None:
        yield Hunk(heading=heading, lines=tuple(found))


def _names(head: list[str]) -> tuple[str, str]:
    """The old and the new name; the lines about renames and `---` are the ones without doubt."""
    told = {
        word: unquoted(line.removeprefix(word))
        for line in head[1:]
        for word in ("rename from ", "rename to ", "copy from ", "copy to ", "--- ", "+++ ")
        if line.startswith(word)
    }
    both = _same_name(head[0].removeprefix(_FILE))
    old = told.get("rename from ") or told.get("copy from ") or _under(told.get("--- "), "a/")
    new = told.get("rename to ") or told.get("copy to ") or _under(told.get("+++ "), "b/")
    return old or new or both, new or old or both


def _under(name: str | None, prefix: str) -> str:
    if name is None or name == "/dev/null":
        return ""
    return name.removeprefix(prefix)


def _same_name(names: str) -> str:
    """The name in `a/name b/name`, where both are equal and may have blanks in them."""
    half = names[: len(names) // 2]
    return unquoted(half).removeprefix("a/")


def unquoted(name: str) -> str:
    """A name as git quotes it: with escapes if it is in quotes; a tab ends one with blanks."""
    name = name.removesuffix("\t")
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    raw = _ESCAPE.sub(_byte, name[1:-1].encode(errors="replace"))
    return raw.decode(errors="replace")


def _byte(found: re.Match[bytes]) -> bytes:
    """The byte that an escape stands for; three digits are octal."""
    return bytes([_ESCAPES.get(found[1]) or int(found[1], 8) & 255])


def _what(head: list[str]) -> str:
    for words, what in (
        ("new file mode", "added"),
        ("deleted file mode", "deleted"),
        ("rename from", "renamed"),
        ("copy from", "copied"),
    ):
        if any(line.startswith(words) for line in head):
            return what
    return "changed"


def _notes(head: list[str]) -> Iterator[str]:
    modes = dict(line.split(" mode ", 1) for line in head if line.startswith(("old m", "new m")))
    if modes:
        yield f"mode {modes.get('old', '?')} → {modes.get('new', '?')}"
    for line in head:
        if line.startswith("similarity index ") and not line.endswith(" 100%"):
            yield f"{line.removeprefix('similarity index ')} alike"
