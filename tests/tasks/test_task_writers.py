"""Several processes write tasks at the same time."""

import os
import subprocess
import sys

import pytest

from crew.domain.rows.task import TaskState
from crew.tasks.task_source import BUILT_IN, NewTask, open_source

ADD = """
import sys
from pathlib import Path
from crew.tasks.task_source import NewTask, open_source

source = open_source(sys.argv[1], Path.cwd())
sys.stdin.read()
for number in range(50):
    print(source.add(NewTask(title=f"{sys.argv[2]}-{number}", priority=0), at=1.0), flush=True)
"""
COMMENT = """
import sys
from pathlib import Path
from crew.tasks.task_source import NewComment, open_source

source = open_source(sys.argv[1], Path.cwd())
sys.stdin.read()
for number in range(20):
    text = f"{sys.argv[2]}-{number}"
    source.comment(sys.argv[3], NewComment(author="a", text=text, at=1.0))
"""


@pytest.fixture(params=sorted(BUILT_IN))
def source(request, tmp_path, monkeypatch):
    monkeypatch.delenv("TICKETS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return open_source(request.param, tmp_path)


def start(folder, script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "TICKETS_DIR"},
    )


def race(writers):
    """All begin when their input closes; what each printed."""
    for writer in writers:
        writer.stdin.close()
    printed = [writer.stdout.read().split() for writer in writers]
    for writer in writers:
        writer.stdout.close()
        assert writer.wait(timeout=60) == 0
    return printed


def name_of(source):
    return "files" if source.folder.name == "default" else "tk"


def test_two_hundred_tasks_added_at_once_have_ids_of_their_own(source, tmp_path):
    printed = race([start(tmp_path, ADD, name_of(source), str(n)) for n in range(4)])
    ids = [task for part in printed for task in part]
    assert len(set(ids)) == len(ids) == 200
    items = source.scan().items
    assert {item.id for item in items} == set(ids)
    assert len({item.title for item in items}) == 200
    assert all(item.corrupt is None and item.priority == 0 for item in items)


def test_comments_said_at_once_are_all_kept(source, tmp_path):
    task = source.add(NewTask(title="t"), at=1.0)
    race([start(tmp_path, COMMENT, name_of(source), str(n), task) for n in range(3)])
    comments = source.show(task).comments
    assert len({comment.text for comment in comments}) == 60
    assert [comment.index for comment in comments] == list(range(60))


def test_who_reads_while_others_write_never_sees_half_a_task(source, tmp_path):
    writers = [start(tmp_path, ADD, name_of(source), str(n)) for n in range(2)]
    for writer in writers:
        writer.stdin.close()
    snapshot = None
    while any(writer.poll() is None for writer in writers):
        snapshot = source.scan(snapshot)
        assert [item.corrupt for item in snapshot.items if item.corrupt] == []
    for writer in writers:
        writer.stdout.close()
    assert len(source.scan(snapshot).items) == 100


def test_a_store_that_may_not_be_written_can_be_read(source):
    task = source.add(NewTask(title="t"), at=1.0)
    (source.folder / ".lock").unlink(missing_ok=True)
    source.folder.chmod(0o500)
    try:
        assert source.show(task).title == "t"
        assert [item.status for item in source.scan().items] == [TaskState.TODO]
    finally:
        source.folder.chmod(0o700)
