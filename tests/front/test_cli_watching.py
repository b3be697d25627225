"""Watching from the command line: ps, peek, logs, events, runs, cost, dashboard."""

import json
import signal
import subprocess
from dataclasses import replace

import pytest

from crew.domain.rows.question import Question
from crew.front.cli.watching.open_questions import asked_lines
from front.conftest import CREW, PATIENCE_S

RUN_FIELDS = set(
    "id task state round max_rounds steps history session verdicts error started ended".split()  # noqa: SIM905
)
EVENT_FIELDS = {
    *("id", "timestamp", "event", "subject", "agentId", "from", "to", "trigger", "channel"),
}


@pytest.fixture
def drained(scene):
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "-q")
    return scene


def test_empty_lists_are_empty_arrays(scene):
    for command in ("ps", "list", "ready", "runs", "events", "cost"):
        assert scene.ok(command, "--json").out == "[]\n", command


def test_people_are_told_what_to_do_when_there_is_nothing(scene):
    for command in ("ps", "list", "runs", "cost"):
        said = scene.ok(command)
        assert said.out == ""
        assert said.err
        assert scene.ok(command, "-q").err == ""


def test_of_many_questions_the_oldest_are_shown_and_the_others_counted():
    questions = [
        Question(id=f"q{n}", task=str(n), run="r", role="worker", question="why? " * n, asked_at=-n)
        for n in range(1, 41, 8)
    ]
    *shown, more = asked_lines(questions)
    assert [words[: words.index(":")] for words in shown] == [
        *("task 33 asks q33", "task 25 asks q25", "task 17 asks q17"),
    ]
    assert all(len(words) < 105 for words in shown)
    assert more == "2 more questions wait: crew inbox"
    assert list(asked_lines([replace(questions[0], state="answered")])) == []


def test_logs_and_peek_show_what_the_agent_printed(drained):
    for subject in ("A", "1", "#1"):
        assert "working on 1" in drained.ok("logs", subject).lines
        assert drained.ok("peek", subject, "-n", "1").lines == ["DONE"]
    assert drained.ok("logs", "1", "--since", "1h").out == drained.ok("logs", "1").out
    assert drained.ok("peek", "A", "--json").json["task"] == "1"


