"""The row of a merge queue: the tasks that wait for one target branch, and their test results.

The candidate of length n is the base of the queue with the first n tasks merged in. Next to the
queue there may be trials, each a stack of tasks on a green base of its own.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple, TypeAlias

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine

Entry: TypeAlias = tuple[str, str]
"""A task and the commit that it offers."""

MOST_OFFERED = 100
"""The commits that are remembered after a rewrite; nobody rewrites a branch that often."""

OVERTAKEN_LIMIT = 5
"""How often in a row a target may move before crew reports that delivery cannot keep up."""


class Candidate(NamedTuple):
    """A task in the queue, the commit it offers, and the merge commit that would become the tip."""

    task: str
    head: str
    commit: str


class TestResult(NamedTuple):
    """The gate's result for a candidate; a red one is tested twice before it counts."""

    commit: str
    passed: bool
    times: int
    notes: str


Chain: TypeAlias = tuple[Candidate, ...]
"""Each merged onto the one before it."""


class Trial(NamedTuple):
    """Tasks that are tested next to the queue, on a proven base."""

    base: str
    chain: Chain

    @classmethod
    def from_values(cls, values: tuple[str, tuple[tuple[str, str, str], ...]]) -> "Trial":
        base, chain = values
        return cls(base, tuple(map(Candidate._make, chain)))


class Stack(NamedTuple):
    """Tasks merged one on top of the other onto a base; a trial's base is always proven."""

    base: str
    chain: Chain
    proven: bool = True

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits by length: the base, the base with the first task, with the first two, ..."""
        return (self.base, *(candidate.commit for candidate in self.chain))

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple((candidate.task, candidate.head) for candidate in self.chain)


NO_MACHINE = Machine(name="line", first="open", moves=())


@frozen
class MergeQueue:
    """`base` is what the queue builds on: the integration tip with the commits of others.

    `base_proven` is false if crew itself had to merge those in, because the result needs a test.
    `held` are tasks that conflict with a task before them, which may still fail, or wait for a
    trial; `cleared` are those in the queue that passed one. `target_seen` is where the target was
    when the queue was built; `upstream` means that it has moved since. `overtaken` counts how often
    it moved since the last delivery, before landed work was tested together with it. `is_shown`
    means that the last delivery changed the files of a checkout, which happens rarely. `placed` are
    commits of the queue under the ids that they had before crew signed them, or what is below them.

    `last_seen` is the target as crew saw it last, whatever it did there. A target without it was
    rewritten by a person; while crew follows that, `rewriting` is what the target had. Then
    `superseded` is a merge commit with the content of the target and, among its parents, everything
    that the target lost: work that contains any of that cannot be merged as it is. `given_up` are
    the integration tips of that time, whose undelivered work lands anew; `offered` are commits that
    agents were asked to merge since. `dropped` are the tasks whose work is gone, each with what
    `git cherry-pick` needs to bring it back, until a person has seen them.
    """

    kind: ClassVar[str] = "line"
    machine: ClassVar[Machine] = NO_MACHINE
    items: ClassVar[Mapping[str, Callable[..., object]]] = {
        "chain": Candidate._make,
        "trials": Trial.from_values,
        "results": TestResult._make,
    }

    id: str
    state: str = "open"
    integration: str = ""
    base: str = ""
    base_proven: bool = True
    chain: Chain = ()
    trials: tuple[Trial, ...] = ()
    held: tuple[Entry, ...] = ()
    cleared: tuple[Entry, ...] = ()
    results: tuple[TestResult, ...] = ()
    failure_rate: float = 0.1
    delivered: str = ""
    delivered_at: float | None = None
    is_shown: bool = True
    waiting: str = ""
    remedy: str = ""
    upstream: bool = False
    overtaken: int = 0
    target_seen: str = ""
    last_seen: str = ""
    rewriting: str = ""
    superseded: str = ""
    given_up: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    dropped: tuple[Entry, ...] = ()
    rewritten_at: float | None = None
    placed: tuple[tuple[str, str], ...] = ()

    @property
    def last_known(self) -> str:
        """The target as crew saw it last. Rows of earlier versions have only what it delivered."""
        return self.last_seen or self.delivered

    @property
    def main(self) -> Stack:
        return Stack(self.base, self.chain, self.base_proven)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The queue itself, then its trials."""
        return (self.main, *(Stack(trial.base, trial.chain) for trial in self.trials))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates in the queue, in order, then those in trials."""
        return (*self.chain, *(one for trial in self.trials for one in trial.chain))

    @property
    def entries(self) -> frozenset[Entry]:
        """Every (task, head) that the queue was built from."""
        return frozenset((c.task, c.head) for c in self.candidates) | frozenset(self.held)

    @property
    def is_outrun(self) -> bool:
        """Whether the target gets commits faster than they are tested together with landed work."""
        return self.overtaken >= OVERTAKEN_LIMIT

    def name_of(self, commit: str) -> str:
        """The id that a commit of the queue has now."""
        return dict(self.placed).get(commit, commit)

    def result_of(self, commit: str) -> TestResult | None:
        return next((result for result in self.results if result.commit == commit), None)

    def commit_at(self, length: int) -> str:
        return self.chain[length - 1].commit if length else self.base
