"""Facts, the rows they make, and what proves that both agree."""

from dataclasses import replace

import pytest

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.rows.agent import Agent
from crew.domain.rows.channel import Channel, Post, post_id
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.message import Message
from crew.domain.rows.provider import Provider
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.world import TABLES, World, born, fold, moved, noted
from crew.store.fact_log import (
    facts_after,
    facts_of,
    load_rows,
    load_some,
    load_world,
    record,
)
from crew.store.replies import Reply
from crew.store.row_repair import differences, rebuild_rows

TASK = Task(id="1", title="Grüße", deps=("2", "3"))
LINE = MergeQueue(id="main", chain=(("1", "h", "c"),), results=(("c", True, 1, "ok"),))
STORY = [
    born(TASK, "seen", at=1.0, by="ann"),
    born(Agent(id="A", agent_kind="claude"), "spawned", at=2.0),
    born(Run(id="1.1", task="1"), "created", at=3.0),
    born(LINE, "opened", at=3.0),
    moved(TASK, "started", to="in_progress", at=4.0, run="1.1"),
    noted(LINE, "built", at=5.0, held=(("2", "g"),)),
]


def changes_of(db):
    """Everything the store holds of facts and rows."""
    return (
        db.execute("SELECT * FROM facts").fetchall(),
        db.execute("SELECT * FROM rows").fetchall(),
    )


def test_what_is_recorded_is_the_world_that_is_loaded(db):
    world = record(db, World(), STORY)
    assert world == fold(STORY)
    assert load_world(db) == world
    assert load_rows(db, "task") == world.tasks
    assert load_rows(db, "line") == world.queues


def test_the_facts_of_some_rows_are_found_by_their_index(db):
    record(db, World(), STORY)
    found = facts_of(db, [("run", "1.1"), ("task", "1"), ("agent", "B"), ("task", "A")])
    assert [fact.trigger for _, fact in found] == ["seen", "created", "started"]
    assert [number for number, _ in found] == [1, 3, 5]
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT id FROM facts WHERE kind = ? AND subject = ?", "ab"
    )
    assert "facts_of_subject" in str(plan.fetchall())


PROCESS_STARTED = noted(Agent(id="A", agent_kind="claude"), "process_started", at=6.0, pid=7)


@pytest.mark.parametrize(
    ("facts", "waits_for_the_disk"),
    [
        ([PROCESS_STARTED], False),
        ([noted(TASK, "written", at=6.0, written="todo"), PROCESS_STARTED], False),
        ([PROCESS_STARTED, noted(TASK, "landed", at=6.0)], True),
        ([noted(LINE, "landed", at=6.0)], True),
    ],
)
def test_only_what_the_next_runner_would_find_out_does_not_wait_for_the_disk(
    db, facts, waits_for_the_disk
):
    world = record(db, World(), STORY)
    said = []
    db.set_trace_callback(said.append)
    record(db, world, facts)
    db.set_trace_callback(None)
    assert ("PRAGMA synchronous=NORMAL" in said) != waits_for_the_disk
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_reply_waits_for_the_disk_whatever_it_is_about(db):
    world = record(db, World(), STORY)
    said = []
    db.set_trace_callback(said.append)
    record(db, world, [PROCESS_STARTED], reply=Reply(number=1, words={"reply": "yes"}))
    db.set_trace_callback(None)
    assert "PRAGMA synchronous=NORMAL" not in said


def test_facts_are_read_as_they_were_recorded_and_in_that_order(db):
    record(db, World(), STORY)
    read = facts_after(db)
    assert [number for number, _ in read] == [1, 2, 3, 4, 5, 6]
    told = [(f.kind, f.subject, f.trigger, f.at, f.source, f.target) for _, f in read]
    assert told == [(f.kind, f.subject, f.trigger, f.at, f.source, f.target) for f in STORY]
    assert read[0][1].extra == {"by": "ann"}
    assert fold(fact for _, fact in read) == fold(STORY)


def test_recording_nothing_writes_nothing(db):
    assert record(db, World(), []) == World()
    assert changes_of(db) == ([], [])


def test_facts_go_on_where_the_last_ones_ended(db):
    world = record(db, World(), STORY[:4])
    assert record(db, world, STORY[4:]) == fold(STORY)
    assert differences(db) == []


@pytest.mark.parametrize(
    "refused",
    [
        moved(TASK, "landed", to="merged", at=9.0),
        moved(replace(TASK, state="done"), "landed", to="merged", at=9.0),
        born(TASK, "seen", at=9.0),
    ],
)
def test_one_fact_that_is_refused_keeps_all_of_its_batch_out(db, refused):
    world = record(db, World(), [STORY[0]])
    before = changes_of(db)
    with pytest.raises(CrewError):
        record(db, world, [noted(TASK, "edited", at=8.0, title="other"), refused])
    assert changes_of(db) == before


def test_a_fact_that_cannot_be_written_keeps_all_of_its_batch_out(db):
    bad = Fact(kind="task", subject="1", trigger="edited", at=None, changes={"title": "other"})
    with pytest.raises(CrewError, match="NOT NULL"):
        record(db, World(), [STORY[0], bad])
    assert changes_of(db) == ([], [])
    record(db, World(), STORY)


