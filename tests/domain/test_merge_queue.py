"""The merge queue: what is tested, what lands and who is blamed."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from crew.domain.merging.queue_search import (
    commits_to_test,
    culprit,
    layout,
    learned_rate,
    longest_green,
    needs_layout,
    prefix_to_land,
)
from crew.domain.merging.queue_search import tested as with_result
from crew.domain.rows.merge_queue import Candidate
from crew.domain.rows.merge_queue import TestResult as Result
from crew.domain.rules import Rules
from domain.queue_life import Life, stacked
from domain.scenes import patient, queue_of

ONE, TWO, THREE = "base+1", "base+1+2", "base+1+2+3"


def with_results(*results, **changes):
    """A line of three with these results: a commit that passed, or how often it failed."""
    rows = [(c, said is True, 1 if said is True else said, f"of {c}") for c, said in results]
    return queue_of("1", "2", "3", results=tuple(rows), **changes)


# Small lines


def test_nothing_is_known_of_a_new_line_but_its_base():
    queue = with_results()
    assert longest_green(queue) == 0
    assert prefix_to_land(queue) is None
    assert culprit(queue) is None


def test_the_longest_green_prefix_lands_whatever_was_red_before_it():
    queue = with_results((ONE, 1), (TWO, True), (THREE, 1))
    assert (longest_green(queue), prefix_to_land(queue)) == (2, 2)


@pytest.mark.parametrize(
    ("results", "blamed"),
    [
        ([(ONE, 1)], None),
        ([(ONE, 2)], "1"),
        ([(TWO, 2)], None),
        ([(ONE, True), (TWO, 1)], None),
        ([(ONE, True), (TWO, 2)], "2"),
        ([(ONE, True), (THREE, 2)], None),
        ([(TWO, True), (THREE, 2)], "3"),
        ([(THREE, True)], None),
    ],
)
def test_blame_needs_two_red_tests_right_after_a_green_prefix(results, blamed):
    found = culprit(with_results(*results))
    assert (found[0].task if found else None) == blamed


def test_the_culprit_is_told_with_what_the_gate_said():
    assert culprit(with_results((ONE, 2))) == (
        Candidate(task="1", head="head-1", commit=ONE),
        Result(commit=ONE, passed=False, times=2, notes=f"of {ONE}"),
    )


def test_a_base_that_is_not_proven_is_green_only_by_its_own_test_or_a_longer_one():
    assert longest_green(with_results(base_proven=False)) == -1
    assert longest_green(with_results(("base", True), base_proven=False)) == 0
    assert longest_green(with_results((TWO, True), base_proven=False)) == 2


def test_a_red_base_is_nobodys_fault():
    found = culprit(with_results(("base", 2), (ONE, 1), base_proven=False))
    assert found == (None, Result(commit="base", passed=False, times=2, notes="of base"))
    assert culprit(with_results(("base", 1), base_proven=False)) is None


def test_a_red_base_is_tested_twice_and_then_waits_for_somebody():
    rules = Rules(test_slots=4)
    once = with_results(("base", 1), (ONE, 1), base_proven=False)
    assert commits_to_test(once, rules, busy=frozenset()) == ("base",)
    twice = with_results(("base", 2), (ONE, 1), base_proven=False)
    assert commits_to_test(twice, rules, busy=frozenset()) == ()


@pytest.mark.parametrize("serial", [True, False])
def test_a_base_alone_is_tested_and_lands_as_it_is(serial):
    queue = queue_of(base="merged", base_proven=False)
    rules = Rules(one_at_a_time=serial, test_slots=3)
    assert commits_to_test(queue, rules, busy=frozenset()) == ("merged",)
    green = replace(queue, results=(Result("merged", True, 1, ""),))
    assert prefix_to_land(green) == 0
    assert commits_to_test(green, rules, busy=frozenset()) == ()
    assert prefix_to_land(replace(green, integration="merged")) is None


def test_a_base_with_tasks_behind_it_lands_together_with_them():
    queue = with_results(("base", True), base_proven=False, integration="old")
    assert prefix_to_land(queue) is None


def test_one_at_a_time_tests_the_next_in_line_only():
    rules = Rules(one_at_a_time=True, test_slots=8)
    assert commits_to_test(with_results(), rules, busy=frozenset()) == (ONE,)
    assert commits_to_test(with_results((ONE, True)), rules, busy=frozenset()) == (TWO,)
    unproven = with_results(base_proven=False)
    assert commits_to_test(unproven, rules, busy=frozenset()) == ("base",)


def test_a_red_test_right_after_a_green_prefix_is_tried_once_more_and_then_counts():
    rules = Rules(test_slots=4)
    assert commits_to_test(with_results((ONE, 1)), rules, busy=frozenset()) == (ONE,)
    assert commits_to_test(with_results((ONE, 2)), rules, busy=frozenset()) == ()


def test_between_green_and_red_the_middle_is_tested():
    ids = [str(number) for number in range(1, 10)]
    queue = queue_of(*ids)
    queue = replace(queue, results=(Result(queue.commit_at(9), False, 1, ""),))
    (commit,) = commits_to_test(queue, Rules(test_slots=1), busy=frozenset())
    assert commit in {queue.commit_at(4), queue.commit_at(5)}


def test_free_slots_test_different_prefixes_and_busy_ones_are_left_alone():
    queue = queue_of(*(str(number) for number in range(1, 13)))
    wanted = commits_to_test(queue, Rules(test_slots=3), busy=frozenset())
    assert len(set(wanted)) == 3
    rest = commits_to_test(queue, Rules(test_slots=3), busy=frozenset(wanted[:1]))
    assert rest == wanted[1:]
    assert commits_to_test(queue, Rules(test_slots=3), busy=frozenset({"a", "b", "c"})) == ()


def test_one_slot_takes_longer_prefixes_the_rarer_failures_are():
    queue = queue_of(*(str(number) for number in range(1, 17)))

    def reach(rate):
        careful = replace(queue, failure_rate=rate)
        (commit,) = commits_to_test(careful, Rules(), busy=frozenset())
        return commit.count("+")

    assert [reach(0.5), reach(0.1), reach(0.01)] == sorted({reach(0.5), reach(0.1), reach(0.01)})
    assert reach(0.5) == 1


def test_a_second_result_of_a_commit_replaces_the_first_and_counts_on():
    queue = with_results((ONE, 1), (TWO, 1))
    results = with_result(queue, Result(commit=ONE, passed=False, times=0, notes="again"))
    assert results == (
        Result(commit=TWO, passed=False, times=1, notes=f"of {TWO}"),
        Result(commit=ONE, passed=False, times=2, notes="again"),
    )
    assert with_result(queue_of(), Result(ONE, True, 0, ""))[0].times == 1


@patient
@for_all(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_the_learned_rate_stays_between_rare_and_even(seen):
    rate = 0.1
    for passed, failed in seen:
        rate = learned_rate(rate, passed=passed, failed=failed)
        assert 0.01 <= rate <= 0.5


def test_the_rate_rises_with_failures_and_falls_with_landings():
    assert learned_rate(0.1, failed=1) == pytest.approx(0.118)
    assert learned_rate(0.1, passed=1) == pytest.approx(0.098)


def test_a_line_knows_whom_it_was_built_from():
    queue = queue_of("1", held=(("2", "head-2"),))
    assert queue.entries == {("1", "head-1"), ("2", "head-2")}
    assert queue.candidates == (Candidate("1", "head-1", ONE),)


# Trials beside the line

FOUR_SLOTS = Rules(test_slots=4)


def entries(*ids):
    return tuple((id_, f"head-{id_}") for id_ in ids)


def trial(base, *ids):
    """A trial as it is kept: its base and its chain."""
    return (base, stacked(base, entries(*ids)))


def many(count, **changes):
    """Waiting tasks, and a line that knows nothing of them yet."""
    return entries(*map(str, range(count))), queue_of(**changes)


def test_a_suspect_steps_out_of_the_line_and_the_same_commit_is_tested_beside_the_others():
    queue = with_results((ONE, 1))
    assert needs_layout(queue, rules=FOUR_SLOTS)
    wanted = layout(queue, entries("1", "2", "3"), rules=FOUR_SLOTS, proven=True)
    assert wanted.main == entries("2", "3")
    assert wanted.trials == (("base", entries("1")),)
    beside = queue_of("2", "3", trials=(trial("base", "1"),), results=queue.results)
    assert not needs_layout(beside, rules=FOUR_SLOTS)
    tests = commits_to_test(beside, FOUR_SLOTS, busy=frozenset())
    assert tests == (ONE, "base+2", "base+2+3")


def test_one_slot_confirms_the_suspect_before_it_goes_on_with_the_line():
    queue = queue_of("2", "3", trials=(trial("base", "1"),), results=((ONE, False, 1, ""),))
    assert commits_to_test(queue, Rules(), busy=frozenset()) == (ONE,)
    assert commits_to_test(queue, Rules(), busy=frozenset({ONE})) == ()


def test_one_at_a_time_keeps_the_suspect_where_it_is():
    rules = Rules(one_at_a_time=True)
    queue = with_results((ONE, 1))
    assert not needs_layout(queue, rules=rules)
    assert layout(queue, entries("1", "2", "3"), rules=rules, proven=True).trials == ()


def test_a_suspect_that_left_meanwhile_gets_no_trial():
    queue = with_results((ONE, 1))
    wanted = layout(queue, entries("2", "3"), rules=FOUR_SLOTS, proven=True)
    assert (wanted.main, wanted.trials) == (entries("2", "3"), ())


def test_a_suspect_red_again_in_its_trial_is_blamed_and_a_green_one_joins_the_line():
    trials = (trial("base", "1"),)
    red = queue_of("2", trials=trials, results=((ONE, False, 2, "why"),))
    assert culprit(red) == (Candidate("1", "head-1", ONE), Result(ONE, False, 2, "why"))
    green = queue_of("2", trials=trials, results=((ONE, True, 2, ""),))
    assert culprit(green) is None
    assert prefix_to_land(green) is None
    assert needs_layout(green, rules=FOUR_SLOTS)
    wanted = layout(green, entries("1", "2"), rules=FOUR_SLOTS, proven=True)
    assert (wanted.main, wanted.trials) == (entries("2", "1"), ())
    assert wanted.cleared == entries("1")


def test_a_culprit_in_a_trial_is_sent_back_even_while_the_base_is_red():
    results = (("base", False, 2, ""), ("old+1", False, 2, ""))
    queue = queue_of("2", base_proven=False, trials=(trial("old", "1"),), results=results)
    assert culprit(queue)[0].task == "1"


def test_a_long_line_with_frequent_failures_is_tried_in_groups_of_even_chances():
    waiting, queue = many(40, failure_rate=0.1)
    wanted = layout(queue, waiting, rules=FOUR_SLOTS, proven=True)
    assert wanted.main == ()
    assert [(base, len(group)) for base, group in wanted.trials] == [("", 7)] * 4
    assert wanted.later == waiting[28:]


@pytest.mark.parametrize(
    ("count", "slots", "rate", "proven"),
    [(12, 4, 0.1, True), (40, 2, 0.1, True), (40, 4, 0.01, True), (40, 4, 0.1, False)],
    ids=["short line", "few slots", "rare failures", "base not proven"],
)
def test_otherwise_everybody_stands_in_the_line(count, slots, rate, proven):
    waiting, queue = many(count, failure_rate=rate)
    wanted = layout(queue, waiting, rules=Rules(test_slots=slots), proven=proven)
    assert (wanted.main, wanted.trials, wanted.later) == (waiting, (), ())


def test_in_a_trial_those_who_passed_join_the_line_and_those_behind_a_red_one_start_again():
    group = trial("base", "1", "2", "3", "4", "5")
    results = (("base+1", True, 1, ""), ("base+1+2+3", False, 1, ""))
    queue = queue_of(trials=(group,), results=results)
    assert needs_layout(queue, rules=FOUR_SLOTS)
    wanted = layout(queue, entries("1", "2", "3", "4", "5"), rules=FOUR_SLOTS, proven=True)
    assert wanted.trials == (("base+1", entries("2", "3")),)
    assert wanted.main == entries("1", "4", "5")
    assert wanted.cleared == entries("1")


def test_the_line_of_those_who_passed_is_tested_as_a_whole_once_that_is_worth_a_slot():
    ids = [f"c{number}" for number in range(4)]
    groups = tuple(trial("base", f"t{number}") for number in range(4))
    firsts = [chain[0][2] for _, chain in groups]
    short = queue_of(*ids[:3], trials=groups, cleared=entries(*ids))
    assert commits_to_test(short, FOUR_SLOTS, busy=frozenset()) == tuple(firsts)
    due = queue_of(*ids, trials=groups, cleared=entries(*ids))
    assert commits_to_test(due, FOUR_SLOTS, busy=frozenset()) == (due.commit_at(4), *firsts[:3])


def test_those_behind_a_red_one_in_a_trial_need_not_wait_until_somebody_passed():
    group = trial("base", "1", "2", "3")
    assert needs_layout(queue_of(trials=(group,), results=((TWO, False, 1, ""),)), rules=FOUR_SLOTS)
    alone = queue_of(trials=(group,), results=((THREE, False, 1, ""),))
    assert not needs_layout(alone, rules=FOUR_SLOTS)


def test_the_line_leaves_a_slot_alone_that_a_trial_will_need_again_at_once():
    ids = [f"c{number}" for number in range(6)]
    groups = tuple(trial("base", f"t{number}") for number in range(3))
    over = (("base+t0", False, 2, ""),)
    queue = queue_of(*ids, trials=groups, cleared=entries(*ids), results=over)
    busy = frozenset({"base+t1", "base+t2", queue.commit_at(4)})
    assert commits_to_test(queue, FOUR_SLOTS, busy=busy) == ()


def test_a_trial_has_one_test_at_a_time():
    queue = queue_of(trials=(trial("base", "1", "2", "3"),))
    assert commits_to_test(queue, FOUR_SLOTS, busy=frozenset({TWO})) == ()


# Whole lives of a line


@settings(patient, max_examples=200)
@for_all(
    seed=st.integers(0, 2**32),
    slots=st.integers(1, 8),
    serial=st.booleans(),
    longest=st.integers(1, 32),
    flake_rate=st.sampled_from([0.0, 0.0, 0.1, 0.3]),
    bad_rate=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_only_proven_work_lands_and_only_proven_faults_are_blamed(
    *, seed, slots, serial, longest, flake_rate, bad_rate
):
    random = Random(seed)
    ids = [f"t{number}" for number in range(random.randint(1, 30))]
    bad = {id_ for id_ in ids if random.random() < bad_rate}
    rules = Rules(test_slots=slots, one_at_a_time=serial, longest_queue=longest)
    life = Life(rules=rules, random=random, bad=bad, flake_rate=flake_rate, finish_all=False)
    life.live(arrivals=_groups(ids, random), upstream_rate=0.1)

    assert set(life.landed) | set(life.blamed) == set(ids)
    assert len(life.landed) + len(life.blamed) == len(ids)
    assert not bad & set(life.landed)
    for result in life.blamed.values():
        assert life.tests_of[result.commit][-2:] == [False, False]
    if not flake_rate:
        assert set(life.blamed) == bad


def _groups(ids, random):
    """The ids in order, some at a time, some times none."""
    groups, rest = [], list(ids)
    while rest:
        count = random.randint(0, 6)
        groups.append(rest[:count])
        rest = rest[count:]
    return groups


def test_a_good_task_lands_although_its_first_test_flakes():
    class FirstTestFlakes(Random):
        tries = iter([0.0])

        def random(self):
            return next(self.tries, 1.0)

    life = Life(rules=Rules(), random=FirstTestFlakes(), bad=set(), flake_rate=0.5)
    life.live(arrivals=[["t1"]])
    assert (life.landed, life.blamed, life.rounds) == (["t1"], {}, 2)


def rounds_of(*, serial, slots, bad=()):
    rules = Rules(test_slots=slots, one_at_a_time=serial)
    life = Life(rules=rules, random=Random(1), bad=set(bad))
    life.live(arrivals=[[f"t{number}" for number in range(60)]])
    assert set(life.blamed) == set(bad)
    return life.rounds


@pytest.mark.parametrize("slots", [1, 2, 4, 8])
@pytest.mark.parametrize("bad", [(), ("t20",), ("t7", "t41")])
def test_a_long_line_with_few_failures_needs_far_fewer_rounds_than_one_at_a_time(slots, bad):
    together = rounds_of(serial=False, slots=slots, bad=bad)
    alone = rounds_of(serial=True, slots=slots, bad=bad)
    assert alone >= 60
    assert together * 2 < alone


def test_more_slots_need_fewer_rounds():
    rounds = [rounds_of(serial=False, slots=slots, bad=("t7", "t41")) for slots in (1, 4, 8)]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] < rounds[0]
