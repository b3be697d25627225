"""The settings that decisions and plans depend on: limits, waits and slots, as plain values."""

from collections.abc import Mapping
from dataclasses import field

from crew.domain.kernel.frozen import frozen


@frozen
class Rules:
    """The settings, with their defaults.

    `movable_sessions` are the agent kinds whose CLI resumes a session in another folder.
    `default_kind` is the agent kind that slots follow, `missing` the programs that are not
    installed, by the kinds that need them; `providers` names every kind that is configured.
    `ask_patience_s` is how long a step waits for an answer: as long as models keep its prompt warm.
    """

    max_steps: int = 20
    max_rounds: int = 20
    same_complaint_limit: int = 3
    backoff_s: float = 2.0
    max_backoff_s: float = 60.0
    stuck_after: int = 5
    reset_on_recovery: bool = False
    test_slots: int = 1
    longest_queue: int = 64
    one_at_a_time: bool = False
    conflicts_to_agent: bool = True
    deliver_every_s: float = 10.0
    delivery_retry_s: float = 2.0
    keep_worktrees: bool = False
    rest_after_kill_s: float = 10.0
    done_word: str = "DONE"
    default_kind: str = ""
    providers: Mapping[str, str] = field(default_factory=dict)
    movable_sessions: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    stagger_s: float = 5.0
    signal_grace_s: float = 30.0
    ask_patience_s: float = 300.0
    interrupt_grace_s: float = 5.0
    reviewers: tuple[str, ...] = ()
    min_reviews: int = 0
    skip_review: bool = False
    merge_completed: bool = False

    def provider(self, kind: str) -> str:
        """The provider behind a configured agent kind."""
        return self.providers.get(kind, kind)

    def is_configured(self, kind: str) -> bool:
        """Whether this agent kind is configured; true for all if no configuration is known."""
        return not self.providers or kind in self.providers

    def can_use(self, kind: str) -> bool:
        """Whether a step of this agent kind can be started."""
        return kind not in self.missing and self.is_configured(kind)

    def reviews_needed(self, *, skip: bool | None, reviewers: tuple[str, ...] | None = None) -> int:
        """How many reviewers must pass a commit; the task's own wish wins over the config."""
        if self.skip_review if skip is None else skip:
            return 0
        return max(self.min_reviews, len(self.reviewers if reviewers is None else reviewers))

    def backoff(self, errors: int) -> float:
        """The pause after an error: 2, 4, 8, 16, 32 seconds; never more than the cap."""
        return float(min(self.max_backoff_s, self.backoff_s * 2 ** (errors - 1)))
