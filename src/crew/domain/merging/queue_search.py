"""The search in a merge queue: which prefixes to test, what may land, which task breaks it.

Free test slots try prefixes at the quantiles of where the first failure is expected. The longest
green prefix lands; a red prefix one longer than a green one names the culprit. A suspect leaves the
queue for a trial while it is tested again. Where failures are frequent, groups are tried at the
same time, and only tasks that pass join the queue.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from crew.domain.rows.merge_queue import Candidate, Entry, MergeQueue, Stack, TestResult
from crew.domain.rules import Rules

CLEARED_FAILURE_RATE = 0.01
"""How often a task breaks the queue although it passed its trial."""

LEARNING_RATE = 0.02
"""The weight of one task in the estimated rate; it is small, because many tasks land at once."""


class Layout(NamedTuple):
    """The place of each task: in the queue, in a trial on some base, or nowhere yet.

    A trial without a base is new and starts from the base of the queue.
    """

    main: tuple[Entry, ...]
    trials: tuple[tuple[str, tuple[Entry, ...]], ...]
    later: tuple[Entry, ...]
    cleared: tuple[Entry, ...]


def _results(queue: MergeQueue) -> dict[str, TestResult]:
    return {result.commit: result for result in queue.results}


def longest_green(queue: MergeQueue) -> int:
    """The longest prefix that may land; -1 when not even the base is proven."""
    return _span(queue.main, _results(queue))[0]


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


def believed_tips(queue: MergeQueue) -> frozenset[str]:
    """The commits to which crew itself may have moved the integration ref.

    A runner that was killed may have landed a green prefix without recording it.
    """
    length = prefix_to_land(queue)
    landable = (queue.commit_at(length),) if length is not None else ()
    return frozenset(filter(None, (queue.integration, *landable)))


def prefix_to_land(queue: MergeQueue) -> int | None:
    """How many tasks may land now; 0 lands the commits of others alone."""
    green = longest_green(queue)
    if green > 0:
        return green
    lands_base = green == 0 and not queue.chain and queue.base != queue.integration
    return 0 if lands_base else None


def landing_waits(queue: MergeQueue) -> bool:
    """Whether something stands in the way of a green prefix, such as a key that is locked."""
    return bool(queue.waiting) and prefix_to_land(queue) is not None


def culprit(queue: MergeQueue) -> tuple[Candidate | None, TestResult] | None:
    """The task that breaks the queue or its trial: red in two tests right after a green prefix.

    None in place of the task means that the base of the queue itself is red.
    """
    results = _results(queue)
    for stack in reversed(queue.stacks) if results else ():
        suspect = _suspect(stack, results)
        if suspect and suspect[1].times >= 2:
            length, result = suspect
            return (stack.chain[length - 1] if length else None, result)
    return None


def _suspect(stack: Stack, results: Mapping[str, TestResult]) -> tuple[int, TestResult] | None:
    """The red prefix right after a green one, if there is one: its length and its result."""
    green, red = _span(stack, results)
    if red != green + 1 or red > len(stack.chain):
        return None
    return red, results[stack.commits[red]]


def commits_to_test(queue: MergeQueue, rules: Rules, *, busy: frozenset[str]) -> tuple[str, ...]:
    """The commits that free slots should test now; `busy` are those under test already.

    Suspects come first, since a task waits for its agent. A trial gets one test at a time, the
    queue gets the slots that are left; while groups are tried, the queue waits until its test is
    worth a slot.
    """
    results = _results(queue)
    main, *trials = queue.stacks
    suspects: list[str] = []
    groups: list[str] = []
    for trial in trials:
        if not busy.intersection(trial.commits[1:]):
            kind = suspects if _suspect(trial, results) else groups
            kind += _wanted(trial, queue, results, rules=rules, slots=1)
    slots = max(1, rules.test_slots - len(trials))
    ahead = _wanted(main, queue, results, rules=rules, slots=slots)
    started = len(busy.intersection(main.commits))
    ahead = [commit for commit in ahead if commit not in busy][: max(0, slots - started)]
    is_due = len(main.chain) >= rules.test_slots or not main.proven
    wanted = [*suspects, *ahead, *groups] if is_due else [*suspects, *groups, *ahead]
    return tuple(wanted[: max(0, rules.test_slots - len(busy))])


def _wanted(
    stack: Stack, queue: MergeQueue, results: Mapping[str, TestResult], *, rules: Rules, slots: int
) -> list[str]:
    """The prefixes of a stack whose tests give the most information."""
    green, red = _span(stack, results)
    if green == len(stack.chain):
        return []
    if red == green + 1:
        commit = stack.commits[red]
        return [commit] if results[commit].times < 2 else []
    if rules.one_at_a_time:
        return [stack.commits[green + 1]]
    chances, commits = _failure_chances(stack, queue), stack.commits
    return [commits[place] for place in _quantiles(green, red, chances, slots=slots)]


def _failure_chances(stack: Stack, queue: MergeQueue) -> list[float]:
    cleared = frozenset(queue.cleared)
    after_trial = min(CLEARED_FAILURE_RATE, queue.failure_rate)
    return [after_trial if entry in cleared else queue.failure_rate for entry in stack.entries]


def _quantiles(green: int, red: int, chances: Sequence[float], *, slots: int) -> list[int]:
    """Prefixes at the quantiles of the first failure, between the green and the red lengths.

    If no prefix is red and no failure is expected, the last one is the whole stack.
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


