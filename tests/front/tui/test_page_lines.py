"""The lines of the merge queue, of channels and of costs, with plain values."""

import json
import time
from datetime import UTC, datetime

from crew.domain.kernel.fact import Fact
from crew.domain.rows import merge_queue
from crew.domain.rows.channel import Channel, Member, Post
from crew.domain.rows.merge_queue import Candidate, MergeQueue, Trial
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.world import with_rows
from crew.front.tui.board.channel_lines import channel_lines, conversation
from crew.front.tui.board.cost_lines import cost_lines, days_lines, last_days, sparkline
from crew.front.tui.board.queue_lines import queue_lines
from crew.front.tui.live.past_returns import Return, returns
from crew.front.tui.live.picture import Picture
from crew.front.tui.widgets.paint import cell_len
from crew.front.tui.widgets.sheet import wrapped

NOW = 1_790_000_000.0
STARTED = datetime.fromtimestamp(NOW - 60, UTC).isoformat()
HOSTILE = "[red]x[/red] \x1b[31m\u202e"


def text(line):
    return "".join(words for words, _ in line.spans)


def queued(number, **more):
    state = {"state": "done", "written": "done", "target": "main", "head": f"h{number}"}
    return Task(id=str(number), title=f"T{number} {HOSTILE}", **{"queued_at": 1.0, **state, **more})


def shown(queue, *tasks, doing=None, runner=True, returned=()):
    picture = Picture(
        world=with_rows([queue, *tasks]),
        doing=doing or {},
        runner={"pid": 1, "started": STARTED} if runner else None,
    )
    return [text(one) for one in queue_lines(picture, returned, now=NOW)]


def test_a_queue_tells_what_is_tested_with_what_and_where():
    queue = MergeQueue(
        id="main",
        base="b" * 40,
        chain=(Candidate("1", "h1", "c1"), Candidate("2", "h2", "c2"), Candidate("3", "h3", "c3")),
        trials=(Trial("t" * 40, (Candidate("4", "h4", "c4"),)),),
        held=(("5", "h5"),),
        results=(
            merge_queue.TestResult("c1", True, 1, ""),
            merge_queue.TestResult("c4", False, 1, "boom\x1b[0m"),
        ),
    )
    gate = json.dumps({"commit": "c3", "task": "3", "since": NOW - 12})
    old = json.dumps({"commit": "c2", "task": "2", "since": NOW - 900})
    again = json.dumps({"commit": "c4", "task": "4", "since": NOW - 3})
    doing = {"gate/2": gate, "gate/1": old, "gate/3": again, "A": "works"}
    tasks = [queued(number) for number in range(1, 7)]
    lines = shown(queue, *tasks, doing=doing)
    assert lines[0].startswith("main: 6 in the queue, 2 under test")
    assert "passed" in lines[1]
    assert "in the test of 3" in lines[2]  # the runner of its own test is no more
    assert "with 1" in lines[2]
    assert "tested on slot 2 for 10s" in lines[3]
    assert "with 1, 2" in lines[3]
    assert "trial 1 on tttttttt" in lines[4]
    assert "again on slot 3 for 0s" in lines[5]
    assert "waits: conflicts" in lines[6]
    assert "joins the queue next" in lines[7]
    assert all("\x1b" not in line and "\u202e" not in line for line in lines)
    assert "tested" not in "".join(shown(queue, *tasks, doing=doing, runner=False))


def test_landed_work_tells_why_it_is_not_delivered():
    queue = MergeQueue(id="main", waiting=f"main is dirty {HOSTILE}", remedy="git stash")
    landed = queued(1, landed_commit="abc1234567")
    lines = shown(queue, landed, queued(2, queued_at=None), queued(3, conflict="q7"))
    assert "waits: main is dirty [red]x[/red]" in lines[1]
    assert "git stash" in lines[2]
    assert "landed as abc12345" in "".join(lines)
    assert "done: m merges it" in "".join(lines)
    assert "conflict: answer q7" in "".join(lines)


