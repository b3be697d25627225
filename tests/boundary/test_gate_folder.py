"""A gate finds a clean folder: what the code of one gate left cannot make the next one green."""

import pytest

from front.conftest import CliScene

AGENT = """\
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""


@pytest.fixture
def gated(scene) -> CliScene:
    (scene.folder / "agent.sh").write_text(AGENT)
    (scene.root / ".gitignore").write_text("left\ncache\n")
    scene.git("add", ".gitignore")
    scene.git("commit", "-q", "-m", "ignore")
    return scene


def gate(scene: CliScene, command: str, more: str = "") -> None:
    scene.configure(f"[sandbox]\nmode = \"off\"\n[complete]\ncommand = '''{command}'''\n{more}")


def test_files_that_a_gate_left_are_gone_at_the_next(gated):
    gate(gated, "test ! -e left && mkdir -p left/a && touch left/a/b")
    gated.ok("new", "--title", "one")
    gated.ok("new", "--title", "two")
    assert gated.crew("run", "--drain").code == 0
    assert (gated.status("1"), gated.status("2")) == ("merged", "merged")


def test_a_gate_that_replaces_its_own_folder_holds_up_no_other_task(gated):
    """The folder is given up and replaced, and the files behind the link stay."""
    precious = gated.folder / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    gate(gated, f'd=$(pwd); cd ..; rm -rf "$d"; ln -s "{precious}" "$d"')
    gated.ok("new", "--title", "one")
    gated.ok("new", "--title", "two")
    assert gated.crew("run", "--drain").code == 0
    assert (gated.status("1"), gated.status("2")) == ("merged", "merged")
    assert (precious / "file").read_text() == "mine"


def test_what_keep_names_stays_and_the_setup_runs_once(gated):
    """Without it the setup runs for each gate, since nothing stays."""
    runs = gated.folder / "setups"
    more = f"[worktree]\nsetup_command = \"echo x >> '{runs}'; mkdir -p cache\"\npool = 1\n"
    gate(gated, "test -d cache", more + '[gate]\nkeep = ["cache"]\n')
    gated.ok("new", "--title", "one")
    assert gated.crew("run", "--drain").code == 0
    first = runs.read_text().count("x")
    gated.ok("new", "--title", "two")
    assert gated.crew("run", "--drain").code == 0
    assert runs.read_text().count("x") <= first + 1  # for the second task's own worktree
