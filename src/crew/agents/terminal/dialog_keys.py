"""Enters a choice in a dialog, or a text at a prompt, and reads the screen to be sure of it.

crew moves the mark with the arrow keys and reads the screen again before it presses Enter.
"""

import time

from crew.agents.terminal.terminal_screen import ScreenDialog, read_dialog, text_at_prompt
from crew.agents.terminal.tmux import Tmux, capture, press_keys, send_text

_LINES = 48
_LOOKS = 40
_LOOK_AGAIN_AFTER_S = 0.1
_MORE_ENTERS = 3
_ENTER_AGAIN_AFTER_S = 0.5
_COMPARED = 30  # characters


def enter_text(tmux: Tmux, name: str, text: str) -> None:
    """Type a text and Enter. A program that has just closed a dialog may ignore the first Enter."""
    send_text(tmux, name, text)
    last = " ".join(text.splitlines()[-1:]).strip()[-_COMPARED:]
    for _ in range(_MORE_ENTERS):
        time.sleep(_ENTER_AGAIN_AFTER_S)
        screen = capture(tmux, name, lines=_LINES)
        if not last or read_dialog(screen) or not text_at_prompt(screen).endswith(last):
            return
        press_keys(tmux, name, "Enter")


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
