"""Text of programs as spans: their colours are kept, all other codes are gone, lines fit."""

import pytest
from rich.cells import cell_len

from crew.front.tui.widgets.ansi_spans import AnsiText, ansi_spans
from crew.front.tui.widgets.paint import MOST_STYLES, Palette
from crew.front.tui.widgets.wrap import wrapped


@pytest.mark.parametrize(
    ("line", "spans"),
    [
        ("plain [red]", (("plain [red]", ""),)),
        ("\x1b[1;31mhi\x1b[0m you", (("hi", "=bold =color(1)"), (" you", ""))),
        ("\x1b[91;44mx\x1b[39my", (("x", "=color(9) =on =color(4)"), ("y", "=on =color(4)"))),
        ("\x1b[38;5;999mx", (("x", "=color(255)"),)),
        ("\x1b[38:2:1:2:300mx", (("x", "=#0102ff"),)),
        ("\x1b[1mx\x1b[22my\x1b[m", (("x", "=bold"), ("y", ""))),
        ("\x1b[38mx\x1b[38;5my\x1b[;;mz", (("x", ""), ("y", ""), ("z", ""))),
        (f"\x1b[{'9' * 5_000}mx", (("x", ""),)),
        ("a\x1b[2Jb\x1b]0;title\x07c\x07", (("abc", ""),)),
    ],
)
def test_colours_become_styles_and_other_codes_nothing(line, spans):
    found = ansi_spans(line)
    assert found == spans
    palette = Palette(dark=True)
    assert all(palette.style(style) is not None for _, style in found)


def test_a_colour_lasts_until_another_one_also_on_the_next_line():
    text = AnsiText()
    assert text.spans("\x1b[32mgreen")[0][1] == "=color(2)"
    assert text.spans("still")[0][1] == "=color(2)"
    assert text.spans("\x1b[0mnot")[0][1] == ""


def test_a_line_of_ten_megabytes_is_cut():
    spans = ansi_spans("\x1b[31m" + "x" * 10_000_000)
    assert sum(len(text) for text, _ in spans) < 3_000
    many = ansi_spans("".join(f"\x1b[38;5;{n % 256}mx" for n in range(100_000)))
    assert sum(len(text) for text, _ in many) < 3_000


def test_millions_of_colours_are_not_all_kept():
    palette = Palette(dark=True)
    for number in range(3 * MOST_STYLES):
        palette.style(f"=#{number:06x}")
    assert len(palette._made) <= MOST_STYLES


@pytest.mark.parametrize("width", [2, 3, 10, 79])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "some words that need room",
        "日本語" * 20,
        "x" * 200,
        "a " * 90,
        " " * 99,
        "é̂" * 30,
    ],
)
def test_wrapped_lines_fit_and_lose_nothing(text, width):
    half = len(text) // 2
    lines = wrapped(((text[:half], "bold"), (text[half:], "")), width)
    assert all(cell_len("".join(part for part, _ in line)) <= width for line in lines)
    assert "".join(part for line in lines for part, _ in line) == text
    bold = "".join(part for line in lines for part, style in line if style == "bold")
    assert bold == text[:half]


def test_lines_break_between_words():
    lines = wrapped((("one two three", ""),), 8)
    assert ["".join(part for part, _ in line) for line in lines] == ["one two ", "three"]
