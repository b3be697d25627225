"""The log of every program reads as what a person wants to see.

`recorded_logs` holds what the real programs printed; next to each log is what is shown of it.
`python -m agents.test_log_reader` in `tests` writes these files anew.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crew.agents.log_reader import LONGEST_TEXT, LogReader, entries_of
from crew.domain.kernel.log_entry import LogEntry
from crew.front.entry_lines import entry_lines
from crew.runner.views.log_end import BLOCK
from crew.runner.views.read_log import entries_of_chunks, entries_of_lines, lines_of

RECORDED = Path(__file__).parent / "recorded_logs"
LOGS = sorted(RECORDED.glob("*.log"))


BRACKETS = '{"a":' * 100_000


def shown(*lines: str) -> list[str]:
    return [line.text for entry in entries_of_lines(lines) for line in entry_lines(entry)]


def shown_of(log: Path) -> str:
    """Each line after its style."""
    lines = log.read_text().splitlines()
    pairs = zip(styles(*lines), shown(*lines), strict=True)
    return "".join(f"{style:6}| {text}\n" for style, text in pairs)


def styles(*lines: str) -> list[str]:
    return [line.style for entry in entries_of_lines(lines) for line in entry_lines(entry)]


def claude(*blocks, kind="assistant", **fields):
    return json.dumps({"type": kind, "message": {"content": list(blocks)}, **fields})


def acp(kind, **fields):
    update = {"sessionUpdate": kind, **fields}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}})


def piece(text):
    return acp("agent_message_chunk", content={"type": "text", "text": text})


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_recorded_log_reads_as_words_tools_short_results_errors_and_costs(log):
    assert shown_of(log) == log.with_suffix(".shown").read_text()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_line_of_a_known_program_is_shown_as_json(log):
    lines = shown(*log.read_text().splitlines())
    assert log.stem == "plain" or [line for line in lines if line.startswith("{")] == []


@pytest.mark.parametrize(
    "line",
    [
        *("", "words", "{broken", "[1]", "{}", '{"a": 1}', '{"type": 5}', '{"type": "unheard-of"}'),
        '{"type": "system", "subtype": "unheard-of"}',
        '{"type": "assistant"}',
        '{"type": "item.completed", "item": {"type": "unheard-of"}}',
        '{"method": "unheardOf"}',
        '{"method": "session/update", "params": {"update": {"sessionUpdate": "unheard-of"}}}',
        '{"sessionID": "ses_1", "type": "unheard-of"}',
        '{"id": 1}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_not_known_is_shown_as_it_is(line):
    assert entries_of(line) == (LogEntry(kind="text", text=line),)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            '{"type": "tool_use_summary", "summary": "Read 3 files", "uuid": "u-1"}',
            "tool_use_summary: Read 3 files",
        ),
        (
            '{"method": "news/ended", "params": {"item": {"type": "news", "text": "a\\nDONE"}}}',
            "news/ended news: a",
        ),
        (json.dumps({"type": "news", "text": "x" * 999}), f"news: {'x' * 193}…"),
        (
            json.dumps({"type": "news", "data": ["x" * 999]}),
            f'{{"type": "news", "data": ["{"x" * 172}…',
        ),
        (BRACKETS, f"{BRACKETS[:199]}…"),
    ],
)
def test_of_an_event_that_is_not_known_one_short_line_is_shown(line, text):
    assert entries_of(line) == (LogEntry(kind="text", text=text),)


def test_values_are_typed_the_same_for_every_program():
    tool = LogEntry(kind="tool", tool="Bash", text="ls -l")
    block = {"type": "tool_use", "name": "Bash", "input": {"command": "ls -l"}}
    assert entries_of(claude(block)) == (tool,)
    state = {"status": "completed", "input": {"command": "ls -l"}, "output": "a\n"}
    event = {"type": "tool_use", "sessionID": "s", "part": {"tool": "Bash", "state": state}}
    assert entries_of(json.dumps(event)) == (tool, LogEntry(kind="result", text="a\n"))
    event = {"type": "tool_use", "tool_name": "Bash", "parameters": {"command": "ls -l"}}
    assert entries_of(json.dumps(event)) == (tool,)


def test_a_message_in_pieces_is_one_entry_and_a_pause_shows_what_there_is():
    reader = LogReader()
    assert list(reader.read(piece("I am "))) == []
    assert list(reader.read(piece("through."))) == []
    assert list(reader.pause()) == [LogEntry(kind="said", text="I am through.")]
    assert list(reader.close()) == []
    whole = '{"type":"message","role":"assistant","content":"one"}'
    assert shown(whole, whole) == ["one", "one"]


def test_the_end_of_a_log_in_the_middle_of_a_step_shows_message_and_cost_so_far():
    finish = {"reason": "tool-calls", "tokens": {"input": 5, "output": 1}, "cost": 0.5}
    event = json.dumps({"type": "step_finish", "sessionID": "s", "part": finish})
    assert shown(event, event, piece("half")) == ["half", "— 10 tokens in, 2 out, $1.0000"]


def test_a_result_is_cut_to_its_first_lines_and_an_error_in_it_is_red():
    output = {"type": "tool_result", "content": "\n".join(map(str, range(40))), "is_error": True}
    line = claude(output, kind="user")
    assert shown(line) == ["  0", "  1", "  2", "  3", "  4", "  … 35 more lines"]
    assert set(styles(line)) == {"red"}
    wide = claude({"type": "tool_result", "content": [{"type": "text", "text": "x" * 999}]})
    assert [len(text) for text in shown(wide)] == [202]
    assert shown(claude({"type": "tool_result", "content": [{"type": "image"}]})) == ["  [image]"]


def test_the_words_of_a_helper_are_indented():
    said = claude({"type": "text", "text": "a\nb"}, parent_tool_use_id="toolu_1")
    assert shown(said) == ["    a", "    b"]


def test_the_thread_of_a_helper_of_codex_is_no_word_of_the_agent():
    lines = (RECORDED / "codex-helper.log").read_text().splitlines()
    said = [(one.text, one.is_helper) for one in entries_of_lines(lines) if one.kind == "said"]
    assert said == [("two\nDONE", True), ("one", False), ("DONE", False)]
    ended = [one for one in entries_of_lines(lines) if one.kind in {"cost", "ended"}]
    assert [(one.kind, one.input_tokens) for one in ended] == [("cost", 400), ("ended", 0)]


def test_a_helper_of_codex_that_fails_to_start_is_shown():
    item = {"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "look", "status": "failed"}
    events = [{"type": f"item.{kind}", "item": item} for kind in ("started", "completed")]
    assert shown(*map(json.dumps, events)) == ["• spawn agent: look", "  failed"]


def test_a_permission_that_a_program_asks_for_is_shown():
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "rm -r x"}}
    asked = json.dumps({"type": "control_request", "request": request})
    codex = {"command": "rm -r x", "itemId": "i"}
    method = "item/commandExecution/requestApproval"
    assert shown(asked) == ["? may it use Bash: rm -r x"]
    assert shown(json.dumps({"id": 1, "method": method, "params": codex})) == [
        "? may it use commandExecution: rm -r x"
    ]


RESUMED = ('{"id":1,"result":{"protocolVersion":1}}', '{"id":2,"result":{"sessionId":"s"}}')

LINES = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "DONE",
                "a line of a program",
                "  {",
                "=",
                "=== A: step 1.1/1/1/1 ===",
                "{",
                "{}",
            ),
            *(
                "=== got the message 3 ===",
                "a\rb",
                "tail\r",
                "\x1b[31mred",
                "x" * (LONGEST_TEXT + 1),
            ),
            *(piece("I am "), piece("through."), claude({"type": "text", "text": "said\nso"})),
            *(*RESUMED, '{"type":"error","message":"no network"}', '{"type":"unknown"}', BRACKETS),
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20),
)


@given(st.lists(LINES, max_size=12), st.integers(1, 200), st.booleans())
def test_a_log_reads_the_same_by_the_block_as_line_by_line(lines, size, ends):
    """Plain lines that follow each other are one entry only to save time."""
    log = ("\n".join(lines) + "\n" * ends).encode()
    chunks = [log[at : at + size] for at in range(0, len(log), size)]
    read = entries_of_lines(lines_of(chunks))
    assert _apart(entries_of_chunks(chunks)) == _apart(read)


def _apart(entries):
    """The entries, those of plain text line by line."""
    found = []
    for entry in entries:
        texts = entry.text.split("\n") if entry.kind == "text" else [entry.text]
        found += [replace(entry, text=text) for text in texts]
    return found


def test_millions_of_plain_lines_are_few_entries_and_a_block_is_read_at_once():
    block = b"a line\n" * (BLOCK // 7)
    entries = list(entries_of_chunks([block] * 20))
    assert len(entries) == 20
    assert sum(entry.text.count("\n") + 1 for entry in entries) == 20 * (BLOCK // 7)


def test_a_huge_entry_keeps_its_beginning_and_its_end():
    (entry,) = entries_of_lines([claude({"type": "text", "text": "a" * 10**6 + "\nDONE"})])
    assert len(entry.text) < LONGEST_TEXT + 100
    assert "990005 characters left out" in entry.text
    assert entry.text.endswith("a\nDONE")


def test_control_characters_of_every_kind_of_entry_are_taken_out():
    bad = "a\x1b]52;c;xx\x07b\x1b[2Jc\u202e"
    lines = [
        bad,
        claude({"type": "text", "text": bad}),
        claude({"type": "thinking", "thinking": bad}),
        claude({"type": "tool_use", "name": bad, "input": {"command": bad}}),
        claude({"type": "tool_result", "content": bad}, kind="user"),
        claude({"type": "text", "text": bad}, kind="user"),
        json.dumps({"type": "error", "message": bad}),
        json.dumps({"type": "turn.failed", "error": {"message": bad}}),
        f"=== {bad}: step 1 ===",
    ]
    for line in lines:
        for text in shown(line):
            assert "\x1b" not in text
            assert "\x07" not in text
            assert "\u202e" not in text
            assert "abc<U+202E>" in text or text.startswith("! ended")


if __name__ == "__main__":
    for log in LOGS:
        log.with_suffix(".shown").write_text(shown_of(log))
