"""(g) Merges an hour of the merge queue in virtual time, beside the figures of earlier queues.

The real decisions (`crew.domain.merging.queue_search`) run against a queue that never gets short: a
test takes five minutes, a task breaks the build with a fixed chance, tests never lie, building a
queue takes no time. A prefix is red when a task in it is bad; a task that is proven bad leaves.
"""

import heapq
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bench.sizes import Size
from bench.tables import Figure, table, title
from crew.domain.merging.queue_search import (
    commits_to_test,
    culprit,
    layout,
    learned_rate,
    needs_layout,
    prefix_to_land,
    tested,
)
from crew.domain.rows.merge_queue import Candidate, Chain, Entry, MergeQueue, TestResult, Trial
from crew.domain.rules import Rules

TEST_S = 300.0
HOUR_S = 3600.0
SEED = 1

SIMULATED_BEFORE = {
    (0.01, 1): (11.7, 54.0, 11.7, 80.6, 147.0),
    (0.01, 4): (11.7, 54.0, 44.4, 177.0, 588.0),
    (0.10, 1): (10.5, 14.3, 10.5, 21.1, 23.0),
    (0.10, 4): (10.5, 14.3, 35.4, 45.4, 92.0),
    (0.10, 8): (10.5, 14.3, 56.3, 107.0, 184.0),
    (0.30, 4): (8.3, 6.2, 21.5, 23.9, 38.0),
    (0.30, 8): (8.3, 6.2, 25.0, 55.8, 76.0),
}
"""By failure rate and slots: serial, batch and bisect, speculative with one slot a task, combined,
and the bound of group testing; simulated before crew was built, one red test counting as proof."""


@dataclass(slots=True, kw_only=True)
class Queue:
    """The line of a target with somebody always waiting."""

    rules: Rules
    failure_chance: float
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))
    now: float = 0.0
    landed: int = 0
    queue: MergeQueue = field(
        default_factory=lambda: MergeQueue(id="main", base="0", integration="0")
    )
    waiting: list[str] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    red: set[str] = field(default_factory=set)
    merges: dict[tuple[str, str], str] = field(default_factory=dict)
    tests: list[tuple[float, str]] = field(default_factory=list)
    tasks: int = 0

    def run(self, hours: int) -> float:
        """Merges an hour."""
        while self.now < hours * HOUR_S:
            self._settle()
            under_test = frozenset(commit for _, commit in self.tests)
            for commit in commits_to_test(self.queue, self.rules, busy=under_test):
                heapq.heappush(self.tests, (self.now + TEST_S, commit))
            self._end_a_test()
        return self.landed / hours

    def _settle(self) -> None:
        """What crew does at once: send back, land, and fill the line up."""
        while True:
            if (found := culprit(self.queue)) and found[0]:
                self._send_back(found[0].task)
            elif (length := prefix_to_land(self.queue)) is not None:
                self._land(length)
            elif len(self.waiting) < self.rules.longest_queue:
                self._refill()
            elif needs_layout(self.queue, rules=self.rules):
                pass
            else:
                return
            self._assemble()

    def _send_back(self, task: str) -> None:
        self.waiting.remove(task)
        rate = learned_rate(self.queue.failure_rate, failed=1)
        self.queue = replace(self.queue, failure_rate=rate)

    def _land(self, length: int) -> None:
        commit = self.queue.commit_at(length)
        landed = {candidate.task for candidate in self.queue.chain[:length]}
        rate = learned_rate(self.queue.failure_rate, passed=length)
        self.queue = replace(
            self.queue,
            base=commit,
            integration=commit,
            chain=self.queue.chain[length:],
            failure_rate=rate,
        )
        self.waiting = [task for task in self.waiting if task not in landed]
        self.landed += length

    def _refill(self) -> None:
        while len(self.waiting) < self.rules.longest_queue:
            self.tasks += 1
            task = f"t{self.tasks}"
            self.waiting.append(task)
            if self.rng.random() < self.failure_chance:
                self.bad.add(task)

    def _assemble(self) -> None:
        """The same merge makes the same commit, so its test results still count."""
        waiting = [(task, task) for task in self.waiting]
        wanted = layout(self.queue, waiting, rules=self.rules, proven=True)
        chain = self._stack(self.queue.base, wanted.main)
        trials = tuple(
            Trial(base or self.queue.base, self._stack(base or self.queue.base, entries))
            for base, entries in wanted.trials
        )
        queue = replace(self.queue, chain=chain, trials=trials, cleared=wanted.cleared)
        current = {candidate.commit for candidate in queue.candidates}
        results = tuple(r for r in self.queue.results if r.commit in current)
        self.queue = replace(queue, results=results)

    def _stack(self, base: str, entries: Iterable[Entry]) -> Chain:
        chain, tip = [], base
        for task, head in entries:
            merged = self.merges.setdefault((tip, task), f"c{len(self.merges) + 1}")
            if tip in self.red or task in self.bad:
                self.red.add(merged)
            chain.append(Candidate(task, head, merged))
            tip = merged
        return tuple(chain)

    def _end_a_test(self) -> None:
        self.now, commit = heapq.heappop(self.tests)
        result = TestResult(commit=commit, passed=commit not in self.red, times=1, notes="")
        self.queue = replace(self.queue, results=tested(self.queue, result))


def measure(size: Size) -> list[Figure]:
    title("(g) Merges an hour in virtual time (tests take 5 minutes, the line never gets short)")
    rows, gains = [], []
    for chance, slots in ((p, k) for p in (0.01, 0.10, 0.30) for k in (1, 4, 8)):
        hours = max(1, size.queue_hours // slots)  # about as many tests in every row
        serial = _merges_per_hour(chance, slots, hours=hours, one_at_a_time=True)
        crew = _merges_per_hour(chance, slots, hours=hours)
        before = SIMULATED_BEFORE.get((chance, slots))
        gains.append((chance, slots, crew / serial))
        rows.append(
            (
                f"{chance:.0%}",
                str(slots),
                f"{serial:.1f}",
                f"{crew:.1f}",
                f"{crew / serial:.1f}",
                *(f"{value:g}" for value in before or ()),
                *("" if before else "-" for _ in range(0 if before else 5)),
            )
        )
    head = ("failures", "slots", "serial", "crew", "gain")
    table((*head, "| serial", "batch+bisect", "spec.=slots", "combined", "limit"), rows)
    return [
        Figure(name=f"queue, {p:.0%} failures, {k} slots: / serial", measured=g, unit="times")
        for p, k, g in gains
        if (p, k) in {(0.01, 1), (0.10, 4), (0.30, 8)}
    ]


def _merges_per_hour(
    chance: float, slots: int, *, hours: int, one_at_a_time: bool = False
) -> float:
    rules = Rules(test_slots=slots, one_at_a_time=one_at_a_time)
    return Queue(rules=rules, failure_chance=chance).run(hours)
