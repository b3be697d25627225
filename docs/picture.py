"""Draws the text of a terminal as an SVG: `tmux capture-pane -p | python docs/picture.py`."""

import sys
from xml.sax.saxutils import escape

COLOURS = {"●": "#7ee787", "◐": "#e3b341", "○": "#8b949e", "✓": "#7ee787", "!": "#ff7b72"}
LINE, LEFT, TOP = 18, 16, 44


def picture(lines: list[str]) -> str:
    width, height = LEFT * 2 + max(map(len, lines)) * 8, TOP + len(lines) * LINE + 8
    rows = "\n".join(_row(number, text) for number, text in enumerate(lines))
    dots = "".join(
        f'<circle cx="{20 + 18 * n}" cy="18" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{dots}\n{rows}\n</svg>\n'
    )


def _row(number: int, text: str) -> str:
    colour = next((c for sign, c in COLOURS.items() if text.startswith(sign)), "#c9d1d9")
    y = TOP + number * LINE
    return f'<text x="{LEFT}" y="{y}" fill="{colour}" xml:space="preserve">{escape(text)}</text>'


if __name__ == "__main__":
    print(picture(sys.stdin.read().rstrip().splitlines()), end="")
