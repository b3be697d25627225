"""A store that crew writes is readable by the original's rules, and one by the original loads.

The reader below knows nothing of crew: it follows the written rules of the format and refuses
whatever they do not name.
"""

import json
import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crew.domain.rows.task import TaskState
from crew.tasks.files_source import FilesSource
from crew.tasks.task_source import Lifecycle, NewComment, NewTask, TaskChanges

AT = 1_770_000_000.0

FRONT_KEYS = ("title", "parent", "labels", "skip_review")
COMMENT_HEADS = ("Comment", "Author", "Type", "Tags", "Metadata", "Time")
REQUIRED = {
    "schema": int,
    "status": str,
    "created": str,
    "base_branch": str,
    "status_version": int,
}
OPTIONAL = {
    "started": str,
    "agent": str,
    "session": str,
    "last_review_at": str,
    "last_review_is_lgtm": bool,
    "close_reason": str,
    "block_reason": str,
    "issue": int,
    "pr": int,
    "review_count": int,
    "auto_fix_retry_count": int,
}
STATUSES = {"todo", "in_progress", "done", "merged", "closed", "error"}
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@pytest.fixture(autouse=True, scope="module")
def quick_disk():
    """What survives a power cut is tested elsewhere; waiting for the disk takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _fd: None)
        yield


class Refused(Exception):
    """The original would list this task as corrupted."""


@dataclass
class Read:
    front: dict = field(default_factory=dict)
    meta: dict = field(default_factory=dict)
    description: str = ""
    comments: list = field(default_factory=list)


def read_store(folder: Path) -> dict[str, Read]:
    """Every task of a namespace; files of other names are nobody's business."""
    meta = json.loads((folder / "meta.json").read_text())
    if set(meta) != {"schema", "namespace", "next_id"} or meta["schema"] != 1:
        raise Refused(f"meta.json: {meta}")
    if meta["namespace"] != folder.name:
        raise Refused("meta.json names another namespace")
    found = {
        path.stem: read_task(path)
        for path in folder.glob("*.md")
        if re.fullmatch(r"[1-9]\d*", path.stem)
    }
    if any(int(task) >= meta["next_id"] for task in found):
        raise Refused("next_id is in use")
    for read in found.values():
        if read.front["parent"] and read.front["parent"] not in found:
            raise Refused("the parent does not exist")
    return found


def read_task(path: Path) -> Read:
    text = path.read_bytes().decode()
    read = Read(meta=read_meta(json.loads(path.with_suffix(".meta.json").read_text())))
    lines = text.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise Refused("no front matter")
    end = lines.index("---", 1)
    read.front = read_front(lines[1:end])
    blocks = cut_blocks(lines[end + 1 :])
    if blocks[0] and blocks[0][0] != "":
        raise Refused("no blank line after the front matter")
    read.description = "\n".join(blocks[0]).strip("\n")
    read.comments = [read_comment(block) for block in blocks[1:]]
    if [one["Comment"] for one in read.comments] != [str(n) for n in range(len(read.comments))]:
        raise Refused("comments are not numbered in their order")
    return read


def read_front(lines: list[str]) -> dict[str, str]:
    front = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if not colon or key not in FRONT_KEYS or key in front:
            raise Refused(f"front matter: {line!r}")
        if value and not value.startswith(" "):
            raise Refused(f"no space after the colon: {line!r}")
        front[key] = value.strip()
    if not front.get("title"):
        raise Refused("no title")
    if not re.fullmatch(r"([1-9]\d*)?", front.setdefault("parent", "")):
        raise Refused("the parent is not a number")
    if front.get("skip_review", "") not in {"", "true", "false"}:
        raise Refused("skip_review")
    return front


def read_meta(meta: dict) -> dict:
    if unknown := set(meta) - {*REQUIRED, *OPTIONAL}:
        raise Refused(f"unknown fields: {unknown}")
    for name, kind in {**REQUIRED, **OPTIONAL}.items():
        if name in REQUIRED and name not in meta:
            raise Refused(f"{name} is missing")
        if name in meta and type(meta[name]) is not kind:
            raise Refused(f"{name} is {meta[name]!r}")
    check_values(meta)
    return meta


