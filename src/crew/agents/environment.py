"""The environment and the files of one step: its prompt, and the agent's `crew` command."""

import shlex
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from crew.agents.adapter import StepOrder
from crew.system.atomic_files import has_content, write_file
from crew.system.crash_points import effect
from crew.system.private_files import make_private_folder
from crew.system.processes.allowed_environment import allowed_environment

# Git's garbage collection could delete objects that no ref points to yet.
GIT_VARIABLES = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


def agent_environment(
    order: StepOrder, *, extra: Mapping[str, str], caller: Mapping[str, str]
) -> dict[str, str]:
    """The complete environment of a step. Later parts win: caller, git, order, `extra`, CREW_.

    The folder of `crew` comes first on the PATH. It contains nothing else, so that it does not
    shadow the user's python or other programs.
    """
    environment = {
        **allowed_environment(caller),
        **GIT_VARIABLES,
        "CREW_AGENT": order.agent,
        "CREW_WORKTREE": str(order.worktree),
        "CREW_PROMPT_FILE": str(prompt_file(order)),
        "CREW_SESSION": order.session,
        "CREW_DONE_WORD": order.done_word,
        **({"CREW_RESUME": "1"} if order.resume else {}),
        **extra,
        **order.env,
    }
    path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**environment, "PATH": f"{shim_folder(order)}:{path}"}


def prompt_file(order: StepOrder) -> Path:
    """The path of the step's prompt: next to its log, never in the worktree."""
    return _prompt_of(order.log)


def shim_folder(order: StepOrder) -> Path:
    """The folder of the agent's `crew` command."""
    return _shim_folder(order.log)


@lru_cache(maxsize=1000)
def _prompt_of(log: Path) -> Path:
    return log.with_name(f"{log.name}.prompt")


@lru_cache(maxsize=1000)
def _shim_folder(log: Path) -> Path:
    return log.parent / "bin"


def prepare_files(order: StepOrder) -> None:
    """Write the prompt and the agent's `crew` command."""
    _write(prompt_file(order), order.prompt, mode=0o600)
    _write(shim_folder(order) / "crew", _shim(), mode=0o700)


def _shim() -> str:
    # -P: python must not look for the package `crew` in the agent's folder.
    start = "from crew.front.cli.main import main; main()"
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(start)} "$@"\n'


@effect("agents.write_file")
def _write(path: Path, text: str, *, mode: int) -> None:
    """Replace a file atomically if its text differs, since steps run in parallel."""
    content = text.encode(errors="surrogateescape")
    if not has_content(path, content):
        make_private_folder(path.parent)
        write_file(path, content, mode=mode)
