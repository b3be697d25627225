"""The adapter of any program: runs a command template and judges it by its exit code."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment, prompt_file
from crew.agents.step_process import TEXT_TAIL, last_words, process_error, run_agent
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.templates import Value, check, shell_command, without_nul
from crew.domain.kernel.text import LineSplitter, SignalScanner, Tail, one_line, plain
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.system.processes.process import ProcessEnd, program_path

LONGEST_ARGUMENT = 131_071  # bytes, a fixed limit of Linux
_SHELL_CANNOT_RUN_IT = (126, 127)


@dataclass(frozen=True, slots=True)
class CommandAdapter(OneWayAdapter):
    """Runs the configured command template with `sh`."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        environment = agent_environment(order, extra=self.spec.env, caller=self.caller)
        if error := _refusal(self.spec, environment):
            return StepOutcome(session=order.session, error=error)
        printed = _Printed(order.done_word, watch)
        end = await run_agent(
            order,
            self.spec,
            argv=shell_argv(self.spec, order),
            env=environment,
            stdin=order.prompt if self.spec.prompt_via == "stdin" else "",
            watch=watch,
            on_output=printed.take,
        )
        printed.finish()
        return StepOutcome(
            session=order.session,
            done=printed.scanner.found,
            text=printed.tail.text,
            usage=Usage(cost_usd=None),
            error=_judge(end, self.spec),
        )


def shell_argv(spec: AgentSpec, order: StepOrder) -> tuple[str, ...]:
    return shell_command(spec.command_template, template_values(spec, order))


def template_values(spec: AgentSpec, order: StepOrder) -> dict[str, Value]:
    """The values for the names in a command template."""
    file = prompt_file(order)
    prompt: dict[str, Value] = {
        "arg": prompt_argument(order.prompt, file),
        "stdin": (),
        "file": str(file),
    }
    return {
        "Command": spec.command,
        "SystemArgs": spec.system_args,
        "Args": spec.args,
        "Prompt": prompt[spec.prompt_via],
        "PromptFile": str(file),
        "Model": spec.model,
        "Session": order.session,
        "Resume": "1" if order.resume else "",
        "TrustsProject": "1" if order.trusts_project else "",
        "Worktree": str(order.worktree),
        "TaskID": order.env.get("CREW_TASK_ID", ""),
        "Branch": order.env.get("CREW_BRANCH", ""),
        "GitDir": order.env.get("CREW_GIT_DIR", ""),
        "RepoRoot": order.env.get("CREW_REPO", ""),
        "BaseBranch": order.env.get("CREW_BASE_BRANCH", ""),
    }


def prompt_argument(prompt: str, file: Path) -> str:
    """The prompt, or a reference to its file if it is too long for one argument."""
    if len(without_nul(prompt).encode(errors="surrogateescape")) <= LONGEST_ARGUMENT:
        return prompt
    return (
        f"Your instructions are too long for a command line. They are in the file {file} "
        "(its name is in $CREW_PROMPT_FILE too): read that file to its end, then do what it says."
    )


class _Printed:
    """The output of the program so far."""

    def __init__(self, done_word: str, watch: Watch) -> None:
        self.scanner = SignalScanner(done_word)
        self.tail = Tail(TEXT_TAIL)
        self._lines = LineSplitter()
        self._watch = watch

    def take(self, chunk: bytes) -> None:
        self._add(self._lines.feed_text(chunk))

    def finish(self) -> None:
        self._add("".join(f"{line}\n" for line in self._lines.close()))

    def _add(self, lines: str) -> None:
        text = plain(lines)
        self.scanner.feed(text)
        self.tail.add(text)
        if last := text.rstrip().rpartition("\n")[2]:
            self._watch.doing(one_line(last))


def _refusal(spec: AgentSpec, environment: Mapping[str, str]) -> StepError | None:
    """Why this step cannot start; None if it can."""
    try:
        check(spec.command_template)
    except CrewError as error:
        return StepError(kind=ErrorKind.CRASHED, message=f"{error.message}; {error.hint}")
    if spec.command and program_path(spec.command, environment) is None:
        return _not_installed(spec, "")
    return None


def _judge(end: ProcessEnd, spec: AgentSpec) -> StepError | None:
    if end.reason == "exited" and end.code == 0:
        return None
    if end.reason == "exited" and end.code in _SHELL_CANNOT_RUN_IT:
        return _not_installed(spec, end.stderr_tail)
    return process_error(end, spec)


def _not_installed(spec: AgentSpec, stderr: str) -> StepError:
    program = spec.command or f"a program that the agent {spec.name} needs"
    return StepError(
        kind=ErrorKind.NOT_INSTALLED,
        message=f"{program} is not installed or cannot be run{last_words(stderr)}",
    )
