"""Whatever moment a writer is killed at, everybody else reads on and the work can be repeated."""

import os
import signal
import subprocess
import sys

import pytest

import crew.tasks.files
from crew.domain.effects import EFFECTS
from crew.domain.task import TaskState
from crew.tasks.source import BUILT_IN, NewTask, open_source

WORK = """
import sys
from pathlib import Path
from crew.domain.task import TaskState
from crew.tasks.source import NewComment, NewTask, TaskChanges, open_source

source = open_source(sys.argv[1], Path.cwd())
source.ensure()
first = source.add(NewTask(title="first"), at=1.0)
print(first, flush=True)
second = source.add(NewTask(title="second", deps=(first,), priority=0), at=2.0)
print(second, flush=True)
source.set_status(second, TaskState.IN_PROGRESS, at=3.0)
source.comment(second, NewComment(author="a", text="said", at=4.0, key="k"))
source.edit(second, TaskChanges(title="renamed", body="text", priority=1))
source.remove(first)
"""
POINTS = sorted(
    f"{name}.{when}"
    for name in EFFECTS
    if name.startswith("tasks.")
    for when in ("before", "after")
)


def run(folder, name, crash_at=""):
    environment = {**os.environ, "CREW_CRASH_AT": crash_at}
    environment.pop("TICKETS_DIR", None)
    return subprocess.run(
        [sys.executable, "-c", WORK, name],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=25,
    )


def test_every_write_of_the_sources_is_an_effect():
    assert crew.tasks.files
    assert {point.rpartition(".")[0] for point in POINTS} == {
        "tasks.make_folder",
        "tasks.write_temporary",
        "tasks.put_in_place",
        "tasks.delete_file",
    }


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_writer_leaves_a_readable_store(tmp_path, monkeypatch, name, point):
    monkeypatch.delenv("TICKETS_DIR", raising=False)
    deaths = 0
    while True:
        folder = tmp_path / str(deaths)
        folder.mkdir()
        ended = run(folder, name, f"{point}:{deaths + 1}")
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        deaths += 1
        monkeypatch.chdir(folder)
        assert_whole(open_source(name, folder), ended.stdout.split())
    assert deaths > 0


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
    new = source.add(NewTask(title="later"), at=9.0)
    assert new not in told
    assert [item.corrupt for item in source.scan().items if item.corrupt] == []
