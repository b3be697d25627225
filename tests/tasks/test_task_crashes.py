"""Whatever moment a writer is killed at, everybody else reads on and the work can be repeated."""

import os
import subprocess
import sys

import pytest

import crew.tasks.files_source
from crew.domain.rows.task import TaskState
from crew.system.crash_points import EFFECTS
from crew.tasks.task_source import BUILT_IN, NewTask, open_source

# One interpreter for all deaths of a point: each try is a fork that dies one effect later.
WORK = """
import os
import signal
import sys
from pathlib import Path
from crew.system import crash_points
from crew.domain.rows.task import TaskState
from crew.tasks.task_source import BatchSource, NewComment, NewTask, TaskChanges, open_source

def work(name):
    told = open("told", "w")
    source = open_source(name, Path.cwd() / "repo")
    source.ensure()
    first = source.add(NewTask(title="first"), at=1.0)
    print(first, file=told, flush=True)
    second = source.add(NewTask(title="second", deps=(first,), priority=0), at=2.0)
    print(second, file=told, flush=True)
    source.set_status(second, TaskState.IN_PROGRESS, at=3.0)
    source.comment(second, NewComment(author="a", text="said", at=4.0, key="k"))
    source.edit(second, TaskChanges(title="renamed", body="text", priority=1))
    if isinstance(source, BatchSource):
        many = [NewTask(title="many") for _ in range(3)]
        source.add_all(3, lambda ids: many, at=5.0)
    source.remove(first)

open_source(sys.argv[1], Path.cwd())
for number in range(1, 100):
    folder = Path(str(number))
    (folder / "repo").mkdir(parents=True)
    child = os.fork()
    if not child:
        os.chdir(folder)
        crash_points._at, crash_points._left = sys.argv[2], number
        work(sys.argv[1])
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        sys.exit(0)
    if status != -signal.SIGKILL:
        sys.exit(f"try {number} ended with {status}")
    print(number, flush=True)
"""
POINTS = sorted(
    f"{name}.{when}"
    for name in EFFECTS
    if name.startswith("tasks.")
    for when in ("before", "after")
)


def test_every_write_of_the_sources_is_an_effect():
    assert crew.tasks.files_source
    assert {point.rpartition(".")[0] for point in POINTS} == {
        "tasks.make_folder",
        "tasks.write_temporary",
        "tasks.put_in_place",
        "tasks.delete_file",
        "tasks.write_files",
    }


CASES = [
    (name, point)
    for point in POINTS
    for name in sorted(BUILT_IN)
    if name == "files" or "write_files" not in point  # the others make one task at a time
]


@pytest.mark.parametrize(("name", "point"), CASES)
def test_a_killed_writer_leaves_a_readable_store(tmp_path, monkeypatch, name, point):
    monkeypatch.delenv("TICKETS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", WORK, name, point],
        check=False,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    deaths = ended.stdout.split()
    assert deaths
    for death in deaths:
        folder = tmp_path / death
        told = folder / "told"
        assert_whole(open_source(name, folder / "repo"), told.read_text().split())


def assert_whole(source, told):
    """Nothing is half there, nothing that was told is lost, and the store takes more work."""
    by_id = source.scan().by_id
    assert [item.corrupt for item in by_id.values() if item.corrupt] == []
    if len(told) == 2:
        second = by_id[told[1]]
        assert second.title in {"second", "renamed"}
        assert second.deps == (told[0],)
        assert len(second.comments) <= 1
        source.set_status(second.id, TaskState.DONE, at=9.0)
        assert source.show(second.id).status == TaskState.DONE
    if told and told[0] not in by_id:
        assert len(told) == 2  # only the last act removes a task
    assert sum(item.title == "many" for item in by_id.values()) in {0, 3}
    new = source.add(NewTask(title="later"), at=9.0)
    assert new not in told
    assert [item.corrupt for item in source.scan().items if item.corrupt] == []
