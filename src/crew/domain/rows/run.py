"""The row of a run: one try at a task, as rounds of work and review."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move


class RunState(StrEnum):
    INIT = "init"
    WORKING = "working"
    REVIEWING = "reviewing"
    COMPLETE = "complete"
    FAILED = "failed"


LIVE = frozenset({RunState.INIT, RunState.WORKING, RunState.REVIEWING})


class Ask(StrEnum):
    """Why the agent is called; each value has its own prompt."""

    FIRST = "first"
    CONTINUE = "continue"
    RED_GATE = "red_gate"
    REFUSED = "refused"
    NESTED = "nested"
    UNPUSHED = "unpushed"
    OFF_HEAD = "off_head"
    UNCOMMITTED = "uncommitted"
    NOTHING_COMMITTED = "nothing_committed"
    CONFLICT = "conflict"
    LOST_SIDE = "lost_side"
    RESUMED = "resumed"
    REVIEW = "review"
    CHANGES = "changes"
    PARTIAL = "partial"
    ANSWER = "answer"
    ROLE = "role"
    FOLLOWED = "followed"
    NO_PLAN = "no_plan"
    NO_SIGNAL = "no_signal"
    UNFINISHED = "unfinished"


NEW_SESSION = frozenset({Ask.FIRST, Ask.RESUMED, Ask.PARTIAL, Ask.ROLE})
"""Asks that start a new session, which knows nothing yet."""


RUN = Machine(
    name="run",
    first=RunState.INIT,
    moves=(
        Move(source="init", target="working", trigger="prepared", meaning="agents started"),
        Move(source="init", target="failed", trigger="failed", meaning="could not start"),
        Move(source="working", target="reviewing", trigger="done", meaning="iteration finished"),
        Move(source="working", target="reviewing", trigger="step_limit", meaning="20 steps"),
        Move(source="working", target="complete", trigger="approved", meaning="nothing to check"),
        Move(source="working", target="failed", trigger="failed", meaning="error or max rounds"),
        Move(
            source="working",
            target="reviewing",
            trigger="merge_accepted",
            added="a person overrules the check that a merge keeps both sides; the others follow",
        ),
        Move(source="reviewing", target="working", trigger="sent_back", meaning="more work"),
        Move(source="reviewing", target="complete", trigger="approved", meaning="PASS"),
        Move(source="reviewing", target="failed", trigger="failed", meaning="unrecoverable"),
        Move(
            source="reviewing",
            target="working",
            trigger="next_role",
            added="in a quest the next role continues where one has finished",
        ),
        Move(
            source="complete",
            target="working",
            trigger="sent_back",
            added="the merge queue found a conflict or a red gate, and the same session continues",
        ),
        Move(
            source="complete",
            target="failed",
            trigger="failed",
            added="sent back by the merge queue with no round left",
        ),
    ),
)


PERSISTED = {
    RunState.INIT: "submitted",
    RunState.WORKING: "working",
    RunState.REVIEWING: "reviewing",
    RunState.COMPLETE: "completed",
    RunState.FAILED: "failed",
}
"""The names of the states in a run's manifest."""


@frozen
class Run:
    """`stepping` is true from before a step starts until its end is recorded.

    `epoch` is the runner that started the step; the step of another runner was interrupted.
    `session_used` means that the agent's CLI may know the session already. `out_of_steps` means
    that the step limit ended the round, and not the agent. `complaint` is why it was last sent
    back, `complaints` how many times in a row for that reason. `told` is the text that a person
    added to the prompt. `stopping` means that its task was stopped by name, so that it does not
    return to the queue. `merges` means that the task joins the merge queue as soon as its work at
    the terminal has passed the checks.

    `merge_commit` is the commit to merge after a conflict in `merge_paths`, `merge_notes` describe
    both sides to the agent, `merge_tries` counts how often it was asked to merge. `merge_kept` is a
    commit with that merge that lost nothing of either side, so that later commits may change all of
    it; `merge_refused` is the last one that lost something, `merge_accepted` the one that a person
    takes as it is. `notes` are ready
    for a prompt: text of others is quoted in them. `verdicts` are those of reviewers: the commit,
    the reviewer, and whether it passed. `unjudged` are those of the review under way, with the
    notes of each FAIL: they stand while crew waits for another reviewer, or after a crash.

    `signal` is what the step under way has reported, `signal_notes` the text that came with it;
    `question` is the one that a person must answer before the run continues. `role` acts in a
    quest; `signal_role` is the role that must act first, as the step asked, and `signal_resume`
    whether its own session continues after that. `done_word`, `proof` and `reviewers` are terms of
    this run that win over the config.
    """

    kind: ClassVar[str] = "run"
    machine: ClassVar[Machine] = RUN

    id: str
    task: str
    number: int = 1
    agent: str | None = None
    agent_kind: str = ""
    model: str = ""
    told: str = ""
    state: str = RunState.INIT
    history: tuple[str, ...] = (RunState.INIT,)
    round: int = 1
    max_rounds: int = 20
    step: int = 0
    steps: int = 0
    attempt: int = 0
    stepping: bool = False
    epoch: int = 0
    session: str = ""
    session_number: int = 0
    session_used: bool = False
    fresh_retry: bool = False
    base: str = ""
    ask: str = Ask.FIRST
    notes: str = ""
    out_of_steps: bool = False
    complaint: str = ""
    complaints: int = 0
    merge_commit: str = ""
    merge_head: str = ""
    merge_paths: tuple[str, ...] = ()
    merge_notes: str = ""
    merge_tries: int = 0
    merge_kept: str = ""
    merge_refused: str = ""
    merge_accepted: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    error: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    stopping: bool = False
    merges: bool = False
    signal: str = ""
    signal_notes: str = ""
    question: str = ""
    role: str = ""
    signal_role: str = ""
    signal_resume: bool = True
    done_word: str = ""
    proof: str = ""
    reviewers: tuple[str, ...] | None = None
    verdicts: tuple[tuple[str, str, bool], ...] = ()
    unjudged: tuple[tuple[str, str, bool, str], ...] = ()

    def with_move(self, to: str) -> dict[str, tuple[str, ...]]:
        """The fields that change together with the state: the history of states."""
        return {"history": (*self.history, to)}

    @property
    def ended_unfinished(self) -> bool:
        """Whether its last round ended at the step limit, and the agent never said it was done."""
        return self.out_of_steps and self.state not in {RunState.INIT, RunState.WORKING}

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def step_key(self) -> str:
        """The key of the step under way or the last one; all attempts have the same key."""
        return f"{self.id}/{self.round}/{self.step}"
