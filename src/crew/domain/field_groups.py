"""Fields of a row that change together, as types; `row_changes` has all fields of each row.

Nothing of this is loaded when crew runs.
"""

from typing import TypedDict

from crew.domain.rows.terms import Terms


class SourceFields(TypedDict, total=False):
    """What the source decides about a task."""

    title: str
    deps: tuple[str, ...]
    priority: int
    wants_agent: str | None
    target: str
    issue: int | None
    skip_review: bool | None
    terms: Terms
    corrupt: bool
    quest: str
    missing_at: float | None
    gone: bool


class RunWishes(TypedDict, total=False):
    """What one start of a task may set otherwise than the config."""

    model: str
    told: str
    max_rounds: int
    done_word: str
    proof: str
    reviewers: tuple[str, ...] | None


class MergeAside(TypedDict, total=False):
    """What a run records about the merge that its agent has to make."""

    merge_commit: str
    merge_head: str
    merge_paths: tuple[str, ...]
    merge_notes: str
    merge_tries: int
    merge_kept: str
    merge_refused: str


class SentBackFields(MergeAside, total=False):
    max_rounds: int
    unjudged: tuple[tuple[str, str, bool, str], ...]


class ScreenFields(TypedDict, total=False):
    """What a terminal records about the screen of its program."""

    held: bool
    dialog: str


class MessageFields(TypedDict, total=False):
    """What a message records about its way to a step."""

    task: str
    sender: str
    text: str
    step: str
    given_at: float | None
    read_at: float | None


class StepSession(TypedDict, total=False):
    """What a run records about its session and about the prompt of its next step."""

    session: str
    session_number: int
    session_used: bool
    fresh_retry: bool
    ask: str
    notes: str


class StepUse(TypedDict, total=False):
    """What an agent records about the use of its last step."""

    last_step_at: float | None
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class ManagerUse(TypedDict, total=False):
    """What a manager has used in the steps that ended."""

    steps: int
    input_tokens: int
    output_tokens: int
    reported_usd: float | None


class MemberChanges(TypedDict, total=False):
    """What may change of a member of a channel: all but its channel and its name."""

    way: str
    agent_kind: str
    assigned: bool
    disabled: bool
    priority: int
    timeout_s: float | None
    turn: int
    turns: int
    turn_ends_at: float | None
    said_at: float | None
    was_late: bool
    waits_for: str
    wait_ends_at: float | None
    heartbeat_at: float
    given: int
    heard: tuple[int, ...]
    acknowledged: int
    speaking: bool
    owes_answer: bool
    attempt: int
    session: str
    session_number: int
    session_used: bool
    fresh_retry: bool
    housed: bool
    errors: int
    last_error: str
    steps: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