def check_values(meta: dict) -> None:
    if meta["schema"] != 1 or meta["status_version"] != 2 or meta["status"] not in STATUSES:
        raise Refused(f"{meta}")
    if meta.get("close_reason", "merged") not in {"merged", "abandoned"}:
        raise Refused("close_reason")
    for name in ("created", "started", "last_review_at"):
        if name in meta and not RFC_3339.fullmatch(meta[name]):
            raise Refused(f"{name} is not a time")


def cut_blocks(lines: list[str]) -> list[list[str]]:
    """The description, then each comment: one begins where `# Comment:` follows a `---`."""
    blocks: list[list[str]] = [[]]
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line == "---" and following.startswith("# Comment:"):
            blocks.append([])
        else:
            blocks[-1].append(line)
    return blocks


def read_comment(block: list[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    order = []
    while block and block[0].startswith("# ") and block[0][2:].partition(":")[0] in COMMENT_HEADS:
        name, _, value = block.pop(0)[2:].partition(":")
        read[name] = value.strip()
        order.append(COMMENT_HEADS.index(name))
    if order != sorted(set(order)) or not {"Comment", "Author", "Time"} <= set(read):
        raise Refused(f"the head of a comment: {read}")
    if not RFC_3339.fullmatch(read["Time"]):
        raise Refused("the time of a comment")
    if not block or block[0] != "":
        raise Refused("no blank line after the head of a comment")
    read["text"] = "\n".join(block).strip("\n").rstrip()
    return read


visible = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])
one_line = st.text(visible, min_size=1, max_size=40).filter(lambda text: text.strip())
word = one_line.filter(lambda text: not set(text) & set(",[]"))
tricky = st.sampled_from(
    [
        "---",
        "# Comment: 0",
        "---\n# Comment: 0\n# Author: x\n# Time: 2026-01-01T00:00:00Z\n\nnot said",
        "\\# Comment: 1",
        "title: other",
        "",
        "  ",
        "# Author: me",
        "\r",
    ]
)
prose = st.lists(st.one_of(st.text(visible, max_size=30), tricky), max_size=6).map("\n".join)
said = prose.filter(lambda text: text.strip())
comment = st.builds(
    NewComment,
    author=one_line,
    text=said,
    at=st.integers(0, 4_000_000_000).map(float),
    kind=st.sampled_from(["", "report", "message", "suggestion", "friction"]),
    tags=st.lists(word, max_size=2).map(tuple),
    key=st.sampled_from(["", "closed", "1.2/3"]),
)
task = st.builds(
    NewTask,
    title=one_line,
    body=prose,
    priority=st.integers(0, 4),
    labels=st.lists(word, max_size=3).map(tuple),
    agent=st.none() | one_line,
    base=st.none() | one_line,
    issue=st.none() | st.integers(1, 10**9),
    skip_review=st.none() | st.booleans(),
)


def without_escapes(text: str) -> str:
    """What a text has instead of a line that would look like the head of a comment."""
    return re.sub(r"(---\n)\\(\\*# Comment:)", r"\1\2", text)


def stripped(text: str) -> str:
    """One kind of line end, and nothing but words at the end."""
    return text.replace("\r\n", "\n").strip("\n").rstrip()


@settings(max_examples=60, deadline=None)
@given(
    new=task,
    comments=st.lists(comment, max_size=3),
    statuses=st.lists(st.sampled_from(list(TaskState)), max_size=3),
    body=st.none() | prose,
)
def test_whatever_crew_writes_the_original_reads(tmp_path_factory, new, comments, statuses, body):
    source = FilesSource(tmp_path_factory.mktemp("store"))
    source.ensure()
    parent = source.add(NewTask(title="the parent"), at=AT)
    number = source.add(new, at=AT)
    source.edit(number, TaskChanges(parent=parent, body=body, add_labels=("one more",)))
    for status in statuses:
        source.set_status(number, status, at=AT, lifecycle=Lifecycle(review_count=1, session="s"))
    for one in comments:
        source.comment(number, one)
    read = read_store(source.folder)[number]
    item = source.show(number)
    assert read.front["title"] == item.title == " ".join(new.title.split("\n")).strip()
    assert read.front["parent"] == parent
    assert [label.strip() for label in read.front["labels"].split(",")] == list(item.labels)
    assert without_escapes(read.description) == item.body
    assert item.body == stripped(new.body if body is None else body)
    assert read.meta["status"] == item.status == (statuses[-1] if statuses else TaskState.TODO)
    assert read.meta.get("issue") == new.issue
    assert datetime.fromisoformat(read.meta["created"]).timestamp() == AT
    check_comments(read, item, comments)


