"""A gate finds a clean folder: what the code of one gate left cannot make the next one green."""

import pytest

from front.conftest import CliScene

AGENT = """\
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""

PIPE = "git init -q n; rm -f n/.git/HEAD; mkfifo n/.git/HEAD"
"""A repository in which each git would wait."""


@pytest.fixture
def gated(scene) -> CliScene:
    (scene.folder / "agent.sh").write_text(AGENT)
    (scene.root / ".gitignore").write_text("left\ncache\n")
    scene.git("add", ".gitignore")
    scene.git("commit", "-q", "-m", "ignore")
    return scene


def gate(scene: CliScene, command: str, more: str = "", *, mode: str = "off") -> None:
    complete = f"[complete]\ncommand = '''{command}'''\n"
    scene.configure(f'[sandbox]\nmode = "{mode}"\n{complete}{more}')


def ends(scene: CliScene, *, first: str, second: str, mode: str) -> tuple[str, str]:
    """How two tasks end. The gate of a commit with file-2 is `second`, that of others `first`."""
    command = f"if [ -e file-2 ]; then {second}; else {first}; fi"
    gate(scene, command, "[review]\nmax_rounds = 1\n", mode=mode)
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    scene.crew("run", "--drain")
    return scene.status("1"), scene.status("2")


def test_files_that_a_gate_left_are_gone_at_the_next(gated):
    gate(gated, "test ! -e left && mkdir -p left/a && touch left/a/b")
    gated.ok("new", "--title", "one")
    gated.ok("new", "--title", "two")
    assert gated.crew("run", "--drain").code == 0
    assert (gated.status("1"), gated.status("2")) == ("merged", "merged")


@pytest.mark.parametrize("mode", ["off", "strict"])
@pytest.mark.parametrize("left", ["left-here", "sub/.git"])
def test_a_folder_that_a_gate_left_makes_no_red_commit_green(gated, mode, left):
    """Empty, or where git does not clean."""
    (gated.root / "sub").mkdir()
    (gated.root / "sub" / "file").write_text("x")
    gated.git("add", "sub")
    gated.git("commit", "-q", "-m", "sub")
    found = ends(gated, first=f"mkdir -p {left}", second=f"test -d {left}", mode=mode)
    assert found == ("merged", "error")
    assert "file-2" not in gated.git("ls-tree", "--name-only", "main")


@pytest.mark.parametrize("mode", ["off", "strict"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("chmod 0555 .", "test $(stat -c %a .) != 555"),
        ("chmod 0400 readme", "test $(stat -c %a readme) != 400"),
        ('chmod -R a-w "$(git rev-parse --git-dir)"', "git commit -q --allow-empty -m x"),
    ],
)
def test_a_mode_that_a_gate_left_makes_no_green_commit_red(gated, first, second, mode):
    assert ends(gated, first=first, second=second, mode=mode) == ("merged", "merged")


@pytest.mark.parametrize("mode", ["off", "strict"])
def test_a_pipe_in_a_repository_that_a_gate_left_holds_up_no_other_task(gated, mode):
    assert ends(gated, first=PIPE, second=PIPE, mode=mode) == ("merged", "merged")


def test_a_pipe_that_the_setup_of_a_gate_made_holds_up_no_task(gated):
    """Crew notes what the setup made, without git."""
    setup = f"case $PWD in *.gate*) {PIPE} ;; esac"
    gate(gated, "test -d n", f'[worktree]\nsetup_command = "{setup}"\n')
    gated.ok("new", "--title", "one")
    assert gated.crew("run", "--drain").code == 0
    assert gated.status("1") == "merged"


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
