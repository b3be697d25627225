"""Seed 001's files: exactly its format, and nothing of it lost."""

import json
import re
import subprocess

import pytest

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.rows.task import TaskState
from crew.tasks.files_source import FilesSource
from crew.tasks.task_source import Lifecycle, NewComment, NewTask, TaskChanges

AT = 1_700_000_000.0
MARKDOWN = """---
title: Auth refactoring
parent:
labels: backend, feature
skip_review:
---

Description text
---
more

---
# Comment: 0
# Author: reviewer
# Type: report
# Tags: a, b
# Metadata: k=v
# Time: 2026-02-02T10:00:00Z

comment text"""
META = """{
  "schema": 1,
  "status": "in_progress",
  "created": "2026-02-01T10:00:00+09:00",
  "started": "2026-02-01T11:00:00Z",
  "base_branch": "main",
  "status_version": 2,
  "agent": "claude",
  "session": "crew-1",
  "review_count": 1,
  "pr":   7
}"""


@pytest.fixture
def source(tmp_path):
    source = FilesSource(tmp_path)
    source.ensure()
    (source.folder / "1.md").write_text(MARKDOWN)
    (source.folder / "1.meta.json").write_text(META)
    return source


def markdown(source, task="1"):
    return (source.folder / f"{task}.md").read_text()


def meta(source, task="1"):
    return (source.folder / f"{task}.meta.json").read_text()


def assert_the_original_would_accept(source, task):
    """Its decoder refuses unknown fields and front matter keys, and comments out of order."""
    fields = json.loads(meta(source, task))
    known = (
        "schema status created started base_branch status_version agent session last_review_at "
        "last_review_is_lgtm close_reason block_reason issue pr review_count auto_fix_retry_count"
    )
    assert set(fields) <= set(known.split())
    assert {"schema", "status", "created", "base_branch", "status_version"} <= set(fields)
    front = markdown(source, task).split("\n---\n")[0].split("\n")[1:]
    assert {line.partition(":")[0] for line in front} <= {
        "title",
        "parent",
        "labels",
        "skip_review",
    }
    body = markdown(source, task).partition("\n---\n")[2]
    heads = re.findall(r"---\n# Comment: ?(.*)\n# Author:", body)
    assert heads == [str(number) for number in range(len(heads))]
    assert body.count("---\n# Comment:") == len(heads)


def test_a_file_of_the_original_is_read(source):
    item = source.show("1")
    assert (item.title, item.body) == ("Auth refactoring", "Description text\n---\nmore")
    assert (item.labels, item.status) == (("backend", "feature"), TaskState.IN_PROGRESS)
    assert (item.agent, item.base, item.review_count) == ("claude", "main", 1)
    assert item.created == 1769907600.0
    [comment] = item.comments
    assert (comment.author, comment.kind, comment.text) == ("reviewer", "report", "comment text")


def test_a_status_change_keeps_every_other_field_in_its_place(source):
    source.set_status("1", TaskState.DONE, at=AT, lifecycle=Lifecycle(review_count=2))
    expected = {**json.loads(META), "status": "done", "review_count": 2}
    assert meta(source).rstrip() == json.dumps(expected, indent=2)
    assert markdown(source) == MARKDOWN


def test_a_comment_is_added_behind_what_is_there(source):
    source.comment("1", NewComment(author="ann", text="hello", at=AT, kind="message"))
    assert markdown(source) == MARKDOWN + (
        "\n\n---\n# Comment: 1\n# Author: ann\n# Type: message\n"
        "# Time: 2023-11-14T22:13:20Z\n\nhello\n"
    )


def test_a_comment_leaves_one_blank_line_before_it(source):
    task = source.add(NewTask(title="T", body="text"), at=AT)
    source.comment(task, NewComment(author="a", text="said", at=AT))
    assert markdown(source, task) == (
        "---\ntitle: T\nparent:\nlabels:\nskip_review:\n---\n\ntext\n\n---\n"
        "# Comment: 0\n# Author: a\n# Time: 2023-11-14T22:13:20Z\n\nsaid\n"
    )


def test_a_cleared_base_keeps_the_field_that_every_file_must_have(source):
    source.edit("1", TaskChanges(base="", agent=""))
    assert source.show("1").base is None
    assert_the_original_would_accept(source, "1")
    assert "agent" not in json.loads(meta(source))


def test_unknown_lines_and_fields_stay(source):
    (source.folder / "1.md").write_text(MARKDOWN.replace("parent:\n", "parent:\nzebra:  7 \n"))
    (source.folder / "1.meta.json").write_text(META.replace('"pr":   7', '"x": [1.50, {}]'))
    source.edit("1", TaskChanges(title="New", agent="codex"))
    source.set_status("1", TaskState.ERROR, at=AT)
    assert "\nzebra:  7 \n" in markdown(source)
    assert json.loads(meta(source))["x"] == [1.5, {}]
    assert source.show("1").agent == "codex"


