"""The keys of single pages and panes for the help, read from their own bindings."""

from collections.abc import Iterator
from itertools import takewhile

from textual.binding import Binding

from crew.front.tui.pages.page import Page
from crew.front.tui.panes.pane import Pane
from crew.front.tui.view_parts import PAGES, PANES

_SIGNS = {"right_square_bracket": "]", "left_square_bracket": "[", "slash": "/"}


def part_sections() -> list[tuple[str, list[tuple[str, str]]]]:
    """A section for each page and pane that has keys of its own."""
    found = [(f"On the page {page.title}", list(_keys(page, above=Page))) for page in PAGES]
    found += [(f"In the pane {pane.title}", list(_keys(pane, above=Pane))) for pane in PANES]
    every_pane = ("In every pane", list(_keys_of(Pane)))
    return [every_pane, *((title, keys) for title, keys in found if keys)]


def _keys(part: type, *, above: type) -> Iterator[tuple[str, str]]:
    """The keys that the class and its bases below `above` bind."""
    for one in takewhile(lambda base: base is not above, part.__mro__):
        yield from _keys_of(one)


def _keys_of(part: type) -> Iterator[tuple[str, str]]:
    """The keys that the class itself binds, as a person reads them."""
    for one in part.__dict__.get("BINDINGS", ()):
        if isinstance(one, Binding):
            names = (_SIGNS.get(key, key) for key in one.key.split(","))
            yield " ".join(names), one.description[:1].upper() + one.description[1:]