def check_comments(read, item, comments):
    keys: set[str] = set()
    expected = [c for c in comments if not c.key or (c.key not in keys and not keys.add(c.key))]
    assert [without_escapes(one["text"]) for one in read.comments] == [
        stripped(one.text) for one in expected
    ]
    assert [one.text for one in item.comments] == [stripped(one.text) for one in expected]
    for told, one in zip(read.comments, expected, strict=True):
        assert told["Author"] == one.author.strip()
        assert told.get("Type", "") == one.kind
        assert datetime.fromisoformat(told["Time"]).timestamp() == one.at
        tags = [tag.strip() for tag in told.get("Tags", "").split(",") if tag.strip()]
        assert tags == list(dict.fromkeys(tag.strip() for tag in one.tags))


@settings(max_examples=30, deadline=None)
@given(comments=st.lists(comment, min_size=1, max_size=3), text=said, which=st.integers(0, 2))
def test_a_comment_that_was_changed_leaves_the_others_alone(
    tmp_path_factory, comments, text, which
):
    source = FilesSource(tmp_path_factory.mktemp("store"))
    number = source.add(NewTask(title="t", body="---\n# Comment: 0\nnot one"), at=AT)
    for at, one in enumerate(comments):
        source.comment(number, NewComment(author=one.author, text=one.text, at=at, tags=one.tags))
    which %= len(comments)
    before = read_store(source.folder)[number]
    source.change_comment(number, which, text)
    after = read_store(source.folder)[number]
    assert without_escapes(after.comments[which]["text"]) == stripped(text)
    for at, one in enumerate(after.comments):
        assert one == {**before.comments[at], "text": one["text"]}
        assert at == which or one["text"] == before.comments[at]["text"]
    assert after.description == before.description


FRONT = (
    "---\ntitle: Auth refactoring\nparent: 2\nlabels: backend, feature\nskip_review: true\n---\n"
)
COMMENTS = (
    "---\n# Comment: 0\n# Author: reviewer\n# Type: report\n# Tags: a, b\n# Metadata: k=v\n"
    "# Time: 2026-02-02T10:00:00Z\n\ncomment text\n\n---\n# Comment: 1\n# Author: ann\n"
    "# Time: 2026-02-02T10:00:00.123456789+09:00\n\nsecond\n\nwith a gap"
)
BY_HAND = {
    "a description": (FRONT + "\nDescription text\n", "Description text", 0),
    "no newline at the end": (FRONT + "\nDescription text", "Description text", 0),
    "no description": (FRONT + "\n", "", 0),
    "nothing at all after the front matter": (FRONT, "", 0),
    "not even the last newline": (FRONT.rstrip("\n"), "", 0),
    "comments": (FRONT + "\nDescription text\n\n" + COMMENTS + "\n", "Description text", 2),
    "comments without a newline": (FRONT + "\nDescription\n\n" + COMMENTS, "Description", 2),
    "comments and no description": (FRONT + "\n" + COMMENTS, "", 2),
    "rules in the text": (FRONT + "\none\n\n---\n\ntwo\n\n" + COMMENTS, "one\n\n---\n\ntwo", 2),
}
FULL_META = {
    "schema": 1,
    "status": "in_progress",
    "created": "2026-02-01T10:00:00+09:00",
    "started": "2026-02-01T11:00:00.5Z",
    "base_branch": "main",
    "status_version": 2,
    "agent": "claude",
    "session": "crew-1",
    "last_review_at": "2026-02-01T12:00:00Z",
    "last_review_is_lgtm": False,
    "close_reason": "abandoned",
    "block_reason": "waits for the vendor",
    "issue": 123,
    "pr": 7,
    "review_count": 2,
    "auto_fix_retry_count": 1,
}


