"""`crew exec` runs a person's command on the agent's files: they reach no more than in a step."""

import os
from pathlib import Path

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap

EVIL = """\
all:
	-touch "$(ROOT)/executed"
	-touch "$(ROOT)/../my repo-worktrees/executed"
	-cat "$(HOME)/secret"
	-echo "token: $$GITHUB_TOKEN"
	-git -C "$(ROOT)" update-ref refs/heads/main HEAD
	echo made > made
	exit 3
"""


@pytest.fixture
def task(scene):
    """A task that has ended in an error, and whose folder holds a Makefile of the agent."""
    scene.plan("1", "fail")
    scene.ok("new", "--title", "work")
    scene.crew("run", "--drain")
    folder = scene.root.parent / "my repo-worktrees" / "1"
    (folder / "Makefile").write_text(EVIL)
    (Path(os.environ["HOME"]) / "secret").write_text("my secret\n")
    return scene


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_the_agent_s_files_are_confined(task, mode):
    need(working_bwrap(), "bwrap")
    task.configure(f'[sandbox]\nmode = "{mode}"\n')
    before = task.git("rev-parse", "main")
    said = task.crew("exec", "1", "--", "make", f"ROOT={task.root}", GITHUB_TOKEN="my token")
    assert said.code == 2, said
    assert "echo made > made" in said.out
    assert "my secret" not in said.out + said.err
    assert "my token" not in said.out + said.err
    assert (task.root.parent / "my repo-worktrees/1/made").read_text() == "made\n"
    assert not list(task.root.parent.rglob("executed"))
    assert task.git("rev-parse", "main") == before


def test_a_command_can_commit(task):
    line = "git add -A; git commit -qm 'by hand'; git log -1 --format=%s; exit 7"
    said = task.crew("exec", "1", "--", "sh", "-c", line)
    assert (said.code, said.lines) == (7, ["by hand"])
    task.ok("diff", "1")  # takes it in
    assert task.git("log", "-1", "--format=%s", "crew-1") == "by hand"


def test_strict_runs_nothing_that_cannot_be_confined(task):
    task.configure('[sandbox]\nmode = "strict"\n')
    crew = Path(task.root.parent / "only")
    crew.mkdir()
    for name in ("git", "sh"):
        found = next(
            Path(folder) / name
            for folder in os.environ["PATH"].split(":")
            if (Path(folder) / name).exists()
        )
        (crew / name).symlink_to(found)
    said = task.crew("exec", "1", "--", "sh", "-c", "echo ran", PATH=str(crew))
    assert (said.code != 0, said.out) == (True, "")
    assert "no sandbox works here" in said.err


def test_without_a_sandbox_it_is_the_person_s_own_command(task):
    said = task.ok("exec", "1", "--", "sh", "-c", "cat ~/secret", CREW_SANDBOX_MODE="off")
    assert said.out == "my secret\n"