def test_what_the_original_has_no_field_for_stands_beside(source):
    tricky = "---\n# Comment: 0\n# Author: x\n\n\n---\n# Comment: 1\n"
    task = source.add(NewTask(title="T", body=tricky, deps=("1",), priority=0, issue=4), at=AT)
    source.comment(task, NewComment(author="a", text=tricky, at=AT))
    source.add_dep("1", task)
    source.set_status(task, TaskState.MERGED, at=AT)
    for each in ("1", task):
        assert_the_original_would_accept(source, each)
    assert source.show(task).body == tricky.strip("\n")
    assert source.show(task).comments[0].text == tricky.strip("\n")
    assert source.show("1").deps == (task,)


def test_dependencies_written_into_the_front_matter_by_hand_count(source):
    task = source.add(NewTask(title="T"), at=AT)
    text = MARKDOWN.replace("parent:\n", f"parent:\ndeps: #{task}, 9\npriority: 0\n")
    (source.folder / "1.md").write_text(text)
    assert source.show("1").deps == (task, "9")
    assert source.show("1").priority == 0
    source.remove_dep("1", "9")
    source.edit("1", TaskChanges(priority=3))
    assert source.show("1").deps == (task,)
    assert source.show("1").priority == 3
    assert f"deps: {task}\npriority: 3\n" in markdown(source)


def test_the_next_id_is_repaired_when_it_is_behind(source):
    path = source.folder / "meta.json"
    path.write_text('{"schema": 1, "namespace": "default", "next_id": 1, "extra": true}')
    (source.folder / "41.meta.json").write_text("{}")
    assert source.add(NewTask(title="T"), at=AT) == "42"
    assert json.loads(path.read_text()) == {
        "schema": 1,
        "namespace": "default",
        "next_id": 43,
        "extra": True,
    }


@pytest.mark.parametrize("part", [".md", ".meta.json", ".crew.json"])
def test_an_id_of_which_any_file_is_there_is_not_given_again(source, part):
    (source.folder / "meta.json").write_text('{"schema": 1, "next_id": 7}')
    (source.folder / "8.md").write_text("")
    (source.folder / f"41{part}").write_text("{}")
    assert source.add(NewTask(title="T"), at=AT) == "7"
    assert source.add(NewTask(title="T"), at=AT) == "42"


@pytest.mark.parametrize("broken", [False, True])
def test_no_id_is_given_twice_although_the_tasks_went_away_with_their_branch(source, broken):
    for title in "abc":
        source.add(NewTask(title=title), at=1.0)
    (away := source.folder.with_name("away")).mkdir()
    for path in source.folder.glob("*.*"):
        path.rename(away / path.name)
    (source.folder / "meta.json").write_text('{"schema": 1, "next_id": 2}')
    if broken:  # then nobody knows better than the branch that is checked out
        source.folder.parents[1].joinpath("last-id-default").write_bytes(b"\xff")
    assert source.add(NewTask(title="d"), at=1.0) == ("2" if broken else "5")
    assert source.add(NewTask(title="e"), at=1.0) == ("3" if broken else "6")


def test_without_a_meta_file_the_tasks_tell_the_next_id(source):
    (source.folder / "meta.json").unlink()
    assert source.add(NewTask(title="T"), at=AT) == "2"


def test_a_meta_file_behind_the_tasks_is_put_right_by_ensure(source):
    (source.folder / "meta.json").write_text('{"schema": 1, "next_id": 7}')
    (source.folder / "41.md").write_text("")
    source.ensure()
    assert source.add(NewTask(title="T"), at=AT) == "42"


@pytest.mark.parametrize("text", ["", "<<<<<<< HEAD", "[]", '{"next_id": "x"}'])
def test_a_broken_meta_file_is_made_anew_from_the_tasks(source, text):
    (source.folder / "meta.json").write_text(text)
    source.ensure()
    assert json.loads((source.folder / "meta.json").read_text()) == {
        "schema": 1,
        "namespace": "default",
        "next_id": 2,
    }


def test_a_newer_store_is_left_alone(source):
    (source.folder / "meta.json").write_text('{"schema": 2}')
    with pytest.raises(Conflict):
        source.add(NewTask(title="T"), at=AT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"status": "in_progress"', '"status": "flying"'),
        ('"status": "in_progress"', '"status": 3'),
        ('"schema": 1', '"schema": 9'),
        ('"review_count": 1', '"review_count": "x"'),
        ('"agent": "claude"', '"agent": []'),
        ("{\n", "["),
    ],
)
def test_meta_data_that_makes_no_sense_is_a_corrupt_task(source, old, new):
    (source.folder / "1.meta.json").write_text(META.replace(old, new, 1))
    assert source.show("1").corrupt.startswith("1.meta.json: ")


