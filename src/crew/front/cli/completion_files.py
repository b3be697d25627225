"""The completion files for `crew` and `git crew`, and the folders in which shells read them."""

import os
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from crew.front.cli.root import COMPLETE_VARIABLE

SHELLS = ("bash", "zsh", "fish")
PROGRAMS = ("crew", "git-crew")

_FOR_GIT = """
# bash's completion of git calls this for `git crew`; git's own completions end with a space.
_git_crew() {
    local -i at=${__git_cmd_idx:-1}
    local -i word=COMP_CWORD-at
    local -a given=("${COMP_WORDS[@]:at}")
    local COMP_CWORD=$word
    local -a COMP_WORDS=("${given[@]}")
    _git_crew_completion git-crew
    COMPREPLY=("${COMPREPLY[@]/%/ }")
}
"""


def completion_script(shell: str, program: str = "crew") -> str:
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.Command(program), {}, program, COMPLETE_VARIABLE)
    # Not `source()`, which starts bash only to look at its version.
    text = str(script.source_template % script.source_vars())
    return text + _FOR_GIT if (shell, program) == ("bash", "git-crew") else text


def completion_files(shell: str, environ: Mapping[str, str]) -> dict[Path, str]:
    """The content of each completion file, by the file name that the shell expects."""
    folder = completion_folder(shell, environ)
    name = {"bash": "{}", "zsh": "_{}", "fish": "{}.fish"}[shell]
    return {folder / name.format(one): completion_script(shell, one) for one in PROGRAMS}


def completion_folder(shell: str, environ: Mapping[str, str]) -> Path:
    """The folder of the user's completions for this shell."""
    if shell == "fish":
        return _base("XDG_CONFIG_HOME", ".config", environ) / "fish" / "completions"
    data = _base("XDG_DATA_HOME", ".local/share", environ)
    if shell == "zsh":
        return data / "zsh" / "site-functions"
    return Path(environ.get("BASH_COMPLETION_USER_DIR") or data / "bash-completion") / "completions"


def _base(variable: str, otherwise: str, environ: Mapping[str, str]) -> Path:
    """The folder in a variable; a relative path is ignored, as the XDG specification requires."""
    named = environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else Path.home() / otherwise  # noqa: PTH117 - a str


def zshrc(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
