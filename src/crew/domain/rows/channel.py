"""The rows of channels: a channel, its members and its posts, and the moves of turns."""

from enum import StrEnum
from typing import ClassVar, NamedTuple, TypeAlias

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.kernel.quotation import attributed


class TurnState(StrEnum):
    OFFLINE = "offline"
    IDLE = "idle"
    QUEUED = "queued"
    ACTIVE = "active"
    WAITING = "waiting"


ONLINE = frozenset({TurnState.IDLE, TurnState.QUEUED, TurnState.ACTIVE, TurnState.WAITING})
TAKING_PART = frozenset({TurnState.QUEUED, TurnState.ACTIVE, TurnState.WAITING})


class ChannelState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


class Mode(StrEnum):
    """Which members may have a turn: in order, one alone, all at once, or those addressed."""

    TURN_BASED = "turn-based"
    SINGLE = "single"
    BROADCAST = "broadcast"
    DIRECT = "direct"


class TurnOrder(StrEnum):
    ROUND_ROBIN = "round-robin"
    PRIORITY = "priority"
    MANUAL = "manual"


class Interrupting(StrEnum):
    """What the post of a person does while an agent has the turn."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"
    INJECT = "inject"
    PARALLEL = "parallel"


class Way(StrEnum):
    """How a member takes part: crew calls its CLI, or it connects by itself over MCP."""

    DRIVEN = "driven"
    CONNECTED = "connected"


CREW = "crew"
"""The sender of crew's own posts."""


class Author(StrEnum):
    AGENT = "agent"
    PERSON = "person"
    SYSTEM = "system"


_DISABLED = "a person may disable a member"
_HUMAN = "a person may end a wait"

TURN = Machine(
    name="channel turn",
    first=TurnState.OFFLINE,
    moves=(
        Move(source="offline", target="idle", trigger="agent_starts"),
        Move(source="idle", target="queued", trigger="assigned_to_channel"),
        Move(source="idle", target="offline", trigger="agent_stops"),
        Move(source="queued", target="active", trigger="turn_granted"),
        Move(source="queued", target="idle", trigger="removed_from_channel"),
        Move(source="queued", target="offline", trigger="agent_disconnects"),
        Move(source="active", target="queued", trigger="turn_complete"),
        Move(source="active", target="queued", trigger="timeout", meaning="forced, keeps place"),
        Move(source="active", target="waiting", trigger="wait_requested"),
        Move(source="active", target="offline", trigger="agent_crashes"),
        Move(source="waiting", target="active", trigger="wait_resolved"),
        Move(source="waiting", target="queued", trigger="wait_timeout", meaning="forfeits"),
        Move(source="waiting", target="offline", trigger="agent_disconnects"),
        Move(source="waiting", target="queued", trigger="human_override", added=_HUMAN),
        Move(source="waiting", target="active", trigger="human_override", added=_HUMAN),
        Move(
            source="active",
            target="idle",
            trigger="turn_complete",
            added="an agent that is alone and has nothing left to say is idle",
        ),
        Move(
            source="active",
            target="idle",
            trigger="removed_from_channel",
            added="a person may remove the active member, which ends its turn",
        ),
        Move(
            source="waiting",
            target="idle",
            trigger="removed_from_channel",
            added="a person may remove a member that waits",
        ),
        Move(
            source="active",
            target="waiting",
            trigger="human_interrupts",
            added="with `--interrupt interrupt` the turn pauses, because a person has priority",
        ),
        Move(
            source="active",
            target="queued",
            trigger="step_failed",
            added="an error of a driven member ends its turn, and only repeated errors are a crash",
        ),
        Move(
            source="active",
            target="queued",
            trigger="human_override",
            added="a person may end a turn that leads nowhere",
        ),
        *(
            Move(source=state, target="offline", trigger="disabled", added=_DISABLED)
            for state in ("idle", "queued", "active", "waiting")
        ),
        Move(
            source="offline",
            target="idle",
            trigger="enabled",
            added="a person may enable a disabled member again",
        ),
    ),
)

NUMBERED = "@"
"""The separator between the name of a channel and its number; no name contains it."""

CHANNEL = Machine(
    name="channel",
    first=ChannelState.OPEN,
    moves=(Move(source="open", target="closed", trigger="closed"),),
)

POST = Machine(name="post", first="posted", moves=())


HeldValues: TypeAlias = tuple[str, str, float, *tuple[str, ...]]
"""Sender, text, time and members of a held post, as they are stored."""


class HeldPost(NamedTuple):
    """The text of a person that waits for the end of a turn, and the members it is for."""

    sender: str
    text: str
    at: float
    to: tuple[str, ...]

    @property
    def values(self) -> HeldValues:
        """The plain values that are stored: the members come last, one by one."""
        return (self.sender, self.text, self.at, *self.to)


