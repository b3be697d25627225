"""`[merge] conflict = "ask"`: a person decides, through the inbox."""

import pytest

TOGETHER = """\
touch "$SCENE/at-$CREW_TASK_ID"
until [ -e "$SCENE/at-1" ] && [ -e "$SCENE/at-2" ]; do sleep 0.05; done
echo "$CREW_TASK_ID" > shared
git add shared && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""
"""Both tasks start from the same commit and add the same file."""


@pytest.fixture
def asking(scene):
    """One of two tasks has landed, and the conflict of the other one waits for a person."""
    scene.configure('[merge]\nconflict = "ask"\n')
    (scene.folder / "agent.sh").write_text(TOGETHER)
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    said = scene.crew("run", "--drain", "-q", "--agents", "2")
    assert said.code == 6, said
    assert "asks: Task" in said.err
    return scene


def test_the_choice_of_a_person_is_carried_out(asking):
    (question,) = asking.ok("inbox", "--json").json
    assert question["kind"] == "conflict"
    assert question["choices"] == ["agent", "mine", "theirs", "give up"]
    task = question["task"]
    assert "agent, mine, theirs, give up" in asking.ok("inbox").out
    shown = asking.ok("inbox", question["id"])
    assert "shared" in shown.out
    assert "which lines win: mine (the task's) or theirs (what landed)?" in shown.out
    assert '"mine" | "theirs"' in shown.err
    wrong = asking.refused(2, "invalid_choice", "answer", question["id"], "ours")
    assert "agent, mine, theirs, give up" in wrong.hint
    asking.refused(5, "waits_for_answer", "merge", task)
    asking.ok("answer", question["id"], "mine")
    asking.ok("run", "--drain", "-q")
    assert asking.git("show", "main:shared") == task
    assert asking.status(task) == "merged"
    merge = asking.ok("show", task, "--json").json["landed_commit"]
    assert "Conflicts: settled by a person for mine" in asking.git("log", "-1", merge)
    assert len(asking.git("rev-list", "--parents", "-1", merge).split()) == 3
