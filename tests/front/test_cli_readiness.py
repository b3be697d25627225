"""What would make every task fail is found at `crew init` and before the first agent starts."""

import os
import subprocess

import pytest

from front.conftest import worktree

NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
NO_IDENTITY = "[user]\n\tuseConfigOnly = true\n"
STARTS = (["run", "--drain"], ["run", "--detach"], ["loop", "do it"], ["start", "1"])


@pytest.fixture
def nobody(scene):
    """A person whom git does not know, whatever this machine is called."""
    (scene.folder / "gitconfig").write_text(NO_IDENTITY)
    scene.ok("new", "--title", "first")
    return scene, {"GIT_CONFIG_GLOBAL": str(scene.folder / "gitconfig")}


def began(scene) -> bool:
    return bool(scene.git("branch", "--list", "crew-*"))


@pytest.mark.parametrize("command", STARTS, ids=" ".join)
def test_no_agent_starts_where_git_does_not_know_who_commits(nobody, command):
    scene, env = nobody
    hint = scene.refused(5, "no_identity", *command, **env).hint
    assert "git config user.name" in hint
    assert not began(scene)


def test_init_and_doctor_name_a_missing_identity_and_their_commands_help(nobody):
    scene, env = nobody
    assert "git config user.name" in scene.ok("init", **env).out
    (problem,) = scene.ok("init", "--json", **env).json["problems"]
    assert scene.crew("doctor", **env).code == 1
    command = problem["fix"].partition(" (")[0].replace("NAME", "Ann").replace("ADDRESS", "a@x.org")
    subprocess.run(command, shell=True, cwd=scene.root, check=True)
    assert scene.ok("init", "--json", **env).json["problems"] == []
    scene.ok("run", "--drain", **env)
    assert scene.status("1") == "merged"
    assert scene.git("log", "-1", "--format=%an", "main^2") == "Ann"
    assert scene.git("log", "-1", "--format=%an", "main") == "crew"


@pytest.mark.parametrize("where", ["environment", "agent"])
def test_an_identity_from_elsewhere_is_enough(nobody, where):
    scene, env = nobody
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    if where == "agent":
        values = ", ".join(f'{name} = "agent"' for name in names)
        config = scene.root / ".crew" / "config.toml"
        config.write_text(config.read_text().replace("env = { ", f"env = {{ {values}, "))
        env = {**env, "CREW_SANDBOX": ""}
    else:
        env = {**env, **dict.fromkeys(names, "caller")}
    scene.ok("run", "--drain", **env)
    assert scene.git("log", "-1", "--format=%an", "main^2") in {"agent", "caller"}


def test_without_work_a_run_needs_no_identity(scene):
    (scene.folder / "gitconfig").write_text(NO_IDENTITY)
    scene.ok("run", "--drain", GIT_CONFIG_GLOBAL=str(scene.folder / "gitconfig"))


def a_file(folder):
    folder.write_text("mine\n")


def a_dead_link(folder):
    folder.symlink_to(folder.with_name("nowhere"))


def a_folder_of_somebody(folder):
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "mine").write_text("mine\n")


def a_worktree_of_another_crew(folder):
    other = folder.with_name("other") / ".git"
    (other / "crew" / "folders" / "7" / "repository").mkdir(parents=True)
    (folder / "7").mkdir(parents=True)
    (folder / "7" / ".git").write_text(f"gitdir: {other}/crew/folders/7/repository\n")


@pytest.mark.parametrize(
    "taken", [a_file, a_dead_link, a_folder_of_somebody, a_worktree_of_another_crew]
)
def test_a_taken_folder_for_worktrees_is_found_before_the_first_agent(scene, taken):
    folder = worktree(scene).parent
    taken(folder)
    scene.ok("new", "--title", "first")
    assert "worktree.dir" in scene.ok("init").out
    for command in (["run", "--drain"], ["loop", "do it"]):
        hint = scene.refused(5, "no_place_for_worktrees", *command).hint
        assert "worktree.dir" in hint
    assert not began(scene)
    scene.ok("config", "set", "worktree.dir", str(scene.folder / "elsewhere"))
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


def test_a_folder_for_worktrees_with_other_things_of_the_person_is_fine(scene):
    folder = worktree(scene).parent
    scene.git("worktree", "add", "-q", "-b", "feature", str(folder / "feature"))
    (folder / "2").mkdir()
    scene.ok("new", "--title", "first")
    scene.ok("run", "--drain")
    assert scene.ok("init", "--json").json["problems"] == []


def test_a_parent_that_cannot_be_written_is_found_before_the_first_agent(scene):
    """A read-only mount stops root too."""
    scene.ok("new", "--title", "first")
    from front.conftest import CREW  # noqa: PLC0415

    top, root = scene.root.parent, scene.root
    inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", top, top, "--bind", root, root]
    said = subprocess.run(
        [*inside, CREW, "-C", root, "run", "--drain", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, "no_place_for_worktrees" in said.stdout) == (5, True), said
    assert not began(scene)
