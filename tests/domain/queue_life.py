"""The life of a merge line, round by round, with a gate that may flake; it checks as it goes."""

from dataclasses import dataclass, field, replace
from random import Random

from crew.domain.merging.queue_search import (
    commits_to_test,
    culprit,
    layout,
    learned_rate,
    needs_layout,
    prefix_to_land,
)
from crew.domain.merging.queue_search import tested as with_result
from crew.domain.rows.merge_queue import Candidate, MergeQueue, Trial
from crew.domain.rows.merge_queue import TestResult as Result
from crew.domain.rules import Rules
from domain.scenes import queue_of


def stacked(base, entries):
    """A commit is named by what is in it."""
    chain, commit = [], base
    for id_, head in entries:
        commit += f"+{id_}"
        chain.append(Candidate(id_, head, commit))
    return tuple(chain)


@dataclass
class Life:
    """A line with tasks that come, a gate that may flake, and the record of what was seen.

    A commit is named by what is in it, so a task that leaves renames all commits behind it.
    """

    rules: Rules
    random: Random
    bad: set[str]
    flake_rate: float = 0.0
    finish_all: bool = True
    waiting: list[str] = field(default_factory=list)
    queue: MergeQueue = field(default_factory=queue_of)
    running: set[str] = field(default_factory=set)
    landed: list[str] = field(default_factory=list)
    blamed: dict[str, Result] = field(default_factory=dict)
    tests_of: dict[str, list[bool]] = field(default_factory=dict)
    green: set[str] = field(default_factory=lambda: {queue_of().base})
    rounds: int = 0

    def tasks_in(self, commit: str) -> list[str]:
        return commit.split("+")[1:]

    def assemble(self) -> None:
        waiting = [(id_, f"head-{id_}") for id_ in self.waiting[: self.rules.longest_queue]]
        proven = self.queue.base_proven
        wanted = layout(self.queue, waiting, rules=self.rules, proven=proven)
        placed = [*wanted.main, *wanted.later, *(e for _, group in wanted.trials for e in group)]
        assert sorted(placed) == sorted(waiting), "somebody stands nowhere, or twice"
        trials = [(base or self.queue.base, group) for base, group in wanted.trials]
        self.queue = replace(
            self.queue,
            chain=stacked(self.queue.base, wanted.main),
            trials=tuple(Trial(base, stacked(base, group)) for base, group in trials),
            held=wanted.later,
            cleared=wanted.cleared,
        )
        commits = {self.queue.base, *(candidate.commit for candidate in self.queue.candidates)}
        known = tuple(r for r in self.queue.results if r.commit in commits)
        self.queue = replace(self.queue, results=known)
        assert not needs_layout(self.queue, rules=self.rules), "the queue is never at rest"

    def settle(self) -> None:
        """Land and blame until neither is possible."""
        self.assemble()
        while self._land() or self._blame():
            self.assemble()

    def _land(self) -> bool:
        length = prefix_to_land(self.queue)
        if length is None:
            return False
        tip = self.queue.commit_at(length)
        result = self.queue.result_of(tip)
        assert result is not None, "an untested commit landed"
        assert result.passed, "a red commit landed"
        for candidate in self.queue.chain[:length]:
            self.landed.append(candidate.task)
            self.waiting.remove(candidate.task)
        rate = learned_rate(self.queue.failure_rate, passed=length)
        self.queue = replace(
            self.queue,
            base=tip,
            integration=tip,
            base_proven=True,
            chain=self.queue.chain[length:],
            failure_rate=rate,
        )
        return True

    def _blame(self) -> bool:
        found = culprit(self.queue)
        if found is None:
            return False
        candidate, result = found
        if candidate is None:
            self.upstream()
            return True
        (stack,) = [s for s in self.queue.stacks if candidate in s.chain]
        before = stack.commits[stack.chain.index(candidate)]
        assert before in self.green, "blamed on top of something that is not green"
        self.waiting.remove(candidate.task)
        self.blamed[candidate.task] = result
        rate = learned_rate(self.queue.failure_rate, failed=1)
        self.queue = replace(self.queue, failure_rate=rate)
        return True

    def upstream(self) -> None:
        """Somebody else's commits are merged below the line: all commits change."""
        self.queue = replace(
            self.queue, base=f"u{self.rounds}{self.queue.base}", base_proven=False, results=()
        )

    def round(self) -> None:
        """One planning: start what the free slots should test, then some tests end."""
        self.rounds += 1
        self.settle()
        new = commits_to_test(self.queue, self.rules, busy=frozenset(self.running))
        assert len(set(new)) == len(new)
        assert not self.running & set(new)
        self.running |= set(new)
        assert len(self.running) <= self.rules.test_slots
        assert self.running or not self.waiting, "tasks wait and nothing is tested"
        ended = sorted(self.running)
        if not self.finish_all and ended:
            ended = self.random.sample(ended, self.random.randint(1, len(ended)))
        for commit in ended:
            self._end_test(commit)

    def _end_test(self, commit: str) -> None:
        passed = not self.bad & set(self.tasks_in(commit))
        passed = passed and self.random.random() >= self.flake_rate
        self.running.discard(commit)
        self.tests_of.setdefault(commit, []).append(passed)
        self.green |= {commit} if passed else set()
        result = Result(commit=commit, passed=passed, times=0, notes="")
        self.queue = replace(self.queue, results=with_result(self.queue, result))

    def live(self, *, arrivals: list[list[str]], upstream_rate: float = 0.0) -> None:
        """Until nobody waits; `upstream_rate` is how often the target moves as tasks come."""
        limit = 20 * (sum(map(len, arrivals)) + len(arrivals) + 5)
        for new in arrivals:
            self.waiting += new
            if self.random.random() < upstream_rate:
                self.upstream()
            self.round()
        while self.waiting or not self.queue.base_proven:
            assert self.rounds < limit, "the line does not come to an end"
            self.round()
            self.settle()
