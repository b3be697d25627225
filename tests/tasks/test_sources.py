"""What holds for every built-in task source."""

import contextlib
import json
import os

import pytest

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.rows.task import TaskState
from crew.domain.rows.terms import read_terms
from crew.tasks.source_snapshot import Snapshot
from crew.tasks.task_source import (
    BUILT_IN,
    Lifecycle,
    NewComment,
    NewTask,
    TaskChanges,
    TaskSource,
    open_source,
    resolve_id,
)

AT = 1_700_000_000.0


@pytest.fixture(params=sorted(BUILT_IN))
def source(request, tmp_path, monkeypatch):
    monkeypatch.delenv("TICKETS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return open_source(request.param, tmp_path)


def task_file(source, task):
    return source.folder / f"{task}.md"


def contents(source):
    return {p.name: p.read_bytes() for p in source.folder.iterdir() if p.name != ".lock"}


def test_a_source_fulfils_the_protocol(source):
    assert isinstance(source, TaskSource)


def test_looking_at_a_source_that_is_not_there_creates_nothing(source, tmp_path):
    assert source.scan().items == ()
    source.stamp()
    with pytest.raises(NotFound):
        source.show("1")
    with pytest.raises(NotFound):
        source.set_status("1", TaskState.DONE, at=AT)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_has_no_tasks(source):
    source.ensure()
    source.ensure()
    assert source.scan().items == ()


def test_a_new_task_is_read_back_whole(source):
    first = source.add(NewTask(title="First"), at=AT)
    new = NewTask(
        title='Second | "quoted"',
        body="line\nstatus: closed\n---\n# Comment: 0\nend",
        priority=0,
        labels=("ui", "a b"),
        parent=first,
        deps=(first,),
        agent="claude",
        base="main",
        issue=9,
        skip_review=True,
        terms=read_terms({"reviewers": ["a", "b"], "max_rounds": 3, "proof": 'x\n---\n"é"'}),
    )
    item = source.show(source.add(new, at=AT))
    assert {name: getattr(item, name) for name in NewTask.__dataclass_fields__} == {
        name: getattr(new, name) for name in NewTask.__dataclass_fields__
    }
    assert (item.status, item.created, item.started) == (TaskState.TODO, AT, None)


@pytest.mark.parametrize("status", list(TaskState))
def test_every_status_is_kept_and_setting_it_again_changes_nothing(source, status):
    task = source.add(NewTask(title="T", body="status: open"), at=AT)
    source.set_status(task, status, at=AT + 1)
    before = contents(source)
    source.set_status(task, status, at=AT + 99)
    assert contents(source) == before
    assert source.show(task).status == status
    source.set_status(task, TaskState.TODO, at=AT + 100)
    assert source.show(task).status == TaskState.TODO


def test_the_lifecycle_is_told_with_the_status(source):
    task = source.add(NewTask(title="T"), at=AT)
    lifecycle = Lifecycle(agent="claude", session="crew-1", review_count=2)
    source.set_status(task, TaskState.IN_PROGRESS, at=AT + 7, lifecycle=lifecycle)
    item = source.show(task)
    assert (item.agent, item.review_count, item.started) == ("claude", 2, AT + 7)
    source.set_status(task, TaskState.IN_PROGRESS, at=AT, lifecycle=Lifecycle(agent=""))
    assert source.show(task).agent is None
    assert source.show(task).review_count == 2


def test_fields_are_edited_and_cleared_one_by_one(source):
    parent = source.add(NewTask(title="P"), at=AT)
    task = source.add(NewTask(title="T", body="old", labels=("x",), issue=3), at=AT)
    source.edit(task, TaskChanges(title="New", parent=parent, priority=4, base="dev"))
    item = source.show(task)
    assert (item.title, item.parent, item.priority, item.base) == ("New", parent, 4, "dev")
    assert (item.body, item.labels, item.issue) == ("old", ("x",), 3)
    source.edit(task, TaskChanges(body="", labels=(), parent="", issue=0, skip_review=False))
    item = source.show(task)
    assert (item.body, item.labels, item.parent, item.issue) == ("", (), None, None)
    assert item.skip_review is False


def test_comments_are_kept_in_order_and_a_key_is_said_once(source):
    task = source.add(NewTask(title="T", body="body"), at=AT)
    source.comment(task, NewComment(author="ann", text="one", at=AT))
    for _ in range(2):
        source.comment(task, NewComment(author="crew", text="two\n\nlines", at=AT + 1, key="r/1"))
    item = source.show(task)
    assert [(one.index, one.author, one.text, one.at) for one in item.comments] == [
        (0, "ann", "one", AT),
        (1, "crew", "two\n\nlines", AT + 1),
    ]
    assert item.body == "body"


def test_an_empty_comment_is_refused(source):
    task = source.add(NewTask(title="T"), at=AT)
    with pytest.raises(UsageError):
        source.comment(task, NewComment(author="ann", text=" \n", at=AT))


def test_dependencies_are_added_and_removed_and_that_may_be_repeated(source):
    first, second, third = (source.add(NewTask(title=name), at=AT) for name in "abc")
    for _ in range(2):
        source.add_dep(third, first)
    source.add_dep(third, second)
    assert source.show(third).deps == (first, second)
    for _ in range(2):
        source.remove_dep(third, first)
    assert source.show(third).deps == (second,)
    with pytest.raises(NotFound):
        source.add_dep(third, "99")
    with pytest.raises(Conflict):
        source.add_dep(third, third)


def test_a_removed_task_is_gone_and_its_id_is_not_given_again(source):
    first = source.add(NewTask(title="a", priority=0), at=AT)
    source.remove(first)
    assert source.scan().items == ()
    with pytest.raises(NotFound):
        source.remove(first)
    assert source.add(NewTask(title="b"), at=AT) != first


def test_a_task_that_cannot_be_read_is_shown_and_stops_nobody(source):
    broken, fine = (source.add(NewTask(title=name), at=AT) for name in ("broken", "fine"))
    task_file(source, broken).write_bytes(b"---\ntitle: \xff\n")
    by_id = source.scan().by_id
    assert "not UTF-8" in by_id[broken].corrupt
    assert by_id[fine].corrupt is None
    source.comment(fine, NewComment(author="a", text="t", at=AT))
    with pytest.raises(Conflict) as refused:
        source.set_status(broken, TaskState.DONE, at=AT)
    assert f"crew rm {broken}" in refused.value.hint
    source.remove(broken)
    assert [item.id for item in source.scan().items] == [fine]


@pytest.mark.parametrize("text", ["", "no front matter", "---\ntitle: x", "x" * 5_000_000])
def test_whatever_is_in_a_file_the_list_goes_on(source, text):
    task = source.add(NewTask(title="t"), at=AT)
    task_file(source, task).write_text(text)
    assert source.show(task).corrupt


def test_a_second_scan_reads_only_what_changed(source):
    tasks = [source.add(NewTask(title=f"t{n}"), at=AT) for n in range(5)]
    first = source.scan()
    stamp = source.stamp()
    assert source.scan(first) is first
    assert source.stamp() == stamp
    source.set_status(tasks[2], TaskState.DONE, at=AT)
    second = source.scan(first)
    assert source.stamp() != stamp
    assert second.by_id[tasks[2]].status == TaskState.DONE
    kept = [task for task in tasks if second.by_id.rows[task] is first.by_id.rows[task]]
    assert kept == [task for task in tasks if task != tasks[2]]
    source.remove(tasks[0])
    assert set(source.scan(second).by_id) == set(tasks[1:])


def test_a_change_of_the_same_size_and_time_is_seen(source):
    task = source.add(NewTask(title="aaaa"), at=AT)
    before = source.scan()
    path = task_file(source, task)
    stat = path.stat()
    other = path.with_suffix(".new")
    other.write_text(path.read_text().replace("aaaa", "bbbb"))
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)
    assert source.scan(before).by_id[task].title == "bbbb"


