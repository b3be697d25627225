"""`crew completion`: prints or installs the shell completion."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from crew.domain.kernel.errors import Conflict, UsageError
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.completion_files import (
    SHELLS,
    completion_files,
    completion_folder,
    completion_script,
    zshrc,
)
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.root import COMPLETE_VARIABLE
from crew.system.atomic_files import has_content, write_file
from crew.system.crash_points import effect

EXAMPLE = """crew completion --install            # for the shell that $SHELL names
crew completion --install zsh
crew completion --uninstall
eval "$(crew completion bash)"       # for this terminal only"""


@command("completion", example=EXAMPLE)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option(
    "--install", is_flag=True, help="Write the completion to the shell's folder in your home."
)
@click.option("--uninstall", is_flag=True, help="Remove the files that --install wrote.")
@pass_call
def completion(call: Call, shell: str | None, *, install: bool, uninstall: bool) -> None:
    """Print or install the shell completion.

    Task ids, agent names and kinds of agents are completed live. Without a name, the shell is the
    one that $SHELL names. --install prints each file and the next step, and may be repeated. It
    covers `git-crew` too, so that bash and zsh complete `git crew`.
    """
    if install and uninstall:
        raise UsageError("--install and --uninstall contradict each other", hint="give one of them")
    chosen = shell or _own_shell(os.environ)
    if install:
        _print_changes(call, chosen, _install(chosen), _after_install(chosen, os.environ))
    elif uninstall:
        _print_changes(call, chosen, _uninstall(chosen), _after_uninstall(chosen, os.environ))
    elif call.json:
        print_json({"shell": chosen, "script": completion_script(chosen)})
    else:
        say(completion_script(chosen))


def _own_shell(environ: Mapping[str, str]) -> str:
    name = Path(environ.get("SHELL", "")).name
    if name not in SHELLS:
        found = f"$SHELL is {name!r}" if name else "$SHELL is not set"
        raise UsageError(
            f"cannot tell which shell to complete for: {found}",
            hint="name one: `crew completion --install bash`, or zsh, or fish",
            code="unknown_shell",
        )
    return name


def _install(shell: str) -> dict[Path, str]:
    """Write the files and return what changed; if one is another program's, nothing is written."""
    files = completion_files(shell, os.environ)
    for path in files:
        if path.exists() and not _is_ours(path):
            raise Conflict(
                f"{path} exists, and crew did not write it",
                hint=f"move it away, then repeat `crew completion --install {shell}`",
                code="file_not_ours",
            )
    return {path: _written(path, text) for path, text in files.items()}


@effect("front.write_completion")
def _written(path: Path, text: str) -> str:
    content = text.encode()
    if has_content(path, content):
        return "unchanged"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content, mode=0o644)
    return "written"


def _uninstall(shell: str) -> dict[Path, str]:
    return {path: _removed(path) for path in completion_files(shell, os.environ)}


@effect("front.remove_completion")
def _removed(path: Path) -> str:
    if not path.exists():
        return "absent"
    if not _is_ours(path):
        return "kept"
    path.unlink()
    return "removed"


def _is_ours(path: Path) -> bool:
    """Whether crew wrote this file: all its scripts set this variable."""
    return COMPLETE_VARIABLE in path.read_text(encoding="utf-8", errors="replace")


def _after_install(shell: str, environ: Mapping[str, str]) -> str:
    folder = completion_folder(shell, environ)
    if shell == "fish":
        return "fish reads it at once: type `crew ` and press Tab"
    if shell == "bash":
        return (
            "next: open a new terminal; without the package bash-completion, add this line to "
            f"~/.bashrc first:\n  . {shlex.quote(str(folder / 'crew'))}"
        )
    return (
        f"next: add this line to {zshrc(environ)}, above the line that calls compinit, "
        f"and open a new terminal:\n  fpath=({shlex.quote(str(folder))} $fpath)\n"
        "if no line calls compinit, add this one below it:\n  autoload -Uz compinit && compinit"
    )


def _after_uninstall(shell: str, environ: Mapping[str, str]) -> str:
    folder = completion_folder(shell, environ)
    if shell == "zsh":
        return f"next: remove the line with {folder} from {zshrc(environ)} if you added it"
    return "terminals that are open keep the completion until they end"


def _print_changes(call: Call, shell: str, changes: dict[Path, str], following: str) -> None:
    if call.json:
        files = [{"path": str(path), "change": change} for path, change in changes.items()]
        print_json({"shell": shell, "files": files, "next": following})
        return
    for path, change in changes.items():
        say(f"{change}: {path}{' (crew did not write it)' if change == 'kept' else ''}")
    narrate(call, following)
