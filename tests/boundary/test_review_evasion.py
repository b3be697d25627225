"""No agent evades a review or a gate: not its own, and not that of another task."""

import shlex

import pytest

from crew.system.processes.process import working_bwrap

JUDGE = """\
touch "$SCENE/reviewed-$CREW_TASK_ID"
[ "$CREW_TASK_ID" = 2 ] && echo FAIL || echo PASS
"""
CONFIG = """
[sandbox]
mode = "{mode}"
[complete]
command = "test ! -e red"
[review]
mode = "single"
agent = "judge"
max_rounds = 2
[agents.judge]
command_template = "sh {judge}"
env = {{ SCENE = "{scene}" }}
"""
MODES = ["off", *(["auto", "strict"] if working_bwrap() else [])]


@pytest.fixture
def reviewed(scene):
    """Two tasks, whose files the person has committed; the reviewer never passes the second."""

    def prepare(mode: str, act: str) -> None:
        judge = scene.folder / "judge.sh"
        judge.write_text(JUDGE)
        work = 'echo 1 > "file-$CREW_TASK_ID"; git add -A; git commit -qm work; echo DONE'
        (scene.folder / "agent.sh").write_text(f"{act}\n{work}\n")
        scene.configure(CONFIG.format(mode=mode, judge=judge, scene=scene.folder))
        for title in ("one", "two"):
            scene.ok("new", "--title", title)
        scene.git("add", ".crew/tasks")
        scene.git("commit", "-qm", "tasks")

    return prepare


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_cannot_free_its_task_of_review_and_gate(scene, reviewed, mode):
    root = shlex.quote(str(scene.root))
    acts = (
        f'crew -C {root} edit "$CREW_TASK_ID" --skip-review; '
        f"crew -C {root} config set complete.skip_review true; "
        f"crew -C {root} config set complete.command true; "
        '[ "$CREW_TASK_ID" = 2 ] || touch red'
    )
    reviewed(mode, acts)
    scene.crew("run", "--drain", "--agents", "1")
    assert "merged" not in {scene.status("1"), scene.status("2")}
    assert scene.git("ls-files", "file-1", "file-2", "red") == ""
    acts = {(one["kind"], one["act"]) for one in scene.ok("inbox", "--json").json}
    assert acts >= {("suspicion", "`crew edit`"), ("suspicion", "`crew config set`")}


SKIPS = "skip_review: true"


def test_a_commit_cannot_free_another_task_of_its_review(scene, reviewed):
    """A landed change of a task's file would be read like a person's."""
    change = f"sed -i 's/^---$/---\\n{SKIPS}/;t' .crew/tasks/default/2.*"
    reviewed("off", f'cat "$CREW_PROMPT_FILE"; [ "$CREW_TASK_ID" = 2 ] || {{ {change}; }}')
    scene.crew("run", "--drain", "--agents", "1")
    assert (scene.status("1"), scene.status("2")) == ("error", "error")
    assert "only people change task files" in scene.ok("logs", "1").out
    assert SKIPS not in scene.git("grep", "-h", "", "main", "--", ".crew/tasks")
