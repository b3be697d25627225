"""The disk is full at one moment of a run: no traceback, nothing lost, nothing merged twice."""

import pytest

from crew.system.full_disk import is_disk_full
from runner.scene import PATIENCE_S
from runner.stories import STORIES

SAMPLE = ("store.record", "git.advance", "agents.append_log", "state.write")


def _points():
    for title, story in STORIES.items():
        for name in story.names:
            is_sample = title == "road" and name in SAMPLE
            marks = () if is_sample else pytest.mark.faults
            yield pytest.param(story, name, id=f"{title}-{name}", marks=marks)


@pytest.mark.parametrize(("story", "name"), [*_points()])
def test_a_crew_that_meets_a_full_disk_once_ends_as_if_it_had_not(make_scene, story, name):
    scene, base = story.begin(make_scene)
    ended = scene.start(CREW_CRASH_AT=f"{name}.before:1:enospc").wait(timeout=PATIENCE_S)
    said = (scene.path.parent / "err.txt").read_text()
    assert ended in (0, 1), said[-3000:]
    assert "Traceback" not in said, said[-3000:]
    story.end(scene, base)


def test_a_full_disk_is_recognised_behind_other_errors():
    hidden = ValueError("the log cannot be written")
    hidden.__cause__ = OSError(28, "No space left on device")
    assert is_disk_full(hidden)
    assert not is_disk_full(PermissionError(13, "denied"))
