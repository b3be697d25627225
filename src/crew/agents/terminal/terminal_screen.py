"""Reads the screen of an agent's program: a prompt that takes text, or a dialog with choices.

A line that is typed at a dialog would choose one of its answers, so crew types only at a prompt.
"""

import re
from collections.abc import Sequence

from crew.domain.kernel.frozen import frozen
from crew.domain.terminals.dialogs import Dialog, TerminalInput

_ROWS = 40  # of the end of the screen
_MOST_BELOW = 6  # rows of help below the choices
_LEAST_CHOICES = 2
_LONGEST_CONTEXT = 12  # rows above the choices
_FRAME = " \t│┃|║"
_CHOICE = re.compile(
    r"(?P<mark>[\u276f\u203a▶●>])?\s*(?P<number>\d{1,2})[.)]\s+(?P<words>\S.*)"  # the marks of CLIs
)
_KEY_HINT = re.compile(r"\s*\([a-z+]{1,10}\)$")
_PROMPT = re.compile(r"[\u276f\u203a>](?:\s|$)")
_SOLID = "\f"
_SOLID_RULE = re.compile(r"[─━═]{8,}")
_RULE = re.compile(r"[─━╌═╭╮╰╯┌┐└┘▀▄ ]+")
_YES_OR_NO = re.compile(r"[\[(]y(?:es)?/no?[\])]\s*[:?]?$", re.IGNORECASE)
_BUTTONS = re.compile(r"\bselect\s+enter confirm\b")  # of OpenCode
_LONGEST_BUTTONS = 5  # rows
_AT_REST = re.compile(r"\bctrl\+p cmd")  # OpenCode marks no prompt
_BUSY = re.compile(r"\besc interrupt\b")
_PROMPT_WITHIN = 10  # rows above the end
_CONTINUE = re.compile(r"press (?:enter|return|any key) to continue", re.IGNORECASE)


@frozen
class ScreenDialog:
    """A dialog and how it is answered: `marked` is the choice that Enter would take.

    Without a marked choice, the first letter of the choice is typed.
    """

    dialog: Dialog
    marked: int | None = None


def read_input(screen: str, *, has_known_prompt: bool) -> TerminalInput:
    """What the program takes now. A program whose prompt is not known takes text by default."""
    if found := read_dialog(screen):
        return TerminalInput(dialog=found.dialog)
    return TerminalInput(takes_text=not has_known_prompt or _takes_text(_rows(screen)))


def read_dialog(screen: str) -> ScreenDialog | None:
    """The dialog at the end of the screen; None if there is none."""
    rows = _rows(screen)
    if not rows:
        return None
    if _YES_OR_NO.search(rows[-1]):
        return ScreenDialog(dialog=_dialog(rows, ("yes", "no")))
    if found := _numbered(rows):
        return found
    if _BUTTONS.search(rows[-1]):  # only colours tell which one is marked: a person has to look
        return ScreenDialog(dialog=_buttons(rows[-_LONGEST_BUTTONS:]))
    if _CONTINUE.search(" ".join(rows[-2:])):
        return ScreenDialog(dialog=_dialog(rows, ("continue",)), marked=0)
    return None


def text_at_prompt(screen: str) -> str:
    """What is typed at the prompt and not sent yet; some programs show a hint there instead."""
    prompts = [row for row in _rows(screen) if _PROMPT.match(row)]
    return prompts[-1][1:].strip() if prompts else ""


def _rows(screen: str) -> list[str]:
    """The last rows without frames and blank rows; a solid rule between parts is one character."""
    rows = [row.strip(_FRAME) for row in screen.splitlines()]
    rows = [_SOLID if _SOLID_RULE.fullmatch(row) else row for row in rows]
    rows = [row for row in rows if row and not _RULE.fullmatch(row)]
    return rows[-_ROWS:] if rows[-1:] != [_SOLID] else rows[-_ROWS:-1]


def _numbered(rows: Sequence[str]) -> ScreenDialog | None:
    """Choices 1, 2, … of which one is marked, with no prompt below them."""
    found = [(at, match) for at, row in enumerate(rows) if (match := _CHOICE.fullmatch(row))]
    choices: list[tuple[int, re.Match[str]]] = []
    for at, match in reversed(found):
        if choices and int(match["number"]) != int(choices[0][1]["number"]) - 1:
            break
        choices.insert(0, (at, match))
        if match["number"] == "1":
            break
    marks = [number for number, (_, match) in enumerate(choices) if match["mark"]]
    if len(choices) < _LEAST_CHOICES or choices[0][1]["number"] != "1" or len(marks) != 1:
        return None
    below = [row for row in rows[choices[-1][0] + 1 :] if row != _SOLID]
    if len(below) > _MOST_BELOW or _has_prompt(below):
        return None
    words = tuple(_KEY_HINT.sub("", match["words"]) for _, match in choices)
    return ScreenDialog(dialog=_dialog(rows[: choices[0][0]], words), marked=marks[0])


def _buttons(rows: Sequence[str]) -> Dialog:
    titles = [row.lstrip("△ ") for row in rows if row.startswith("△")]
    return Dialog(question=[*titles, rows[-1]][0], context="\n".join(rows), choices=())


def _dialog(above: Sequence[str], choices: tuple[str, ...]) -> Dialog:
    """The question is the last row with a question mark, the context the rows around it."""
    context = list(above[-_LONGEST_CONTEXT:])
    if _SOLID in context:
        context = context[len(context) - context[::-1].index(_SOLID) :]
    asked = [row for row in context if row.endswith("?") or "? " in row]
    question = asked[-1] if asked else (context or ["The program waits for a choice."])[-1]
    return Dialog(question=question, context="\n".join(context), choices=choices)


def _takes_text(rows: Sequence[str]) -> bool:
    """Whether a prompt is near the end; OpenCode shows none while it works."""
    last = rows[-1] if rows else ""
    if _BUSY.search(last):
        return False
    return bool(_AT_REST.search(last)) or _has_prompt(rows[-_PROMPT_WITHIN:])


def _has_prompt(rows: Sequence[str]) -> bool:
    return any(_PROMPT.match(row) for row in rows)
