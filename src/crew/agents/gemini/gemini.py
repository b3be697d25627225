"""The adapter of Gemini CLI: one headless `gemini` for each step, in a resumed session."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.event_stream import AgentMessages
from crew.agents.first_run import answer_first_run
from crew.agents.gemini.gemini_events import GeminiRun, judge
from crew.agents.step_process import run_agent
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.system.processes.process import program_path

_SETTINGS = ".gemini/settings.json"
_TRUST = "GEMINI_CLI_TRUST_WORKSPACE"
_KEEPS_WORKTREE_SETTINGS_OFF = {
    "file": _SETTINGS,
    "key": ["security", "folderTrust", "enabled"],
    "value": True,
}
_CREW_TOOLS = {
    "file": _SETTINGS,
    "key": ["mcpServers", "crew"],
    "value": {
        "httpUrl": "$CREW_MCP_URL",
        "headers": {"Authorization": "Bearer $CREW_TOKEN"},
        "trust": True,
    },
}
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
        if order.trusts_project:
            environment[_TRUST] = "true"
        if error := await asyncio.to_thread(_refusal, self.spec, order, environment):
            return StepOutcome(session=order.session, error=error)
        run = GeminiRun(messages=AgentMessages(order.done_word, watch.doing))
        end = await run_agent(
            order,
            self.spec,
            argv=("sh", "-c", _WITH_AUTHOR, "sh", *gemini_argv(self.spec, order)),
            env=environment,
            stdin=order.prompt,
            watch=watch,
            on_output=run.take,
        )
        run.finish()
        return StepOutcome(
            session=run.session or order.session,
            done=run.messages.has_signal,
            text=run.messages.tail.text,
            usage=run.usage,
            error=judge(end, run, self.spec),
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


def _refusal(spec: AgentSpec, order: StepOrder, environment: Mapping[str, str]) -> StepError | None:
    """Why this step cannot start; None if it can."""
    command = spec.command or "gemini"
    program = str(order.worktree / command) if "/" in command else command
    if program_path(program, environment) is None:
        message = f"the program {command!r} is not installed"
        return StepError(kind=ErrorKind.NOT_INSTALLED, message=message)
    if problems := _settle(order, environment):
        message = f"{'; '.join(problems)}; without it a worktree's own settings could run programs"
        return StepError(kind=ErrorKind.PERMISSION_DENIED, message=message)
    return None


def _settle(order: StepOrder, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Write the settings that have no flag to its own file. A person's choices stay."""
    answers: list[Mapping[str, Any]] = [_KEEPS_WORKTREE_SETTINGS_OFF]
    if order.env.get("CREW_MCP_URL"):
        answers.append(_CREW_TOOLS)
    home = environment.get("GEMINI_CLI_HOME") or environment.get("HOME", "")
    if not home:
        return ("HOME is not set, so Gemini CLI has no settings",)
    return answer_first_run(answers, worktree=order.worktree, home=Path(home), environ=environment)
