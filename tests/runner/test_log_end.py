"""The end of a log is found from its end, in a few blocks, whatever its lines are like."""

import io
import json

import pytest

from crew.runner.views import log_end
from crew.runner.views.log_end import BLOCK, LAST_BYTES, size_of, start_of_last, steps_from_end
from crew.runner.views.step_log import note_messages, says_done, start_step


def last(log, count):
    end = size_of(log)
    return log.read_bytes()[start_of_last(log, count, end=end) : end]


@pytest.mark.parametrize(
    ("content", "count", "expected"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
        (b"a\nb\n", 99, b"a\nb\n"),
        (b"\n\n\n", 2, b"\n\n"),
        (b"\n", 1, b"\n"),
        (b"a", 1, b"a"),
        ("a\nä".encode()[:-1], 1, "ä".encode()[:-1]),  # in the middle of a character
    ],
)
def test_the_last_lines_begin_after_the_newline_before_them(tmp_path, content, count, expected):
    log = tmp_path / "log"
    log.write_bytes(content)
    assert last(log, count) == expected


@pytest.mark.parametrize("width", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_lines_of_any_length_are_found_across_blocks(tmp_path, width):
    log = tmp_path / "log"
    lines = [str(number).encode() * width + b"\n" for number in range(1, 8)]
    log.write_bytes(b"".join(lines))
    for count in range(1, 9):
        assert last(log, count) == b"".join(lines[-count:])


def test_of_a_huge_log_only_the_end_is_read(tmp_path, monkeypatch):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(4_000_000_000)  # sparse: takes no space
        file.seek(0, io.SEEK_END)
        file.write(b"\n=== A: step 1.1/1/1/1 ===\n" + b"said\n" * 100)
    reads = []
    real = log_end._read
    monkeypatch.setattr(log_end, "_read", lambda *a: reads.append(a) or real(*a))
    assert last_of_big(log, 2) == b"said\nsaid\n"
    assert next(steps_from_end(log, end=size_of(log)))[1] == "1.1/1/1/1"
    assert len(reads) == 2


def last_of_big(log, count):
    end = size_of(log)
    with log.open("rb") as file:
        file.seek(start_of_last(log, count, end=end))
        return file.read()


@pytest.mark.parametrize("noise", [0, 10, BLOCK - 30, BLOCK - 20, BLOCK - 2, BLOCK, 3 * BLOCK])
def test_the_headers_of_steps_come_from_the_last_to_the_first(tmp_path, noise):
    log = tmp_path / "log"
    keys = ["12.1/1/1/1", "12.1/1/2/1", "12.1/1/2/2"]
    log.write_bytes(b"".join(header(key) + b"x" * noise + b"\n" for key in keys))
    found = list(steps_from_end(log, end=size_of(log)))
    assert [key for _, key in found] == keys[::-1]
    content = log.read_bytes()
    assert all(content[at:].startswith(header(key)) for at, key in found)


def header(key):
    return f"=== A: step {key} ===\n".encode()


def test_words_that_look_like_a_header_inside_of_a_line_are_none(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"says === A: step 1.1/1/1/1 ===\n=== no step ===\n=== A: step 2 === more\n")
    assert list(steps_from_end(log, end=size_of(log))) == []


def test_a_log_that_is_not_there_has_no_bytes(tmp_path):
    assert size_of(tmp_path / "none") == 0


def test_the_last_lines_are_looked_for_in_the_last_megabytes_only(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(3 * LAST_BYTES)  # one long line
    assert start_of_last(log, 1, end=3 * LAST_BYTES) == 2 * LAST_BYTES
    assert start_of_last(log, 1, end=LAST_BYTES) == 0


SAYS = {"message": {"content": [{"type": "text", "text": "DONE"}]}}
PRINTS = {"message": {"content": [{"type": "tool_result", "content": "DONE"}]}}


@pytest.mark.parametrize(
    ("event", "is_done"),
    [
        ({"type": "item.completed", "item": {"type": "agent_message", "text": "ok\nDONE"}}, True),
        ({"type": "assistant", **SAYS}, True),
        ({"type": "assistant", "parent_tool_use_id": "t", **SAYS}, False),
        ({"type": "user", **PRINTS}, False),
        ({"type": "tool_result", "status": "success", "output": "DONE"}, False),
    ],
)
def test_done_counts_as_the_agents_own_word_alone(tmp_path, event, is_done):
    log = tmp_path / "log"
    log.write_bytes(header("1.1/1/1/1") + b"DONE\n" + header("1.1/1/2/1"))
    with log.open("a") as file:
        file.write(f"{json.dumps(event)}\n")
    assert says_done(log, "DONE", step="1.1/1/2/1") is is_done


FINISHED = json.dumps({"type": "assistant", **SAYS})


def test_a_step_begins_on_a_line_of_its_own_after_one_that_was_killed(tmp_path):
    log = tmp_path / "log"
    start_step(log, agent="A", step="1.1/1/1/1")
    with log.open("a") as file:
        file.write(f'{FINISHED}\n{{"type":"assistant","message":{{"content":[{{"text":"make te')
    start_step(log, agent="A", step="1.1/1/1/2")
    assert log.read_text().splitlines()[-1] == "=== A: step 1.1/1/1/2 ==="
    assert not says_done(log, "DONE", step="1.1/1/1/2")
    note_messages(log, ["m1"])
    with log.open("a") as file:
        file.write(FINISHED)
    assert says_done(log, "DONE", step="1.1/1/1/2")
    assert log.read_text().splitlines()[3:] == [
        "=== A: step 1.1/1/1/2 ===",
        "=== got the message m1 ===",
        FINISHED,
    ]


def test_a_step_that_was_killed_before_its_first_line_has_not_said_done(tmp_path):
    log = tmp_path / "log"
    assert not says_done(log, "DONE", step="1.1/1/1/1")
    log.write_bytes(header("1.1/1/1/1") + b"DONE\n")
    assert says_done(log, "DONE", step="1.1/1/1/1")
    assert not says_done(log, "DONE", step="1.1/2/1/1")


def test_a_long_step_is_read_from_its_first_line(tmp_path):
    """The line that names the agent's own thread is the first one."""
    log = tmp_path / "log"
    opened = {"id": 2, "result": {"thread": {"id": "own"}}}
    item = {"type": "agentMessage", "text": "DONE"}
    said = {"method": "item/completed", "params": {"threadId": "helper", "item": item}}
    noise = b"x" * 99 + b"\n"
    lines = [json.dumps(one).encode() + b"\n" for one in (opened, said)]
    log.write_bytes(header("1.1/1/1/1") + lines[0] + noise * 9_999 + lines[1])
    assert not says_done(log, "DONE", step="1.1/1/1/1")
    own = json.dumps({**said, "params": {"threadId": "own", "item": item}})
    with log.open("a") as file:
        file.write(f"{own}\n")
    assert says_done(log, "DONE", step="1.1/1/1/1")
