"""The merge queue, one line per target branch: who waits, which prefixes to test, what may land.

Candidates stand in a line; the candidate of length n is the target with the first n tasks merged
in. Free test slots try prefixes at the quantiles of where the first failure is to be expected; the
longest green prefix lands; a red prefix one longer than a green one names the culprit.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from crew.domain.machine import Machine
from crew.domain.rules import Rules


class Candidate(NamedTuple):
    """A task in the line, the commit it offers, and the merge commit that would become the tip."""

    task: str
    head: str
    commit: str


class TestResult(NamedTuple):
    """What the gate said of a candidate; a red one is tested twice before it counts."""

    commit: str
    passed: bool
    times: int
    notes: str


NO_MACHINE = Machine(name="line", first="open", moves=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`base` is what the line stands on: the integration tip with everybody else's commits.

    `base_proven` is false when crew itself had to merge those in: the result needs a test.
    `held` are tasks that conflict with somebody before them, who may still fail.
    `target_seen` is where the target stood when the line was built; `upstream`: it moved since.
    """

    kind: ClassVar[str] = "line"
    machine: ClassVar[Machine] = NO_MACHINE

    id: str
    state: str = "open"
    integration: str = ""
    base: str = ""
    base_proven: bool = True
    chain: tuple[tuple[str, str, str], ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, bool, int, str], ...] = ()
    failure_rate: float = 0.1
    delivered: str = ""
    delivered_at: float | None = None
    waiting: str = ""
    remedy: str = ""
    upstream: bool = False
    target_seen: str = ""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(Candidate(*entry) for entry in self.chain)

    @property
    def entries(self) -> frozenset[tuple[str, str]]:
        """Every (task, head) the line was built from."""
        return frozenset([(task, head) for task, head, _ in self.chain]) | frozenset(self.held)

    def result_of(self, commit: str) -> TestResult | None:
        return next((TestResult(*r) for r in self.results if r[0] == commit), None)

    def commit_at(self, length: int) -> str:
        return self.chain[length - 1][2] if length else self.base


def longest_green(line: Line) -> int:
    """The longest prefix that may land; -1 when not even the base is proven."""
    for length in range(len(line.chain), 0, -1):
        result = line.result_of(line.commit_at(length))
        if result and result.passed:
            return length
    if line.base_proven:
        return 0
    base = line.result_of(line.base)
    return 0 if base and base.passed else -1


def shortest_red(line: Line) -> int:
    """The shortest prefix known to be red beyond the green ones; one past the end if none is."""
    green = longest_green(line)
    for length in range(green + 1, len(line.chain) + 1):
        result = line.result_of(line.commit_at(length))
        if result and not result.passed:
            return length
    return len(line.chain) + 1


def prefix_to_land(line: Line) -> int | None:
    """How many tasks may land now; 0 lands somebody else's commits alone."""
    green = longest_green(line)
    if green > 0:
        return green
    lands_base = green == 0 and not line.chain and line.base != line.integration
    return 0 if lands_base else None


def culprit(line: Line) -> tuple[Candidate | None, TestResult] | None:
    """The task that breaks the line, proven by two red tests right after a green prefix.

    None in place of the task means that the base itself is red.
    """
    green, red = longest_green(line), shortest_red(line)
    if red != green + 1 or red > len(line.chain):
        return None
    result = line.result_of(line.commit_at(red))
    if result is None or result.times < 2:
        return None
    return (line.candidates[red - 1] if red else None, result)


def commits_to_test(line: Line, rules: Rules, *, busy: frozenset[str]) -> tuple[str, ...]:
    """What the free slots should test now; `busy` are the commits under test already."""
    free = rules.test_slots - len(busy)
    if free <= 0:
        return ()
    wanted = [line.commit_at(length) for length in _lengths(line, rules)]
    return tuple(commit for commit in wanted if commit not in busy)[:free]


def _lengths(line: Line, rules: Rules) -> list[int]:
    green, red = longest_green(line), shortest_red(line)
    if green == len(line.chain):
        return []
    if red == green + 1:
        return [red] if red <= len(line.chain) and culprit(line) is None else []
    if rules.one_at_a_time:
        return [green + 1]
    return _quantiles(green, red, len(line.chain), rules=rules, p=line.failure_rate)


def _quantiles(green: int, red: int, length: int, *, rules: Rules, p: float) -> list[int]:
    """Prefixes at the quantiles of the first failure, between what is green and what is red."""
    slots = rules.test_slots
    last = min(red - 1, length)
    lengths: list[int] = []
    for slot in range(1, slots + 1):
        share = slot / (slots + 1)
        ahead = math.ceil(math.log(1 - share) / math.log(1 - p))
        if red <= length:
            ahead = min(ahead, max(1, round((red - green) * share)))
        place = min(last, max(green + 1, green + ahead, 1 if length else 0))
        lengths += [] if place in lengths else [place]
    return lengths


def tested(line: Line, result: TestResult) -> tuple[TestResult, ...]:
    """The results with this one added; a second red one counts as the second try."""
    before = line.result_of(result.commit)
    times = (before.times if before else 0) + 1
    others = tuple(TestResult(*r) for r in line.results if r[0] != result.commit)
    return (*others, result._replace(times=times))


def learned_rate(rate: float, *, passed: int = 0, failed: int = 0) -> float:
    """The running estimate of how often a task breaks the line."""
    for _ in range(passed):
        rate += 0.1 * (0 - rate)
    for _ in range(failed):
        rate += 0.1 * (1 - rate)
    return min(0.5, max(0.01, rate))
