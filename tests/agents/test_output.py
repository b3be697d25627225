"""What an agent prints is split, searched, kept and shown without harm."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crew.domain.kernel.text import (
    _ESCAPES,
    LineSplitter,
    SignalScanner,
    Tail,
    _replacement,
    one_line,
    plain,
    printable,
)

NASTY = st.text(
    alphabet=st.sampled_from(
        list("\x1b[]()0123;:m?hPX^_\\\x07\x9b\x9d\x9c\r\n\t aA\u202e\u200b\x00")
    )
)


def lines_of(chunks, **options):
    splitter = LineSplitter(**options)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.close()


def test_the_last_half_line_comes_out_at_the_end():
    assert lines_of([b"a\nb", b"c\r\nha", b"lf"]) == ["a", "bc", "half"]


def test_invalid_text_and_nul_come_out_marked():
    assert lines_of([b"a\xffb\0c\n"]) == ["a\ufffdb\ufffdc"]


def test_a_character_split_between_chunks_stays_whole():
    assert lines_of(["ä\n".encode()[:1], "ä\n".encode()[1:]]) == ["ä"]


def test_the_rest_of_a_line_that_is_too_long_is_dropped_and_counted():
    assert lines_of([b"x" * 7, b"x" * 5 + b"\nnext\n"], limit=4) == [
        "xxxx … [8 bytes dropped]",
        "next",
    ]


@given(st.lists(st.binary(max_size=40)))
def test_how_the_output_was_cut_into_chunks_does_not_matter(chunks):
    assert lines_of(chunks, limit=16) == lines_of([b"".join(chunks)], limit=16)


@pytest.mark.parametrize(
    "text", ["DONE", "all good\nDONE\n", "  DONE \t\r\nbye", "```\nDONE\n```", "\n\nDONE"]
)
def test_a_line_that_is_the_word_is_found(text):
    scanner = SignalScanner("DONE")
    scanner.feed(text)
    assert scanner.found


@pytest.mark.parametrize(
    "text", ["", "done", "DONE.", "I am DONE", "DONE!\n", "DO NE", "DONE DONE", "UNDONE", "DO\nNE"]
)
def test_a_line_that_only_holds_the_word_is_not(text):
    scanner = SignalScanner("DONE")
    scanner.feed(text)
    assert not scanner.found


@given(st.text(alphabet="DONE x\n"), st.integers(min_value=1, max_value=5))
def test_the_size_of_the_pieces_does_not_matter(text, size):
    whole, pieces = SignalScanner("DONE"), SignalScanner("DONE")
    whole.feed(text)
    for start in range(0, len(text), size):
        pieces.feed(text[start : start + size])
    assert whole.found == pieces.found == ("DONE" in [line.strip() for line in text.split("\n")])


def test_an_empty_word_is_never_found():
    scanner = SignalScanner("")
    scanner.feed("\n\n")
    assert not scanner.found


def test_a_scanner_does_not_keep_a_long_line():
    scanner = SignalScanner("DONE")
    for _ in range(100):
        scanner.feed(" " * 1000 + "x" * 1000)
    assert len(scanner._line) < 10


@given(st.lists(st.text(max_size=30)), st.integers(min_value=1, max_value=50))
def test_a_tail_is_the_end_of_the_text(pieces, limit):
    tail = Tail(limit)
    for piece in pieces:
        tail.add(piece)
    assert tail.text == "".join(pieces)[-limit:]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m\tx\n", "\x1b[1;31mred\x1b[0m\tx\n"),
        (b"\x1b]52;c;c2VjcmV0\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b[2J\x1b[H\x1b[?25lx\x1b[6n", "x"),
        (b"\x1bPq#0\x1b\\x\x1bcy\x1b(B", "xy"),
        ("\x9b31mx\x9d0;title\x9cy".encode(), "xy"),
        (b"50%\r100%\r\n", "50%\n100%\n"),
        ("a\u202eb\u200bc\ufeff".encode(), "a<U+202E>b<U+200B>c<U+FEFF>"),
        (b"a\x00b\x7f\x08\xff", "ab\ufffd"),
        ("grün ✓ 日本".encode(), "grün ✓ 日本"),
    ],
)
def test_only_colours_tabs_and_newlines_reach_the_terminal(raw, shown):
    assert printable(raw) == shown


@settings(max_examples=500)
@given(st.one_of(st.binary(), NASTY.map(str.encode), st.text().map(lambda text: text.encode())))
def test_showing_leaves_no_control_and_twice_is_once(raw):
    shown = printable(raw)
    assert printable(shown.encode()) == shown
    rest = re.sub(r"\x1b\[[0-9;:]*m", "", shown)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", rest
    )
    assert "\x1b" not in plain(shown)


def test_what_is_seen_quickly_to_be_harmless_is_harmless():
    """Every character by itself: each odd one is removed or spelled out, and no other changes."""
    for code in (*range(0xD800), *range(0xE000, 0x3100), *range(0xE0000, 0xE0200)):
        raw = chr(code).encode()
        assert printable(b"a" + raw) == _ESCAPES.sub(_replacement, f"a{chr(code)}"), hex(code)


def test_many_lines_come_out_as_one_text():
    splitter = LineSplitter()
    assert splitter.feed_text(b"a\nb\r\n\nha") == "a\nb\n\n"
    assert splitter.feed_text(b"lf\n") == "half\n"
    assert splitter.feed_text(b"end") == ""
    assert splitter.close() == ["end"]


def test_one_line_is_short_and_without_colours():
    assert one_line("\n \x1b[1mhello\x1b[0m   there\nmore") == "hello there"
    assert len(one_line("x" * 500)) == 120
    assert one_line("") == ""