def write_by_hand(folder: Path, markdown: str, meta: str) -> None:
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text('{"schema":1,"namespace":"default","next_id":3}')
    (folder / "1.md").write_text(markdown)
    (folder / "1.meta.json").write_text(meta)
    (folder / "2.md").write_text("---\ntitle: Parent\nparent:\nlabels:\nskip_review:\n---\n\n")
    bare = {name: FULL_META[name] for name in REQUIRED}
    (folder / "2.meta.json").write_text(json.dumps(bare))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("markdown", "body", "count"), BY_HAND.values(), ids=BY_HAND)
def test_what_the_original_wrote_loads_and_stays_readable(tmp_path, markdown, body, count, indent):
    source = FilesSource(tmp_path)
    meta = json.dumps(FULL_META, indent=indent)
    write_by_hand(source.folder, markdown, meta)
    item = source.show("1")
    assert item.corrupt is None
    assert (item.title, item.body, item.parent) == ("Auth refactoring", body, "2")
    assert (item.labels, item.skip_review) == (("backend", "feature"), True)
    assert (item.status, item.agent, item.base) == (TaskState.IN_PROGRESS, "claude", "main")
    assert (item.issue, item.review_count, item.created) == (123, 2, 1769907600.0)
    assert [one.index for one in item.comments] == list(range(count))
    if count:
        assert [one.text for one in item.comments] == ["comment text", "second\n\nwith a gap"]
    assert source.folder.joinpath("1.md").read_text() == markdown

    source.set_status("1", TaskState.ERROR, at=AT)
    source.comment("1", NewComment(author="crew", text="more", at=AT))
    source.edit("1", TaskChanges(add_labels=("late",)))
    read = read_store(source.folder)["1"]
    # Crew may end a reason to close that no longer holds; all else of the original's stays.
    kept = {n: v for n, v in FULL_META.items() if n not in {"status", "close_reason"}}
    assert {name: read.meta.get(name) for name in kept} == kept
    assert (read.description, len(read.comments)) == (body, count + 1)
    assert read.front["labels"] == "backend, feature, late"
    if count:
        assert (read.comments[0]["Tags"], read.comments[0]["Metadata"]) == ("a, b", "k=v")


def test_ids_go_on_where_the_original_stopped_and_are_never_used_again(tmp_path):
    source = FilesSource(tmp_path)
    write_by_hand(source.folder, FRONT, json.dumps(FULL_META))
    assert source.add(NewTask(title="third"), at=AT) == "3"
    source.remove("3")
    assert source.add(NewTask(title="fourth"), at=AT) == "4"
    (source.folder / "meta.json").write_text('{"schema":1,"namespace":"default","next_id":1}')
    assert source.add(NewTask(title="fifth"), at=AT) == "5"
    assert set(read_store(source.folder)) == {"1", "2", "4", "5"}


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("1.md", "no front matter"),
        ("1.md", "---\nparent: 2\n---\n\nno title\n"),
        ("1.md", "---\ntitle: x\nparent: two\n---\n\n"),
        ("1.meta.json", "{"),
        ("1.meta.json", json.dumps({**FULL_META, "schema": 2})),
        ("1.meta.json", json.dumps({**FULL_META, "status": "lost"})),
    ],
)
def test_what_both_cannot_read_is_told_and_does_not_hide_the_others(tmp_path, part, text):
    source = FilesSource(tmp_path)
    write_by_hand(source.folder, FRONT, json.dumps(FULL_META))
    (source.folder / part).write_text(text)
    with pytest.raises((Refused, ValueError)):
        read_task(source.folder / "1.md")
    first, second = source.scan().items
    assert first.status == TaskState.ERROR
    assert first.corrupt is not None
    assert second.title == "Parent"
