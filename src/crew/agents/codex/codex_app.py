"""Runs a step with `codex app-server`: one turn, which accepts messages and interrupts."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from crew.agents.adapter import AgentSpec, Controls, StepOrder, Watch
from crew.agents.asked_questions import answers_of
from crew.agents.background import Background
from crew.agents.codex.codex_dialogue import Act, AwaitTools, CodexDialogue, CodexQuestion
from crew.agents.codex.codex_errors import exit_error, turn_error
from crew.agents.codex.codex_flags import (
    TOOLS_WITHIN_S,
    codex_flags,
    configured,
    developer_instructions,
)
from crew.agents.codex.codex_helpers import CodexHelpers
from crew.agents.codex.codex_turn import AppTurn
from crew.agents.dialogue_acts import DialogueEnded, MessageRead, QuestionWithdrawn, SendMessage
from crew.agents.environment import agent_environment
from crew.agents.event_fields import Event, mapping
from crew.agents.event_stream import AgentMessages, EventLines
from crew.agents.session_memory import SessionMemory, session_memory
from crew.agents.step_process import process_error, run_agent
from crew.domain.rows.step import UNREPORTED, ErrorKind, StepError, StepOutcome, Usage, usage_sum
from crew.system.processes.pipes import Talk
from crew.system.processes.process import ProcessEnd

ENDS_WITHIN_S = 10.0  # after its input is closed
_COUNTED = frozenset({"completed", "failed"})
"""The ends of a turn after which each of its calls is counted; one that is interrupted is not."""

TELLS_OF_TOOLS_WITHIN_S = 2.0  # an older version does not report them


async def run_app_server_step(
    spec: AgentSpec,
    caller: Mapping[str, str],
    order: StepOrder,
    watch: Watch,
    controls: Controls | None,
) -> StepOutcome | None:
    """None if the program ended before its first answer: it has no app-server."""
    memory = session_memory("codex", order)
    async with Background() as background:
        live = LiveTurn(spec, order, watch, background, memory)
        live.begin(controls)
        end = await run_agent(
            order,
            spec,
            argv=(spec.command or "codex", "app-server", *codex_flags(spec, order)),
            env=agent_environment(order, extra=spec.env, caller=caller),
            watch=watch,
            on_output=live.take,
            talk=live.talk,
        )
    live.finish()
    if end.reason == "exited" and not live.dialogue.is_ready:
        return None
    return _outcome(order, spec, live, end)


class LiveTurn:
    """Carries out the dialogue: sends lines to the program, asks people, reads controls."""

    def __init__(
        self,
        spec: AgentSpec,
        order: StepOrder,
        watch: Watch,
        background: Background,
        memory: SessionMemory,
    ) -> None:
        self.talk = Talk()
        self.turn = AppTurn(
            messages=AgentMessages(order.done_word, watch.doing),
            model=spec.model,
            prices=spec.prices,
        )
        self.helpers = CodexHelpers(prices=spec.prices)
        self.memory = memory
        self.dialogue = CodexDialogue(
            prompt=as_text(order.prompt),
            opening=_opening(spec, order, asks=watch.can_ask),
            thread=memory.name_for(order.session) if order.resume else "",
            wants_tools=bool(order.env.get("CREW_MCP_URL")),
        )
        self._order = order
        self._watch = watch
        self._background = background
        self._lines = EventLines()

    def begin(self, controls: Controls | None) -> None:
        if controls is not None:
            self._background.start("controls", self._pass_on(controls))
        self._act(self.dialogue.begin())

    def take(self, chunk: bytes) -> None:
        self._read(self._lines.feed(chunk))

    def finish(self) -> None:
        self._read(self._lines.close())

    def _read(self, messages: Iterable[Event]) -> None:
        for message in messages:
            thread = self.dialogue.thread
            self._act(self.dialogue.read(message))
            if self.dialogue.thread != thread:
                self.memory.keep_name(self._order.session, self.dialogue.thread)
            method, params = message.get("method"), mapping(message, "params")
            if method == "account/rateLimits/updated":
                self.turn.read_limits(params)
            elif method is None:
                self.turn.read_model(mapping(message, "result"))
            elif isinstance(method, str):
                self.helpers.read(method, params, own=self.dialogue.thread)
                if self.dialogue.is_about_us(method, params):
                    self.turn.read(method, params)

    async def _pass_on(self, controls: Controls) -> None:
        while True:
            self._act(self.dialogue.send(await controls.next()))
            await self.talk.taken()

    def _act(self, acts: Iterable[Act]) -> None:
        for act in acts:
            match act:
                case SendMessage(message=message):
                    self.talk.send(_line(message))
                case MessageRead(message=message_id):
                    self._watch.heard(message_id)
                case CodexQuestion():
                    self._background.start(act.number, self._ask(act))
                case QuestionWithdrawn(request=number):
                    self._background.cancel(number)
                case AwaitTools():
                    self._background.start("tools", self._await_tools())
                case DialogueEnded():
                    self.talk.close(linger_s=ENDS_WITHIN_S)

    async def _await_tools(self) -> None:
        """Wait until Codex reports that crew's tools are connected or failed to connect."""
        await asyncio.sleep(TELLS_OF_TOOLS_WITHIN_S)
        self._act(self.dialogue.begin_turn(unless_starting=True))
        await asyncio.sleep(2 * TOOLS_WITHIN_S)
        self._act(self.dialogue.begin_turn())

    async def _ask(self, question: CodexQuestion) -> None:
        with self.talk.waiting():
            reply = await self._reply(question)
        self.talk.send(_line(reply))

    async def _reply(self, question: CodexQuestion) -> Event:
        if question.permission is not None:
            return question.answer(allowed=await self._watch.asked(question.permission))
        answers = await answers_of(self._watch, question.inquiries)
        return question.refuse() if answers is None else question.answer_inquiries(answers)


