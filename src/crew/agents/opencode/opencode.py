"""The adapter of OpenCode: one `opencode run` for each step, in a resumed session.

The worktree's own configuration stays off: its MCP commands and plugins would run at once.
"""

import json
from dataclasses import dataclass
from typing import Any

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.event_stream import AgentMessages
from crew.agents.opencode.opencode_events import OpenCodeRun, judge
from crew.agents.session_memory import session_memory
from crew.agents.step_process import run_agent
from crew.domain.rows.step import StepOutcome
from crew.system.processes.pipes import Talk

_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
}
_CONTENT = "OPENCODE_CONFIG_CONTENT"


@dataclass(frozen=True, slots=True)
class OpenCodeAdapter(OneWayAdapter):
    """Runs `opencode`, or the program in `command`, and reads its events."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        memory = session_memory("opencode", order)
        session = memory.name_for(order.session) if order.resume else ""
        run = OpenCodeRun(messages=AgentMessages(order.done_word, watch.doing))
        talk = Talk(order.prompt.encode(errors="surrogateescape"))
        talk.close()

        def on_output(chunk: bytes) -> None:
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
            talk=talk,
        )
        run.finish()
        return StepOutcome(
            session=run.session or session or order.session,
            done=run.messages.has_signal,
            text=run.messages.tail.text,
            usage=run.usage,
            error=judge(end, run, self.spec),
        )

    def _environment(self, order: StepOrder) -> dict[str, str]:
        environment = agent_environment(
            order, extra={**_QUIET, **self.spec.env}, caller=self.caller
        )
        content = with_crew_tools(environment.get(_CONTENT, ""), order)
        return {**environment, _CONTENT: content} if content else environment


def opencode_argv(spec: AgentSpec, order: StepOrder, session: str) -> tuple[str, ...]:
    """The command. A resumed session prints events only in the folder where it was created."""
    return (
        *(spec.command or "opencode", "run", "--format", "json", "--pure", "--auto"),
        *("--dir", str(order.worktree)),
        *(("--session", session) if session else ()),
        *(("--model", spec.model) if spec.model else ()),
        *spec.system_args,
        *spec.args,
    )


def with_crew_tools(content: str, order: StepOrder) -> str:
    """Add crew's own tools to the given configuration. The token is referenced, not included."""
    url = order.env.get("CREW_MCP_URL", "")
    if not url:
        return content
    try:
        config: Any = json.loads(content or "{}")
    except ValueError:  # it may have comments, and then stays unchanged
        return content
    server = {
        "type": "remote",
        "url": url,
        "headers": {"Authorization": "Bearer {env:CREW_TOKEN}"},
        "oauth": False,
    }
    servers = config.get("mcp") if isinstance(config, dict) else None
    servers = servers if isinstance(servers, dict) else {}
    return json.dumps({**config, "mcp": {**servers, "crew": server}})
