"""Runs a step with `codex exec --json`: one process, the prompt on stdin, no messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.codex.codex_errors import exit_error, turn_error
from crew.agents.codex.codex_flags import codex_flags, developer_instructions, toml
from crew.agents.codex.codex_turn import priced
from crew.agents.environment import agent_environment
from crew.agents.event_fields import Event, mapping, session_name, text_of
from crew.agents.event_stream import AgentMessages, EventReader
from crew.agents.session_memory import SessionMemory, session_memory
from crew.agents.step_process import process_error, run_agent
from crew.domain.kernel.prices import Price
from crew.domain.rows.step import UNREPORTED, ErrorKind, StepError, StepOutcome, Usage
from crew.system.processes.process import ProcessEnd


@dataclass(frozen=True, slots=True)
class CodexExecAdapter(OneWayAdapter):
    """Runs `codex exec`, or the program in `command`, and reads its events."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        memory = session_memory("codex", order)
        thread = memory.name_for(order.session) if order.resume else ""
        turn = ExecTurn(
            messages=AgentMessages(order.done_word, watch.doing),
            model=self.spec.model,
            prices=self.spec.prices,
        )

        def on_output(chunk: bytes) -> None:
            before = turn.thread
            turn.take(chunk)
            if turn.thread != before:
                memory.keep_name(order.session, turn.thread)

        end = await run_agent(
            order,
            self.spec,
            argv=exec_argv(self.spec, order, thread),
            env=agent_environment(order, extra=self.spec.env, caller=self.caller),
            stdin=order.prompt,
            watch=watch,
            on_output=on_output,
        )
        turn.finish()
        session = turn.thread or thread or order.session
        return StepOutcome(
            session=session,
            done=turn.messages.has_signal,
            text=turn.messages.tail.text,
            usage=_usage(memory, session, turn),
            error=_judge(end, turn, self.spec),
        )


def exec_argv(spec: AgentSpec, order: StepOrder, thread: str) -> tuple[str, ...]:
    """The command. Flags come before `resume`, which does not accept all of them."""
    instructions = developer_instructions(spec, order)
    return (
        *(spec.command or "codex", "exec", "--json"),
        *(("-c", f"developer_instructions={toml(instructions)}") if instructions else ()),
        *codex_flags(spec, order),
        *(("resume", thread) if thread else ()),
        "-",
    )


@dataclass(slots=True)
class ExecTurn(EventReader):
    """The events of one run of `codex exec` so far."""

    thread: str = ""
    total: Usage | None = None  # of the whole thread
    complaint: str = ""  # the last reported error, from which it may have recovered
    failure: str = ""
    has_ended: bool = False
    had_helper: bool = False
    model: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)

    def _read(self, event: Event) -> None:
        match event.get("type"):
            case "thread.started":
                self.thread = session_name(event, "thread_id") or self.thread
            case "item.started" | "item.completed":
                self._read_item(mapping(event, "item"), is_whole=event["type"] == "item.completed")
            case "turn.completed":
                self.has_ended = True
                self.total = self._counted(mapping(event, "usage"))
            case "turn.failed":
                self.failure = text_of(mapping(event, "error"), "message") or "the turn failed"
            case "error":
                self.complaint = text_of(event, "message")
                self.messages.report(self.complaint)
            case _:
                pass

    def _counted(self, usage: Event) -> Usage:
        """The input includes cached tokens, the output includes reasoning."""
        names = ("input_tokens", "cached_input_tokens", "output_tokens")
        return priced(self.model, names, usage, self.prices)

    def _read_item(self, item: Event, *, is_whole: bool) -> None:
        if item.get("type") == "agent_message":
            if is_whole:
                self.messages.add(text_of(item, "text"))
        else:
            self.had_helper = self.had_helper or item.get("type") == "collab_tool_call"
            self.messages.report(_what_it_does(item))


def _what_it_does(item: Event) -> str:
    match item.get("type"):
        case "command_execution":
            return text_of(item, "command")
        case "mcp_tool_call":
            return f"{item.get('server')}: {item.get('tool')}"
        case "file_change":
            changes = item.get("changes")
            first = changes[0] if isinstance(changes, list) and changes else {}
            return f"edits {first.get('path', '')}" if isinstance(first, dict) else ""
        case "web_search":
            return f"searches {text_of(item, 'query')}"
        case "reasoning":
            return text_of(item, "text")
        case _:
            return ""


def _usage(memory: SessionMemory, session: str, turn: ExecTurn) -> Usage:
    """The usage of the thread; no event has that of its helpers."""
    if turn.total is None:
        return UNREPORTED
    used = memory.used_since(session, turn.total)
    return replace(used, cost_usd=None) if turn.had_helper else used


def _judge(end: ProcessEnd, turn: ExecTurn, spec: AgentSpec) -> StepError | None:
    """None for a good step: exit code 0, a completed turn, and no failed turn."""
    if end.reason in {"timeout", "stalled", "not_found", "failed"}:
        return process_error(end, spec)
    if turn.failure:
        return turn_error(turn.failure)
    if end.code:
        return exit_error(end, spec, turn.complaint)
    if not turn.has_ended:
        return StepError(
            kind=ErrorKind.CRASHED, message=f"{spec.name} exited without completing its turn"
        )
    return None
