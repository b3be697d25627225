"""The merge queue, one line per target branch: who waits, which prefixes to test, what may land.

Candidates stand in a line; the candidate of length n is the target with the first n tasks merged
in. Free test slots try prefixes at the quantiles of where the first failure is to be expected; the
longest green prefix lands; a red prefix one longer than a green one names the culprit.

Beside the line stand trials, each a stack of tasks on a green base of its own. A suspect steps out
of the line into a trial while it is tested again; where failures are frequent, groups are tried at
the same time and only those who pass join the line.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import ClassVar, NamedTuple, TypeAlias

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine
from crew.domain.rules import Rules

Entry: TypeAlias = tuple[str, str]
"""A task and the commit it offers."""

CLEARED_FAILURE_RATE = 0.01
"""How often a task breaks the line that passed its trial."""

OVERTAKEN_LIMIT = 5
"""How often in a row a target may move before a person is told that delivery cannot keep up."""

LEARNING_RATE = 0.02
"""Many tasks land at once, and a rate that forgets within a few would forget every failure."""


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


class Stack(NamedTuple):
    """Tasks merged one on top of the other onto a base; a trial's base is always proven."""

    base: str
    chain: tuple[tuple[str, str, str], ...]
    proven: bool = True

    @property
    def commits(self) -> tuple[str, ...]:
        """By length: the base, the base with the first task, with the first two, ..."""
        return (self.base, *(commit for _, _, commit in self.chain))

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple((task, head) for task, head, _ in self.chain)


class Layout(NamedTuple):
    """Who should stand where: in the line, in a trial on which base, or not yet anywhere.

    A trial without a base is a new one: it starts from the base of the line.
    """

    main: tuple[Entry, ...]
    trials: tuple[tuple[str, tuple[Entry, ...]], ...]
    later: tuple[Entry, ...]
    cleared: tuple[Entry, ...]


NO_MACHINE = Machine(name="line", first="open", moves=())


@frozen
class Line:
    """`base` is what the line stands on: the integration tip with everybody else's commits.

    `base_proven` is false when crew itself had to merge those in: the result needs a test.
    `held` are tasks that conflict with somebody before them, who may still fail, or wait for a
    trial; `cleared` are those in the chain that passed one.
    `target_seen` is where the target stood when the line was built; `upstream`: it moved since.
    `overtaken` counts how often it moved since the last delivery, before what landed was tested
    together with it.
    `is_shown` says that the last delivery changed the files of a checkout, which happens rarely.
    """

    kind: ClassVar[str] = "line"
    machine: ClassVar[Machine] = NO_MACHINE

    id: str
    state: str = "open"
    integration: str = ""
    base: str = ""
    base_proven: bool = True
    chain: tuple[tuple[str, str, str], ...] = ()
    trials: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()
    held: tuple[Entry, ...] = ()
    cleared: tuple[Entry, ...] = ()
    results: tuple[tuple[str, bool, int, str], ...] = ()
    failure_rate: float = 0.1
    delivered: str = ""
    delivered_at: float | None = None
    is_shown: bool = True
    waiting: str = ""
    remedy: str = ""
    upstream: bool = False
    overtaken: int = 0
    target_seen: str = ""

    @property
    def main(self) -> Stack:
        return Stack(self.base, self.chain, self.base_proven)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The line itself, then the trials beside it."""
        return (self.main, *(Stack(base, chain) for base, chain in self.trials))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Those in the line, in its order, then those in trials."""
        chains = (self.chain, *(chain for _, chain in self.trials))
        return tuple(Candidate(*entry) for chain in chains for entry in chain)

    @property
    def entries(self) -> frozenset[Entry]:
        """Every (task, head) the line was built from."""
        return frozenset((c.task, c.head) for c in self.candidates) | frozenset(self.held)

    @property
    def is_outrun(self) -> bool:
        """Its target gets commits faster than they can be tested together with what landed."""
        return self.overtaken >= OVERTAKEN_LIMIT

    def result_of(self, commit: str) -> TestResult | None:
        return next((TestResult(*r) for r in self.results if r[0] == commit), None)

    def commit_at(self, length: int) -> str:
        return self.chain[length - 1][2] if length else self.base


def _results(line: Line) -> dict[str, TestResult]:
    return {row[0]: TestResult(*row) for row in line.results}


def longest_green(line: Line) -> int:
    """The longest prefix that may land; -1 when not even the base is proven."""
    return _span(line.main, _results(line))[0]