def test_an_edit_in_place_is_seen(source):
    task = source.add(NewTask(title="aaaa"), at=AT)
    before = source.scan()
    path = task_file(source, task)
    path.write_text(path.read_text().replace("aaaa", "bbbbb"))
    assert source.scan(before).by_id[task].title == "bbbbb"


def test_a_snapshot_survives_json(source):
    task = source.add(NewTask(title="t", labels=("a",), deps=(), priority=1), at=AT)
    source.comment(task, NewComment(author="ann", text="hi", at=AT))
    snapshot = source.scan()
    again = Snapshot.from_rows(json.loads(json.dumps(snapshot.rows())))
    assert again == snapshot
    assert source.scan(again) is again


def test_a_column_tells_one_field_of_every_task(source):
    tasks = [source.add(NewTask(title=name), at=AT) for name in ("a", "b")]
    source.set_status(tasks[1], TaskState.MERGED, at=AT)
    fresh = source.scan()
    for snapshot in (fresh, Snapshot.from_rows(json.loads(json.dumps(fresh.rows())))):
        for name in ("title", "status", "priority", "corrupt"):
            told = {item.id: getattr(item, name) for item in snapshot.items}
            assert snapshot.by_id.column(name) == told


@pytest.mark.parametrize("change", ["another shape", None])
def test_rows_that_another_crew_wrote_are_not_believed(source, change):
    source.add(NewTask(title="t"), at=AT)
    now = source.scan()
    rows = now.rows()
    before = Snapshot.from_rows([change, *rows[1:]] if change else rows[1:])
    assert before == Snapshot()
    assert source.scan(before) == now


