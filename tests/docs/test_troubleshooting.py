"""Every message that docs/troubleshooting.md quotes is one that crew prints in that situation."""

import shutil

import pytest

from docs.pages import blocks, section
from docs.shell import shell
from front.conftest import PATIENCE_S, until

PAGE = "troubleshooting.md"


def quoted(heading):
    """The parts of the quoted lines that are not left out."""
    (block,) = blocks(section(PAGE, heading), "text")
    return [part.strip() for line in block.splitlines() for part in line.split("…")]


def commands(heading, *words):
    """The commands of a section that contain one of the words, without what needs a person."""
    (block,) = blocks(section(PAGE, heading), "sh")
    return "\n".join(line for line in block.splitlines() if any(word in line for word in words))


def assert_quoted(heading, said):
    printed = " ".join((said.out + said.err).split())
    for part in quoted(heading):
        assert " ".join(part.split()) in printed, printed


def test_an_agent_is_stuck_and_tries_again(scene):
    scene.plan("1", "fail")
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q").code == 6
    assert_quoted("An agent is stuck", scene.ok("ps"))
    scene.plan("1", "")
    shell(commands("An agent is stuck", "logs", "retry"), scene.root)
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"


def test_a_delivery_waits_until_the_change_is_committed(scene, running):
    agent = scene.folder / "agent.sh"
    agent.write_text("echo 1 >> readme; git commit -qam one; echo DONE\n")
    scene.ok("new", "--title", "one")
    (scene.root / "readme").write_text("mine\n")
    running()
    until(lambda: "delivery to main waits" in scene.ok("ps").err)
    assert_quoted("A delivery waits", scene.ok("ps"))
    shell(commands("A delivery waits", "git commit"), scene.root)
    scene.git("reset", "-q", "--hard", "HEAD~1")
    until(lambda: scene.status("1") == "merged")
    assert scene.git("show", "HEAD:readme").splitlines()[-1] == "1"


DROPS = """\
echo good > good; git add good; git commit -qm 'The good idea'; git reset -q --hard HEAD~1
{ git push; git fetch origin; } 2>&1
git fetch && echo "nothing was fetched"
echo 1 > file-1; git add file-1; git commit -qm 'Another way'; echo DONE
"""


@pytest.fixture
def dropped(scene):
    """Task 1 is merged; its agent has dropped a commit, and tried to push and to fetch."""
    (scene.folder / "agent.sh").write_text(DROPS)
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "-q")
    return scene


def test_commits_that_an_agent_dropped_are_brought_back_by_git(dropped):
    heading = "An agent dropped commits"
    said = dropped.ok("checkpoints", "1")
    assert_quoted(heading, said)
    shell(commands(heading, "crew restore"), dropped.root)
    assert (dropped.root / "found" / "file-1").read_text() == "1\n"
    assert not (dropped.root / "found" / "good").exists()
    printed = (said.out + said.err).partition("left behind: git cherry-pick ")[2]
    dropped.git("cherry-pick", printed.split()[0])
    assert (dropped.root / "good").read_text() == "good\n"


def test_an_agent_has_no_remote_to_push_to_or_to_fetch_from(dropped):
    said = dropped.ok("logs", "1")
    assert_quoted("An agent cannot push or fetch", said)
    assert "nothing was fetched" in said.lines


def test_a_red_gate_ends_after_the_rounds(scene):
    scene.configure('[complete]\ncommand = "test ! -e file-1"\n[review]\nmax_rounds = 1\n')
    scene.ok("new", "--title", "one")
    assert_quoted("The gate is red", scene.crew("run", "--drain"))
    shell(commands("The gate is red", "show", "retry", "config"), scene.root)
    assert scene.status("1") == "todo"


def test_a_nested_repository_becomes_plain_files(scene):
    agent = scene.folder / "agent.sh"
    agent.write_text(
        "[ -e lib ] || { git init -q lib; cd lib; echo 1 > a; git add a; git commit -qm a; }\n"
        'cd "$CREW_WORKTREE"\n'
        "echo 1 > b; git add b; git commit -qm b; echo DONE\n"
    )
    scene.configure("[review]\nmax_rounds = 1\n")
    scene.ok("new", "--title", "one")
    assert_quoted("The work is in a nested repository", scene.crew("run", "--drain"))
    shell(commands("The work is in a nested repository", "crew "), scene.root)
    scene.ok("run", "--drain", "-q")
    assert scene.git("show", "main:lib/a") == "1"


