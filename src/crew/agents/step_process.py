"""Runs the process of a step for all adapters, and turns a bad end into an error."""

from collections.abc import Mapping

from crew.agents.adapter import AgentSpec, StepOrder, Watch
from crew.agents.environment import prepare_files
from crew.domain.kernel.text import one_line, plain
from crew.domain.rows.step import ErrorKind, StepError
from crew.system.processes.ownership import MARKER_VARIABLE
from crew.system.processes.pipes import Take, Talk
from crew.system.processes.process import ProcessEnd, ProcessOrder, run_process

TEXT_TAIL = 16_384
NOT_FOUND = 127  # how a shell or `env` exits if a program is missing, such as `node`

_KINDS = {
    "timeout": ErrorKind.TIMEOUT,
    "stalled": ErrorKind.STALLED,
    "not_found": ErrorKind.NOT_INSTALLED,
}


async def run_agent(
    order: StepOrder,
    spec: AgentSpec,
    *,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    watch: Watch,
    on_output: Take,
    on_errors: Take | None = None,
    stdin: str = "",
    talk: Talk | None = None,
) -> ProcessEnd:
    """Run the program of a step. Its files are written before it starts.

    Its input is `stdin`, or with `talk` whatever is sent there.
    """
    try:
        prepare_files(order)
    except OSError as error:
        message = f"the step's files cannot be written: {error}"
        return ProcessEnd(code=126, reason="failed", message=message)
    process = ProcessOrder(
        argv=argv,
        cwd=order.worktree,
        env=env,
        stdin=stdin.encode(errors="surrogateescape"),
        log=order.log,
        marker=order.env.get(MARKER_VARIABLE, order.key),
        timeout_s=order.timeout_s,
        idle_timeout_s=order.idle_timeout_s,
        sandbox=spec.sandbox,
        allowed=order.allowed,
    )
    return await run_process(
        process, on_started=watch.started, on_output=on_output, on_errors=on_errors, talk=talk
    )


def process_error(end: ProcessEnd, spec: AgentSpec) -> StepError:
    """The error of a process that failed, with the end of its stderr."""
    what = end.message or f"exited with code {end.code}"
    is_missing = end.reason == "exited" and end.code == NOT_FOUND
    kind = ErrorKind.NOT_INSTALLED if is_missing else _KINDS.get(end.reason, ErrorKind.CRASHED)
    return StepError(
        kind=kind,
        message=f"{spec.name}: {what}{last_words(end.stderr_tail)}",
    )


def last_words(stderr: str) -> str:
    lines = [line for line in plain(stderr).splitlines() if line.strip()]
    return f": {one_line(lines[-1], limit=300)}" if lines else ""
