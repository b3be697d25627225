"""Makes the manual pages from the commands' own help; a build puts them into the wheel.

`python docs/man_pages.py FOLDER` writes them to a folder: `man -l FOLDER/crew.1` shows one.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"`([^`]+)`")

ENDINGS = {
    0: "Success.",
    1: "The command failed, or a program that it needs is not installed.",
    2: "The command line or the configuration is wrong.",
    3: "The task, agent or other thing that was named does not exist.",
    4: "A login or a token is missing.",
    5: "The request conflicts with the present state, or another process holds the lock.",
    6: "A task failed its check, or is stuck.",
    75: "It cannot be done at this moment; try again later.",
    124: "The time limit was reached.",
    130: "The command was interrupted.",
}


class ManPages(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the pages to each wheel as `share/man/man1`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - its signature
        self.made = tempfile.TemporaryDirectory()
        write_pages(Path(self.made.name))
        build_data["shared_data"][self.made.name] = "share/man/man1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        self.made.cleanup()


def write_pages(folder: Path) -> None:
    for name, text in pages().items():
        (folder / f"{name}.1").write_text(text, encoding="ascii")


def pages() -> dict[str, str]:
    """Every page by its name. `git crew --help` asks for the page `git-crew`."""
    top = _top()
    made = {"crew": _root_page(top), "git-crew": ".so man1/crew.1\n"}
    for name, command in _shown(top):
        made[f"crew-{name}"] = _command_page(name, command, top)
    return made


def _top() -> click.Context:
    """The tree of commands of this checkout, whichever crew is installed."""
    if (source := str(ROOT / "src")) not in sys.path:
        sys.path.insert(0, source)
    from crew.front.cli.call import Call  # noqa: PLC0415 - a build has no crew installed
    from crew.front.cli.root import root  # noqa: PLC0415

    return click.Context(root, info_name="crew", obj=Call(), **root.context_settings)


def _shown(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    assert isinstance(context.command, click.Group)
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command


def _root_page(top: click.Context) -> str:
    from crew.front.cli.catalogue import SECTIONS  # noqa: PLC0415 - a build has no crew installed
    from crew.front.cli.root import EXAMPLE  # noqa: PLC0415

    lines = [*_head("crew", _one_line(top.command)), *_synopsis(top), *_description(top.command)]
    lines += [
        ".PP",
        _prose("`git crew` is the same program: `git crew ps` does what `crew ps` does."),
        ".SH COMMANDS",
    ]
    for section, entries in SECTIONS.items():
        lines.append(f".SS {_literal(section)}")
        for name, entry in entries.items():
            lines += [".TP", f".BR {_literal(f'crew-{name}')} (1)", _prose(entry.help)]
    lines += [*_options(top), *_exit_status()]
    lines += [".SH EXAMPLE", *_example(EXAMPLE)]
    return "\n".join(lines) + "\n"


def _command_page(name: str, command: click.Command, top: click.Context) -> str:
    context = click.Context(command, info_name=name, parent=top)
    lines = [*_head(f"crew-{name}", _one_line(command)), *_body(context)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for below, nested in _shown(context):
            inner = click.Context(nested, info_name=below, parent=context)
            lines += [f".SS {_literal(inner.command_path)}", *_below(inner)]
    lines += [".SH SEE ALSO", ".BR crew (1)"]
    return "\n".join(lines) + "\n"


def _body(context: click.Context) -> list[str]:
    example = getattr(context.command, "example", "")
    return [
        *_synopsis(context),
        *_description(context.command),
        *_options(context),
        *([".SH EXAMPLE", *_example(example)] if example else []),
    ]


def _below(context: click.Context) -> list[str]:
    """A command of a group: no headings of its own, and the options that only it has."""
    example = getattr(context.command, "example", "")
    return [
        _usage(context),
        ".PP",
        *_paragraphs(context.command),
        *_option_list(context.command.params, context),
        *([".PP", "Example:", *_example(example)] if example else []),
    ]


def _head(page: str, summary: str) -> list[str]:
    import crew  # noqa: PLC0415 - a build has no crew installed

    title = f'.TH {_literal(page.upper())} 1 "" "crew {crew.__version__}" "crew manual"'
    return [title, ".SH NAME", f"{_literal(page)} \\- {_prose(summary.rstrip('.'))}"]


def _one_line(command: click.Command) -> str:
    return command.get_short_help_str(limit=200)


def _synopsis(context: click.Context) -> list[str]:
    return [".SH SYNOPSIS", _usage(context)]


def _usage(context: click.Context) -> str:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{_literal(context.command_path)}\\fR {_literal(pieces)}"


def _description(command: click.Command) -> list[str]:
    return [".SH DESCRIPTION", *_paragraphs(command)]


def _paragraphs(command: click.Command) -> list[str]:
    lines: list[str] = []
    for paragraph in (command.help or "").strip().split("\n\n"):
        lines += [".PP", _prose(" ".join(paragraph.split()))]
    return lines[1:]


def _options(context: click.Context) -> list[str]:
    return [".SH OPTIONS", *_option_list(context.command.get_params(context), context)]


def _option_list(params: list[click.Parameter], context: click.Context) -> list[str]:
    """An argument without a text of its own is explained by the description."""
    lines: list[str] = []
    for param in params:
        names, text = param.get_help_record(context) or ("", "")
        if text:
            lines += [".TP", f"\\fB{_literal(names)}\\fR", _prose(text)]
    return lines


def _exit_status() -> list[str]:
    lines = [".SH EXIT STATUS"]
    for code, meaning in ENDINGS.items():
        lines += [".TP", f"\\fB{code}\\fR", _prose(meaning)]
    return lines


def _example(text: str) -> list[str]:
    return [".PP", ".nf", ".RS 4", *(_literal(line) for line in text.splitlines()), ".RE", ".fi"]


def _prose(text: str) -> str:
    """Words between backquotes are printed bold, as they are to be typed."""
    parts = _CODE.split(text)
    marked = [f"\\fB{_escaped(p)}\\fR" if n % 2 else _escaped(p) for n, p in enumerate(parts)]
    return _kept_from_roff("".join(marked))


def _literal(text: str) -> str:
    return _kept_from_roff(_escaped(text))


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    plain = plain.replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in plain)


def _kept_from_roff(line: str) -> str:
    """A line that begins with a dot would be an instruction to roff."""
    return f"\\&{line}" if line.startswith(".") else line


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
