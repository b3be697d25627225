"""The adapter of the scripted agent, for demos, tests and dry runs."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crew.agents.adapter import AgentSpec, OneWayAdapter, StepOrder, Watch
from crew.agents.environment import agent_environment
from crew.agents.scripted import script_player
from crew.agents.step_process import TEXT_TAIL, process_error, run_agent
from crew.domain.kernel.text import LineSplitter, SignalScanner, Tail, one_line
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.system.processes.process import ProcessEnd


@dataclass(frozen=True, slots=True)
class ScriptedAdapter(OneWayAdapter):
    """Plays the next step of the task's script in a real process."""

    async def _step(self, order: StepOrder, watch: Watch) -> StepOutcome:
        events = _PlayerEvents(order.done_word, watch)
        end = await run_agent(
            order,
            self.spec,
            argv=(sys.executable, "-I", "-S", script_player.__file__),
            env=self._environment(order),
            stdin=order.prompt,
            watch=watch,
            on_output=events.take,
        )
        events.finish()
        return StepOutcome(
            session=order.session,
            done=events.scanner.found,
            text=events.tail.text,
            usage=events.usage,
            error=_judge(end, events, self.spec),
        )

    def _environment(self, order: StepOrder) -> dict[str, str]:
        own = {"CREW_STATE_DIR": str(order.log.parent / "scripted")}
        if self.spec.script:
            own["CREW_SCRIPT"] = self.spec.script
        return agent_environment(order, extra={**own, **self.spec.env}, caller=self.caller)


class _PlayerEvents:
    """The events of the player so far."""

    def __init__(self, done_word: str, watch: Watch) -> None:
        self.scanner = SignalScanner(done_word)
        self.tail = Tail(TEXT_TAIL)
        self.usage = Usage()
        self.error: StepError | None = None
        self.has_ended = False
        self._lines = LineSplitter()
        self._watch = watch

    def take(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            self._read(line)

    def finish(self) -> None:
        for line in self._lines.close():
            self._read(line)

    def _read(self, line: str) -> None:
        if not line.startswith("{"):
            return
        try:
            event = json.loads(line)
        except ValueError:  # noise, as any program may print
            return
        if isinstance(event, dict):
            self._learn(event)

    def _learn(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "text":
                text = str(event.get("text", ""))
                self.scanner.feed(text + "\n")
                self.tail.add(text + "\n")
                self._watch.doing(one_line(text))
            case "tool":
                self._watch.doing(one_line(f"{event.get('name')}: {event.get('text')}"))
            case "usage":
                self.usage = _sum(self.usage, event)
            case "error":
                self.error = _error(event)
            case "end":
                self.has_ended = True
            case _:
                pass


def _sum(usage: Usage, event: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens + int(event.get("input_tokens", 0)),
        output_tokens=usage.output_tokens + int(event.get("output_tokens", 0)),
        cost_usd=(usage.cost_usd or 0.0) + float(event.get("cost_usd", 0.0)),
    )


def _error(event: Mapping[str, Any]) -> StepError:
    known = set(ErrorKind)
    kind = ErrorKind(event["kind"]) if event.get("kind") in known else ErrorKind.CRASHED
    return StepError(kind=kind, message=str(event.get("message")), reset_at=event.get("reset_at"))


def _judge(end: ProcessEnd, events: _PlayerEvents, spec: AgentSpec) -> StepError | None:
    if end.reason != "exited":
        return process_error(end, spec)
    if events.error:
        return events.error
    if end.code:
        return process_error(end, spec)
    if not events.has_ended:
        return StepError(
            kind=ErrorKind.CRASHED,
            message=f"{spec.name} exited without reporting that it has finished",
        )
    return None
