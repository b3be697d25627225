"""The adapter of Gemini CLI: one headless `gemini` for each step, in a resumed session."""

import asyncio
from dataclasses import dataclass

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.errors.limit_watch import LimitWatch
from crew.agents.event_stream import AgentMessages
from crew.agents.gemini.gemini_events import GeminiRun, judge, limit_in
from crew.agents.gemini.gemini_home import gemini_variables
from crew.agents.step_process import run_agent
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.system.processes.pipes import Talk
from crew.system.processes.process import program_path

# Its shell tool hides the user's git configuration, so the environment carries the author.
_WITH_AUTHOR = """\
name="$(git config user.name)" mail="$(git config user.email)"
export GIT_AUTHOR_NAME="${GIT_AUTHOR_NAME:-$name}" GIT_AUTHOR_EMAIL="${GIT_AUTHOR_EMAIL:-$mail}"
export GIT_COMMITTER_NAME="${GIT_COMMITTER_NAME:-$name}"
export GIT_COMMITTER_EMAIL="${GIT_COMMITTER_EMAIL:-$mail}"
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class GeminiAdapter(OneWayAdapter):
    """Runs `gemini`, or the program in `command`, and reads its events."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        environment = agent_environment(order, extra=self.spec.env, caller=self.caller)
        if error := await asyncio.to_thread(_prepare, self.spec, order, environment):
            return StepOutcome(session=order.session, error=error)
        run = GeminiRun(
            messages=AgentMessages(order.done_word, watch.doing),
            model=self.spec.model,
            prices=self.spec.prices,
        )
        talk = Talk(order.prompt.encode(errors="surrogateescape"))
        talk.close()
        limits = LimitWatch(talk, limit_in)

        def on_output(chunk: bytes) -> None:
            limits.has_event()
            run.take(chunk)

        end = await run_agent(
            order,
            self.spec,
            argv=("sh", "-c", _WITH_AUTHOR, "sh", *gemini_argv(self.spec, order)),
            env=environment,
            watch=watch,
            on_output=on_output,
            on_errors=limits.take_stderr,
            talk=talk,
        )
        run.finish()
        return StepOutcome(
            session=run.session or order.session,
            done=run.messages.has_signal,
            text=run.messages.tail.text,
            usage=run.usage,
            error=limits.error(end) or judge(end, run, self.spec),
        )


def gemini_argv(spec: AgentSpec, order: StepOrder) -> tuple[str, ...]:
    """The command. By default all tools are allowed, or the agent would have no shell."""
    own = (*spec.system_args, *spec.args)
    has_mode = any(word.startswith(("--approval-mode", "--yolo", "-y")) for word in own)
    return (
        *(spec.command or "gemini", "-o", "stream-json", "--skip-trust"),
        *("--resume" if order.resume else "--session-id", order.session),
        *(() if has_mode else ("--approval-mode=yolo",)),
        *(("-m", spec.model) if spec.model else ()),
        *own,
    )


def _prepare(spec: AgentSpec, order: StepOrder, environment: dict[str, str]) -> StepError | None:
    """Make the task's home and add it to the environment. Returns why the step cannot start."""
    command = spec.command or "gemini"
    program = str(order.worktree / command) if "/" in command else command
    if program_path(program, environment) is None:
        message = f"the program {command!r} is not installed"
        return StepError(kind=ErrorKind.NOT_INSTALLED, message=message)
    try:
        environment.update(gemini_variables(order, environment))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        message = f"the settings of Gemini CLI cannot be read or written: {error}"
        return StepError(kind=ErrorKind.CRASHED, message=message)
    return None
