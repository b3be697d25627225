"""Rows for the eye say the same as the domain's own."""

import json

import pytest

from crew.domain.rows.agent import Agent
from crew.domain.rows.channel import Member
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.world import World, born
from crew.runner.views.row_views import agent_view, agents_by_age
from crew.store.database import open_database
from crew.store.fact_log import load_world, record
from crew.store.quick_rows import find_run, find_runs, load_agents, load_terminals


@pytest.fixture
def db(tmp_path):
    opened = open_database(tmp_path / "crew.db")
    rows = [
        Agent(id="A1", agent_kind="x", task="1", run="1.1", started_at=2.0),
        Agent(id="B", agent_kind="x", started_at=1.0),
        Run(id="1.1", task="1", session="s", steps=3),
        Run(id="2.1", task="2"),
        Run(id="3.1", task="3", agent_kind="x"),
        Terminal(id="3.1", task="3", state="open", pid=42),
        Task(id="1", worktree="/w/1", branch="crew-1"),
        Task(id="2"),
        MergeQueue(id="main", waiting="a file is in the way"),
        Member(id="room/pm", channel="room", name="pm", speaking=True),
        Member(id="room/dev", channel="room", name="dev"),
        Question(id="q1", task="1", run="1.1", role="worker", question='is it "open"?'),
        Question(id="q2", task="1", run="1.1", role="worker", question='"open"?', state="answered"),
    ]
    record(opened, World(), [born(row, "made", at=1.0) for row in rows])
    yield opened
    opened.close()


def test_agents_look_the_same_as_through_the_world(db):
    world, plain = load_world(db), load_agents(db)
    full = [agent_view(world, agent) for agent in agents_by_age(world)]
    assert [agent_view(plain, agent) for agent in agents_by_age(plain)] == full
    assert plain.queues["main"].waiting == "a file is in the way"


def test_only_what_an_agent_holds_is_read(db):
    plain = load_agents(db)
    assert [one.name for one in plain.members.values()] == ["pm"]
    assert set(plain.tasks) == {"1"}
    assert set(plain.runs) == {"1.1"}
    assert [one.question for one in plain.questions.values()] == ['is it "open"?']


def test_a_row_older_than_a_field_has_its_default(db):
    (text,) = db.execute("SELECT value FROM rows WHERE kind = 'agent' AND id = 'B'").fetchone()
    values = {name: value for name, value in json.loads(text).items() if name != "last_error"}
    db.execute("UPDATE rows SET value = ? WHERE id = 'B'", (json.dumps(values),))
    assert load_agents(db).agents["B"].last_error == ""


def test_the_runs_in_terminal_sessions_are_found_among_all(db):
    (terminal,) = load_terminals(db)
    assert (terminal.task, terminal.name, terminal.pid) == ("3", "crew-3", 42)
    assert find_runs(db, [terminal.id])["3.1"].agent_kind == "x"


def test_a_run_is_found_by_its_name(db):
    found = find_run(db, "1.1")
    assert found is not None
    assert (found.task, found.steps) == ("1", 3)
    assert find_run(db, "9.1") is None
