"""Quotation: a mark before each line of text that others wrote, so it never looks like crew's own.

People, agents and programs write messages, task texts, reviews and output. When crew passes such
text on, it begins each line with `> `; the line above names the author. crew's own lines never
begin with the mark, and nothing inside a quotation can start a line without it.
"""

MARK = "> "
CUT = f"{MARK}[…]"

LONGEST_NOTES = 16_000
"""Characters of one quotation in an agent's notes, such as a gate's output or a review."""

_LONGEST_HEADLINE = 300
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_BYTES = {
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)},
}
"""How the bytes of a file's name that are not text are spelled: Python has surrogates for them."""
_IN_QUOTES: dict[int, str | None] = {
    **{code: None for code in _CONTROLS if code != ord("\t")},
    **_BYTES,
}
_IN_HEADLINES = dict.fromkeys(_CONTROLS, " ") | _BYTES


def quoted(text: str, *, most: int | None = None) -> str:
    """The text with the mark before each line; if it is longer than `most`, only its end.

    Every character that some reader takes for the end of a line ends one here: form feeds,
    Unicode's separators and the like.
    """
    lines = [f"{MARK}{line.translate(_IN_QUOTES)}".rstrip() for line in text.splitlines()]
    shown = "\n".join(lines)
    return shown if most is None or len(shown) <= most else _ending(lines, most)


def quoted_start(text: str, *, most: int) -> str:
    """As `quoted`, but of a long text the beginning."""
    whole = quoted(text)
    if len(whole) <= most:
        return whole
    kept = whole[: max(len(MARK), most - len(CUT) - 1)]
    return f"{kept}\n{CUT}"


def attributed(author: str, text: str, *, most: int | None = None) -> str:
    """A quotation under the name of its author."""
    return f"{headline(author)}:\n{quoted(text, most=most)}"


def headline(text: str) -> str:
    """A name or a title on one line, for a line that crew writes itself."""
    return " ".join(text.translate(_IN_HEADLINES).split())[:_LONGEST_HEADLINE]


def _ending(lines: list[str], most: int) -> str:
    """The last whole lines that fit; if the last line does not fit, its end."""
    room, kept = most - len(CUT) - 1, list[str]()
    for line in reversed(lines):
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        kept.append(line)
    if not kept:
        kept = [MARK + lines[-1][len(MARK) :][-max(1, room - len(MARK)) :]]
    return "\n".join((CUT, *reversed(kept)))
