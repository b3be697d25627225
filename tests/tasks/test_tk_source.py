"""Tickets as the real `tk` writes them."""

import itertools

import pytest

from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import blockers
from crew.tasks.task_source import Lifecycle, NewComment, NewTask, TaskChanges
from crew.tasks.tk_source import TkSource, id_prefix, tickets_folder

AT = 1_700_000_000.0
TICKET = """---
id: mp-ycex
status: open
deps: []
links: [mp-0000]
created: 2026-11-15T06:27:00Z
type: task
priority: 1
assignee: Bob "the" dev
external-ref: gh-12
parent: mp-top1  # The parent
tags: [ui, backend]
---
# First | task

description text
status: open
deps: [x]
---
status: closed

## Acceptance Criteria

must pass

"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.delenv("TICKETS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tickets").mkdir()
    (tmp_path / ".tickets" / "mp-ycex.md").write_text(TICKET)
    return TkSource(tmp_path)


def text(source, task="mp-ycex"):
    return (source.folder / f"{task}.md").read_text()


def test_a_ticket_is_read(source):
    item = source.show("mp-ycex")
    assert (item.title, item.status, item.priority) == ("First | task", TaskState.TODO, 1)
    assert (item.labels, item.parent, item.issue) == (("ui", "backend"), "mp-top1", 12)
    assert item.body.startswith("description text\nstatus: open")
    assert item.body.endswith("## Acceptance Criteria\n\nmust pass")


@pytest.mark.parametrize(
    ("status", "word", "extra"),
    [
        ("in_progress", "in_progress", "crew-started: 2023-11-14T22:13:20Z\n"),
        ("done", "in_progress", "crew-status: done\n"),
        ("error", "in_progress", "crew-status: error\n"),
        ("merged", "closed", "crew-status: merged\n"),
        ("closed", "closed", ""),
    ],
)
def test_a_status_changes_lines_of_the_front_matter_only(source, status, word, extra):
    source.set_status("mp-ycex", TaskState(status), at=AT)
    expected = TICKET.replace("status: open", f"status: {word}", 1)
    assert text(source) == expected.replace("backend]\n", f"backend]\n{extra}", 1)
    source.set_status("mp-ycex", TaskState.TODO, at=AT)
    source.set_status("mp-ycex", TaskState.TODO, at=AT, lifecycle=Lifecycle(agent="", session=""))
    assert text(source).replace("crew-started: 2023-11-14T22:13:20Z\n", "") == TICKET


def test_what_tk_says_later_wins_over_our_own_word(source):
    source.set_status("mp-ycex", TaskState.MERGED, at=AT)
    reopened = text(source).replace("status: closed", "status: open", 1)
    (source.folder / "mp-ycex.md").write_text(reopened)
    assert source.show("mp-ycex").status == TaskState.TODO


def test_a_dependency_changes_one_line(source):
    other = source.add(NewTask(title="o"), at=AT)
    source.add_dep("mp-ycex", other)
    assert text(source) == TICKET.replace("deps: []", f"deps: [{other}]", 1)
    source.remove_dep("mp-ycex", other)
    assert text(source) == TICKET


def test_a_note_is_added_as_tk_does(source):
    source.comment("mp-ycex", NewComment(author="ann", text="one", at=AT))
    first = TICKET + "\n## Notes\n\n**2023-11-14T22:13:20Z**\n\n@ann: one\n"
    assert text(source) == first
    source.comment("mp-ycex", NewComment(author="", text="two", at=AT))
    assert text(source) == first + "\n**2023-11-14T22:13:20Z**\n\ntwo\n"
    assert [one.text for one in source.show("mp-ycex").comments] == ["one", "two"]


def test_free_text_under_notes_is_description(source):
    (source.folder / "mp-ycex.md").write_text(TICKET + "## Notes\n\nfree text\n")
    assert source.show("mp-ycex").body.endswith("free text")
    source.comment("mp-ycex", NewComment(author="ann", text="one", at=AT))
    assert source.show("mp-ycex").body.endswith("## Notes\n\nfree text")
    assert len(source.show("mp-ycex").comments) == 1


def test_a_new_ticket_has_tks_own_layout(source):
    letters = itertools.cycle("ab12")
    source = TkSource(source.folder.parent, choose=lambda _: next(letters))
    new = NewTask(title="T", body="text", labels=("a", "b"), parent="mp-ycex", issue=3)
    task = source.add(new, at=AT)
    assert task == f"{id_prefix(source.folder.parent.name)}-ab12"
    assert text(source, task) == (
        f"---\nid: {task}\nstatus: open\ndeps: []\nlinks: []\ncreated: 2023-11-14T22:13:20Z\n"
        "type: task\npriority: 2\nexternal-ref: gh-3\nparent: mp-ycex\ntags: [a, b]\n---\n"
        "# T\n\ntext\n\n"
    )


def test_an_id_that_is_taken_is_not_given_again(source):
    letters = iter("aaaa" + "aaaa" + "bbbb")
    source = TkSource(source.folder.parent, choose=lambda _: next(letters))
    assert source.add(NewTask(title="1"), at=AT) != source.add(NewTask(title="2"), at=AT)


@pytest.mark.parametrize(
    ("project", "prefix"),
    [("my-project", "mp"), ("a_b-c", "abc"), ("crew", "cre"), ("x", "x"), (".d", "d"), ("", "t")],
)
def test_the_prefix_of_an_id_comes_from_the_folder(project, prefix):
    assert id_prefix(project) == prefix


def test_an_unknown_dependency_blocks_and_a_closed_one_does_not(source):
    other = source.add(NewTask(title="o"), at=AT)
    item = source.show(source.add(NewTask(title="t", deps=(other, "gone")), at=AT))
    assert blockers(item, source.scan().by_id) == (other, "gone")
    source.set_status(other, TaskState.CLOSED, at=AT)
    assert blockers(item, source.scan().by_id) == ("gone",)


def test_a_ticket_without_a_title_gets_one(source):
    (source.folder / "mp-1.md").write_text("---\nid: mp-1\nstatus: open\n---\nbody\n")
    assert source.show("mp-1").title == "Untitled"
    source.edit("mp-1", TaskChanges(title="Now"))
    assert text(source, "mp-1") == "---\nid: mp-1\nstatus: open\n---\n# Now\nbody\n"


def test_a_file_whose_name_cannot_be_an_id_is_shown_as_corrupt(source):
    (source.folder / "my.-ab12.md").write_text(TICKET)
    assert "cannot be a task id" in source.scan().by_id["my.-ab12"].corrupt


def test_the_nearest_folder_up_to_the_root_is_taken(tmp_path):
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    root = tmp_path / "repo"
    (tmp_path / ".tickets").mkdir()
    assert tickets_folder(root, start=inner, override=None) == root / ".tickets"
    (root / "a" / ".tickets").mkdir()
    assert tickets_folder(root, start=inner, override=None) == root / "a" / ".tickets"
    assert tickets_folder(root, start=tmp_path, override=None) == root / ".tickets"
    assert tickets_folder(root, start=inner, override="x") == inner / "x"


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TICKETS_DIR", str(tmp_path / "elsewhere"))
    source = TkSource(tmp_path)
    source.add(NewTask(title="t"), at=AT)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1