def test_logs_are_safe_to_print(drained):
    log = drained.root / ".crew/logs/task-1.log"
    log.write_bytes(b"a\x1b]52;c;xx\x07b\x1b[2Jc \x1b[31mred\x1b[0m \xff\n")
    assert drained.ok("logs", "1").out == "abc red �\n"
    coloured = drained.ok("logs", "1", FORCE_COLOR="1")
    assert "\x1b[31mred\x1b[0m" in coloured.out
    assert "\x1b]" not in coloured.out
    assert "\x1b[31m" not in drained.ok("logs", "1", FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b[31m" not in drained.ok("--no-color", "logs", "1", FORCE_COLOR="1").out


def test_each_line_of_a_long_log_is_printed_and_is_an_entry_of_its_own(drained):
    lines = [f"line {n}" for n in range(20_000)]
    log = drained.root / ".crew/logs/task-1.log"
    log.write_text("".join(f"{one}\n" for one in ["", *lines, "a\rb", "", "DONE"]))
    assert drained.ok("logs", "1").lines == ["", *lines, "a", "b", "", "DONE"]
    entries = drained.ok("logs", "1", "--json").json["entries"]
    texts = ["", *lines, "a\nb", "", "DONE"]
    assert entries == [{"kind": "text", **({"text": one} if one else {})} for one in texts]


def test_logs_follow_until_interrupted(drained):
    following = drained.start("logs", "1", "-f")
    log = drained.root / ".crew/logs/task-1.log"
    for expected in log.read_text().splitlines():
        assert following.stdout.readline().rstrip("\n") == expected
    with log.open("a") as file:
        file.write("later\n")
    assert following.stdout.readline() == "later\n"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, out, err) == (130, "", "")


STEP = b"""=== A: step 1.1/1/1/1 ===
{"type": "text", "text": "I look.\\nThen I write."}
{"type": "tool", "name": "write", "text": "a.py"}
{"type": "usage", "input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}
{"type": "end"}
a\x1b]52;c;xx\x07b \xff
"""
SHOWN = [
    *("=== A: step 1.1/1/1/1 ===", "I look.", "Then I write.", "• write: a.py"),
    *("— 7 tokens in, 2 out, $0.5000", "ab �"),
]
ENTRIES = [
    {"kind": "step", "text": "A: step 1.1/1/1/1"},
    {"kind": "said", "text": "I look.\nThen I write."},
    {"kind": "tool", "tool": "write", "text": "a.py"},
    {"kind": "cost", "input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5},
    {"kind": "ended", "text": "end"},
    {"kind": "text", "text": "ab �"},
]


@pytest.fixture
def recorded(drained):
    """The log of task 1 is that of an agent that prints JSON."""
    (drained.root / ".crew/logs/task-1.log").write_bytes(STEP)
    return drained


def test_logs_and_peek_show_words_tools_and_costs_instead_of_json(recorded):
    assert recorded.ok("logs", "1").lines == SHOWN
    assert recorded.ok("peek", "1").lines == SHOWN
    assert recorded.ok("peek", "1", "-n", "3").lines == SHOWN[-3:]
    coloured = recorded.ok("logs", "1", FORCE_COLOR="1").lines
    assert coloured[3] == "\x1b[36m• write: a.py\x1b[0m"


def test_logs_and_peek_print_the_entries_as_json(recorded):
    assert recorded.ok("logs", "1", "--json").json == {"task": "1", "entries": ENTRIES}
    assert recorded.ok("peek", "1", "-n", "2", "--json").json["entries"] == ENTRIES[-2:]
    following = recorded.start("logs", "1", "-f", "--json")
    for expected in ENTRIES:
        assert json.loads(following.stdout.readline()) == {"task": "1", **expected}
    following.kill()
    following.communicate()


def test_raw_prints_the_bytes_of_the_log(recorded):
    def printed(*args):
        return subprocess.run(
            [CREW, *args, "--raw"], cwd=recorded.root, capture_output=True, check=True
        ).stdout

    assert printed("logs", "1") == STEP
    assert printed("peek", "1", "-n", "2") == b"".join(STEP.splitlines(keepends=True)[-2:])
    (lines,) = {tuple(recorded.ok(*args, "--raw", "--json").json["lines"]) for args in RAW}
    assert lines[2] == STEP.decode(errors="replace").splitlines()[2]
    assert lines[-1] == "ab �"


RAW = (["logs", "1"], ["peek", "1"])


def test_raw_on_a_terminal_is_safe_to_show(recorded, on_screen):
    screen = on_screen([CREW, "logs", "1", "--raw"], cwd=recorded.root)
    assert screen.ended() == 0
    assert '{"type": "end"}' in screen.shown
    assert "\x1b]52" not in screen.shown


def test_the_end_of_a_huge_log_is_shown_from_its_last_megabytes(recorded):
    log = recorded.root / ".crew/logs/task-1.log"
    with log.open("r+b") as file:
        file.truncate(2**30)  # one line of a gigabyte
        file.seek(0, 2)
        file.write(b"\n" + STEP)
    assert recorded.ok("peek", "1", "-n", "3").lines == SHOWN[-3:]
    assert recorded.ok("peek", "1", "-n", "6").lines == SHOWN


def test_events_are_one_object_a_line_and_an_array_in_json_mode(drained):
    lines = [json.loads(line) for line in drained.ok("events").lines]
    assert lines == drained.ok("events", "--json").json
    assert all(set(line) >= EVENT_FIELDS for line in lines)
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines)
    assert lines[0]["timestamp"].endswith("Z")
    only = drained.ok("events", "--json", "--subject", "task:1").json
    assert {event["subject"] for event in only} == {"task:1"}
    moves = [(e["from"], e["to"]) for e in only if e["event"] == "state_transition"]
    assert moves[-1] == ("done", "merged")
    assert drained.ok("events", "--json", "--since", "0s").json == []


def test_events_are_followed_as_they_happen(drained):
    assert drained.ok("events", "--since", "0s").out == ""
    following = drained.start("events", "-f", "--since", "1h")
    assert following.stdout.readline()  # it has looked: what comes from now on, it follows
    drained.ok("spawn", "Zoe")
    while json.loads(following.stdout.readline())["subject"] != "agent:Zoe":
        pass
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 130


@pytest.mark.parametrize("args", [["events"], ["logs", "1"], ["channel", "tail", "talk"]])
def test_what_is_followed_in_json_mode_stays_one_object_a_line_to_its_end(drained, args):
    drained.ok("channel", "new", "talk", "--member", "sh")
    drained.ok("channel", "say", "talk", "hello")
    following = drained.start(*args, "-f", "--json")
    first = following.stdout.readline()
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, err) == (130, "")
    documents = [json.loads(line) for line in (first, *out.splitlines())]
    assert documents[-1]["error"]["code"] == "interrupted"


