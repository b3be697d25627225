"""A second opinion on seed 002, written from its tables alone: states, a queue, one holder.

It knows nothing of facts, rows or stores. `tests/domain/test_channel_histories.py` does the same to
it and to crew, and compares.
"""

from dataclasses import dataclass, field

TIMEOUT, WAIT_LIMIT, HEARTBEAT = 60.0, 100.0, 120.0


class Refused(Exception):
    """The seed does not allow it."""


@dataclass
class Agent:
    state: str = "OFFLINE"
    assigned: bool = True
    disabled: bool = False
    late: bool = False  # its last turn timed out, and what it wanted to say may still come
    beat: float = 0.0


@dataclass
class Model:
    """`mode` is what a person's word does in the middle of a turn."""

    mode: str
    now: float = 0.0
    agents: dict[str, Agent] = field(default_factory=dict)
    queue: list[str] = field(default_factory=list)
    holder: str | None = None
    ends_at: float = 0.0
    interrupted: bool = False
    said: list[tuple[str, str]] = field(default_factory=list)
    kept_back: list[tuple[str, str]] = field(default_factory=list)

    def state(self, name: str) -> str:
        return self.agents[name].state

    def assign(self, name: str) -> None:
        if name not in self.agents:
            self.agents[name] = Agent()
            return
        agent = self.agents[name]
        if agent.disabled or agent.state in {"QUEUED", "ACTIVE", "WAITING"}:
            raise Refused
        agent.assigned = True
        if agent.state == "IDLE":
            self._enqueue(name)

    def start(self, name: str) -> None:
        agent = self.agents[name]
        if agent.disabled:
            raise Refused
        if agent.state != "OFFLINE":
            self._alive(name)
            return
        agent.state, agent.beat = "IDLE", self.now
        if agent.assigned:
            self._enqueue(name)

    def remove(self, name: str) -> None:
        agent = self.agents[name]
        if agent.state in {"IDLE", "OFFLINE"} and not agent.assigned:
            raise Refused
        agent.assigned = False
        if agent.state != "OFFLINE":
            agent.late = False
            self._leave(name, "IDLE")

    def disable(self, name: str) -> None:
        agent = self.agents[name]
        if agent.disabled:
            raise Refused
        agent.disabled = True
        if agent.state != "OFFLINE":
            agent.late = False
            self._leave(name, "OFFLINE")

    def enable(self, name: str) -> None:
        if not self.agents[name].disabled:
            raise Refused
        self.agents[name].disabled = False

    def say(self, name: str, text: str, *, complete: bool) -> None:
        self._there(name)
        agent = self.agents[name]
        if agent.state == "ACTIVE":
            if text:
                self.said.append((name, text))
            if complete:
                self._to_the_end(name)
        elif agent.late:
            agent.late = False
            self.said.append((name, text))
        else:
            raise Refused

    def complete(self, name: str) -> None:
        self._there(name)
        agent = self.agents[name]
        if agent.state == "QUEUED" and agent.late:
            return
        resumable = agent.state == "WAITING" and not self.interrupted
        if agent.state != "ACTIVE" and not resumable:
            raise Refused
        self._to_the_end(name)

    def wait(self, name: str, seconds: float) -> None:
        self._there(name)
        if self.state(name) != "ACTIVE":
            raise Refused
        self.agents[name].state = "WAITING"
        self.ends_at = self.now + min(seconds, WAIT_LIMIT)

    def resolve(self, name: str) -> None:
        self._there(name)
        if self.state(name) != "WAITING" or self.interrupted:
            raise Refused
        self._resume(name)

    def read(self, name: str) -> None:
        self._there(name)
        if self.state(name) == "WAITING" and self.interrupted:
            self._resume(name)

    def override(self, name: str, target: str) -> None:
        state = self.state(name)
        if target == "QUEUED" and state in {"ACTIVE", "WAITING"}:
            self._to_the_end(name)
        elif target == "ACTIVE" and state == "WAITING":
            self._resume(name)
        elif target == "ACTIVE" and state == "QUEUED":
            self.queue.remove(name)
            self.queue.insert(0, name)
            self._advance()
        else:
            raise Refused

    def human(self, text: str) -> None:
        if self.mode == "queue" and self.holder:
            self.kept_back.append(("ann", text))
            return
        self._human(text)
        if self.mode == "interrupt" and self.holder and self.state(self.holder) == "ACTIVE":
            self.agents[self.holder].state = "WAITING"
            self.interrupted, self.ends_at = True, self.now + WAIT_LIMIT

    def pass_time(self, seconds: float, gone: set[str]) -> None:
        """`gone` are those who missed their heartbeat, as crew says; who could is checked there."""
        self.now += seconds
        for name in gone:
            self.agents[name].assigned = False
            self._leave(name, "OFFLINE")
        holder = self.holder
        if holder and self.ends_at <= self.now:
            if self.state(holder) == "ACTIVE":
                self.agents[holder].late = True
            self._to_the_end(holder)
        self._advance()

    def _human(self, text: str) -> None:
        self.said.append(("ann", text))
        if self.holder and self.state(self.holder) == "WAITING" and not self.interrupted:
            self._resume(self.holder)

    def _there(self, name: str) -> None:
        if self.state(name) == "OFFLINE":
            raise Refused
        self._alive(name)

    def _alive(self, name: str) -> None:
        self.agents[name].beat = self.now

    def _enqueue(self, name: str) -> None:
        self.agents[name].state = "QUEUED"
        self.queue.append(name)
        self._advance()

    def _to_the_end(self, name: str) -> None:
        self.holder, self.interrupted = None, False
        self.agents[name].state = "QUEUED"
        self.queue.append(name)
        self._advance()

    def _leave(self, name: str, state: str) -> None:
        self.agents[name].state = state
        if name in self.queue:
            self.queue.remove(name)
        if self.holder == name:
            self.holder, self.interrupted = None, False
        self._advance()

    def _resume(self, name: str) -> None:
        self.agents[name].state = "ACTIVE"
        self.interrupted, self.ends_at = False, self.now + TIMEOUT

    def _advance(self) -> None:
        if self.holder is not None:
            return
        for _, text in self.kept_back:
            self._human(text)
        self.kept_back.clear()
        if self.queue:
            self.holder = self.queue.pop(0)
            self.agents[self.holder].state = "ACTIVE"
            self.agents[self.holder].late = False
            self.ends_at = self.now + TIMEOUT
