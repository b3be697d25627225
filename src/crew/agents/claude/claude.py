"""The adapter of Claude Code: one run of `claude -p` for each step, in a resumed session.

Its input stays open for messages, interrupts and answers while it works. A headless run does not
ask for trust, so a repository's own hooks and MCP servers would run at once: unless a person has
approved them, it reads only the repository's CLAUDE.md, with its imports and rules.
"""

import contextlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crew.agents.adapter import AgentSpec, Controls, StepOrder, Watch
from crew.agents.background import Background
from crew.agents.claude.claude_errors import judge
from crew.agents.claude.claude_events import Conversation
from crew.agents.claude.claude_live import Live
from crew.agents.claude.claude_session import held_session
from crew.agents.environment import agent_environment
from crew.agents.step_process import run_agent
from crew.domain.kernel.errors import Conflict, CrewError
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.processes.process import ProcessEnd

_ENVIRONMENT = {
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",  # see _project
}
_PERMISSION_FLAGS = ("--permission-mode", "--dangerously-skip-permissions")
_TOOL_FLAGS = ("--allowedTools", "--allowed-tools")


@dataclass(frozen=True, slots=True)
class ClaudeAdapter:
    """Runs `claude`, or the program in `command`, with stream-json."""

    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome:
        order = replace(order, session=session_id(order.session))
        env = agent_environment(order, extra={**_ENVIRONMENT, **self.spec.env}, caller=self.caller)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(held_session(order, env))
            except CrewError as error:
                in_use = isinstance(error, Conflict)
                kind = ErrorKind.SESSION_IN_USE if in_use else ErrorKind.CRASHED
                refusal = StepError(kind=kind, message=error.message)
                return StepOutcome(session=order.session, error=refusal)
            return await self._run(order, env, watch, controls)

    async def _run(
        self, order: StepOrder, env: Mapping[str, str], watch: Watch, controls: Controls | None
    ) -> StepOutcome:
        conversation = Conversation(done_word=order.done_word)
        async with Background() as background:
            live = Live(conversation, watch, background)
            live.begin(order.prompt, controls)
            end = await run_agent(
                order,
                self.spec,
                argv=claude_argv(self.spec, order, asks=watch.can_ask),
                env=env,
                watch=watch,
                on_output=live.take,
                talk=live.talk,
            )
        conversation.finish()
        return self._outcome(order, conversation, live, end)

    def _outcome(
        self, order: StepOrder, conversation: Conversation, live: Live, end: ProcessEnd
    ) -> StepOutcome:
        ran = end.reason not in {"not_found", "failed"}
        cut_short = ran and live.was_interrupted and not conversation.ended_well
        return StepOutcome(
            session=conversation.session or order.session,
            done=conversation.has_signal and not cut_short,
            text=conversation.tail.text,
            usage=_usage(order, conversation),
            error=None if cut_short else judge(end, conversation, self.spec),
        )


def session_id(text: str) -> str:
    """The session as a UUID, which Claude requires. The same name gives the same UUID."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"crew:{text}"))


def claude_argv(spec: AgentSpec, order: StepOrder, *, asks: bool = False) -> tuple[str, ...]:
    """The command. All flags are passed in every step: a session keeps only its system prompt.

    With `asks`, a person answers permission requests.
    """
    return (
        spec.command or "claude",
        "-p",
        *("--output-format", "stream-json", "--verbose"),
        *("--input-format", "stream-json", "--replay-user-messages"),
        *("--permission-prompt-tool", "stdio"),
        *("--resume" if order.resume else "--session-id", order.session),
        *_project(order),
        *_permissions(spec, order, asks=asks),
        *(("--mcp-config", *servers) if (servers := (*_mcp(order), *_project_mcp(order))) else ()),
        *(("--model", spec.model) if spec.model else ()),
        *(("--append-system-prompt", spec.system_prompt) if spec.system_prompt else ()),
        *spec.system_args,
        *spec.args,
    )


def _project(order: StepOrder) -> tuple[str, ...]:
    """The repository's settings if they are trusted; else its CLAUDE.md alone, as a folder's."""
    if order.trusts_project:
        return ("--setting-sources", "user,project", "--strict-mcp-config")
    own = ("--add-dir", str(order.worktree))
    return ("--setting-sources", "user", "--strict-mcp-config", *own)


def _permissions(spec: AgentSpec, order: StepOrder, *, asks: bool) -> tuple[str, ...]:
    """Allow edits in the worktree, and shell commands unless a person is asked about them.

    The agent's own arguments override this.
    """
    own = (*spec.system_args, *spec.args)
    mode = () if _has(own, _PERMISSION_FLAGS) else ("--permission-mode", "acceptEdits")
    tools = (*(() if asks else ("Bash",)), *(("mcp__crew",) if _mcp(order) else ()))
    if _has(own, _TOOL_FLAGS) or not tools:
        return mode
    return (*mode, "--allowedTools", ",".join(tools))


def _has(arguments: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    return any(argument.split("=")[0] in flags for argument in arguments)


def _mcp(order: StepOrder) -> tuple[str, ...]:
    """crew's own tools. The token stays in the environment, which `ps` does not show."""
    url = order.env.get("CREW_MCP_URL", "")
    if not url:
        return ()
    server = {
        "type": "http",
        "url": url,
        "headers": {"Authorization": "Bearer ${CREW_TOKEN}"},
        "alwaysLoad": True,
    }
    return (json.dumps({"mcpServers": {"crew": server}}),)


def _project_mcp(order: StepOrder) -> tuple[str, ...]:
    """The repository's own servers, if they are trusted."""
    file = order.worktree / ".mcp.json"
    return (str(file),) if order.trusts_project and file.is_file() else ()


def _usage(order: StepOrder, conversation: Conversation) -> Usage:
    """The usage of this run. The reported cost is the session's, so the last one is subtracted."""
    usage = conversation.usage
    total = conversation.last_result.total_cost_usd if conversation.last_result else None
    if total is None:
        return usage
    memory = order.log.parent / f"claude-{conversation.session or order.session}.json"
    before = _total_before(memory) if order.resume else 0.0
    with contextlib.suppress(OSError):  # then the next cost is unknown, not wrong
        _remember_total(memory, total)
    if usage.cost_usd is None and before is not None and not conversation.was_cut_off:
        # A total below the last one means that the program started to count from 0 again.
        return replace(usage, cost_usd=total - before if total >= before else total)
    return usage


def _total_before(memory: Path) -> float | None:
    try:
        stored: Any = json.loads(memory.read_bytes())
        return float(stored["total_cost_usd"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@effect("agents.remember_total")
def _remember_total(memory: Path, total: float) -> None:
    write_file(memory, json.dumps({"total_cost_usd": total}).encode(), mode=0o600)