def test_runs_have_the_promised_fields(drained):
    (run,) = drained.ok("runs", "--json").json
    assert set(run) >= RUN_FIELDS
    assert run["history"] == ["init", "working", "reviewing", "complete"]
    assert run["state"] == "complete"
    assert drained.ok("runs", "1", "--json").json == [run]
    assert drained.ok("show", "1", "--json").json["run"] == run
    assert "complete" in drained.ok("runs").out


def test_a_cost_nobody_knows_is_never_0(drained):
    for by in ("task", "agent", "day", "model"):
        (row,) = drained.ok("cost", "--by", by, "--json").json
        assert row["cost_usd"] is None
        out = drained.ok("cost", "--by", by).out
        assert "unknown" in out
        assert "$0" not in out
    assert drained.ok("cost", "--by", "agent", "--json").json[0]["agent"] == "A"


def test_the_dashboard_prints_one_frame_without_a_terminal(drained):
    for args in (["dashboard", "--once"], ["d"]):
        out = drained.ok(*args).out
        assert "no runner is up" in out
        assert "1 merged" in out
        assert "○  A" in out
    assert drained.ok("d", "--json").json["agents"][0]["symbol"] == "○"


def test_a_task_whose_file_is_away_is_told_as_that(drained):
    drained.ok("new", "--title", "two")
    file = drained.root / ".crew/tasks/default/2.md"
    text = file.read_text().replace("title: two", "title: two\ndeps: 99")
    file.write_text(text)
    assert "blocked by 99" in drained.crew("run", "--drain").err
    file.unlink()
    said = drained.crew("run", "--drain")
    assert (said.code, "its file is missing" in said.err) == (6, True)
    assert "1 merged, 1 whose file is away" in drained.ok("d").out
    file.write_text(text)
    assert "its file is missing" not in drained.crew("run", "--drain").err
    assert "tasks: 1 todo, 1 merged" in drained.ok("d").out


@pytest.fixture
def at_terminal(drained, on_screen):
    """Runs crew, types something once this is shown, and waits for its end."""

    def at_terminal(*args: str, send: str, wanted: str) -> tuple[int, str]:
        screen = on_screen([CREW, *args], cwd=drained.root)
        screen.until(wanted)
        screen.type(send)
        return screen.ended(), screen.shown

    return at_terminal


def test_a_run_in_a_terminal_shows_a_live_view_and_ctrl_c_ends_it(at_terminal):
    code, seen = at_terminal("run", send="\x03", wanted="runner: pid")
    assert code == 130
    assert "NAME" in seen


def test_on_a_terminal_destructive_commands_ask(drained, at_terminal):
    code, seen = at_terminal("rm", "1", send="n\n", wanted="[y/N]")
    assert code == 0
    assert "nothing was deleted" in seen
    assert drained.status("1") == "merged"
    code, _ = at_terminal("rm", "1", send="y\n", wanted="[y/N]")
    assert code == 0
    assert drained.crew("show", "1").code == 3