def shortest_red(line: Line) -> int:
    """The shortest prefix known to be red beyond the green ones; one past the end if none is."""
    return _span(line.main, _results(line))[1]


def _span(stack: Stack, results: Mapping[str, TestResult]) -> tuple[int, int]:
    """The longest green length and the shortest red one beyond it."""
    past_the_end = len(stack.chain) + 1
    green, red = 0 if stack.proven else -1, past_the_end
    for length, commit in enumerate(stack.commits):
        result = results.get(commit)
        if result and result.passed:
            green, red = length, past_the_end
        elif result and green < length < red:
            red = length
    return green, red


def prefix_to_land(line: Line) -> int | None:
    """How many tasks may land now; 0 lands somebody else's commits alone."""
    green = longest_green(line)
    if green > 0:
        return green
    lands_base = green == 0 and not line.chain and line.base != line.integration
    return 0 if lands_base else None


def culprit(line: Line) -> tuple[Candidate | None, TestResult] | None:
    """The task that breaks the line or its trial, red in two tests right after a green prefix.

    None in place of the task means that the base of the line itself is red.
    """
    results = _results(line)
    for stack in reversed(line.stacks) if results else ():
        suspect = _suspect(stack, results)
        if suspect and suspect[1].times >= 2:
            length, result = suspect
            return (Candidate(*stack.chain[length - 1]) if length else None, result)
    return None


def _suspect(stack: Stack, results: Mapping[str, TestResult]) -> tuple[int, TestResult] | None:
    """The red prefix right after a green one, if there is one: its length and its result."""
    green, red = _span(stack, results)
    if red != green + 1 or red > len(stack.chain):
        return None
    return red, results[stack.commits[red]]


def commits_to_test(line: Line, rules: Rules, *, busy: frozenset[str]) -> tuple[str, ...]:
    """What the free slots should test now; `busy` are the commits under test already.

    Suspects come first, since a task waits for its agent. A trial gets one test at a time, the
    line the slots that are left; while groups are tried it waits until its test is worth a slot.
    """
    results = _results(line)
    main, *trials = line.stacks
    suspects: list[str] = []
    groups: list[str] = []
    for trial in trials:
        if not busy.intersection(trial.commits[1:]):
            kind = suspects if _suspect(trial, results) else groups
            kind += _wanted(trial, line, results, rules=rules, slots=1)
    slots = max(1, rules.test_slots - len(trials))
    ahead = _wanted(main, line, results, rules=rules, slots=slots)
    started = len(busy.intersection(main.commits))
    ahead = [commit for commit in ahead if commit not in busy][: max(0, slots - started)]
    is_due = len(main.chain) >= rules.test_slots or not main.proven
    wanted = [*suspects, *ahead, *groups] if is_due else [*suspects, *groups, *ahead]
    return tuple(wanted[: max(0, rules.test_slots - len(busy))])


def _wanted(
    stack: Stack, line: Line, results: Mapping[str, TestResult], *, rules: Rules, slots: int
) -> list[str]:
    """The prefixes of a stack whose tests would tell most."""
    green, red = _span(stack, results)
    if green == len(stack.chain):
        return []
    if red == green + 1:
        commit = stack.commits[red]
        return [commit] if results[commit].times < 2 else []
    if rules.one_at_a_time:
        return [stack.commits[green + 1]]
    chances, commits = _failure_chances(stack, line), stack.commits
    return [commits[place] for place in _quantiles(green, red, chances, slots=slots)]


def _failure_chances(stack: Stack, line: Line) -> list[float]:
    cleared = frozenset(line.cleared)
    after_trial = min(CLEARED_FAILURE_RATE, line.failure_rate)
    return [after_trial if entry in cleared else line.failure_rate for entry in stack.entries]


def _quantiles(green: int, red: int, chances: Sequence[float], *, slots: int) -> list[int]:
    """Prefixes at the quantiles of the first failure, between what is green and what is red.

    Where nothing is red yet and a failure is not to be expected, the last one is the whole stack.
    """
    failed_by: dict[int, float] = {}
    passes = 1.0
    for length in range(max(green, 0) + 1, min(red, len(chances)) + 1):
        passes *= 1 - chances[length - 1]
        failed_by[length] = 1 - passes
    last = min(red - 1, len(chances))
    whole = min(1.0, failed_by.get(last, 1.0) * (slots + 1) / slots)
    certain = failed_by.get(red, whole)
    places: list[int] = []
    for slot in range(1, slots + 1):
        share = certain * slot / (slots + 1)
        place = next((n for n, chance in failed_by.items() if chance >= share), last)
        places += [] if min(place, last) in places else [min(place, last)]
    return places


