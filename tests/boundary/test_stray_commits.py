"""Commits that an agent leaves where crew does not look, or that git refuses: the agent is told."""

import pytest

AGENT = """\
step=$(($(cat "$SCENE/steps" 2>/dev/null || echo 0) + 1))
echo "$step" > "$SCENE/steps"
cat "$CREW_PROMPT_FILE" > "$SCENE/prompt-$step"
[ ! -e "$SCENE/act-$step" ] || . "$SCENE/act-$step"
echo DONE
"""
COMMIT = 'commit() { echo "$1" > "$1"; git add -A; git commit -q -m "$1"; }\n'


@pytest.fixture
def told(scene):
    """A crew with one task, whose agent does in each step what `acts` says."""
    (scene.folder / "agent.sh").write_text(COMMIT + AGENT)

    def run(*acts: str, config: str = ""):
        scene.configure(f'[complete]\ncommand = "true"\n{config}')
        for number, act in enumerate(acts, start=1):
            (scene.folder / f"act-{number}").write_text(act)
        scene.ok("new", "--title", "work")
        scene.crew("run", "--drain")
        return scene

    return run


def prompt(scene, step: int) -> str:
    return (scene.folder / f"prompt-{step}").read_text()


AWAY = {
    "detached": "git checkout -q --detach main; commit other",
    "another branch": "git checkout -q -b mine main; commit other",
    "only looks": "git checkout -q --detach main",
}


@pytest.mark.parametrize("away", AWAY)
def test_commits_on_the_task_s_branch_land_although_head_is_elsewhere(told, away):
    scene = told(f"commit first; {AWAY[away]}", "git merge -q -m both crew-1")
    assert "git merge crew-1" in prompt(scene, 2)
    assert "first" in prompt(scene, 2)
    assert scene.status("1") == "merged"
    landed = scene.git("ls-tree", "-r", "--name-only", "main").split()
    assert "first" in landed
    assert ("other" in landed) == ("other" in AWAY[away])


def test_an_agent_can_give_up_the_commits_of_its_branch(told):
    scene = told(
        "commit first; git checkout -q -b mine main; commit other", "git branch -f crew-1 HEAD"
    )
    assert scene.status("1") == "merged"
    assert "first" not in scene.git("ls-tree", "-r", "--name-only", "main").split()


REFUSED = """\
printf '[submodule "x"]\\n\\tpath = x\\n\\turl = https://example.org/x\\n\\tupdate = !touch %s\\n' \
  "$SCENE/executed" > .gitmodules
git add -A; git commit -q -m modules
"""


def test_commits_that_git_refuses_go_back_with_the_reason(told):
    scene = told(REFUSED, "git reset -q --hard main; commit sound")
    assert "disallowed submodule update setting" in prompt(scene, 2)
    assert scene.status("1") == "merged"
    assert scene.git("ls-files", ".gitmodules") == ""


def test_an_agent_that_repeats_refused_commits_is_freed(told):
    scene = told(REFUSED)
    assert scene.status("1") == "error"
    assert "git refuses" in scene.ok("show", "1").out
    assert scene.agent()["status"] == "idle"
    scene.ok("new", "--title", "next")
    (scene.folder / "steps").unlink()
    (scene.folder / "act-1").write_text("commit sound")
    scene.crew("run", "--drain")
    assert scene.status("2") == "merged"
    assert not (scene.folder / "executed").exists()
