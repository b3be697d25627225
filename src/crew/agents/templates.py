"""The seed's small template language: `{{.Name}}` and `{{if .Name}}…{{else}}…{{end}}`, no more."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from crew.domain.errors import UsageError

Value = str | Sequence[str]
"""A text is one word of the command; a sequence is as many words as it has members."""

NAMES = (
    "Command",
    "Args",
    "SystemArgs",
    "Prompt",
    "Model",
    "Worktree",
    "TaskID",
    "Branch",
    "RepoRoot",
    "BaseBranch",
    "GitDir",
)

_TAG = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VALUE = re.compile(r"\.(\w+)")
_IF = re.compile(r"if\s+\.(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A stretch of literal text, or a tag with what it names."""

    kind: str  # "text", "value", "if", "else" or "end"
    text: str


def expand(template: str, values: Mapping[str, Value], *, quote: Callable[[str], str]) -> str:
    """The template with its values, each of which went through `quote`."""
    written: list[str] = []
    shown = [True]  # whether we are inside parts that apply, outermost first
    for piece in _pieces(template):
        match piece.kind:
            case "if":
                shown.append(bool(_value(values, piece.text)))
            case "else":
                shown[-1] = not shown[-1]
            case "end":
                shown.pop()
            case _ if not all(shown):
                continue
            case "value":
                written.append(_quoted(_value(values, piece.text), quote))
            case _:
                written.append(piece.text)
    return "".join(written)


def check(template: str, *, names: Sequence[str] = NAMES) -> None:
    """Refuse a template that cannot be expanded, or that puts quotes around a value.

    Values bring their own quotes; within a second pair they would stand bare before the shell.
    """
    quotes = ""
    for piece in _pieces(template):
        if piece.kind == "text":
            quotes = _open_quote(piece.text, quotes)
        elif piece.kind in {"value", "if"} and piece.text not in names:
            raise _unknown(piece.text, names)
        elif piece.kind == "value" and quotes:
            raise UsageError(
                f"{{{{.{piece.text}}}}} stands inside {quotes} quotes in {template!r}",
                hint="leave the quotes out: every value is quoted already",
            )


def _value(values: Mapping[str, Value], name: str) -> Value:
    if name not in values:
        raise _unknown(name, tuple(values))
    return values[name]


def _quoted(value: Value, quote: Callable[[str], str]) -> str:
    words = (value,) if isinstance(value, str) else value
    return " ".join(quote(word) for word in words)


def _unknown(name: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        f"a template cannot say {{{{.{name}}}}}",
        hint=f"known names: {', '.join(names)}",
    )


def _pieces(template: str) -> Iterator[_Piece]:
    """The template in order; every `if` is known to have its `end`."""
    position = 0
    open_ifs: list[bool] = []  # for each open `if`, whether its `else` has been seen
    for tag in _TAG.finditer(template):
        yield _Piece(kind="text", text=template[position : tag.start()])
        position = tag.end()
        yield _tag(tag[1], open_ifs, template)
    if open_ifs:
        raise _malformed(template, "an {{if}} has no {{end}}")
    yield _Piece(kind="text", text=template[position:])


def _tag(words: str, open_ifs: list[bool], template: str) -> _Piece:
    if value := _VALUE.fullmatch(words):
        return _Piece(kind="value", text=value[1])
    if condition := _IF.fullmatch(words):
        open_ifs.append(False)
        return _Piece(kind="if", text=condition[1])
    if words == "else" and open_ifs and not open_ifs[-1]:
        open_ifs[-1] = True
        return _Piece(kind="else", text="")
    if words == "end" and open_ifs:
        open_ifs.pop()
        return _Piece(kind="end", text="")
    raise _malformed(template, f"{{{{{words}}}}} has no meaning here")


def _malformed(template: str, why: str) -> UsageError:
    return UsageError(
        f"{why}, in {template!r}",
        hint="templates know {{.Name}} and {{if .Name}}…{{else}}…{{end}}",
    )


def _open_quote(text: str, quote: str) -> str:
    """The kind of quote that is still open after this text: none, ' or "."""
    skip = False
    for character in text:
        if skip:
            skip = False
        elif character == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    return quote
