"""Text with the colours that a program printed, as spans; all other control codes are gone."""

import re
from collections.abc import Iterator

from crew.front.tui.widgets.safe_text import LONGEST_TEXT, Span, safe

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
}
_FOREGROUND, _BACKGROUND = "fg", "bg"
_FORM, _INDEXED, _DIRECT = {38: _FOREGROUND, 48: _BACKGROUND}, 5, 2
_STARTS = {30: (_FOREGROUND, 0), 40: (_BACKGROUND, 0), 90: (_FOREGROUND, 8), 100: (_BACKGROUND, 8)}
_DEFAULTS = {39: _FOREGROUND, 49: _BACKGROUND}


class AnsiText:
    """Turns lines into spans; a colour lasts until another one, even on later lines."""

    def __init__(self) -> None:
        self._flags: dict[str, None] = {}
        self._colours: dict[str, str] = {}

    def spans(self, line: str) -> tuple[Span, ...]:
        if "\x1b" not in line:
            return ((safe(line), self._style()),)
        return tuple(self._parts(line[: LONGEST_TEXT * 4]))

    def _parts(self, line: str) -> Iterator[Span]:
        room = LONGEST_TEXT
        for number, piece in enumerate(_SGR.split(line)):
            if number % 2:
                self._change([int(code or 0) for code in re.split("[;:]", piece[:200])])
            elif piece and room > 0:
                text = safe(piece[:room])
                room -= len(text)
                yield text, self._style()

    def _style(self) -> str:
        words = [f"={flag}" for flag in self._flags]
        if colour := self._colours.get(_FOREGROUND):
            words.append(f"={colour}")
        if colour := self._colours.get(_BACKGROUND):
            words += ["=on", f"={colour}"]
        return " ".join(words)

    def _change(self, codes: list[int]) -> None:
        while codes:
            code = codes.pop(0)
            if code == 0:
                self._flags.clear()
                self._colours.clear()
            elif code in _ON:
                self._flags[_ON[code]] = None
            elif code in _OFF:
                for flag in _OFF[code]:
                    self._flags.pop(flag, None)
            elif code in _FORM:
                self._extended(_FORM[code], codes)
            elif code in _DEFAULTS:
                self._colours.pop(_DEFAULTS[code], None)
            else:
                self._simple(code)

    def _simple(self, code: int) -> None:
        for start, (ground, first) in _STARTS.items():
            if start <= code < start + 8:
                self._colours[ground] = f"color({first + code - start})"

    def _extended(self, ground: str, codes: list[int]) -> None:
        """A colour by its number, or by red, green and blue; the codes that name it are used up."""
        form = codes.pop(0) if codes else 0
        if form == _INDEXED and codes:
            self._colours[ground] = f"color({min(255, codes.pop(0))})"
        elif form == _DIRECT and len(codes) >= 3:
            parts = [min(255, codes.pop(0)) for _ in range(3)]
            self._colours[ground] = "#{:02x}{:02x}{:02x}".format(*parts)


def ansi_spans(line: str) -> tuple[Span, ...]:
    """The spans of one line by itself."""
    return AnsiText().spans(line)
