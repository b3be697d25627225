"""Many tasks are made at once: all of them or none, and the disk is waited for once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crew.domain.kernel.errors import UsageError
from crew.front.cli.tasks.drafts import _cycle, making_order
from crew.tasks.files_source import FilesSource
from crew.tasks.task_source import BatchSource, NewTask

COUNT = 4


def chain(ids):
    """Each task waits for the one before it and is part of the last one."""
    before = [(), *((task,) for task in ids[:-1])]
    return [
        NewTask(title=f"task {task}", deps=deps, parent=ids[-1] if task != ids[-1] else None)
        for task, deps in zip(ids, before, strict=True)
    ]


@pytest.fixture
def source(tmp_path):
    source = FilesSource(tmp_path)
    source.ensure()
    return source


def test_tasks_of_a_batch_name_one_another(source):
    source.add(NewTask(title="first"), at=1.0)
    assert isinstance(source, BatchSource)
    assert source.add_all(3, chain, at=2.0) == ["2", "3", "4"]
    items = {item.id: item for item in source.scan().items}
    assert [items[task].deps for task in "234"] == [(), ("2",), ("3",)]
    assert [items[task].parent for task in "234"] == ["4", "4", None]
    assert source.add(NewTask(title="next"), at=3.0) == "5"


def test_a_batch_takes_no_number_that_a_file_has(source):
    (source.folder / "3.md").write_text("---\ntitle: by hand\n---\n")
    assert source.add_all(3, chain, at=1.0) == ["4", "5", "6"]


def test_a_batch_with_a_mistake_makes_nothing(source):
    with pytest.raises(UsageError):
        source.add_all(2, lambda _ids: [NewTask(title="fine"), NewTask(title="")], at=1.0)
    assert source.scan().items == ()
    assert source.add(NewTask(title="first"), at=2.0) == "1"


def test_the_disk_is_waited_for_as_often_for_many_as_for_few(source, monkeypatch):
    waits = []
    monkeypatch.setattr(os, "fsync", waits.append)
    monkeypatch.setattr(os, "sync", lambda: waits.append("all"))
    source.add_all(5, chain, at=1.0)
    few = len(waits)
    source.add_all(200, chain, at=2.0)
    assert len(waits) - few == few


POINTS = [
    *(f"tasks.write_temporary.{when}:3" for when in ("before", "after")),  # that of the batch
    *(f"tasks.put_in_place.{when}:3" for when in ("before", "after")),
    *(f"tasks.{name}:1" for name in ("write_files.before", "write_files.after")),
    *(f"tasks.{name}:1" for name in ("delete_file.before", "delete_file.after")),
]


@pytest.mark.parametrize("point", POINTS)
def test_whoever_is_killed_has_made_all_tasks_or_none(source, tmp_path, point):
    code = (
        "from pathlib import Path\n"
        "from crew.tasks.files_source import FilesSource\n"
        "from tasks.test_batches import COUNT, chain\n"
        f"FilesSource(Path({str(tmp_path)!r})).add_all(COUNT, chain, at=1.0)\n"
    )
    env = {**os.environ, "CREW_CRASH_AT": point, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=False)
    assert done.returncode == -9
    items = source.scan().items
    is_kept = point not in POINTS[:3]  # before the batch is in place
    assert [item.title for item in items] == [f"task {n + 1}" for n in range(COUNT) if is_kept]
    assert all(item.corrupt is None for item in items)
    assert not (tmp_path / ".crew" / "new-tasks-default").exists()
    assert source.add(NewTask(title="next"), at=2.0) == str(COUNT + 1)


def test_what_is_half_written_is_written_again(source, tmp_path):
    source.add_all(2, chain, at=1.0)
    whole = {file.name: file.read_text() for file in source.folder.iterdir()}
    batch = tmp_path / ".crew" / "new-tasks-default"
    parts = {name: text for name, text in whole.items() if name[0] in "12"}
    batch.write_text(json.dumps(parts))
    (source.folder / "1.md").write_text("")  # as after a power failure
    (source.folder / "2.md").unlink()
    assert source.resolve("2") == "2"
    assert {file.name: file.read_text() for file in source.folder.iterdir()} == whole


@pytest.mark.parametrize(
    ("graph", "order", "circle"),
    [
        ({1: [], 2: [], 3: []}, [1, 2, 3], None),
        ({1: [3], 2: [], 3: [2]}, [2, 3, 1], None),
        ({1: [2, 2], 2: [], 3: [1]}, [2, 1, 3], None),
        ({1: [2], 2: [3], 3: [2], 4: []}, [4], [2, 3, 2]),
        ({1: [1]}, [], [1, 1]),
    ],
)
def test_blocks_come_after_those_they_name_and_circles_are_found(graph, order, circle):
    assert making_order(graph) == order
    assert _cycle(graph) == circle


def test_a_long_chain_backwards_is_ordered():
    graph = {n: [n + 1] for n in range(1, 20_000)} | {20_000: []}
    assert making_order(graph) == list(range(20_000, 0, -1))
    assert _cycle(graph) is None
