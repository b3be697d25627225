"""The order, the cells and the filter of the board, with plain values."""

import time
from dataclasses import replace

import pytest

from crew.domain.rows.agent import Agent
from crew.domain.rows.provider import Outage, Provider
from crew.domain.rows.question import Question
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import with_rows
from crew.front.tui.board.agent_lines import agent_line
from crew.front.tui.board.board_order import board_lines
from crew.front.tui.board.status_line import clock, status_spans
from crew.front.tui.board.task_cells import board_line, board_widths, task_cells
from crew.front.tui.board.view_choices import ViewChoices
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.paint import cell_len
from crew.tasks.source_snapshot import Items

UP = {"pid": 7, "started": "2026-01-01T00:00:00Z"}
MANY = 10_000


def picture(*items, rows=(), **more):
    found = {item.id: item for item in items}
    return Picture(world=with_rows(rows), items=found, **more)


def task(number, status="todo", title="", **more):
    return TaskItem(id=str(number), title=title or f"task {number}", status=status, **more)


def told(picture_, **choices):
    """The board as headings and ids, one after the other."""
    return [
        line.task or f"{line.title} {line.size or ''}".strip()
        for line in board_lines(picture_, ViewChoices(**choices))
    ]


def text_of(line):
    return "".join(text for text, _ in line.spans)


def drawn(picture_, width, **choices):
    lines = board_lines(picture_, ViewChoices(**choices))
    widths = board_widths(picture_, lines, now=1000.0)
    return [text_of(board_line(picture_, one, width, now=1000.0, widths=widths)) for one in lines]


def test_what_needs_a_person_comes_first_and_finished_tasks_are_left_out():
    found = picture(
        task(1), task(2, "merged"), task(3, "error"), task(10, "in_progress"), task(4, "closed")
    )
    assert told(found) == ["Error 1", "3", "In progress 1", "10", "Todo 1", "1"]
    assert told(found, everything=True)[-4:] == ["Merged 1", "2", "Closed 1", "4"]
    assert told(found, filter="status:merged") == ["Merged 1", "2"]


def test_a_state_that_its_file_does_not_have_yet_counts():
    row = Task(id="1", state="in_progress", written="todo")
    assert told(picture(task(1), rows=[row])) == ["In progress 1", "1"]


def test_waves_tell_what_can_start_now_and_what_never_will():
    found = picture(
        task(1),
        task(2, deps=("1",)),
        task(3, deps=("2",)),
        task(4, deps=("3",)),
        task(5, deps=("6",)),
        task(6, deps=("5",)),
        task(7, deps=("99",)),
        task(8, "in_progress"),
        task(9, deps=("10",)),
        task(10, "merged"),
        task(11, deps=("12",)),
        task(12, "done"),
        rows=[Task(id="12", state="done", written="done", landed_commit="abc")],
    )
    assert told(found, group="wave") == [
        *("Under way 1", "8", "Ready now 3", "1", "9", "11"),
        *("Next 1", "2", "Later 2", "3", "4", "Blocked 3", "5", "6", "7", "Done 1", "12"),
    ]


def test_children_stand_below_their_parents_also_when_they_name_each_other():
    found = picture(task(1), task(2, parent="1"), task(3, parent="2"), task(4, parent="5"))
    assert [(line.task, line.depth) for line in board_lines(found, ViewChoices(group="quest"))] == [
        *(("1", 0), ("2", 1), ("3", 2), ("4", 0)),
    ]
    round_about = picture(task(1, parent="2"), task(2, parent="1"), task(3, parent="3"))
    assert sorted(told(round_about, group="quest")) == ["1", "2", "3"]


def test_sorts_keep_the_order_of_the_ids_among_equals():
    found = picture(
        task(1, priority=3, title="b", created=1.0, agent="zoe"),
        task(2, priority=0, title="a", created=3.0),
        task(10, priority=3, title="C", created=2.0, agent="amy"),
    )
    assert told(found, sort="id")[1:] == ["1", "2", "10"]
    assert told(found, sort="priority")[1:] == ["2", "1", "10"]
    assert told(found, sort="title")[1:] == ["2", "1", "10"]
    assert told(found, sort="newest")[1:] == ["2", "10", "1"]
    assert told(found, sort="agent")[1:] == ["10", "1", "2"]


def test_a_filter_wants_all_of_its_words():
    rows = [
        Task(id="1", state="in_progress", written="in_progress", run="1.1"),
        Run(id="1.1", task="1", agent="A", agent_kind="claude", state="working"),
    ]
    found = picture(
        task(1, "in_progress", title="Fix the Parser", labels=("core",), parent="9"),
        task(2, title="Parse numbers", labels=("docs",), agent="codex"),
        rows=rows,
    )
    for wish, ids in {
        "pars": {"1", "2"},
        "parser fix": {"1"},
        "status:in-progress": {"1"},
        "label:do pars": {"2"},
        "agent:clau": {"1"},
        "agent:a": {"1"},
        "agent:cod": {"2"},
        "parent:9": {"1"},
        "other:1": set(),
    }.items():
        assert {one for one in told(found, filter=wish) if one.isdigit()} == ids, wish


