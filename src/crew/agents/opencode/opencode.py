"""The adapter of OpenCode: one `opencode run` for each step, in a resumed session.

The worktree's MCP commands and plugins would run at once. Unless a person has approved them, its
configuration stays off, and crew passes on the repository's instructions.
"""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.errors.limit_watch import LimitWatch
from crew.agents.event_fields import mapping
from crew.agents.event_stream import AgentMessages
from crew.agents.instruction_files import instruction_file
from crew.agents.opencode.opencode_events import OpenCodeRun, judge, limit_in
from crew.agents.session_memory import session_memory
from crew.agents.step_process import run_agent
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.system.processes.pipes import Talk

_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
_NO_PROJECT = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")  # it reads the first of them
_CONTENT = "OPENCODE_CONFIG_CONTENT"
TOOLS_WITHIN_MS = 60_000
"""On a busy machine its own five seconds are too short, and the agent could not signal."""


@dataclass(frozen=True, slots=True)
class OpenCodeAdapter(OneWayAdapter):
    """Runs `opencode`, or the program in `command`, and reads its events."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        if error := _refusal(order):
            return StepOutcome(session=order.session, error=error)
        memory = session_memory("opencode", order)
        session = memory.name_for(order.session) if order.resume else ""
        run = OpenCodeRun(messages=AgentMessages(order.done_word, watch.doing))
        talk = Talk(order.prompt.encode(errors="surrogateescape"))
        talk.close()
        limits = LimitWatch(talk, limit_in)

        def on_output(chunk: bytes) -> None:
            limits.has_event()
            before = run.session
            run.take(chunk)
            if run.session != before:
                memory.keep_name(order.session, run.session)
            if run.is_hopeless:
                talk.close(linger_s=0.0)

        end = await run_agent(
            order,
            self.spec,
            argv=opencode_argv(self.spec, order, session),
            env=self._environment(order),
            watch=watch,
            on_output=on_output,
            on_errors=limits.take_stderr,
            talk=talk,
        )
        run.finish()
        return StepOutcome(
            session=run.session or session or order.session,
            done=run.messages.has_signal,
            text=run.messages.tail.text,
            usage=run.usage(end),
            error=limits.error(end) or judge(end, run, self.spec),
        )

    def _environment(self, order: StepOrder) -> dict[str, str]:
        extra = {**_QUIET, **self.spec.env, **({} if order.trusts_project else _NO_PROJECT)}
        environment = agent_environment(order, extra=extra, caller=self.caller)
        content = own_config(environment.get(_CONTENT, ""), order)
        return {**environment, _CONTENT: content} if content else environment


def opencode_argv(spec: AgentSpec, order: StepOrder, session: str) -> tuple[str, ...]:
    """The command. A resumed session prints events only in the folder where it was created."""
    return (
        *(spec.command or "opencode", "run", "--format", "json"),
        *("--print-logs", "--log-level", "ERROR"),  # only there it tells of a rate limit
        *(("--auto",) if _plugins(order.worktree) else ("--pure", "--auto")),
        *("--dir", str(order.worktree)),
        *(("--session", session) if session else ()),
        *(("--model", spec.model) if spec.model else ()),
        *spec.system_args,
        *spec.args,
    )


def _refusal(order: StepOrder) -> StepError | None:
    """OpenCode runs the plugins of a repository at its start, and no option prevents it."""
    plugins = _plugins(order.worktree)
    if order.trusts_project or not plugins:
        return None
    return StepError(
        kind=ErrorKind.PERMISSION_DENIED,
        message=f"OpenCode would run {', '.join(plugins)}, which no person has approved; "
        "`crew trust` shows and approves such files",
    )


def _plugins(worktree: Path) -> list[str]:
    found = worktree.glob(".opencode/plugin*/*.[jt]s")
    return sorted(str(one.relative_to(worktree)) for one in found)


def own_config(content: str, order: StepOrder) -> str:
    """The given configuration with crew's own tools, and with instructions that are off else."""
    tools, instructions = _crew_tools(order), _instructions(order)
    try:
        config: Any = json.loads(content or "{}")
    except ValueError:  # it may have comments, and then stays unchanged
        return content
    if not isinstance(config, dict) or not (tools or instructions):
        return content
    if tools:
        config["mcp"] = {**mapping(config, "mcp"), **tools}
    if instructions:
        known = config.get("instructions")
        config["instructions"] = [*(known if isinstance(known, list) else ()), *instructions]
    return json.dumps(config)


def _crew_tools(order: StepOrder) -> dict[str, Any]:
    """crew's own tools. The token is referenced, not included."""
    url = order.env.get("CREW_MCP_URL", "")
    headers = {"Authorization": "Bearer {env:CREW_TOKEN}"}
    server = {"type": "remote", "url": url, "headers": headers, "oauth": False}
    server["timeout"] = TOOLS_WITHIN_MS
    return {"crew": server} if url else {}


def _instructions(order: StepOrder) -> list[str]:
    """The repository's instructions, by path. With its project settings on it finds them itself."""
    files = (instruction_file(order.worktree, name) for name in _INSTRUCTIONS)
    found = (str(file) for file in files if file)
    return [] if order.trusts_project else [*itertools.islice(found, 1)]
