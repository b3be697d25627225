"""Text that an agent prints, made safe to split, search, store and show."""

import re

LINE_LIMIT = 1_048_576

_SGR = r"\x1b\[[0-9;:]*m"
_ESCAPES = re.compile(
    rf"(?P<sgr>{_SGR})"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<newline>\r(?!\n))"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|(?P<hidden>[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f])"
)
_COLOUR = re.compile(_SGR)


def printable(raw: bytes) -> str:
    """Text that a terminal may show: without control characters except colours, tabs and newlines.

    Characters that hide or reorder text are spelled out. A second call changes nothing.
    """
    return _ESCAPES.sub(_replacement, raw.decode(errors="replace"))


def plain(text: str) -> str:
    """The printable text without colours."""
    return _COLOUR.sub("", printable(text.encode(errors="replace")))


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
        *ended, rest = chunk.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def close(self) -> list[str]:
        """The last line, if the output did not end with a newline."""
        return [self._take()] if self._line or self._dropped else []

    def _add(self, part: bytes) -> None:
        room = self._limit - len(self._line)
        self._line += part[:room]
        self._dropped += max(0, len(part) - room)

    def _take(self) -> str:
        text = self._line.removesuffix(b"\r").decode(errors="replace").replace("\0", "\ufffd")
        if self._dropped:
            text += f" … [{self._dropped} bytes dropped]"
        self._line = bytearray()
        self._dropped = 0
        return text


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
        *ended, rest = text.split("\n")
        for part in ended:
            self._add(part)
            self._found = self.found
            self._line = ""
        self._add(rest)

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
