"""Matches paths with patterns of `.gitignore`, where crew starts no git to ask.

A pattern that git would not understand matches nothing. The last pattern that matches decides.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from crew.domain.kernel.frozen import frozen

_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb"\t-\r ",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_IN_SET = rb"\\.|\[:\w+:\]"
_TOKEN = re.compile(
    rb"(?P<any_folders>(?:(?<=/)|^)\*\*+/)|(?P<rest>(?<=/)\*\*+$)|(?P<star>\*+)|(?P<one>\?)"
    rb"|\[(?P<negated>[!^]?)(?P<set>(?:" + _IN_SET + rb"|[^\\])(?:" + _IN_SET + rb"|[^\]\\])*)\]"
    rb"|\\(?P<escaped>.)|(?P<plain>[^\\\[])",
    re.DOTALL,
)
_MEMBER = re.compile(rb"\\(?P<escaped>.)|\[:(?P<class>\w+):\]|(?P<plain>.)", re.DOTALL)
_FIXED = {"any_folders": rb"(?:.*/)?", "rest": rb".*", "star": rb"[^/]*", "one": rb"[^/]"}


@frozen
class _Pattern:
    """`is_name`: the last part of a path is compared, else the whole path."""

    regex: "re.Pattern[bytes]"
    is_name: bool
    only_folders: bool
    is_negated: bool

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        if self.only_folders and not is_folder:
            return False
        compared = path.rpartition(b"/")[2] if self.is_name else path
        return self.regex.fullmatch(compared) is not None


def is_named(path: str, patterns: tuple[str, ...], *, is_folder: bool) -> bool:
    """Whether these patterns name this path itself. The caller asks for its parents first."""
    raw, found = os.fsencode(path), False
    for pattern in _parsed(patterns):
        if pattern.matches(raw, is_folder=is_folder):
            found = not pattern.is_negated
    return found


@lru_cache(maxsize=16)
def _parsed(patterns: tuple[str, ...]) -> tuple[_Pattern, ...]:
    return tuple(_parse_all(map(os.fsencode, patterns)))


def _parse_all(patterns: Iterable[bytes]) -> Iterator[_Pattern]:
    for pattern in patterns:
        text = pattern.removeprefix(b"!")
        path = text.removesuffix(b"/")
        try:
            regex = re.compile(_translated(path.removeprefix(b"/")), re.DOTALL)
        except (ValueError, KeyError, re.error):
            continue
        yield _Pattern(
            regex=regex,
            is_name=b"/" not in path,
            only_folders=text != path,
            is_negated=text != pattern,
        )


def _translated(pattern: bytes) -> bytes:
    found, place = b"", 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            raise ValueError("a set or an escape without an end")
        found += _regex_of(token)
        place = token.end()
    return found


def _regex_of(token: "re.Match[bytes]") -> bytes:
    if token["set"] is not None:
        negated = b"^" if token["negated"] else b""
        return b"(?!/)[" + negated + b"".join(map(_member, _MEMBER.finditer(token["set"]))) + b"]"
    fixed = next((regex for name, regex in _FIXED.items() if token[name] is not None), None)
    return re.escape(token["escaped"] or token["plain"]) if fixed is None else fixed


def _member(token: "re.Match[bytes]") -> bytes:
    if token["class"] is not None:
        return _CLASSES[token["class"]]
    return b"-" if token["plain"] == b"-" else re.escape(token["escaped"] or token["plain"])
