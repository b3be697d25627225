"""The recipes of docs/recipes.md, tried: every configuration loads, every script does its work."""

import subprocess

import pytest

from crew.config.layers.layers import load_settings
from crew.config.workflow_files import BUILT_IN, load_workflow
from docs.pages import blocks, section, sections
from docs.shell import shell

PAGE = "recipes.md"
CONFIGURED = [
    (heading, block) for heading, text in sections(PAGE).items() for block in blocks(text, "toml")
]


def file_of(block):
    """The file that a block names in its first line."""
    first, _, _ = block.partition("\n")
    return first.removeprefix("# ")


def place(root, block):
    path = root / file_of(block)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block)


def commit(scene, text):
    scene.git("add", "-A")
    scene.git("commit", "-q", "-m", text)


@pytest.mark.parametrize(
    ("heading", "block"), CONFIGURED, ids=[heading for heading, _ in CONFIGURED]
)
def test_every_configuration_loads(heading, block, tmp_path):
    assert file_of(block) in (".crew.toml", ".crew/config.toml", "~/.config/crew/config.toml")
    (tmp_path / ".crew.toml").write_text(block)
    load_settings(tmp_path, {"HOME": str(tmp_path)})


def test_the_limits_are_those_that_the_page_names(tmp_path):
    (block,) = blocks(section(PAGE, "Limits on time and money"), "toml")
    place(tmp_path, block)
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert (settings.run.max_steps, settings.run.stuck_after) == (10, 3)
    assert settings.review.max_rounds == 5


def test_the_role_of_the_quest_is_one_of_its_workflow(tmp_path):
    text = section(PAGE, "A quest")
    place(tmp_path, *blocks(text, "toml"))
    kept = load_settings(tmp_path, {"HOME": str(tmp_path)}).roles["builder"]
    assert kept.session == "quest"
    assert "--workflow plan" in text
    assert "builder" in load_workflow(BUILT_IN / "plan.toml").roles


def test_the_own_agent_merges_its_task(bare_scene):
    root, text = bare_scene.root, section(PAGE, "Your own agent in ten lines")
    script, commands = blocks(text, "sh")
    place(root, script)
    (root / "page.md").write_text("teh cat\n")
    commit(bare_scene, "an agent")
    bare_scene.ok("init")
    place(root, *blocks(text, "toml"))
    assert len(script.splitlines()) <= 10
    shell(commands, root)
    assert bare_scene.status("1") == "merged"
    assert (root / "page.md").read_text() == "the cat\n"


@pytest.fixture
def monorepo(bare_scene):
    root = bare_scene.root
    (script,) = blocks(section(PAGE, "A monorepo"), "sh")
    place(root, script)
    for name in ("one", "two"):
        part = root / "packages" / name
        part.mkdir(parents=True)
        (part / "Makefile").write_text(f"test:\n\t@echo tested {name}; test ! -e red\n")
    commit(bare_scene, "two parts")
    bare_scene.git("checkout", "-q", "-b", "crew-1")
    return bare_scene


@pytest.mark.parametrize(
    ("changed", "tested", "code"),
    [
        (["packages/one/a"], ["one"], 0),
        (["packages/one/a", "packages/two/b"], ["one", "two"], 0),
        (["packages/one/a", "readme"], ["one", "two"], 0),
        (["packages/one/red"], ["one"], 2),
    ],
)
def test_the_gate_of_a_monorepo_tests_what_changed(monorepo, changed, tested, code):
    for name in changed:
        (monorepo.root / name).write_text("new\n")
    commit(monorepo, "work")
    (block,) = blocks(section(PAGE, "A monorepo"), "toml")
    place(monorepo.root, block)
    gate = load_settings(monorepo.root, {"HOME": str(monorepo.folder)}).complete.command
    done = subprocess.run(
        ["sh", "-c", gate], cwd=monorepo.root, capture_output=True, text=True, check=False
    )
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("tested ")]
    assert said == tested
    assert (done.returncode != 0) == (code != 0)


def test_a_crew_in_ci_lands_on_a_branch_of_its_own_and_pushes_it(bare_scene):
    root, scene = bare_scene.root, bare_scene
    own = section(PAGE, "Your own agent in ten lines")
    place(root, blocks(own, "sh")[0])
    (root / ".crew.toml").write_text(blocks(own, "toml")[0])
    (root / "page.md").write_text("teh cat\n")
    commit(scene, "an agent")
    scene.git("init", "-q", "--bare", str(scene.folder / "origin"))
    scene.git("remote", "add", "origin", str(scene.folder / "origin"))
    before = scene.git("rev-parse", "main")
    (commands,) = blocks(section(PAGE, "Crew's tasks in CI"), "sh")
    shell(commands, root)
    assert (
        scene.git("--git-dir", str(scene.folder / "origin"), "show", "agents:page.md") == "the cat"
    )
    assert scene.git("rev-parse", "main") == before


def test_a_branch_of_a_person_is_checked_reviewed_and_merged(with_terminals):
    root, scene = with_terminals.root, with_terminals
    text = section(PAGE, "Review only")
    reviewer = '[agents.rev]\nrole = "reviewer"\ncommand_template = "echo PASS"\n'
    (root / ".crew.toml").write_text(reviewer)
    commit(scene, "a reviewer")
    scene.git("checkout", "-q", "-b", "feature/login")
    (root / "login").write_text("login\n")
    commit(scene, "login")
    scene.git("checkout", "-q", "main")
    scene.ok("init")
    scene.ok("trust", "--yes")
    place(root, *blocks(text, "toml"))
    (commands,) = blocks(text, "sh")
    shell(commands, root, CREW_REVIEW_AGENT="rev", SHELL="/bin/sh")
    assert scene.status("1") == "merged"
    assert (root / "login").read_text() == "login\n"
    assert scene.ok("show", "1", "--json").json["comments"][0]["author"] == "rev"
