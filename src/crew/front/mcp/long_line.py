"""Finds the id of a message that is too long to keep, so that its refusal reaches the caller."""

import json
import re
from typing import Any

_END_OR_ESCAPE = re.compile(rb'["\\]')
_ID = re.compile(rb'\s*"id"\s*:(.+)', re.DOTALL)
_LONGEST_MEMBER = 1_000
"""The most bytes of a field that are kept: an id is shorter."""


class IdScan:
    """Scans a JSON object in pieces; `found` is the value of its own field "id"."""

    def __init__(self) -> None:
        self.found: Any = None
        self._depth = 0
        self._in_text = False
        self._is_escaped = False
        self._member = b""

    def feed(self, piece: bytes) -> None:
        place = 0
        while place < len(piece):
            if self._in_text:
                place = self._read_text(piece, place)
            else:
                self._read_byte(piece[place : place + 1])
                place += 1

    def _read_text(self, piece: bytes, place: int) -> int:
        """Read up to the next quote or backslash; braces and commas inside a string are ignored."""
        if self._is_escaped:
            self._is_escaped, end = False, place + 1
        elif found := _END_OR_ESCAPE.search(piece, place):
            self._is_escaped = found[0] == b"\\"
            self._in_text, end = self._is_escaped, found.end()
        else:
            end = len(piece)
        self._keep(piece[place:end])
        return end

    def _read_byte(self, byte: bytes) -> None:
        if self._depth == 1 and byte in (b",", b"}"):
            self._end_member()
        else:
            self._keep(byte)
        self._in_text = byte == b'"'
        self._depth += (byte in (b"{", b"[")) - (byte in (b"}", b"]"))

    def _keep(self, part: bytes) -> None:
        if self._depth == 1 and len(self._member) < _LONGEST_MEMBER:
            self._member += part[:_LONGEST_MEMBER]

    def _end_member(self) -> None:
        if match := _ID.fullmatch(self._member):
            try:
                self.found = json.loads(match[1])
            except ValueError:
                self.found = None
        self._member = b""
