"""What the help shows: every key of the view by section, and the names of all keys in use."""

from collections.abc import Iterable, Mapping

from crew.config.model import KeyBinding
from crew.config.toml.key_names import key_name
from crew.front.tui.actions.action import Action

MOVES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("j", "k", "down", "up"), "Down and up"),
    (("l", "right"), "Look at the task"),
    (("h", "left", "escape"), "Back to the list; escape clears the filter"),
    (("v",), "Next pane of the task"),
    (("tab", "shift+tab"), "Next page, page before"),
    (("g", "G", "home", "end"), "First and last line"),
    (("ctrl+f", "ctrl+b", "pagedown", "pageup"), "A page down and up"),
    (("T",), "Light or dark colours"),
    (("ctrl+z",), "Suspend the view; fg continues it"),
    (("ctrl+c",), "Quit"),
)
"""Keys that are no actions of the table, and what they do."""

_SIGNS = {"down": "↓", "up": "↑", "left": "←", "right": "→", "escape": "esc"}
_SIGNS |= {"pagedown": "pgdn", "pageup": "pgup"}


def help_sections(
    actions: Iterable[Action], custom: Mapping[str, KeyBinding]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The sections of the help with their keys."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for action in actions:
        sections.setdefault(action.section, []).append((action.key, action.title))
    moves = [(" ".join(_SIGNS.get(key, key) for key in keys[:4]), title) for keys, title in MOVES]
    found = [*sections.items(), ("Moving", moves)]
    if custom:
        own = [(key, bound.description or bound.command) for key, bound in custom.items()]
        found.append(("Your own keys ([tui.keybindings])", own))
    return found


def built_in_keys(actions: Iterable[Action]) -> dict[str, str]:
    """Every key that the view has by itself, under its one name, with what it does."""
    keys = {key: title for names, title in MOVES for key in names}
    keys |= {str(key_name(action.key)): action.title for action in actions}
    return keys
