"""A small template language: `{{.Name}}` and `{{if .Name}}…{{else}}…{{end}}`, no more.

What runs is always the template, never a value: the shell gets values as parameters or variables,
which it does not read as a script again.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen

Value = str | Sequence[str]
"""A text is one word of the command; a sequence is as many words as it has members."""

PLACE_NAMES = ("Worktree", "TaskID", "Branch", "GitDir", "RepoRoot", "BaseBranch")
NAMES = (
    *("Command", "SystemArgs", "Args", "Prompt", "Model", *PLACE_NAMES),
    *("PromptFile", "Session", "Resume"),
)

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})
_TAG = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VALUE = re.compile(r"\.(\w+)")
_IF = re.compile(r"if\s+\.(\w+)")
# What holds no open quote: an escaped character, a quoted text, a comment with its apostrophes.
_CLOSED = re.compile(
    r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|(])#[^\n]*""",
    re.DOTALL,
)
_QUOTE = re.compile("['\"]")


@frozen
class _Piece:
    """A stretch of literal text, or a tag with what it names."""

    kind: str  # "text", "value", "if", "else" or "end"
    text: str


def shell_command(template: str, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The template as a command line for `sh`, with the values as parameters."""
    parameters: list[str] = []

    def parameter(value: str) -> str:
        parameters.append(without_nul(value))
        return f'"${{{len(parameters)}}}"'

    return ("sh", "-c", expand(template, values, quote=parameter), "sh", *parameters)


def shell_script(template: str, values: Mapping[str, Value]) -> str:
    """The template as a script to be written to a file, with the values in variables on top."""
    variables: list[str] = []

    def variable(value: str) -> str:
        name = f"crew_value_{len(variables)}"
        variables.append(f"{name}={shlex.quote(without_nul(value))}")
        return f'"${{{name}}}"'

    body = expand(template, values, quote=variable)
    first, newline, rest = body.partition("\n")
    if not first.startswith("#!"):
        return "\n".join([*variables, body])
    _check_shell(first)
    return "\n".join([first, *variables, rest]) if newline else body


def expand(template: str, values: Mapping[str, Value], *, quote: Callable[[str], str]) -> str:
    """The template with its values, each made a word of the shell by `quote`.

    Where the template has quotes around a value they are closed before it and opened after it.
    """
    written: list[str] = []
    seen: list[str] = []  # as written, with each value as one letter
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
                around = _open_quote("".join(seen))
                word = _quoted(_value(values, piece.text), quote)
                written.append(f"{around}{word}{around}")
                seen.append("x")
            case _:
                written.append(piece.text)
                seen.append(piece.text)
    return "".join(written)


def check(template: str, *, names: Sequence[str] = NAMES) -> None:
    """Refuse a template that cannot be expanded."""
    for piece in _pieces(template):
        if piece.kind in {"value", "if"} and piece.text not in names:
            raise _unknown(piece.text, names)


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


def _open_quote(script: str) -> str:
    """The kind of quote that is open at the end of this script: none, ' or "."""
    left = _QUOTE.search(_CLOSED.sub("", script))
    return left[0] if left else ""


def _check_shell(shebang: str) -> None:
    words = shebang.removeprefix("#!").split()
    if not _SHELLS.intersection(word.rpartition("/")[2] for word in words):
        raise UsageError(
            f"a script that begins with {shebang!r} cannot be given values",
            hint="write it for sh or bash, and call other programs from there",
        )


def without_nul(value: str) -> str:
    """No argument and no file name can hold a NUL."""
    return value.replace("\0", "\ufffd")