def layout(line: Line, waiting: Sequence[Entry], *, rules: Rules, proven: bool) -> Layout:
    """Who should stand where when the line is put together anew, on a base that is proven or not.

    Everybody stays where they are, except that those who passed a trial join the line, a suspect
    leaves it, and those behind somebody who is red start again.
    """
    results, present = _results(line), frozenset(waiting)
    main = [entry for entry in line.main.entries if entry in present]
    trials: list[tuple[str, tuple[Entry, ...]]] = []
    cleared = [entry for entry in main if entry in line.cleared]
    suspect = _stepping_out(line, results, rules=rules)
    if suspect and present.issuperset(suspect[1]):
        trials.append(suspect)
    for trial in line.stacks[1:]:
        green, red = _span(trial, results)
        cleared += [entry for entry in trial.entries[:green] if entry in present]
        rest = tuple(takewhile(present.__contains__, trial.entries[green:red]))
        trials += [(trial.commits[green], rest)] if rest else []
    apart = frozenset(entry for _, entries in trials for entry in entries)
    main = [entry for entry in dict.fromkeys([*main, *cleared]) if entry not in apart]
    placed = apart.union(main)
    fresh = [entry for entry in waiting if entry not in placed]
    if not (proven and _tries_groups(line, len(waiting), rules=rules)):
        return Layout((*main, *fresh), tuple(trials), (), tuple(cleared))
    groups = _groups(fresh, rules.test_slots - len(trials), p=line.failure_rate)
    trials += [("", group) for group in groups]
    return Layout(tuple(main), tuple(trials), tuple(fresh[sum(map(len, groups)) :]), tuple(cleared))


def needs_layout(line: Line, *, rules: Rules) -> bool:
    """Whether somebody should stand elsewhere because of what the tests said."""
    results = _results(line)
    if not results:
        return False
    if _stepping_out(line, results, rules=rules):
        return True
    spans = [(_span(trial, results), len(trial.chain)) for trial in line.stacks[1:]]
    return any(green > 0 or red < length for (green, red), length in spans)


def _stepping_out(
    line: Line, results: Mapping[str, TestResult], *, rules: Rules
) -> tuple[str, tuple[Entry, ...]] | None:
    """A suspect's trial stands on the same base, so it is the same commit that is tested again."""
    suspect = _suspect(line.main, results)
    if rules.one_at_a_time or suspect is None:
        return None
    length, result = suspect
    if length == 0 or result.times >= 2:
        return None
    return line.main.commits[length - 1], (line.main.entries[length - 1],)


def _tries_groups(line: Line, waiting: int, *, rules: Rules) -> bool:
    """Whether there are too many failures, slots and tasks to look for the first failure only."""
    slots = rules.test_slots
    return (
        not rules.one_at_a_time
        and slots >= 3
        and slots * line.failure_rate >= 0.1
        and waiting > 3 * slots
    )


def _groups(entries: Sequence[Entry], count: int, *, p: float) -> list[tuple[Entry, ...]]:
    """At most so many groups, alike in size, none of them more likely to fail than to pass."""
    if count <= 0:
        return []
    likely = math.ceil(math.log(0.5) / math.log(1 - p))
    size = max(1, min(likely, math.ceil(len(entries) / count)))
    starts = range(0, min(len(entries), count * size), size)
    return [tuple(entries[start : start + size]) for start in starts]


def tested(line: Line, result: TestResult) -> tuple[TestResult, ...]:
    """The results with this one added; a second red one counts as the second try."""
    before = line.result_of(result.commit)
    times = (before.times if before else 0) + 1
    others = tuple(TestResult(*r) for r in line.results if r[0] != result.commit)
    return (*others, result._replace(times=times))


def learned_rate(rate: float, *, passed: int = 0, failed: int = 0) -> float:
    """The running estimate of how often a task breaks the line."""
    for _ in range(passed):
        rate += LEARNING_RATE * (0 - rate)
    for _ in range(failed):
        rate += LEARNING_RATE * (1 - rate)
    return min(0.5, max(0.01, rate))
