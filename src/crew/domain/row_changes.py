"""The fields of each row that a fact may change, as types: mypy refuses a misspelt one.

`moved` and `noted` of `world` have these signatures. crew never loads this module when it runs.
"""

from typing import Protocol, TypedDict, Unpack, overload

from crew.domain.field_groups import (
    ManagerUse,
    MemberChanges,
    MergeAside,
    MessageFields,
    RunWishes,
    ScreenFields,
    SourceFields,
    StepSession,
    StepUse,
)
from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, Manager
from crew.domain.rows.channel import Channel, HeldValues, Member, Post
from crew.domain.rows.merge_queue import Chain, Entry, MergeQueue, TestResult, Trial
from crew.domain.rows.message import Message
from crew.domain.rows.provider import Outage, Provider
from crew.domain.rows.quest import Position, Quest
from crew.domain.rows.question import Question, Suspicion
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal


class AgentFields(StepUse, total=False):
    agent_kind: str
    kind_chosen: bool
    started_at: float
    task: str | None
    run: str | None
    task_assigned_at: float | None
    error_count: int
    last_error: str
    retry_at: float | None
    killing: bool
    pid: int | None
    dismissed: bool


class TaskFields(SourceFields, total=False):
    written: str
    created_at: float
    run: str | None
    run_count: int
    branch: str
    worktree: str
    head: str
    gate: str
    queued_at: float | None
    landed_commit: str
    dropped_at: float | None
    conflict: str
    favours: str
    close_reason: str
    cleaning: bool
    not_before: float | None


class RunFields(RunWishes, MergeAside, StepSession, total=False):
    merge_accepted: str
    task: str
    number: int
    agent: str | None
    agent_kind: str
    history: tuple[str, ...]
    round: int
    step: int
    steps: int
    attempt: int
    stepping: bool
    epoch: int
    base: str
    out_of_steps: bool
    complaint: str
    complaints: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    error: str
    started_at: float
    ended_at: float | None
    stopping: bool
    merges: bool
    signal: str
    signal_notes: str
    question: str
    role: str
    signal_role: str
    signal_resume: bool
    verdicts: tuple[tuple[str, str, bool], ...]
    unjudged: tuple[tuple[str, str, bool, str], ...]


class TerminalFields(ScreenFields, total=False):
    task: str
    number: int
    pid: int | None
    started: int | None
    leaving: str
    untyped: bool


class MergeQueueFields(TypedDict, total=False):
    integration: str
    base: str
    base_proven: bool
    chain: Chain
    trials: tuple[Trial, ...]
    held: tuple[Entry, ...]
    cleared: tuple[Entry, ...]
    results: tuple[TestResult, ...]
    failure_rate: float
    delivered: str
    delivered_at: float | None
    is_shown: bool
    waiting: str
    remedy: str
    upstream: bool
    overtaken: int
    target_seen: str
    last_seen: str
    rewriting: str
    superseded: str
    given_up: tuple[str, ...]
    offered: tuple[str, ...]
    dropped: tuple[Entry, ...]
    rewritten_at: float | None
    placed: tuple[tuple[str, str], ...]


class QuestionFields(TypedDict, total=False):
    task: str
    run: str
    role: str
    question: str
    context: str
    about: str
    choices: tuple[str, ...]
    asked_at: float
    answer: str
    answered_at: float | None
    taken: bool


class SuspicionFields(TypedDict, total=False):
    task: str
    run: str
    role: str
    act: str
    context: str
    count: int
    first_at: float
    last_at: float
    answer: str


class ProviderFields(TypedDict, total=False):
    next_at: float
    reason: str


class OutageFields(TypedDict, total=False):
    cause: str
    reason: str
    remedy: str
    since: float


class QuestFields(TypedDict, total=False):
    workflow: str
    definition: str
    slots: int
    plan: tuple[tuple[object, ...], ...]
    plan_number: int
    created_at: float
    sessions: tuple[tuple[str, str, str], ...]


