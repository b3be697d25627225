"""Facts and the rows they make."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from crew.domain.kernel.errors import Conflict, InvalidTransition
from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent, Manager
from crew.domain.rows.channel import Channel, Member, Post
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.provider import Outage, Provider
from crew.domain.rows.quest import Position, Quest
from crew.domain.rows.question import Question, Suspicion
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.world import TABLES, World, apply, born, fold, moved, noted, row_from
from domain.scenes import after, given, patient
from refusals import raises_code

AGENT = Agent(id="A", agent_kind="claude")
CANDIDATE = ("1", "h", "c")
TASK = Task(id="1", title="first", deps=("2", "3"))


@pytest.mark.parametrize(
    "row",
    [
        AGENT,
        TASK,
        Run(id="1.1", task="1", number=7),
        MergeQueue(id="main", chain=(("1", "h", "c"),)),
    ],
)
def test_a_row_is_born_with_everything_it_has(row):
    world = apply(World(), born(row, "made", at=5.0))
    assert world == given(row)


def test_the_first_fact_of_a_row_shows_its_state_to_readers_of_the_log():
    fact = born(replace(TASK, state="error"), "seen", at=5.0, by="ann")
    assert (fact.source, fact.target, fact.extra) == (None, "error", {"by": "ann"})


def test_nothing_is_born_twice():
    with raises_code(Conflict, "moved_meanwhile", "task 1"):
        fold([born(TASK, "seen", at=1.0), born(TASK, "seen", at=2.0)])


def test_a_move_changes_the_state_and_the_named_fields_of_one_row_only():
    other = Task(id="2")
    start = given(TASK, other, AGENT)
    world = apply(start, moved(TASK, "started", to="in_progress", at=1.0, run="1.1"))
    assert world.tasks == {"1": replace(TASK, state="in_progress", run="1.1"), "2": other}
    assert world.agents == start.agents


def test_the_world_before_a_fact_stays_as_it_was():
    start = given(TASK)
    apply(start, noted(TASK, "edited", at=1.0, title="second"))
    assert start.tasks["1"].title == "first"


def test_a_note_changes_fields_and_moves_nothing():
    fact = noted(AGENT, "error", at=1.0, error_count=3)
    assert (fact.source, fact.target) == (None, None)
    assert apply(given(AGENT), fact).agents["A"] == replace(AGENT, error_count=3)


def test_a_move_that_is_not_in_the_table_is_refused():
    with raises_code(InvalidTransition, "invalid_transition", "task", "todo", "merged"):
        apply(given(TASK), moved(TASK, "landed", to="merged", at=1.0))


def test_a_move_from_a_state_that_is_past_is_refused_and_says_who_it_was_meant_for():
    late = moved(TASK, "closed", to="closed", at=2.0)
    world = apply(given(TASK), moved(TASK, "started", to="in_progress", at=1.0))
    named = ("task 1", "in_progress", "closed", "todo")
    with raises_code(Conflict, "moved_meanwhile", *named):
        apply(world, late)


def test_a_line_has_no_moves_at_all():
    line = MergeQueue(id="main")
    with raises_code(InvalidTransition, "invalid_transition", "line"):
        apply(given(line), moved(line, "shut", to="closed", at=1.0))


def test_a_value_that_nobody_knows_is_left_out_of_a_row():
    assert row_from("task", {"id": "1", "colour": "red"}) == Task(id="1")


def test_the_items_of_a_field_have_the_class_that_their_row_names():
    chain, result = [["1", "h", "c"]], ["c", True, 1, ""]
    queue = row_from("line", {"id": "main", "chain": chain, "trials": [["b", chain]]})
    queue = apply(given(queue), noted(queue, "tested", at=1.0, results=[result])).queues["main"]
    assert queue.chain[0].commit == "c"
    assert queue.trials[0].chain[0].task == "1"
    assert queue.results[0].passed


def test_lists_become_tuples_however_deep_they_stand():
    line = row_from("line", {"id": "main", "chain": [["1", "h", "c"]], "held": [["2", "g"]]})
    assert line.chain == (("1", "h", "c"),)
    assert line.held == (("2", "g"),)
    changed = apply(given(line), noted(line, "built", at=1.0, chain=[["3", "h", "d"]]))
    assert changed.queues["main"].chain == (("3", "h", "d"),)


@pytest.mark.parametrize("kind", TABLES)
def test_the_world_has_a_table_for_each_kind(kind):
    assert World().rows(kind) == {}
    assert TABLES[kind].kind == kind


def _some(kind, number):
    rows = {
        "agent": Agent(id=f"a{number}", agent_kind="claude"),
        "task": Task(id=f"t{number}", deps=("x",)),
        "terminal": Terminal(id=f"t{number}.1", task=f"t{number}", pid=7),
        "run": Run(id=f"r{number}", task="1"),
        "line": MergeQueue(id=f"l{number}", results=(("c", True, 1, "fine"),)),
        "question": Question(id=f"q{number}", task="1", run="1.1", role="worker", question="?"),
        "suspicion": Suspicion(id=f"s{number}", task="1", run="1.1", role="worker", act="stop"),
        "message": Message(id=f"m{number}", task="1", sender="ann", text="mind it", at=3.0),
        "provider": Provider(id=f"p{number}"),
        "outage": Outage(id=f"k{number}", cause="auth"),
        "quest": Quest(id=f"{number}", workflow="solo", definition="{}", slots=3),
        "walk": Position(id=f"{number}", quest="1", task=f"{number}"),
        "channel": Channel(id=f"c{number}", queue=("pm",), held=(("ann", "stop", 2.0),)),
        "member": Member(id=f"c/m{number}", channel="c", name=f"m{number}"),
        "post": Post(id=f"c/{number}", channel="c", sequence=1, sender="pm", text="hi", at=1.0),
        "manager": Manager(id=f"m{number}", agent_kind="claude"),
    }
    return rows[kind]


_NOTES = {
    "agent": st.fixed_dictionaries({"cost_usd": st.none() | st.floats(0, 1e6), "pid": st.none()}),
    "task": st.fixed_dictionaries({"deps": st.lists(st.text(), max_size=3), "title": st.text()}),
    "terminal": st.fixed_dictionaries({"untyped": st.booleans(), "pid": st.none()}),
    "run": st.fixed_dictionaries({"notes": st.text(), "merge_paths": st.lists(st.text())}),
    "line": st.fixed_dictionaries(
        {"chain": st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=3)}
    ),
    "question": st.fixed_dictionaries(
        {"answer": st.text(), "answered_at": st.none() | st.floats(0, 1e9)}
    ),
    "suspicion": st.fixed_dictionaries({"count": st.integers(1, 99), "answer": st.text()}),
    "message": st.fixed_dictionaries({"step": st.text()}),
    "provider": st.fixed_dictionaries({"next_at": st.floats(0, 1e9), "reason": st.text()}),
    "outage": st.fixed_dictionaries({"remedy": st.text(), "reason": st.text()}),
    "quest": st.fixed_dictionaries({"plan": st.lists(st.tuples(st.text(), st.text()), max_size=3)}),
    "walk": st.fixed_dictionaries({"visits": st.lists(st.tuples(st.text(), st.integers(0, 9)))}),
    "channel": st.fixed_dictionaries({"queue": st.lists(st.text(), max_size=3)}),
    "member": st.fixed_dictionaries({"heard": st.lists(st.integers(), max_size=3)}),
    "post": st.fixed_dictionaries({"to": st.lists(st.text(), max_size=2)}),
    "manager": st.fixed_dictionaries({"reported_usd": st.none() | st.floats(0, 1e6)}),
}


@st.composite
def legal_facts(draw):
    """A history that can happen: rows are born, then move by their tables or are noted."""
    world, facts = World(), []
    for at in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from(sorted(TABLES)))
        row = world.rows(kind).get(_some(kind, number := draw(st.integers(0, 2))).id)
        if row is None:
            fact = born(_some(kind, number), "made", at=at)
        elif (moves := row.machine.moves_from(row.state)) and draw(st.booleans()):
            move = draw(st.sampled_from(moves))
            fact = moved(row, move.trigger, to=move.target, at=at)
        else:
            fact = noted(row, "noted", at=at, **draw(_NOTES[kind]))
        world = apply(world, fact)
        facts.append(fact)
    return facts


@patient
@for_all(legal_facts())
def test_facts_fold_to_the_same_rows_after_a_trip_through_json(facts):
    back = [Fact(**value) for value in json.loads(json.dumps([asdict(fact) for fact in facts]))]
    assert fold(back) == fold(facts)


@patient
@for_all(legal_facts())
def test_a_row_survives_a_trip_through_json(facts):
    world = fold(facts)
    for kind in TABLES:
        for row in world.rows(kind).values():
            assert row_from(kind, json.loads(json.dumps(asdict(row)))) == row


@patient
@for_all(legal_facts())
def test_the_history_of_a_run_is_the_list_of_its_moves(facts):
    for run in fold(facts).runs.values():
        ours = [f.target for f in facts if (f.kind, f.subject) == ("run", run.id) and f.target]
        assert list(run.history) == ours


def test_folding_in_two_parts_is_folding_at_once():
    facts = [born(TASK, "seen", at=1.0), moved(TASK, "started", to="in_progress", at=2.0)]
    assert after(fold(facts[:1]), facts[1:]) == fold(facts)