def test_the_status_says_how_long_and_what_it_waits_for():
    run = Run(id="1.1", task="1", agent="A", agent_kind="claude", state="working", started_at=700.0)
    row = Task(id="1", state="in_progress", written="in_progress", run="1.1")
    asked = Question(id="q1", task="1", run="1.1", role="worker", question="Which?")

    def status(*rows, **more):
        found = picture(task(1, "in_progress"), rows=[row, *rows], **more)
        return task_cells(found, "1", now=1000.0).status

    assert status(run, runner=UP) == "In Progress (5m)"
    assert status(run) == "In Progress (5m, no runner)"
    assert (
        status(replace(run, question="q1"), asked, runner=UP) == "In Progress (5m, awaiting_user)"
    )
    assert status(run, asked, runner=UP) == "In Progress (5m, awaiting_permission)"
    stuck = Agent(id="A", agent_kind="claude", state="stuck", task="1", run="1.1")
    assert status(run, stuck, runner=UP) == "In Progress (5m, stuck)"


@pytest.mark.parametrize("width", [40, 80, 96, 150, 250])
def test_lines_have_the_columns_that_have_room(width):
    hostile = "[red]x[/red] \x1b[31m\u202e evil \u4f60\u597d " + "long " * 400
    found = picture(
        task(1, title="Plain", labels=("core", "ui"), parent="7", agent="claude"),
        task(2, title=hostile, deps=("1",)),
        task(3, title="Broken", corrupt="no front matter"),
    )
    lines = drawn(found, width)
    assert "[BLOCKED] [red]x[/red]" in lines[2]
    assert "[CORRUPTED] Broken" in lines[3]
    assert "\x1b" not in lines[2]
    assert "\u202e" not in lines[2]
    assert ("core,ui" in lines[1]) == (width >= 90)
    assert (" 7 " in lines[1]) == (width >= 80)
    before_title = lines[1].index("Plain")
    assert cell_len(lines[1][:before_title]) < width - 10


def test_an_agent_says_what_it_does_or_why_it_does_nothing():
    run = Run(id="1.1", task="1", agent="A", agent_kind="claude", state="working", steps=3)
    agent = Agent(
        id="A", agent_kind="claude", state="working", task="1", run="1.1", input_tokens=1_500_000
    )
    found = picture(task(1), rows=[run, agent], runner=UP, doing={"A": "edits \x1b[1mx.py"})
    shown = text_of(agent_line(found, agent, 120))
    assert shown.startswith("● A")
    assert "step 3" in shown
    assert "1.5M" in shown
    assert "edits" in shown
    assert "\x1b" not in shown
    lonely = replace(found, runner=None)
    assert "no runner" in text_of(agent_line(lonely, agent, 120))
    stuck = replace(agent, state="stuck", last_error="cannot push", cost_usd=None)
    assert "cannot push" in text_of(agent_line(found, stuck, 120))
    assert "unknown" in text_of(agent_line(found, stuck, 120))


def test_the_status_line_tells_limits_with_the_time_at_which_they_end():
    soon = time.time() + 600
    rows = [
        Provider(id="anthropic", state="paused", next_at=soon, reason="429"),
        Provider(id="openai", state="paused", next_at=time.time() - 5, reason="429"),
        Outage(id="codex", reason="not logged in", remedy="codex login"),
        Task(id="1", state="done", written="done", queued_at=1.0, head="abc", target="main"),
        Run(id="1.1", task="1", cost_usd=None),
        Run(id="1.2", task="1", cost_usd=1.5),
    ]
    text = "".join(t for t, _ in status_spans(picture(task(1, "done"), rows=rows, runner=UP)))
    assert f"anthropic at its limit until {clock(soon, time.time())}" in text
    assert "openai" not in text
    assert "codex is paused: not logged in" in text
    assert "runner 7" in text
    assert "queue 1" in text
    assert "$1.50 and unknown" in text
    assert "no runner" in status_spans(picture())[1][0]
    failed = status_spans(picture(task(1), failure="disk\x1b[2J gone"))
    assert "cannot read the crew" in failed[1][0]
    assert "\x1b" not in failed[1][0]


def many():
    rows = {
        str(n): {"id": str(n), "title": f"Task {n}", "deps": [str(n - 1)] if n % 3 == 0 else []}
        for n in range(1, MANY + 1)
    }
    made = [
        row
        for n in range(1, MANY + 1)
        for row in (
            Task(id=str(n), run=f"{n}.1"),
            Run(id=f"{n}.1", task=str(n), agent="A", agent_kind="claude", state="working"),
        )
    ]
    return Picture(world=with_rows(made), items=Items(rows))


@pytest.mark.parametrize("group", ["state", "wave", "quest"])
def test_ten_thousand_tasks_are_arranged_at_once(group):
    found = many()
    best = 9.0
    for _ in range(5):
        fresh = replace(found, items=Items(found.items.rows))  # nothing is known about them yet
        started = time.process_time()
        lines = board_lines(fresh, ViewChoices(group=group))
        best = min(best, time.process_time() - started)
    assert len(lines) >= MANY
    assert best < 0.25  # a tenth of a second on a machine that does nothing else


def test_a_line_of_ten_thousand_does_not_look_at_the_others():
    found = many()
    lines = board_lines(found, ViewChoices())
    board_line(found, lines[5], 100, now=0.0)
    started = time.process_time()
    for line in lines[1:501]:
        board_line(found, line, 100, now=0.0)
    assert time.process_time() - started < 0.25
