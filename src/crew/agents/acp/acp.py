"""The adapter of any agent with the Agent Client Protocol: one process for each step.

Each process loads the session again. Messages for the agent wait for its next step: agents differ
in what a second prompt does to the current one, and one of them drops its work.
"""

import asyncio
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crew.agents.acp.acp_errors import ended_badly, judge
from crew.agents.acp.acp_turn import AcpTurn
from crew.agents.acp.acp_wire import Wire
from crew.agents.adapter import AgentSpec, Controls, Interrupt, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.event_stream import AgentMessages
from crew.agents.session_memory import SessionMemory, session_memory
from crew.agents.step_process import run_agent
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.system.processes.process import ProcessEnd

ENDS_WITHIN_S = 10.0  # after its input is closed
# One agent asks its model for suggestions, which costs the whole context again.
_QUIET = {
    "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "0",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


@dataclass(frozen=True, slots=True)
class AcpAdapter:
    """Runs the program in `command` and drives it with the protocol's SDK."""

    spec: AgentSpec
    caller: Mapping[str, str]

    async def run_step(
        self, order: StepOrder, watch: Watch, controls: Controls | None = None
    ) -> StepOutcome:
        if error := _refusal(self.spec, order):
            return StepOutcome(session=order.session, error=error)
        memory = session_memory("acp", order)
        turn = AcpTurn(order.session, AgentMessages(order.done_word, watch.doing))
        wire = Wire(turn.read)
        talking = asyncio.ensure_future(self._talk(order, wire, turn, watch, memory))
        reading = asyncio.ensure_future(_read_controls(controls, turn))
        try:
            end = await run_agent(
                order,
                self.spec,
                argv=(self.spec.command, *self.spec.system_args, *self.spec.args),
                env=agent_environment(order, extra={**_QUIET, **self.spec.env}, caller=self.caller),
                watch=watch,
                on_output=wire.take,
                talk=wire.talk,
            )
            wire.end()
            await talking
        finally:
            for task in (talking, reading):
                task.cancel()
            await asyncio.gather(talking, reading, return_exceptions=True)
        return _outcome(self.spec, turn, memory, end)

    async def _talk(
        self, order: StepOrder, wire: Wire, turn: AcpTurn, watch: Watch, memory: SessionMemory
    ) -> None:
        """Run the whole conversation, and close the program's input at its end."""
        from crew.agents.acp.acp_client import converse  # noqa: PLC0415 - it brings the SDK along

        try:
            await converse(self.spec, order, wire=wire, turn=turn, watch=watch, memory=memory)
        except Exception as error:  # noqa: BLE001 - whatever the SDK or the agent makes of it
            turn.failure = ended_badly(error, is_opening=not turn.is_open)
        finally:
            wire.talk.close(linger_s=ENDS_WITHIN_S)


async def _read_controls(controls: Controls | None, turn: AcpTurn) -> None:
    while controls is not None:
        if isinstance(await controls.next(), Interrupt):
            turn.interrupted.set()


_OTHER_ADAPTERS = {
    "codex-acp": (
        "codex",
        "codex-acp asks a model for permissions, never crew, and has a sandbox of its own",
    ),
    "gemini": (
        "gemini",
        "with this protocol Gemini CLI resumes no session, and its commits have no author",
    ),
}
"""Programs that do not work as agents here: the adapter that does, and the reason."""


def _refusal(spec: AgentSpec, order: StepOrder) -> StepError | None:
    """Why this step cannot start; None if it can."""
    if error := _other_adapter(spec):
        return error
    if order.unapproved:
        message = (
            f"no person has approved {', '.join(order.unapproved)}, with which {spec.command} "
            "could start programs; `crew trust` shows and approves such files"
        )
        return StepError(kind=ErrorKind.PERMISSION_DENIED, message=message)
    if not spec.command:
        message = f"agents.{spec.name} names no command that speaks the Agent Client Protocol"
        return StepError(kind=ErrorKind.NOT_INSTALLED, message=message)
    if importlib.util.find_spec("acp") is None:
        message = "the package agent-client-protocol is not installed: install git-crew[acp]"
        return StepError(kind=ErrorKind.NOT_INSTALLED, message=message)
    return None


def _other_adapter(spec: AgentSpec) -> StepError | None:
    """A refusal of the programs that crew drives better in another way; `npx` may start them."""
    words = (spec.command, *spec.system_args, *spec.args)
    names = {Path(word).name.split("@")[0].removesuffix("-cli") for word in words if word}
    for name in names & _OTHER_ADAPTERS.keys():
        adapter, reason = _OTHER_ADAPTERS[name]
        message = f'{reason}: set agents.{spec.name}.adapter = "{adapter}"'
        return StepError(kind=ErrorKind.NOT_INSTALLED, message=message)
    return None


def _outcome(spec: AgentSpec, turn: AcpTurn, memory: SessionMemory, end: ProcessEnd) -> StepOutcome:
    turn.finish()
    cost = None
    if turn.total_cost_usd:  # an agent reports 0 for a model without a price
        total = Usage(cost_usd=turn.total_cost_usd)
        cost = memory.used_since(turn.session, total).cost_usd
    return StepOutcome(
        session=turn.session,
        done=turn.messages.has_signal and turn.stop_reason == "end_turn",
        text=turn.messages.tail.text,
        usage=Usage(
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            cost_usd=cost if turn.stop_reason else None,  # else a call was cut off
        ),
        error=judge(end, turn, spec),
    )