class PositionFields(TypedDict, total=False):
    quest: str
    task: str
    key: str
    role: str
    stage: str
    acting: str
    asker: str
    resume: bool
    followups: int
    agent_kind: str
    session: str
    session_used: bool
    session_number: int
    visits: tuple[tuple[str, int], ...]
    failures: int
    story: tuple[tuple[object, ...], ...]
    council: str
    passed: str
    asked_by: str


class ChannelFields(TypedDict, total=False):
    mode: str
    order: str
    interrupting: str
    topic: str
    members: tuple[str, ...]
    queue: tuple[str, ...]
    holder: str
    sequence: int
    held: tuple[HeldValues, ...]
    rounds: int | None
    timeout_s: float
    wait_timeout_s: float
    heartbeat_s: float
    announces_timeouts: bool
    announces_disconnects: bool
    detects_turn_end: bool
    silence_s: float
    council: bool
    decision: str
    agreed: bool
    task: str
    opened_at: float
    closed_at: float | None


class MemberFields(MemberChanges, total=False):
    channel: str
    name: str


class PostFields(TypedDict, total=False):
    channel: str
    sequence: int
    sender: str
    text: str
    author: str
    late: bool


class ManagerFields(ManagerUse, total=False):
    agent_kind: str
    model: str
    started_at: float


class MovedFact(Protocol):
    @overload
    def __call__(
        self, row: Agent, trigger: str, *, to: str, at: float, **changes: Unpack[AgentFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Task, trigger: str, *, to: str, at: float, **changes: Unpack[TaskFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Run, trigger: str, *, to: str, at: float, **changes: Unpack[RunFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Terminal, trigger: str, *, to: str, at: float, **changes: Unpack[TerminalFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Question, trigger: str, *, to: str, at: float, **changes: Unpack[QuestionFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self,
        row: Suspicion,
        trigger: str,
        *,
        to: str,
        at: float,
        **changes: Unpack[SuspicionFields],
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Message, trigger: str, *, to: str, at: float, **changes: Unpack[MessageFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Provider, trigger: str, *, to: str, at: float, **changes: Unpack[ProviderFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Outage, trigger: str, *, to: str, at: float, **changes: Unpack[OutageFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Quest, trigger: str, *, to: str, at: float, **changes: Unpack[QuestFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Position, trigger: str, *, to: str, at: float, **changes: Unpack[PositionFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Channel, trigger: str, *, to: str, at: float, **changes: Unpack[ChannelFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Member, trigger: str, *, to: str, at: float, **changes: Unpack[MemberFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Manager, trigger: str, *, to: str, at: float, **changes: Unpack[ManagerFields]
    ) -> Fact: ...


class NotedFact(Protocol):
    @overload
    def __call__(
        self, row: Agent, trigger: str, *, at: float, **changes: Unpack[AgentFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Task, trigger: str, *, at: float, **changes: Unpack[TaskFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Run, trigger: str, *, at: float, **changes: Unpack[RunFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Terminal, trigger: str, *, at: float, **changes: Unpack[TerminalFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: MergeQueue, trigger: str, *, at: float, **changes: Unpack[MergeQueueFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Question, trigger: str, *, at: float, **changes: Unpack[QuestionFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Suspicion, trigger: str, *, at: float, **changes: Unpack[SuspicionFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Message, trigger: str, *, at: float, **changes: Unpack[MessageFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Provider, trigger: str, *, at: float, **changes: Unpack[ProviderFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Outage, trigger: str, *, at: float, **changes: Unpack[OutageFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Quest, trigger: str, *, at: float, **changes: Unpack[QuestFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Position, trigger: str, *, at: float, **changes: Unpack[PositionFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Channel, trigger: str, *, at: float, **changes: Unpack[ChannelFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Member, trigger: str, *, at: float, **changes: Unpack[MemberFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Post, trigger: str, *, at: float, **changes: Unpack[PostFields]
    ) -> Fact: ...

    @overload
    def __call__(
        self, row: Manager, trigger: str, *, at: float, **changes: Unpack[ManagerFields]
    ) -> Fact: ...