def test_a_task_whose_meta_file_is_missing_is_corrupt(source):
    (source.folder / "1.meta.json").unlink()
    assert source.show("1").corrupt == "1.meta.json: the file is missing"


@pytest.mark.parametrize("text", ['{"deps": "1"}', '{"priority": 9}', "{"])
def test_a_broken_file_beside_is_a_corrupt_task(source, text):
    (source.folder / "1.crew.json").write_text(text)
    assert source.show("1").corrupt.startswith("1.crew.json: ")


@pytest.mark.parametrize(
    ("word", "reason", "status"),
    [
        ("needs_input", None, "in_progress"),
        ("reviewed", None, "done"),
        ("done", None, "closed"),
        ("closed", "merged", "merged"),
        ("closed", "abandoned", "closed"),
    ],
)
def test_older_words_for_a_status_are_understood(source, word, reason, status):
    fields = {**json.loads(META), "status": word, "status_version": 0}
    (source.folder / "1.meta.json").write_text(json.dumps({**fields, "close_reason": reason}))
    assert source.show("1").status == status
    source.set_status("1", TaskState.DONE, at=AT)
    assert source.show("1").status == TaskState.DONE


def test_the_first_line_of_the_lists_is_the_smallest_number(source):
    for number in range(12):
        source.add(NewTask(title=str(number)), at=AT)
    assert [item.id for item in source.scan().items] == [str(n) for n in range(1, 14)]


@pytest.mark.parametrize("namespace", ["", "..", "a/b", ".hidden", "a b"])
def test_a_namespace_stays_inside_its_folder(tmp_path, namespace):
    with pytest.raises(UsageError):
        FilesSource(tmp_path, namespace=namespace)


def test_ids_that_are_no_numbers_are_refused(source):
    with pytest.raises(UsageError):
        source.add(NewTask(title="T", deps=("abc",)), at=AT)
    with pytest.raises(UsageError):
        source.edit("1", TaskChanges(parent="abc"))


@pytest.fixture
def from_windows(source, tmp_path):
    """The same tasks, as git checks them out in a clone with `core.autocrlf`."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", ".crew/tasks")
    git(tmp_path, "commit", "-q", "-m", "tasks")
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", ".", "clone")
    found = FilesSource(tmp_path / "clone")
    assert b"\r\n" in (found.folder / "1.md").read_bytes()
    return found


def git(where, *args):
    done = subprocess.run(["git", *args], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout


def test_tasks_with_windows_line_ends_are_read_like_any_other(source, from_windows):
    assert from_windows.show("1") == source.show("1")
    assert from_windows.scan().items == source.scan().items


def test_what_is_written_keeps_the_windows_line_ends(from_windows):
    from_windows.edit("1", TaskChanges(title="Another", body="one\r\ntwo"))
    from_windows.comment("1", NewComment(author="me", text="three\nfour", at=AT))
    from_windows.set_status("1", TaskState.DONE, at=AT)
    item = from_windows.show("1")
    assert (item.title, item.body, item.status) == ("Another", "one\ntwo", TaskState.DONE)
    assert item.comments[-1].text == "three\nfour"
    for name in ("1.md", "1.meta.json"):
        content = (from_windows.folder / name).read_bytes()
        assert content.count(b"\n") == content.count(b"\r\n") > 5
    changed = git(from_windows.folder, "diff", "--numstat", "HEAD", "--", "1.meta.json").split()
    assert int(changed[0]) < 8


def test_a_file_with_plain_line_ends_keeps_them(source):
    source.comment("1", NewComment(author="me", text="three", at=AT))
    assert b"\r" not in (source.folder / "1.md").read_bytes()


def test_tasks_are_written_again_as_they_were_read(source, tmp_path):
    new = NewTask(
        title="Three: parts",
        body="one\n\n---\n# Comment: 0\n\nno comment",
        deps=("1",),
        labels=("a", "b"),
        priority=0,
        parent="1",
        agent="codex",
        base="main",
        issue=7,
        skip_review=True,
    )
    source.add(new, at=AT)
    source.comment("2", NewComment(author="me", text="a\n---\n# Comment: 1\n", at=AT, key="k"))
    source.comment("2", NewComment(author="you", text="b", at=AT, kind="report"))
    source.set_status("2", TaskState.IN_PROGRESS, at=AT)
    before = source.scan().items
    other = FilesSource(tmp_path / "other")
    assert other.bring_back(before, last_id="9") == ["1", "2"]
    assert other.scan().items == before
    assert other.bring_back(before, last_id="9") == []
    assert other.add(NewTask(title="next"), at=AT) == "10"


def test_only_missing_tasks_are_written_again(source):
    before = source.scan().items
    (source.folder / "1.md").write_text(MARKDOWN.replace("Auth", "Another"))
    assert source.bring_back(before, last_id="1") == []
    assert source.show("1").title == "Another refactoring"
