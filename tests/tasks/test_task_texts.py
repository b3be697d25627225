"""Changing one thing in a text leaves every other byte alone; what is written is read again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crew.domain.kernel.errors import UsageError
from crew.tasks import (
    comment_blocks,
    files_format,
    front_matter,
    json_text,
    tk_format,
    validate_task,
)
from crew.tasks.task_source import NewComment, NewTask, TaskChanges

PIECES = st.sampled_from(
    [
        "---",
        "--- ",
        "x---",
        "# Comment: 0",
        "\\# Comment: 1",
        "# Comment:",
        "# Author: eve",
        "# Time: 2026-01-01T00:00:00Z",
        "## Notes",
        "# Title",
        "**2026-01-01T00:00:00Z**",
        "\\**2026-01-01T00:00:00Z**",
        "status: closed",
        "@bob: hello",
        "",
        "  ",
        "a | b",
        "{{.Title}} ${title}",
        "\u2028x\x85y\x0c",
        "ünïcode 🚀",
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=8).map("\n".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60),
)
TITLES = st.text(min_size=1, max_size=40).filter(validate_task.one_line)
LABELS = st.lists(st.text("abc d-_é", min_size=1).filter(str.strip), max_size=3).map(tuple)
NEW_TASKS = st.builds(
    NewTask,
    title=TITLES,
    body=TEXTS,
    labels=LABELS,
    priority=st.integers(0, 4),
    parent=st.sampled_from([None, "7"]),
    deps=st.sampled_from([(), ("1",), ("2", "3")]),
    agent=st.sampled_from([None, "claude"]),
    base=st.sampled_from([None, "main"]),
    issue=st.sampled_from([None, 12]),
    skip_review=st.sampled_from([None, True, False]),
).map(validate_task.checked_task)
COMMENTS = st.lists(
    st.builds(
        NewComment,
        author=st.sampled_from(["ann", "reviewer"]),
        text=TEXTS.filter(str.strip),
        at=st.integers(0, 4_000_000_000).map(float),
        key=st.sampled_from(["", "run/1/2"]),
    ).map(validate_task.checked_comment),
    max_size=3,
)


def told(item):
    """The fields that a `NewTask` has too."""
    names = NewTask.__dataclass_fields__
    return NewTask(**{name: getattr(item, name) for name in names})


def said(comments):
    return [(one.author, one.text, one.at, one.key) for one in comments]


@settings(deadline=None)
@given(NEW_TASKS, COMMENTS, TEXTS)
def test_what_is_written_as_files_is_read_again(new, comments, other_body):
    markdown = files_format.new_markdown(new)
    meta = files_format.new_meta(new, at=5.0)
    extras = files_format.new_extras(deps=new.deps, priority=new.priority)
    for index, comment in enumerate(comments):
        front = front_matter.parse(markdown)
        rest = comment_blocks.with_comment(front.rest, comment, index=index)
        markdown = front.with_rest(rest).text()
    item = files_format.read_item("4", markdown=markdown, meta=meta, extras=extras)
    assert told(item) == new
    assert said(item.comments) == said(comments)
    changes = validate_task.checked_changes(TaskChanges(body=other_body))
    edited = files_format.changed_markdown(markdown, changes)
    again = files_format.read_item("4", markdown=edited, meta=meta, extras=extras)
    assert again.body == changes.body
    assert again.comments == item.comments


@settings(deadline=None)
@given(NEW_TASKS, COMMENTS, TEXTS, TITLES)
def test_what_is_written_as_a_ticket_is_read_again(new, comments, other_body, other_title):
    text = tk_format.new_ticket("p-1234", new, at=5.0)
    for comment in comments:
        front = front_matter.parse(text)
        text = front.with_rest(tk_format.with_note(front.rest, comment)).text()
    item = tk_format.read_item("p-1234", text)
    assert told(item) == new
    assert said(item.comments) == said(comments)
    changes = validate_task.checked_changes(TaskChanges(body=other_body, title=other_title))
    edited = tk_format.changed(front_matter.parse(text), changes).text()
    again = tk_format.read_item("p-1234", edited)
    assert (again.title, again.body) == (changes.title, changes.body)
    assert again.comments == item.comments


@settings(deadline=None)
@given(
    st.dictionaries(st.text(max_size=5), st.none() | st.integers() | TEXTS | st.lists(st.floats()))
)
def test_a_json_field_changes_and_the_others_stay(fields):
    text = json.dumps({"schema": 1, **fields, "status": "todo"}, indent=3) + "\n"
    after = json_text.with_fields(text, {"status": "done", "schema": None, "new": [1]})
    expected = {**json.loads(text), "status": "done", "new": [1]}
    expected.pop("schema")
    assert repr(json.loads(after)) == repr(expected)
    assert after.endswith("}\n")
    assert json_text.with_fields(after, {}) == after, "a file that crew wrote stays as it is"


@pytest.mark.parametrize(
    "text", ['{"a":1}', '{ "a" : 1 }', "{}", "{\n}", '{"b": {"a": 2}, "a":1}\n']
)
def test_fields_come_and_go_in_any_spacing(text):
    after = json_text.with_fields(text, {"a": None, "z": "x"})
    assert json.loads(after) == {
        **{k: v for k, v in json.loads(text).items() if k != "a"},
        "z": "x",
    }
    assert json.loads(json_text.with_fields(after, {"z": None, "b": None})) == {}


def test_front_matter_changes_one_line_only():
    text = "---\ntitle: a: b\n  odd\nlabels :  x\nzebra: 1\n---\n\nbody\n---\ntitle: not me"
    front = front_matter.parse(text)
    assert front.text() == text
    assert front.get("title") == "a: b"
    changed = front.with_value("labels", "y").with_value("new", "1")
    assert changed.text() == text.replace("labels :  x", "labels: y").replace(
        "zebra: 1\n", "zebra: 1\nnew: 1\n"
    )


@pytest.mark.parametrize("title", ["", "  ", "\n"])
def test_a_task_without_a_title_is_refused(title):
    with pytest.raises(UsageError):
        validate_task.checked_task(NewTask(title=title))


@pytest.mark.parametrize(
    "new",
    [
        NewTask(title="t", priority=5),
        NewTask(title="t", labels=("a,b",)),
        NewTask(title="t", deps=("../x",)),
        NewTask(title="t", parent="$(id)"),
        NewTask(title="t", body="x" * 600_000),
        NewTask(title="t", issue=-1),
    ],
)
def test_what_files_cannot_hold_is_refused_with_a_hint(new):
    with pytest.raises(UsageError) as refused:
        validate_task.checked_task(new)
    assert refused.value.hint


def test_a_title_is_one_line_and_text_is_what_utf8_can_hold():
    new = validate_task.checked_task(NewTask(title=" a\r\nb\u2028c ", body="\n\nx\r\ny\udcff\n"))
    assert (new.title, new.body) == ("a b c", "x\ny?")
