"""What a person must be able to trust whatever an agent does: their branches, checkout and git."""

from agents.conftest import need
from crew.system.processes.process import working_bwrap
from front.conftest import until


def drained(scene, code=0):
    said = scene.crew("run", "--drain", "--agents", "1")
    assert said.code == code, said.err
    return said


def test_a_branch_that_somebody_else_made_is_not_taken(scene):
    scene.git("branch", "crew-1")
    before = scene.git("rev-parse", "crew-1")
    scene.ok("new", "--title", "x")
    said = drained(scene, code=6)
    assert "crew did not make" in said.err
    assert "git branch -m crew-1" in said.err
    assert scene.git("rev-parse", "crew-1") == before


def test_what_landed_is_delivered_although_the_database_was_cleaned(scene):
    scene.ok("new", "--title", "x")
    (scene.root / "file-1").write_text("mine\n")
    drained(scene, code=75)
    scene.ok("clean", "--yes")
    (scene.root / "file-1").unlink()
    drained(scene)
    assert (scene.root / "file-1").read_text() == "1\n"


def test_a_worktree_that_became_a_link_to_the_checkout_is_not_worked_in(scene):
    agent = scene.folder / "agent.sh"
    link = 'mv "$CREW_WORKTREE" "$CREW_WORKTREE.bak"; ln -s "$CREW_REPO" "$CREW_WORKTREE"'
    agent.write_text(f'[ "$CREW_STEP" = 1 ] && {{ {link}; exit 0; }}\n{agent.read_text()}')
    (scene.root / "mine").write_text("not for anybody\n")
    scene.ok("new", "--title", "x")
    scene.crew("run", "--drain", "--agents", "1")
    assert "mine" not in scene.git("ls-files").splitlines()
    assert "mine" not in scene.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()


def test_an_agent_cannot_change_how_git_works_for_others(scene):
    need(working_bwrap(), "bwrap")
    agent = scene.folder / "agent.sh"
    attack = 'git config core.fsmonitor evil; echo x > "$CREW_GIT_DIR/info/attributes"'
    agent.write_text(f"{attack}\n{agent.read_text()}")
    config = (scene.root / ".git" / "config").read_bytes()
    scene.ok("new", "--title", "x")
    drained(scene)
    assert (scene.root / ".git" / "config").read_bytes() == config
    assert not (scene.root / ".git" / "info" / "attributes").exists()


def test_a_killed_task_rests_so_that_a_person_can_close_it(scene, running):
    scene.ok("new", "--title", "x")
    scene.plan("1", "wait")
    running("--agents", "1")
    until(lambda: scene.agent()["status"] == "working")
    assert scene.ok("kill", "A", "--json").json["status"] == "idle"
    assert scene.status("1") == "todo"
    scene.ok("close", "1", "--reason", "not like this")
    assert scene.status("1") == "closed"
    assert "closed: not like this" in scene.ok("show", "1").out