@frozen
class ChannelOptions:
    """`rounds` is how many turns each member may have until a person posts; None is no limit."""

    mode: str = Mode.TURN_BASED
    order: str = TurnOrder.ROUND_ROBIN
    interrupting: str = Interrupting.INJECT
    topic: str = ""
    rounds: int | None = None
    timeout_s: float = 60.0
    wait_timeout_s: float = 300.0
    heartbeat_s: float = 120.0
    announces_timeouts: bool = True
    announces_disconnects: bool = True
    detects_turn_end: bool = False
    silence_s: float = 10.0
    council: bool = False


@frozen
class Channel(ChannelOptions):
    """`queue` are the members that wait for a turn, in order; `holder` is active or waiting.

    The id of a name's first channel is the name; a later one, once that is closed, has a number.
    `sequence` is the number of the last post. `held` are the values of posts that wait for the end
    of the turn. `decision` is the decision of a council, `agreed` whether all agreed; `task` is the
    task that waits for it.
    """

    kind: ClassVar[str] = "channel"
    machine: ClassVar[Machine] = CHANNEL

    id: str
    state: str = ChannelState.OPEN
    members: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    holder: str = ""
    sequence: int = 0
    held: tuple[HeldValues, ...] = ()
    decision: str = ""
    agreed: bool = False
    task: str = ""
    opened_at: float = 0.0
    closed_at: float | None = None

    @property
    def is_open(self) -> bool:
        return self.state == ChannelState.OPEN

    @property
    def held_posts(self) -> tuple[HeldPost, ...]:
        return tuple(HeldPost(who, text, at, tuple(to)) for who, text, at, *to in self.held)

    @property
    def name(self) -> str:
        return self.id.partition(NUMBERED)[0]

    @property
    def number(self) -> int:
        """The number of this channel among those of its name, from 1 on."""
        return int(self.id.partition(NUMBERED)[2] or 1)


@frozen
class Member:
    """One agent in one channel.

    `assigned` means that it is queued as soon as it is online; while a person has `disabled` it, it
    stays offline. `turn` numbers all its turns, `turns` counts those since the last post of a
    person. `given` is the last post that it was given, and `heard` are those that it was given out
    of order; `acknowledged` is the last one that it certainly read: a step ended well, or a later
    call came. `was_late` means that its last turn timed out, so that its answer may still come.
    `speaking` is true from before its step starts until the end of that step is recorded,
    `owes_answer` until a step ended well; `housed` means that it has a worktree.
    """

    kind: ClassVar[str] = "member"
    machine: ClassVar[Machine] = TURN

    id: str
    channel: str
    name: str
    way: str = Way.CONNECTED
    agent_kind: str = ""
    state: str = TurnState.OFFLINE
    assigned: bool = True
    disabled: bool = False
    priority: int = 5
    timeout_s: float | None = None
    turn: int = 0
    turns: int = 0
    turn_ends_at: float | None = None
    said_at: float | None = None
    was_late: bool = False
    waits_for: str = ""
    wait_ends_at: float | None = None
    heartbeat_at: float = 0.0
    given: int = 0
    heard: tuple[int, ...] = ()
    acknowledged: int = 0
    speaking: bool = False
    owes_answer: bool = False
    attempt: int = 0
    session: str = ""
    session_number: int = 0
    session_used: bool = False
    fresh_retry: bool = False
    housed: bool = False
    errors: int = 0
    last_error: str = ""
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def is_driven(self) -> bool:
        return self.way == Way.DRIVEN

    @property
    def takes_part(self) -> bool:
        return self.state in TAKING_PART

    @property
    def is_late(self) -> bool:
        """Whether its step has outlasted its turn.

        Until that step ends, the member cannot use another turn.
        """
        return self.speaking and self.state == TurnState.QUEUED


@frozen
class Post:
    """One post in a channel; `to` names the members that it is for, and is empty for all."""

    kind: ClassVar[str] = "post"
    machine: ClassVar[Machine] = POST

    id: str
    channel: str
    sequence: int
    sender: str
    text: str
    at: float
    state: str = "posted"
    author: str = Author.AGENT
    to: tuple[str, ...] = ()
    late: bool = False

    @property
    def by_line(self) -> str:
        """The author and the addressees; crew's own posts are not marked as a person's."""
        is_person = self.author == Author.PERSON and self.sender != CREW
        to = f" to {', '.join(self.to)}" if self.to else ""
        return f"{self.sender}{' (a person)' if is_person else ''}{to}{', late' * self.late}"

    @property
    def shown(self) -> str:
        """The post as an agent reads it, in its prompt or during a turn."""
        return attributed(f"#{self.sequence} {self.by_line}", self.text)


def member_id(channel: str, name: str) -> str:
    return f"{channel}/{name}"


def post_id(channel: str, sequence: int) -> str:
    return f"{channel}/{sequence}"
