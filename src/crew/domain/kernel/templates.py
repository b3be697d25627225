"""A small template language: only `{{.Name}}` and `{{if .Name}}…{{else}}…{{end}}`.

Only the template runs, never a value: the shell gets values as parameters or variables, which it
does not parse as a script.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.suggest import nearest

Value = str | Sequence[str]
"""A text is one word of the command; a sequence is one word for each of its elements."""

PLACE_NAMES = ("Worktree", "TaskID", "Branch", "GitDir", "RepoRoot", "BaseBranch")
DIFF_NAMES = ("Args", *PLACE_NAMES)
AGENT_NAMES = (
    *("Command", "SystemArgs", "Args", "Prompt", "Model", *PLACE_NAMES),
    *("PromptFile", "Session", "Resume", "TrustsProject"),
)

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})
_TAG = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_VALUE = re.compile(r"\.(\w+)")
_IF = re.compile(r"if\s+\.(\w+)")
# Text without an open quote: an escaped character, a quoted text, a comment with its apostrophes.
_CLOSED = re.compile(
    r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|(])#[^\n]*""",
    re.DOTALL,
)
_QUOTE = re.compile("['\"]")


@frozen
class _Piece:
    """A piece of literal text, or a tag with its name."""

    kind: str  # "text", "value", "if", "else" or "end"; "fault" ends a template that is wrong
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
            case "fault":
                raise _refused(template, piece.text, tuple(values))
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


def check(template: str, *, names: Sequence[str] = AGENT_NAMES) -> None:
    """Refuse a template that cannot be expanded."""
    if problem := template_problem(template, names):
        raise _refused(template, problem, names)


def template_problem(template: str, names: Sequence[str]) -> str | None:
    """Why this template cannot be expanded with values of these names; None if it can."""
    for piece in _pieces(template):
        if piece.kind == "fault":
            return piece.text
        if piece.kind in {"value", "if"} and piece.text not in names:
            return _unknown(piece.text, names)
    return None


def _value(values: Mapping[str, Value], name: str) -> Value:
    if name not in values:
        raise UsageError(_unknown(name, tuple(values)), hint=_hint(tuple(values)))
    return values[name]


def _quoted(value: Value, quote: Callable[[str], str]) -> str:
    words = (value,) if isinstance(value, str) else value
    return " ".join(quote(word) for word in words)


def _unknown(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    other = f", did you mean {{{{.{near}}}}}?" if near else f"; known: {', '.join(names)}"
    return f"{{{{.{name}}}}} is unknown{other}"


def _refused(template: str, problem: str, names: Sequence[str]) -> UsageError:
    return UsageError(f"{problem}, in {template!r}", hint=_hint(names))


def _hint(names: Sequence[str]) -> str:
    grammar = "templates know {{.Name}} and {{if .Name}}…{{else}}…{{end}}"
    return f"{grammar}; the names are {', '.join(names)}"


def _pieces(template: str) -> Iterator[_Piece]:
    """The template in order, up to its first fault."""
    position = 0
    open_ifs: list[bool] = []  # for each open `if`, whether its `else` has been seen
    for tag in _TAG.finditer(template):
        yield _Piece(kind="text", text=template[position : tag.start()])
        position = tag.end()
        piece = _tag(tag[1], open_ifs)
        yield piece
        if piece.kind == "fault":
            return
    yield _Piece(kind="text", text=template[position:])
    if open_ifs:
        yield _Piece(kind="fault", text="an {{if}} has no {{end}}")


def _tag(words: str, open_ifs: list[bool]) -> _Piece:
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
    return _Piece(kind="fault", text=f"{{{{{words}}}}} has no meaning there")


def _open_quote(script: str) -> str:
    """The kind of quote that is open at the end of this script: none, ' or "."""
    left = _QUOTE.search(_CLOSED.sub("", script))
    return left[0] if left else ""


def _check_shell(shebang: str) -> None:
    words = shebang.removeprefix("#!").split()
    if not _SHELLS.intersection(word.rpartition("/")[2] for word in words):
        raise UsageError(
            f"a script that begins with {shebang!r} cannot take values",
            hint="write it for sh or bash, and call other programs from there",
        )


def without_nul(value: str) -> str:
    """The text without NUL, which no argument and no file name can hold."""
    return value.replace("\0", "\ufffd")
