"""The first five minutes of the README, typed in a repository of the reader's own."""

from docs.pages import ROOT, blocks
from docs.shell import shell

README = (ROOT / "README.md").read_text()
AGENT = "echo 1 > file-$CREW_TASK_ID; git add -A; git commit -qm one; echo DONE\n"


def test_it_opens_with_the_two_commands_that_set_everything_up():
    first = blocks(README, "sh")[0].splitlines()
    assert [line.split(" #")[0].strip() for line in first] == ["make demo", "make test"]
    targets = (ROOT / "Makefile").read_text()
    assert all(f"\n{name}: $(READY)" in targets for name in ("demo", "test"))


def test_it_is_short_enough_for_five_minutes():
    assert len(README.split()) <= 800


def test_the_first_five_minutes_merge_both_tasks(bare_scene):
    agent = bare_scene.folder / "agent.sh"
    agent.write_text(AGENT)
    (bare_scene.root / ".crew.toml").write_text(
        f'[agents]\nworker_default = "sh"\n[agents.sh]\ncommand_template = "sh {agent}"\n'
    )
    bare_scene.git("add", ".crew.toml")
    bare_scene.git("commit", "-q", "-m", "an agent")
    before = bare_scene.git("status", "--porcelain")
    bare_scene.ok("init")
    bare_scene.ok("trust", "--yes")  # a committed agent runs once a person approves it
    commands = next(block for block in blocks(README, "sh") if "crew init" in block)
    here = "\n".join(line for line in commands.splitlines() if not line.startswith("cd "))
    shell(here, bare_scene.root)
    assert (bare_scene.status("1"), bare_scene.status("2")) == ("merged", "merged")
    merges = bare_scene.git("log", "--merges", "--format=%s").splitlines()
    assert merges == ["Merge crew-2: Document --json", "Merge crew-1: Add a --json flag"]
    assert before == ""
    assert bare_scene.git("status", "--porcelain") == "?? .crew/"  # its tasks, which may be shared
