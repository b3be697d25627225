"""Text from outside, made safe where it enters a terminal, a commit message or a JSON document.

There is one function for each destination: `printable` for a terminal with colours, `plain` for
one without, `one_line` for a cell of a table, `commit_line` for a commit message, and `json_text`
for a document. A second call of each changes nothing. `as_json` makes a document that can be
stored.
"""

import json
import re
from functools import lru_cache

LINE_LIMIT = 1_048_576

_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
_SGR = r"\x1b\[[0-9;:]*m"
_ESCAPES = re.compile(
    rf"(?P<sgr>{_SGR})"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<newline>\r(?!\n))"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    f"|(?P<hidden>[{_HIDDEN}])"
)
_ODD = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")
_LEADS = b"\xc2\xcd\xd8\xe1\xe2\xe3\xef\xf3"
"""The first bytes of all odd characters from U+0080 on."""
_HARMLESS = bytes({9, 10, *range(0x20, 0x7F), *range(0x80, 0x100)} - set(_LEADS))
_COLOUR = re.compile(_SGR)
_SURROGATE = re.compile("[\ud800-\udfff]")
_RAW_IN_JSON = re.compile(rf"[\x7f-\x9f{_HIDDEN}]")


def printable(raw: bytes) -> str:
    """Text that a terminal may show: without control characters except colours, tabs and newlines.

    Characters that hide or reorder text are spelled out. A second call changes nothing.
    """
    text = raw.decode(errors="replace")
    # Nearly all output is harmless, which is seen fifty times as fast as it is replaced.
    is_harmless = not raw.translate(None, _HARMLESS) or not _ODD.search(text)
    return text if is_harmless else _ESCAPES.sub(_replacement, text)


def plain(text: str) -> str:
    """The printable text without colours."""
    # Colours are the one frequent escape: they go first, and whatever looks like one afterwards.
    bare = _COLOUR.sub("", text) if "\x1b" in text else text
    shown = printable(bare.encode(errors="replace"))
    return _COLOUR.sub("", shown) if "\x1b" in shown else shown


def commit_line(text: str) -> str:
    """Text as part of one line of a commit message: it cannot begin a line or a trailer."""
    return " ".join(plain(text).split())


def as_json(
    value: object, *, indent: int | None = None, separators: tuple[str, str] | None = None
) -> str:
    """The JSON of a value. Bytes that are no text, as in the name of a folder, are escaped."""
    text = _encoder(indent, separators).encode(value)
    return text if text.isascii() else _SURROGATE.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


@lru_cache
def _encoder(indent: int | None, separators: tuple[str, str] | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, indent=indent, separators=separators)


def json_text(document: str) -> str:
    """A JSON document in which characters that a terminal obeys or hides are written as escapes."""
    return _RAW_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)


def one_line(text: str, *, limit: int = 120) -> str:
    """The first line with text on it, without colours, cut to fit into a table."""
    words = next((line for line in plain(text).splitlines() if line.strip()), "")
    short = " ".join(words.split())
    return short if len(short) <= limit else short[: limit - 1] + "…"


def _replacement(match: re.Match[str]) -> str:
    if match["sgr"]:
        return match["sgr"]
    if match["newline"]:
        return "\n"
    return f"<U+{ord(match['hidden']):04X}>" if match["hidden"] else ""


class LineSplitter:
    """Splits chunks into lines; the rest of a line that is too long is dropped and counted."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._line = bytearray()
        self._dropped = 0

    def feed(self, chunk: bytes) -> list[str]:
        text = self.feed_text(chunk)
        return text.split("\n")[:-1] if text else []

    def feed_text(self, chunk: bytes) -> str:
        """The lines that ended as one text, since a flood has millions; each has its newline."""
        ended, newline, rest = chunk.rpartition(b"\n")
        text = self._ended_text(ended) if newline else ""
        self._add(rest)
        return text

    def _ended_text(self, block: bytes) -> str:
        """The first line may have begun in an earlier chunk; the others are decoded at once."""
        first, newline, others = block.partition(b"\n")
        self._add(first)
        text = self._take() + "\n"
        if newline and len(others) <= self._limit:
            text += _decoded(others + b"\n")
        elif newline:
            for part in others.split(b"\n"):
                self._add(part)
                text += self._take() + "\n"
        return text

    def close(self) -> list[str]:
        """The last line, if the output did not end with a newline."""
        return [self._take()] if self._line or self._dropped else []

    def _add(self, part: bytes) -> None:
        room = self._limit - len(self._line)
        self._line += part[:room]
        self._dropped += max(0, len(part) - room)

    def _take(self) -> str:
        text = _decoded(bytes(self._line) + b"\n")[:-1]
        if self._dropped:
            text += f" … [{self._dropped} bytes dropped]"
        self._line = bytearray()
        self._dropped = 0
        return text


def _decoded(lines: bytes) -> str:
    lines = lines.replace(b"\r\n", b"\n") if b"\r" in lines else lines
    text = lines.decode(errors="replace")
    return text.replace("\0", "\ufffd")


class SignalScanner:
    """Searches for a line that holds exactly one word; the text may come in pieces of any size."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._line = ""
        self._found = False

    @property
    def found(self) -> bool:
        return self._found or self._matches()

    def feed(self, text: str) -> None:
        first, newline, others = text.partition("\n")
        self._add(first)
        if newline:
            lines, _, rest = others.rpartition("\n")
            self._found = self.found or self._is_line_of(lines)
            self._line = ""
            self._add(rest)

    def _is_line_of(self, lines: str) -> bool:
        """Whether one of these lines is the word; only lines that contain it are looked at."""
        at = lines.find(self._word) if self._word else -1
        while at >= 0:
            end = lines.find("\n", at) + 1 or len(lines) + 1
            if lines[lines.rfind("\n", 0, at) + 1 : end - 1].strip() == self._word:
                return True
            at = lines.find(self._word, end)
        return False

    def _matches(self) -> bool:
        return bool(self._word) and self._line.strip() == self._word

    def _add(self, part: str) -> None:
        """Keep only what can decide: the start of the line and whether a blank follows it."""
        line = (self._line + part).lstrip()
        bare = line.rstrip()
        if len(bare) > len(self._word):
            self._line = f"{self._word}…"  # longer than the word, so it cannot match any more
        else:
            self._line = bare + (" " if line != bare else "")


class Tail:
    """The end of a long text, at most `limit` characters."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        piece = piece[-self._limit :]
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > 2 * self._limit or len(self._pieces) > 1_000:
            self._pieces = [self.text]
            self._length = len(self._pieces[0])

    @property
    def text(self) -> str:
        return "".join(self._pieces)[-self._limit :]
