"""Nothing that an agent made is lost, in a repository of its own, ignored or reset away."""

import subprocess
from pathlib import Path

import pytest

SCAFFOLD = """\
if grep -q "inside the worktree" "$CREW_PROMPT_FILE" && [ ! -e "$SCENE/stubborn" ]; then
  sh -c "$(sed -n 's/^> *part of your work: *//p' "$CREW_PROMPT_FILE")"
  git commit -qm "its files"
  echo DONE; exit 0
fi
[ -d app ] || { mkdir app && cd app && git init -q && echo 'print(1)' > main.py &&
  git add -A && git commit -qm "scaffold" && cd .. && git add -A && git commit -qm "an app"; }
echo DONE
"""

RECKLESS = """\
printf '.env\\nbig.bin\\n' > .gitignore; git add -A; git commit -qm good
echo lost > lost; git add -A; git commit -qm lost
git reset -q --hard HEAD~1
echo KEY=1 > .env; head -c 2000000 /dev/zero > big.bin
echo DONE
"""

SUBMODULE = """\
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
if [ "$CREW_TASK_ID" = 1 ]; then
  git -c protocol.file.allow=always submodule --quiet add "$SCENE/library" lib
fi
git add -A; git commit -qm "task $CREW_TASK_ID"
echo DONE
"""


@pytest.fixture
def agent(scene):
    """Lets the agent of the scene be another script."""
    return (scene.folder / "agent.sh").write_text


def test_a_repository_that_an_agent_made_is_sent_back_and_merged_as_files(scene, agent):
    agent(SCAFFOLD)
    scene.ok("new", "--title", "an app")
    scene.ok("run", "--drain")
    assert scene.git("show", "main:app/main.py") == "print(1)"
    assert (scene.root / "app" / "main.py").exists()
    kept = scene.ok("checkpoints", "1", "--json").json
    number = next(one["number"] for one in kept if one["nested"] == ["app"])
    assert f"checkpoint {number} holds the repository app" in scene.ok("checkpoints", "1").err
    into = Path(scene.ok("restore", "1", str(number)).out.strip())
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=into / "app", capture_output=True, text=True, check=True
    )
    assert log.stdout == "scaffold\n"


def test_an_agent_that_leaves_it_there_is_given_up_and_nothing_is_merged(scene, agent):
    agent(SCAFFOLD)
    (scene.folder / "stubborn").touch()
    before = scene.git("rev-parse", "main")
    scene.ok("new", "--title", "an app")
    said = scene.crew("run", "--drain", "-q")
    assert said.code == 6
    assert "gave up after 3 rounds: its work is in a repository inside the worktree" in said.err
    assert scene.git("rev-parse", "main") == before
    scene.ok("close", "1")
    into = Path(scene.ok("restore", "1").out.strip())
    assert (into / "app" / "main.py").read_text() == "print(1)\n"
    assert (into / "app" / ".git").is_dir()


def test_ignored_files_and_commits_that_were_reset_away_outlive_the_worktree(scene, agent):
    agent(RECKLESS)
    scene.ok("new", "--title", "reckless")
    scene.ok("run", "--drain")
    kept = scene.ok("checkpoints", "1", "--json").json
    assert kept[-1]["left_out"] == ["big.bin (2.0 MB)"]
    lost = next(commit for one in kept for commit in one["reset_away"])
    assert scene.git("show", f"{lost}:lost") == "lost"
    listed = scene.ok("checkpoints", "1").err
    assert f"git cherry-pick {lost[:12]}" in listed
    assert "does not hold big.bin (2.0 MB)" in listed
    into = Path(scene.ok("restore", "1").out.strip())
    assert (into / ".env").read_text() == "KEY=1\n"


def test_a_submodule_is_delivered_with_the_command_that_fills_it(scene, agent):
    agent(SUBMODULE)
    library = scene.folder / "library"
    library.mkdir()
    for args in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *args], cwd=library, check=True)
    scene.ok("new", "--title", "a submodule")
    assert "submodule update --init -- lib" in scene.ok("run", "--drain").err
    assert "submodule update --init -- lib" in scene.ok("ps").err
    assert scene.git("ls-tree", "main", "lib").startswith("160000")
    scene.ok("new", "--title", "another one")
    scene.ok("run", "--drain")
    assert (scene.root / "file-2").exists()
    assert scene.git("status", "--porcelain", "--", "lib", "file-2") == ""