def test_what_was_sent_back_says_why():
    def fact(kind, subject, trigger, at=5.0, **changes):
        return Fact(kind=kind, subject=subject, trigger=trigger, at=at, changes=changes)

    facts = [
        (1, fact("task", "1", "sent_back")),
        (2, fact("run", "1.1", "not_merged", merge_paths=("a", "b"), merge_notes="both sides")),
        (3, fact("run", "1.1", "sent_back", ask="conflict", notes="")),
        (4, fact("task", "2", "sent_back", at=6.0)),
        (5, fact("run", "9.1", "sent_back", at=6.0, ask="conflict")),
        (6, fact("run", "2.3", "sent_back", at=6.0, ask="red_gate", notes="1 failed")),
        (7, fact("task", "3", "sent_back", at=7.0)),
        (8, fact("run", "3.1", "failed", at=7.0, ask="red_gate", error="after 20 rounds")),
    ]
    found = returns(facts)
    assert [(one.task, one.notes) for one in found] == [
        ("1", "both sides"),
        ("2", "1 failed"),
        ("3", ""),
    ]
    assert found[0].why == "conflicts with what landed in a, b"
    assert "gate" in found[1].why
    late = Return(number=9, task="1", at=NOW - 120, why="fails", notes="")
    assert "2m ago" in shown(MergeQueue(id="main"), queued(1), returned=[late])[-1]


def test_members_stand_in_the_order_of_their_turns():
    channel = Channel(
        id="talk",
        members=("a", "b", "c", "d"),
        queue=("d", "a"),
        holder="c",
        sequence=2,
        topic=HOSTILE,
        held=(("ann", f"later {HOSTILE}", NOW, "a"),),
    )
    states = {"a": "queued", "b": "offline", "c": "active", "d": "queued"}
    members = [
        Member(id=f"talk/{name}", channel="talk", name=name, state=state, agent_kind="claude")
        for name, state in states.items()
    ]
    closed = Channel(id="old", state="closed")
    posts = [
        Post(id=f"talk/{n}", channel="talk", sequence=n, sender="c", text=f"p{n} {HOSTILE}", at=NOW)
        for n in (2, 1)
    ]
    world = with_rows([channel, closed, *members, *posts])
    lines = [text(one) for one in channel_lines(world, now=NOW)]
    assert "c has the turn, then d, a" in lines[0]
    assert [line.split()[1].rstrip(".") for line in lines[1:]] == ["c", "1", "2", "b"]
    said = [text(one) for one in conversation(world, "talk", 40, now=NOW)]
    assert said[1].startswith("  p1 [red]x[/red]")
    assert said[3].startswith("  p2")
    assert "held until the turn ends" in said[4]
    assert all("\x1b" not in line and "\u202e" not in line for line in [*lines, *said])


def test_a_sparkline_has_a_block_for_each_value():
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "  "
    assert sparkline([0, 1, 4, 8]) == " ▂▅█"
    assert sparkline([0.0001, 100]) == "▁█"


def run(number, day, cost, **more):
    at = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
    return Run(id=f"{number}.1", task=str(number), started_at=at, cost_usd=cost, **more)


def test_costs_are_added_up_by_day_task_agent_and_model():
    today = datetime.fromtimestamp(NOW, UTC).date().isoformat()
    before = last_days(2, now=NOW)[0]
    world = with_rows(
        [
            run(1, today, 2.0, agent_kind="claude", model="opus", input_tokens=10),
            run(2, before, 4.0, agent_kind="claude", input_tokens=20),
            run(3, today, None, agent_kind="codex", input_tokens=30_000),
        ]
    )

    def lines(by):
        more = {"agents": {"1.1": "A", "2.1": "A"}, "settings": None, "titles": {"1": HOSTILE}}
        return [text(one) for one in cost_lines(world, by, now=NOW, **more)]

    by_task = lines("task")
    assert [line.split()[0] for line in by_task] == ["task", "2", "1", "3", "total"]
    assert "unknown" in by_task[3]
    assert "≥$6.00 ?" in by_task[-1]
    assert "█ " in by_task[1]
    assert "\x1b" not in by_task[2]
    assert [line.split()[0] for line in lines("day")] == ["day", today, before, "total"]
    assert [line.split()[0] for line in lines("agent")] == ["agent", "A", "-", "total"]
    models = [line.split()[0] for line in lines("model")]
    assert models == ["model", "claude", "opus", "codex", "total"]
    assert text(days_lines(world, now=NOW)[1]).endswith("█▅")


def test_text_is_wrapped_by_the_cells_that_it_takes():
    wide = "\u4f60\u597d" * 30
    for width in (10, 20, 79):
        lines = [text(one) for one in wrapped(f"{wide} and {'word ' * 30}", width)]
        assert max(map(cell_len, lines)) <= width
    assert [text(one) for one in wrapped("a\n\nb\tc", 20)] == ["a", "", "b   c"]
    started = time.process_time()
    assert wrapped("x" * 10_000_000, 80)
    assert time.process_time() - started < 2.0