def test_work_inside_a_submodule_is_merged_once_a_person_has_pushed_it(scene):
    source = scene.root.parent / "library"
    scene.git("clone", "-q", str(scene.root), str(source))
    scene.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "lib")
    scene.git("commit", "-qm", "with a library")
    agent = scene.folder / "agent.sh"
    agent.write_text(
        "cd lib; [ -e new ] || { echo 1 > new; git add new; git commit -qm inside; }; cd ..\n"
        "git diff --quiet || git commit -qam moved; echo DONE\n"
    )
    scene.configure("[review]\nmax_rounds = 1\n")
    scene.ok("new", "--title", "one")
    heading = "The work is in a submodule"
    assert_quoted(heading, scene.crew("run", "--drain"))
    assert "holds the repository lib with its commits" in scene.ok("checkpoints", "1").err
    name = scene.root.parent / f"{scene.root.name}-worktrees"
    script = commands(heading, "git", "crew").replace("../../repo-worktrees", f"'{name}'")
    before, update = script.rsplit("\n", 1)
    shell(before, scene.root)
    scene.ok("run", "--drain", "-q")
    shell(update, scene.root)
    assert (scene.root / "lib" / "new").read_text() == "1\n"
    assert scene.git("-C", str(source), "rev-parse", "crew-1") == scene.git("rev-parse", "HEAD:lib")


def test_no_gate_and_a_branch_in_the_way(scene):
    scene.git("branch", "crew-1")
    scene.ok("new", "--title", "one")
    said = scene.crew("run", "--drain")
    assert_quoted("No gate was found", said)
    assert_quoted("A branch is in the way", said)
    shell(commands("A branch is in the way", "git", "crew"), scene.root)
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"


def test_landed_work_that_only_crew_has_blocks_a_branch_until_it_is_kept(scene):
    scene.git("branch", "feature")
    scene.ok("new", "--title", "one", "--base", "feature")
    scene.ok("run", "--drain", "-q")
    scene.git("branch", "-D", "feature")
    scene.git("branch", "feature/login")
    scene.ok("new", "--title", "two", "--base", "feature/login")
    assert scene.crew("run", "--drain", "-q").code == 6
    assert_quoted("Landed work blocks a branch", scene.ok("ps"))
    shell(commands("Landed work blocks a branch", "git", "crew"), scene.root)
    scene.ok("run", "--drain", "-q")
    assert scene.status("2") == "merged"
    assert scene.git("show", "landed-feature:file-1") == "1"


def test_a_second_runner_is_refused_and_the_first_can_be_stopped(scene, running):
    process = running()
    said = scene.crew("run")
    assert said.code == 5
    assert_quoted("A runner is already up", said)
    shell(commands("A runner is already up", "ps", "stop"), scene.root)
    process.communicate(timeout=PATIENCE_S)


def test_a_question_waits_and_is_answered(scene):
    agent = scene.folder / "agent.sh"
    agent.write_text(
        "if [ -e asked ]; then git add -A; git commit -qm one; echo DONE\n"
        "else touch asked; crew signal needs-user-input --question Which; fi\n"
    )
    scene.ok("new", "--title", "one")
    assert scene.crew("run", "--drain", "-q").code == 6
    assert_quoted("A task waits for an answer", scene.ok("ps"))
    shell(commands("A task waits for an answer", "crew"), scene.root)
    scene.ok("run", "--drain", "-q")
    assert scene.status("1") == "merged"


@pytest.mark.parametrize(
    ("heading", "args"),
    [
        ("An agent is not installed, or not logged in", ["run"]),
        ("tmux is missing", ["start", "1", "sh"]),
    ],
)
def test_a_missing_program_is_named(scene, tmp_path, heading, args):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    scene.ok("config", "set", "agents.worker_default", "claude")
    scene.ok("new", "--title", "one")
    said = scene.crew(*args, PATH=str(tools))
    assert said.code == 1
    assert_quoted(heading, said)


def test_every_check_of_the_doctor_is_explained(scene):
    checks = {finding["check"] for finding in scene.crew("doctor", "--json").json}
    text = section(PAGE, "What `crew doctor` checks")
    assert len(checks) > 8
    assert all(f"| `{check}` |" in text for check in checks)
