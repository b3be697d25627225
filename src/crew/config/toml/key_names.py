"""The names of keys as people write them in the config, and the one name that each has."""

_NAMED = frozenset(
    {
        *("enter", "tab", "space", "escape", "backspace", "delete", "insert", "home", "end"),
        *("pageup", "pagedown", "up", "down", "left", "right"),
        *(f"f{number}" for number in range(1, 25)),
    }
)
_OTHER = {"esc": "escape", "pgup": "pageup", "pgdown": "pagedown", "pgdn": "pagedown", " ": "space"}
_OTHER |= {"return": "enter", "del": "delete", "ins": "insert"}
_MODIFIERS = ("ctrl", "alt", "shift", "super", "meta")


def key_name(written: str) -> str | None:
    """The one name of this key, such as `ctrl+r`; None if it is no key."""
    *modifiers, last = written.split("+") if written.strip("+") else [written]
    if last == "" and modifiers and modifiers[-1] == "":  # as in ctrl++
        modifiers, last = modifiers[:-1], "+"
    modifiers = [one.strip().lower() for one in modifiers]
    if len(set(modifiers)) < len(modifiers) or not set(modifiers) <= set(_MODIFIERS):
        return None
    if len(last) != 1:
        last = last.strip().lower()
    last = _OTHER.get(last, last)
    if modifiers == ["shift"] and len(last) == 1 and last.isalpha():
        return last.upper()
    if modifiers and last.isascii():
        last = last.lower()
    if last not in _NAMED and not (len(last) == 1 and last.isprintable()):
        return None
    return "+".join((*sorted(modifiers, key=_MODIFIERS.index), last))
