"""Runs the setup commands of a new worktree: the agent kind's script, the repository's command."""

import os
from collections.abc import Mapping
from pathlib import Path

from crew.agents.terminal.terminal_script import put_file
from crew.config.model import AgentSettings
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.templates import PLACE_NAMES, shell_script
from crew.domain.kernel.text import Tail, plain
from crew.domain.rows.task import Task
from crew.runner.requests.door_folder import REPORT_TOKEN
from crew.runner.requests.tokens import Tokens
from crew.runner.sandbox.confinement import for_command
from crew.system.crash_points import effect
from crew.system.private_files import append_lines
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import ProcessEnd, ProcessOrder, run_process
from crew.workplace import Workplace

_TAIL = 16_384
_LAST_LINES = 5


@frozen
class Setup:
    """A command that must exit with 0 before work starts; `name` is its config key."""

    name: str
    task: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    script: tuple[Path, str] | None = None  # a file to write before it starts, and its text


def agent_script(
    workplace: Workplace, settings: AgentSettings, task: Task, *, path: Path, branch: str
) -> tuple[Setup, ...]:
    """The script from the agent kind's configuration, run by the interpreter in its first line."""
    if not settings.setup_script:
        return ()
    place = (str(path), task.id, branch, str(workplace.repo.common_dir), str(workplace.root))
    values = dict(zip(PLACE_NAMES, (*place, task.target), strict=True))
    text = shell_script(settings.setup_script.lstrip(), values)
    file = workplace.folder / "scripts" / f"task-{task.id}-setup.sh"
    return (
        Setup(
            name=f"[agents.{settings.name}] setup_script",
            task=task.id,
            argv=("sh", "-c", 'exec "$@" 2>&1', "sh", *_interpreter(text), str(file)),
            env=_environment(workplace, task=task.id, path=path, branch=branch),
            script=(file, text),
        ),
    )


def repository_command(
    workplace: Workplace, *, task: str, path: Path, branch: str
) -> tuple[Setup, ...]:
    command = workplace.settings.worktree.setup_command
    if not command:
        return ()
    return (
        Setup(
            name="[worktree] setup_command",
            task=task,
            argv=("sh", "-c", f"exec 2>&1\n{command}"),
            env=_environment(workplace, task=task, path=path, branch=branch),
        ),
    )


async def run_setup(workplace: Workplace, setup: Setup, *, path: Path, log: Path) -> None:
    """Run a setup command to its end; its output goes to the log, its failure is an error."""
    if setup.script is not None:
        file, text = setup.script
        put_file(file, text, mode=0o700)
    note(log, f"=== worktree: {setup.name} ===")
    limit_s = workplace.settings.run.step_timeout_s
    order = ProcessOrder(
        argv=setup.argv,
        cwd=path,
        env=setup.env,
        log=log,
        marker=f"{workplace.repo_id}/setup/{path.name}",
        timeout_s=limit_s,
        idle_timeout_s=limit_s + 1,  # silence is allowed during a setup: only its time limit counts
        sandbox=workplace.settings.sandbox.mode,  # type: ignore[arg-type]
        allowed=for_command(workplace, setup.argv, path, may_commit=True),
    )
    tail = Tail(_TAIL)
    end = await run_process(
        order,
        on_started=lambda _pid: None,
        on_output=lambda chunk: tail.add(chunk.decode(errors="replace")),
    )
    if (end.reason, end.code) != ("exited", 0):
        raise _failure(setup, end, tail.text)


@effect("furnish.note")
def note(log: Path, *lines: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    append_lines(log, text.encode(errors="surrogateescape"))


def _environment(workplace: Workplace, *, task: str, path: Path, branch: str) -> dict[str, str]:
    return {
        **allowed_environment(os.environ),
        "CREW_TASK_ID": task,
        "CREW_WORKTREE": str(path),
        "CREW_REPO": str(workplace.root),
        "CREW_BRANCH": branch,
        REPORT_TOKEN: Tokens(workplace.folder).setup_token(task),
    }


def _interpreter(script: str) -> tuple[str, ...]:
    """The interpreter in a script's first line, read as the kernel does: a program, one argument.

    The file itself is never executed: some disks forbid it, and a fork in another thread can
    disturb it.
    """
    first = script.partition("\n")[0]
    words = first.removeprefix("#!").strip().split(maxsplit=1) if first.startswith("#!") else []
    return tuple(word.strip() for word in words) or ("sh",)


def _failure(setup: Setup, end: ProcessEnd, said: str) -> CrewError:
    how = end.message or f"it exited with code {end.code}"
    lines = [line.rstrip() for line in plain(said).splitlines() if line.strip()]
    last = "\n".join(lines[-_LAST_LINES:])
    words = f"{setup.name} failed: {how}" + (f"; its last words:\n{last}" if last else "")
    if not setup.task:
        return CrewError(words, hint="its output is in .crew/logs/merge.log; fix it and run again")
    return CrewError(
        words,
        hint=f"read its output with `crew logs {setup.task}`, fix it and start the task again",
    )
