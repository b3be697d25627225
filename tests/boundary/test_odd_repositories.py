"""Repositories that a person has: partial clones, and those that another user owns."""

import os
import shutil
import subprocess

import pytest

from agents.conftest import need


@pytest.fixture
def partial(scene):
    """A crew in a partial clone that lacks the files of its own history."""
    far = scene.folder / "far.git"
    for number in range(3):
        (scene.root / "readme").write_text(f"readme {number}\n")
        (scene.root / f"only-{number}").write_text(f"{number}\n")
        scene.git("add", "readme", f"only-{number}")
        scene.git("commit", "-q", "-m", f"{number}")
    crew = scene.folder / "crew"
    shutil.move(scene.root / ".crew", crew)
    shutil.move(scene.root, far)
    subprocess.run(["git", "-C", far, "config", "uploadpack.allowFilter", "true"], check=True)
    way = ("--filter=blob:none", "--sparse", f"file://{far}", str(scene.root))
    subprocess.run(["git", "clone", "-q", *way], check=True)
    scene.git("sparse-checkout", "disable")
    shutil.move(crew, scene.root / ".crew")
    scene.ok("init")
    scene.configure('[complete]\ncommand = "test -f only-2"\n')
    return scene


def lacking(scene) -> int:
    listed = scene.git("rev-list", "--objects", "--all", "--missing=print")
    return sum(line.startswith("?") for line in listed.splitlines())


def test_a_partial_clone_runs_to_merged(partial):
    assert lacking(partial) > 0
    partial.ok("new", "--title", "work")
    partial.crew("run", "--drain")
    assert partial.status("1") == "merged"
    assert (partial.root / "file-1").exists()
    assert partial.git("status", "--porcelain", "--", "file-1", "readme") == ""
    assert lacking(partial) > 0
    checks = partial.crew("--json", "doctor").json
    assert {one["state"] for one in checks if one["check"] != "agents"} <= {"ok", "repaired"}


def test_an_unreachable_remote_is_named_before_the_first_step(partial):
    partial.git("remote", "set-url", "origin", "file:///nowhere")
    partial.git("update-ref", "refs/heads/other", "main~1")
    partial.git("symbolic-ref", "HEAD", "refs/heads/other")
    partial.ok("new", "--title", "work")
    partial.crew("run", "--drain")
    assert not (partial.root / "file-1").exists()
    assert "cannot fetch them from origin" in partial.ok("ps").out


def test_the_repository_of_another_user_works_after_the_named_commands(bare_scene):
    need(os.geteuid() == 0, "root")
    for top, folders, files in os.walk(bare_scene.root):
        for name in (".", *folders, *files):
            os.lchown(os.path.join(top, name), 1234, 1234)  # noqa: PTH118
    refused = bare_scene.refused(1, "other_owner", "init")
    assert str(bare_scene.root) in refused.hint
    assert f"{bare_scene.root}/.git" in refused.hint
    typed = refused.hint.partition(": ")[2]
    subprocess.run(typed, shell=True, check=True)
    bare_scene.ok("init")
    (bare_scene.folder / "agent.sh").write_text(
        'echo x > x; git add x; git commit -q -m x; echo "$?"; echo DONE\n'
    )
    with (bare_scene.root / ".crew" / "config.toml").open("a") as file:
        file.write(
            '[agents]\nworker_default = "sh"\n[agents.sh]\n'
            f'command_template = "sh {bare_scene.folder}/agent.sh"\n'
            '[complete]\ncommand = "git status && test -f x"\n'
        )
    bare_scene.ok("new", "--title", "work")
    bare_scene.crew("run", "--drain")
    assert bare_scene.status("1") == "merged"
    assert (bare_scene.root / "x").exists()
    assert bare_scene.crew("doctor").code in (0, 1)


def test_a_linked_worktree_of_another_user_works_after_the_named_commands(bare_scene, tmp_path):
    need(os.geteuid() == 0, "root")
    linked = tmp_path / "linked tree"
    bare_scene.git("worktree", "add", "-q", "-b", "linked", str(linked))
    for folder in (bare_scene.root, linked):
        subprocess.run(["chown", "-R", "1234:1234", folder], check=True)
    refused = bare_scene.refused(1, "other_owner", "-C", str(linked), "init")
    assert str(linked) in refused.hint
    subprocess.run(refused.hint.partition(": ")[2], shell=True, check=True)
    bare_scene.ok("-C", str(linked), "init")


def test_a_bare_repository_of_another_user_works_after_the_named_command(bare_scene, tmp_path):
    need(os.geteuid() == 0, "root")
    bare = tmp_path / "bare one.git"
    subprocess.run(["git", "clone", "-q", "--bare", bare_scene.root, bare], check=True)
    subprocess.run(["chown", "-R", "1234:1234", bare], check=True)
    refused = bare_scene.refused(1, "other_owner", "-C", str(bare), "init")
    assert refused.hint.count("safe.directory") == 1
    subprocess.run(refused.hint.partition(": ")[2], shell=True, check=True)
    bare_scene.ok("-C", str(bare), "init")