def test_facts_can_be_asked_for_by_number_subject_and_time(db):
    task_called_a = born(Task(id="A"), "seen", at=6.0)
    record(db, World(), [*STORY, task_called_a])

    def numbers(*args, **settings):
        return [number for number, _ in facts_after(db, *args, **settings)]

    assert numbers(4) == [5, 6, 7]
    assert numbers(subject="1") == [1, 5]
    assert numbers(subject="A") == [2, 7]
    assert numbers(subject="agent:A") == [2]
    assert numbers(subject="task:A") == [7]
    assert numbers(since=4.0) == [5, 6, 7]
    assert numbers(1, subject="task:1", since=2.0) == [5]
    assert numbers(subject="nobody") == []


TAMPERING = {
    "task:1": """UPDATE rows SET value = '{"id":"1","title":"other"}' WHERE kind = 'task'""",
    "agent:A": "DELETE FROM rows WHERE kind = 'agent'",
    "task:9": """INSERT INTO rows VALUES ('task', '9', '{"id":"9"}')""",
    "line:main": "DELETE FROM facts WHERE kind = 'line'",
    "run:1.1": """UPDATE facts SET changes = '{"task":"2"}' WHERE kind = 'run'""",
}


@pytest.mark.parametrize("subject", TAMPERING)
def test_a_row_that_is_not_what_its_facts_say_is_found_and_mended(db, subject):
    record(db, World(), STORY)
    assert differences(db) == []
    db.execute(TAMPERING[subject])
    assert differences(db) == [subject]
    rebuild_rows(db)
    assert differences(db) == []
    assert load_world(db) == fold(fact for _, fact in facts_after(db))


def test_rows_of_every_kind_are_compared_and_rebuilt(db):
    others = [
        Question(id="q1", task="1", run="1.1", role="", question="which one?"),
        Message(id="m1", task="1", sender="ann", text="hello", at=4.0),
        Provider(id="north", next_at=9.0),
    ]
    world = record(db, World(), [*STORY, *(born(row, "made", at=6.0) for row in others)])
    db.execute("DELETE FROM rows")
    told = {kind for kind in TABLES if world.rows(kind)}
    assert told >= {"agent", "task", "run", "line", "question", "message", "provider"}
    assert {subject.partition(":")[0] for subject in differences(db)} == told
    rebuild_rows(db)
    assert load_world(db) == world


def _post(channel, number):
    return Post(
        id=post_id(channel, number), channel=channel, sequence=number, sender="a", text="hi", at=1.0
    )


def test_what_was_said_in_closed_channels_is_kept_and_makes_nobody_wait(db):
    closed = Channel(id="old", sequence=2)
    rows = [closed, Channel(id="old-2", sequence=1), Channel(id="ol", sequence=1)]
    posts = [_post("old", 1), _post("old", 2), _post("old-2", 1), _post("ol", 1)]
    told = [born(row, "made", at=1.0) for row in (*rows, *posts)]
    world = record(db, World(), told)
    assert load_world(db) == world
    world = record(db, world, [moved(closed, "closed", to="closed", at=2.0)])
    live = load_world(db)
    assert sorted(live.posts) == ["ol/1", "old-2/1"]
    assert live.channels == world.channels
    assert load_some(db, "post", ["old/2", "old/1", "old/9"]) == [posts[1], posts[0]]
    assert differences(db) == []
    db.execute("DELETE FROM rows WHERE id = 'old/1'")
    assert differences(db) == ["post:old/1"]


def test_a_value_of_another_version_is_left_out_of_the_row(db):
    db.execute("""INSERT INTO rows VALUES ('task', '1', '{"id":"1","colour":"red"}')""")
    assert load_world(db).tasks["1"] == Task(id="1")


def meddle_before(word, db, other):
    """Let another connection record a fact right before `db` first says this word."""
    left = [STORY[0]]

    def meddle(statement):
        if word in statement and left:
            record(other, load_world(other), [left.pop()])

    db.set_trace_callback(meddle)
    return left


def test_a_fact_recorded_while_we_compare_is_no_difference(connect):
    db, other = connect(), connect()
    left = meddle_before("FROM rows", db, other)
    assert differences(db) == []
    assert left == []
    assert load_world(db).tasks == {"1": TASK}


def test_a_fact_recorded_while_we_are_about_to_rebuild_keeps_its_row(connect):
    db, other = connect(), connect()
    record(db, World(), [STORY[1]])

    left = meddle_before("BEGIN", db, other)
    rebuild_rows(db)
    assert left == []
    assert differences(db) == []
    assert load_world(db).tasks == {"1": TASK}


def test_a_name_that_is_no_text_is_stored_and_read_as_it_is(db):
    world = record(db, World(), [born(Task(id="1", title="a\udcffb ü"), "seen", at=1.0)])
    assert load_world(db) == world
    assert load_world(db).tasks["1"].title == "a\udcffb ü"
    assert differences(db) == []
