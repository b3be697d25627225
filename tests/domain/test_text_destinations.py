"""Text from outside cannot steer a terminal, forge a commit message or hide in a document."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from crew.domain.kernel.text import as_json, commit_line, json_text, plain, printable
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.runner.doers.merge_doers import merge_message

HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(
                    "\x1b]0;title\x07",
                    "\x1b]52;c;ZXZpbA==\x1b\\",
                    "\x1bP1;2q\x1b\\",
                    "\x1b[2J",
                    "\x9b2J",
                ),
                *(
                    "\x1b[31m",
                    "\x1b[0m",
                    "\x1b",
                    "\x9d",
                    "\x0b",
                    "\x0c",
                    "\x85",
                    "\r",
                    "\r\n",
                    "\n",
                    "\t",
                ),
                *("\u202e", "\u200b", "\u2028", "\ufeff", "\U000e0041", "\x7f", "\0", "\ud800"),
                *("Signed-off-by: me", "Task: 9", "Gate: none", " ", "a"),
            ]
        ),
        st.text(max_size=4),
    ),
    max_size=12,
).map("".join)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
RUN = Run(id="1.1", task="1", agent_kind="sh")


def shown(text):
    return printable(text.encode(errors="surrogatepass"))


@given(HOSTILE)
@settings(max_examples=60)
def test_a_terminal_gets_only_text_newlines_tabs_and_colours(text):
    assert not CONTROL.search(COLOUR.sub("", shown(text)))
    assert shown(shown(text)) == shown(text)
    assert not CONTROL.search(plain(text))
    assert plain(plain(text)) == plain(text)


@given(HOSTILE)
@settings(max_examples=60)
def test_a_title_is_one_line_of_a_commit_message(text):
    line = commit_line(text)
    assert len(line.splitlines()) <= 1
    assert not CONTROL.search(line)
    assert commit_line(line) == line


@given(HOSTILE)
@settings(max_examples=60)
def test_no_title_and_no_gate_can_forge_a_trailer_of_a_merge(text):
    task = Task(id="1", title=text, branch="crew-1", gate=text)
    lines = merge_message(task, RUN).removesuffix("\n").split("\n")
    assert lines[0].startswith("Merge crew-1: ")
    assert lines[1] == ""
    names = [line.partition(":")[0] for line in lines[2:]]
    assert names == ["Task", *(["Gate"] if text else []), "Run", "Steps", "Cost"]
    assert merge_message(task, RUN).splitlines() == lines


@given(st.dictionaries(HOSTILE, HOSTILE, max_size=3))
@settings(max_examples=40)
def test_a_document_keeps_its_values_and_has_no_raw_control_character(document):
    safe = json_text(json.dumps(document, ensure_ascii=False))
    assert json.loads(safe) == document
    assert not CONTROL.search(safe)


@given(st.lists(st.text(st.characters(categories=["L", "Cs"])), max_size=3))
@settings(max_examples=40)
def test_a_document_with_bytes_that_are_no_text_can_be_stored(names):
    stored = as_json({"names": names}).encode()
    assert json.loads(stored.decode()) == json.loads(json.dumps({"names": names}))
    assert as_json("caf\udce9 é") == '"caf\\udce9 é"'
