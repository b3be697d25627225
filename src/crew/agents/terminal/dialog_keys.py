"""Enters a choice in a dialog, or a text at a prompt, and reads the screen to be sure of it.

crew moves the mark with the arrow keys and reads the screen again before it presses Enter.
"""

import re
import time

from crew.agents.terminal.terminal_screen import ScreenDialog, read_dialog, text_at_prompt
from crew.agents.terminal.tmux import ENTER_AFTER_S, Tmux, capture, paste_text, press_keys
from crew.domain.kernel.errors import NotFound
from crew.domain.terminals.dialogs import Dialog

_LINES = 48
_LOOKS = 40
_LOOK_AGAIN_AFTER_S = 0.1
_MORE_ENTERS = 3
_LOOKS_AFTER_ENTER = 5
_COMPARED = 30  # characters


def enter_text(tmux: Tmux, name: str, text: str) -> Dialog | None:
    """Paste a text and press Enter, unless a dialog is there: Enter would answer it.

    Returns the dialog. The text may then be at the prompt behind it, and is not pasted again. A
    dialog that opens at the last moment ignores a paste, but single keys could choose an answer. A
    program that has just closed a dialog may ignore the first Enter.
    """
    last = " ".join(text.splitlines()[-1:]).strip()[-_COMPARED:]
    screen = capture(tmux, name, lines=_LINES)
    if dialog := _other_dialog(screen, text):
        return dialog
    if text and not _is_at_prompt(screen, last):
        paste_text(tmux, name, text)
        time.sleep(ENTER_AFTER_S)
    for _ in range(1 + _MORE_ENTERS):
        if dialog := _other_dialog(capture(tmux, name, lines=_LINES), text):
            return dialog
        press_keys(tmux, name, "Enter")
        if _is_taken(tmux, name, last):
            break
    return None


def _other_dialog(screen: str, text: str) -> Dialog | None:
    """The dialog on the screen, unless it is the typed text itself."""
    shown = read_dialog(screen)
    return shown.dialog if shown is not None and not _is_typed(shown.dialog, text) else None


def _is_typed(dialog: Dialog, text: str) -> bool:
    """Whether the choices are the typed text itself: a numbered list at the prompt."""
    listed = enumerate(dialog.choices, start=1)
    found = [re.search(rf"\b{number}[.)]\s+{re.escape(one)}", text) for number, one in listed]
    return bool(found) and all(found)


def _is_taken(tmux: Tmux, name: str, last: str) -> bool:
    """Whether the text leaves the prompt after Enter. It may have ended the terminal."""
    try:
        for _ in range(_LOOKS_AFTER_ENTER):
            time.sleep(_LOOK_AGAIN_AFTER_S)
            if not _is_at_prompt(capture(tmux, name, lines=_LINES), last):
                return True
    except NotFound:
        return True
    return False


def _is_at_prompt(screen: str, last: str) -> bool:
    return bool(last) and text_at_prompt(screen).endswith(last)


def choose(tmux: Tmux, name: str, choice: str) -> bool:
    """Whether the dialog was there and the choice was entered."""
    shown = _read(tmux, name)
    if shown is None or choice not in shown.dialog.choices:
        return False
    wanted = shown.dialog.choices.index(choice)
    if shown.marked is None:
        press_keys(tmux, name, choice[0], "Enter")
    else:
        steps = wanted - shown.marked
        press_keys(tmux, name, *(["Down" if steps > 0 else "Up"] * abs(steps)))
        if not _becomes(tmux, name, ScreenDialog(dialog=shown.dialog, marked=wanted)):
            return False
        press_keys(tmux, name, "Enter")
    _wait_until_gone(tmux, name, shown)
    return True


def _read(tmux: Tmux, name: str) -> ScreenDialog | None:
    return read_dialog(capture(tmux, name, lines=_LINES))


def _becomes(tmux: Tmux, name: str, wanted: ScreenDialog) -> bool:
    """Whether the mark reaches the choice. The rows above may change in the meantime."""
    for _ in range(_LOOKS):
        now = _read(tmux, name)
        if now is None or now.dialog.choices != wanted.dialog.choices:
            return False
        if now.marked == wanted.marked:
            return True
        time.sleep(_LOOK_AGAIN_AFTER_S)
    return False


def _wait_until_gone(tmux: Tmux, name: str, shown: ScreenDialog) -> None:
    """Wait until the program has drawn something else, so that crew does not ask again."""
    for _ in range(_LOOKS):
        now = _read(tmux, name)
        if now is None or now.dialog != shown.dialog:
            return
        time.sleep(_LOOK_AGAIN_AFTER_S)