def layout(queue: MergeQueue, waiting: Sequence[Entry], *, rules: Rules, proven: bool) -> Layout:
    """The place of each task when the queue is built again, on a base that is proven or not.

    Tasks stay in place, except that those that passed a trial join the queue, a suspect leaves it,
    and those behind a red task start again.
    """
    results, present = _results(queue), frozenset(waiting)
    main = [entry for entry in queue.main.entries if entry in present]
    trials: list[tuple[str, tuple[Entry, ...]]] = []
    cleared = [entry for entry in main if entry in queue.cleared]
    suspect = _stepping_out(queue, results, rules=rules)
    if suspect and present.issuperset(suspect[1]):
        trials.append(suspect)
    for trial in queue.stacks[1:]:
        green, red = _span(trial, results)
        cleared += [entry for entry in trial.entries[:green] if entry in present]
        rest = tuple(takewhile(present.__contains__, trial.entries[green:red]))
        trials += [(trial.commits[green], rest)] if rest else []
    apart = frozenset(entry for _, entries in trials for entry in entries)
    main = [entry for entry in dict.fromkeys([*main, *cleared]) if entry not in apart]
    placed = apart.union(main)
    fresh = [entry for entry in waiting if entry not in placed]
    if not (proven and _tries_groups(queue, len(waiting), rules=rules)):
        return Layout((*main, *fresh), tuple(trials), (), tuple(cleared))
    groups = _groups(fresh, rules.test_slots - len(trials), p=queue.failure_rate)
    trials += [("", group) for group in groups]
    return Layout(tuple(main), tuple(trials), tuple(fresh[sum(map(len, groups)) :]), tuple(cleared))


def needs_layout(queue: MergeQueue, *, rules: Rules) -> bool:
    """Whether the tests have changed the place of a task."""
    results = _results(queue)
    if not results:
        return False
    if _stepping_out(queue, results, rules=rules):
        return True
    spans = [(_span(trial, results), len(trial.chain)) for trial in queue.stacks[1:]]
    return any(green > 0 or red < length for (green, red), length in spans)


def _stepping_out(
    queue: MergeQueue, results: Mapping[str, TestResult], *, rules: Rules
) -> tuple[str, tuple[Entry, ...]] | None:
    """The base of a suspect's trial, and the suspect, so that its commit is tested again."""
    suspect = _suspect(queue.main, results)
    if rules.one_at_a_time or suspect is None:
        return None
    length, result = suspect
    if length == 0 or result.times >= 2:
        return None
    return queue.main.commits[length - 1], (queue.main.entries[length - 1],)


def _tries_groups(queue: MergeQueue, waiting: int, *, rules: Rules) -> bool:
    """Whether failures are so frequent that groups are tested at the same time.

    Kept: at 10% failures, 4 slots merge 60 tasks an hour with groups and 36 without, 8 slots 125
    and 46 (`python -m bench queue`).
    """
    slots = rules.test_slots
    return (
        not rules.one_at_a_time
        and slots >= 3
        and slots * queue.failure_rate >= 0.1
        and waiting > 3 * slots
    )


def _groups(entries: Sequence[Entry], count: int, *, p: float) -> list[tuple[Entry, ...]]:
    """At most `count` groups of similar size, each more likely to pass than to fail."""
    if count <= 0:
        return []
    likely = math.ceil(math.log(0.5) / math.log(1 - p))
    size = max(1, min(likely, math.ceil(len(entries) / count)))
    starts = range(0, min(len(entries), count * size), size)
    return [tuple(entries[start : start + size]) for start in starts]


def tested(queue: MergeQueue, result: TestResult) -> tuple[TestResult, ...]:
    """The results with this one added; a second red test counts as the second try."""
    before = queue.result_of(result.commit)
    times = (before.times if before else 0) + 1
    others = tuple(r for r in queue.results if r.commit != result.commit)
    return (*others, result._replace(times=times))


def learned_rate(rate: float, *, passed: int = 0, failed: int = 0) -> float:
    """The running estimate of how often a task breaks the queue."""
    for _ in range(passed):
        rate += LEARNING_RATE * (0 - rate)
    for _ in range(failed):
        rate += LEARNING_RATE * (1 - rate)
    return min(0.5, max(0.01, rate))
