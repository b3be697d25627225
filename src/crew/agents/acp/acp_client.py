"""Runs one step with the SDK of the Agent Client Protocol. Only this file imports it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    HttpHeader,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from crew import __version__
from crew.agents.acp.acp_errors import AcpRefused, CannotLoad
from crew.agents.acp.acp_turn import AcpTurn
from crew.agents.acp.acp_wire import Wire
from crew.agents.adapter import AgentSpec, Permission, StepOrder, Watch
from crew.agents.event_fields import count_of, mapping
from crew.agents.session_memory import SessionMemory

_LONGEST_DETAIL = 2_000


async def converse(
    spec: AgentSpec,
    order: StepOrder,
    *,
    wire: Wire,
    turn: AcpTurn,
    watch: Watch,
    memory: SessionMemory,
) -> None:
    """Open the session, send the prompt, and read the turn to its end."""
    client: Any = _Client(watch, wire)
    async with ClientSideConnection(client, wire) as agent:
        about = Implementation(name="crew", version=__version__)
        able = await agent.initialize(PROTOCOL_VERSION, client_info=about)
        turn.session, options = await _open(agent, able, order, memory)
        memory.keep_name(order.session, turn.session)
        if spec.model:
            await _choose_model(agent, turn.session, options, spec.model)
        turn.is_open = True
        answer = await _prompt(agent, turn, order.prompt.encode(errors="replace").decode())
        turn.stop_reason = answer.stop_reason
        turn.input_tokens, turn.output_tokens = _tokens(answer)


async def _open(
    agent: ClientSideConnection, able: InitializeResponse, order: StepOrder, memory: SessionMemory
) -> tuple[str, Sequence[Any]]:
    """Its name and options. crew's tools are passed each time: a session does not keep them."""
    can = able.agent_capabilities
    place: dict[str, Any] = {"cwd": str(order.worktree), "mcp_servers": []}
    if can and can.mcp_capabilities and can.mcp_capabilities.http:
        place["mcp_servers"] = _crew_tools(order)
    if not order.resume:
        new = await agent.new_session(**place)
        return new.session_id, new.config_options or ()
    session = memory.name_for(order.session)
    if can and can.load_session:
        loaded = await agent.load_session(session_id=session, **place)
        return session, loaded.config_options or ()
    if can and can.session_capabilities and can.session_capabilities.resume:
        resumed = await agent.resume_session(session_id=session, **place)
        return session, resumed.config_options or ()
    raise CannotLoad("this agent cannot resume a session")


async def _choose_model(
    agent: ClientSideConnection, session: str, options: Sequence[Any], model: str
) -> None:
    chosen = next((one.id for one in options if one.category == "model"), None)
    if chosen is None:
        raise AcpRefused(f"this agent does not accept a model: pass {model!r} in `args`")
    await agent.set_config_option(config_id=chosen, session_id=session, value=model)


async def _prompt(agent: ClientSideConnection, turn: AcpTurn, words: str) -> PromptResponse:
    if turn.interrupted.is_set():
        return PromptResponse(stop_reason="cancelled")
    prompting = agent.prompt(session_id=turn.session, prompt=[text_block(words)])
    answering = asyncio.ensure_future(prompting)
    interrupted = asyncio.ensure_future(turn.interrupted.wait())
    try:
        await asyncio.wait({answering, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            await agent.cancel(session_id=turn.session)
        return await answering
    finally:
        for task in (answering, interrupted):
            task.cancel()
        await asyncio.gather(answering, interrupted, return_exceptions=True)


def _crew_tools(order: StepOrder) -> list[HttpMcpServer]:
    url, token = order.env.get("CREW_MCP_URL", ""), order.env.get("CREW_TOKEN", "")
    if not url:
        return []
    headers = [HttpHeader(name="Authorization", value=f"Bearer {token}")]
    return [HttpMcpServer(type="http", name="crew", url=url, headers=headers)]


def _tokens(answer: PromptResponse) -> tuple[int, int]:
    """Input and output tokens. Cached tokens count as input, thoughts as output."""
    if used := answer.usage:
        output = used.output_tokens + (used.thought_tokens or 0)
        return max(used.input_tokens, used.total_tokens - output), output
    count = mapping(mapping(answer.field_meta or {}, "quota"), "token_count")
    return count_of(count, "input_tokens"), count_of(count, "output_tokens")


class _Client:
    """The requests that crew accepts from the agent: only for permission."""

    def __init__(self, watch: Watch, wire: Wire) -> None:
        self._watch = watch
        self._wire = wire

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - there is one
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_more: Any,
    ) -> RequestPermissionResponse:
        """Allow it if no person is asked: crew's sandbox is around it, as with any agent."""
        allowed = await self._ask(tool_call) if self._watch.can_ask else True
        wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        by_kind = {option.kind: option.option_id for option in reversed(options)}
        chosen = next((by_kind[kind] for kind in wanted if kind in by_kind), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        selected = AllowedOutcome(outcome="selected", option_id=chosen)
        return RequestPermissionResponse(outcome=selected)

    async def _ask(self, call: ToolCallUpdate) -> bool:
        detail = "\n".join(str(part) for part in (call.title, call.raw_input) if part)
        permission = Permission(tool=call.kind or "tool", detail=detail[:_LONGEST_DETAIL])
        with self._wire.talk.waiting():
            return await self._watch.asked(permission)