def test_unique_beginnings_name_a_task(source):
    task = source.add(NewTask(title="t"), at=AT)
    assert source.resolve(task) == task
    assert source.resolve(f"#{task}") == task
    assert source.resolve(f"crew-{task}") == task
    with pytest.raises(NotFound):
        source.resolve("zzz")


def test_an_exact_id_wins_and_an_unclear_one_lists_its_meanings():
    assert resolve_id("1", ["1", "12"]) == "1"
    assert resolve_id("ab", ["abc-1", "b"]) == "abc-1"
    with pytest.raises(UsageError) as unclear:
        resolve_id("p-1", ["p-1a", "p-1b"])
    assert "p-1a, p-1b" in unclear.value.hint
    with pytest.raises(NotFound) as unknown:
        resolve_id("p-1c2e", ["p-1c2d", "q-9"])
    assert "p-1c2d" in unknown.value.hint


def test_an_unknown_source_names_the_known_ones(tmp_path):
    with pytest.raises(UsageError) as unknown:
        open_source("jira", tmp_path)
    assert "files" in unknown.value.hint
    assert "tk" in unknown.value.hint


def test_a_temporary_file_left_behind_is_no_task(source):
    task = source.add(NewTask(title="t"), at=AT)
    (source.folder / f"{task}.md.crew-tmp").write_text("half")
    assert [item.id for item in source.scan().items] == [task]
    source.edit(task, TaskChanges(title="u"))
    assert source.show(task).title == "u"


def test_a_nul_in_any_text_leaves_a_task_that_can_be_read(source):
    shown = "a\N{REPLACEMENT CHARACTER}b"
    texts = {"title": "a\0b", "body": "a\0b", "labels": ("a\0b",), "agent": "a\0b", "base": "a\0b"}
    terms = read_terms({"done_word": "a\0b", "proof": "a\0b"})
    task = source.add(NewTask(**texts, terms=terms), at=AT)
    source.edit(task, TaskChanges(**texts, add_labels=("a\0b",), remove_labels=("c\0",)))
    source.comment(task, NewComment(author="a\0b", text="a\0b", at=AT, kind="a\0b", tags=("a\0b",)))
    with contextlib.suppress(UsageError):  # a ticket's notes cannot be changed
        source.change_comment(task, 0, "a\0b")
    item = source.show(task)
    assert (item.corrupt, b"\0" in b"".join(contents(source).values())) == (None, False)
    assert (item.title, item.body, item.labels, item.agent) == (shown, shown, (shown,), shown)
    assert [one.text for one in item.comments] == [shown]