def as_text(text: str) -> str:
    """The text without invalid bytes, which JSON cannot hold."""
    return text.encode(errors="replace").decode()


def _opening(spec: AgentSpec, order: StepOrder, *, asks: bool) -> dict[str, Any]:
    """Includes sandbox and approvals, since a resumed thread ignores the flags for them."""
    instructions = developer_instructions(spec, order)
    return {
        "cwd": str(order.worktree),
        "sandbox": configured(spec, "sandbox_mode", "workspace-write"),
        "approvalPolicy": configured(spec, "approval_policy", "on-request" if asks else "never"),
        "approvalsReviewer": "user",
        **({"developerInstructions": as_text(instructions)} if instructions else {}),
    }


def _line(message: Event) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _outcome(order: StepOrder, spec: AgentSpec, live: LiveTurn, end: ProcessEnd) -> StepOutcome:
    turn, session = live.turn, live.dialogue.thread or order.session
    return StepOutcome(
        session=session,
        done=turn.messages.has_signal and turn.status == "completed",
        text=turn.messages.tail.text,
        usage=_usage(live, session),
        error=_judge(end, live, spec),
    )


def _usage(live: LiveTurn, session: str) -> Usage:
    """The usage of the thread and its helpers; the call in which a turn was cut off is unknown."""
    turn = live.turn
    if turn.total is None:
        return UNREPORTED
    own = live.memory.used_since(session, turn.total)
    used = usage_sum([own, live.helpers.usage(turn.model)])
    return used if turn.status in _COUNTED else replace(used, cost_usd=None)


def _judge(end: ProcessEnd, live: LiveTurn, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0 and a completed turn, or one that crew interrupted."""
    turn, dialogue = live.turn, live.dialogue
    if end.reason in {"timeout", "stalled", "not_found", "failed"}:
        return process_error(end, spec)
    if dialogue.refusal:
        return turn_error(dialogue.refusal)
    if turn.error:
        return turn.error
    if dialogue.is_interrupted and turn.status != "completed":
        return None
    if turn.status == "completed" and (end.code == 0 or end.reason == "lingered"):
        return None
    if end.code:
        return exit_error(end, spec)
    what = turn.status or "without completing its turn"
    return StepError(kind=ErrorKind.CRASHED, message=f"{spec.name} ended {what}")
