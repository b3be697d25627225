"""A repository that was copied or moved with its crew: nobody works in the place of another."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crew.store.place_record import read_place
from crew.system.processes.ownership import find_process, owned_processes
from front.conftest import CREW, CliScene, lay_crew, until, worktree

AGENT = """\
echo "$$" > "$SCENE/pid-$(basename "$PWD/../..")"
git rev-parse --git-dir > /dev/null || exit 3
[ -e begun ] || { echo begun > begun; git add begun; git commit -q -m begun; }
[ -e "$SCENE/wait" ] && { touch "$SCENE/waits"; while [ -e "$SCENE/wait" ]; do sleep 0.05; done; }
if [ ! -e "$SCENE/go" ]; then echo draft > draft; exit 1; fi
[ -e draft ] || { echo "the draft is lost"; exit 4; }
git add -A && git commit -q -m "all of it"
echo DONE
"""
KINDS = ("own", pytest.param("linked", marks=pytest.mark.faults))


def copy_of(scene: CliScene, name: str = "copy") -> CliScene:
    root = scene.root.parent / name
    subprocess.run(["cp", "-a", scene.root, root], check=True)
    return scene_at(scene, root)


def scene_at(scene: CliScene, root: Path) -> CliScene:
    other = CliScene(root, scene.folder)
    other.started.extend(scene.started)
    return other


def moved_to(scene: CliScene, root: Path) -> CliScene:
    root.parent.mkdir(exist_ok=True)
    scene.root.rename(root)
    return scene_at(scene, root)


def place(scene):
    found = read_place(scene.root / ".git")
    assert found is not None
    return found


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def lay(scene: CliScene, kind: str = "own", config: str = "") -> CliScene:
    """Task 1 was begun: one commit, and a file that only its worktree and a checkpoint have."""
    agent = scene.folder / "agent.sh"
    agent.write_text(AGENT)
    scene.configure(f'[worktree]\nkind = "{kind}"\n{config}')
    scene.ok("new", "--title", "first")
    assert scene.crew("run", "--drain").code == 6
    assert (worktree(scene) / "draft").exists() or config
    return scene


@pytest.fixture
def begun(scene):
    return lay(scene)


def finish(scene: CliScene):
    """Let the agent of task 1 finish, and see its work on the branch."""
    (scene.folder / "go").touch()
    said = scene.crew("retry", "A")  # unless it was retried before
    ran = scene.crew("run", "--drain")
    assert ran.code == 0, ran.err
    assert {"begun", "draft"} <= set(scene.git("ls-tree", "--name-only", "main").split())
    assert scene.status("1") == "merged"
    (scene.folder / "go").unlink()
    return said


def checks(scene: CliScene) -> dict[str, str]:
    found = scene.crew("doctor", "--json").json
    return {one["check"]: one["state"] for one in found if one["state"] != "ok"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_works_in_its_own_worktree_from_the_last_checkpoint(scene, kind):
    lay(scene, kind)
    before, crew = contents(worktree(scene)), place(scene).id
    copy = copy_of(scene)
    assert checks(copy) == {"place": "wrong"}
    said = finish(copy)
    line, *_ = said.err.splitlines()
    assert str(scene.root) in line
    assert str(copy.root.parent / "copy-worktrees") in line
    assert contents(worktree(scene)) == before
    assert place(scene).id == crew != place(copy).id
    assert scene.git("rev-list", "--count", "main") == "1"
    assert (checks(copy), checks(scene)) == ({}, {})
    finish(scene)


def test_a_copy_says_once_that_it_is_one(begun):
    copy = copy_of(begun)
    assert "copy of" in copy.ok("spawn").err
    assert "copy of" not in copy.ok("spawn").err


def test_reading_a_copy_changes_nothing_there(begun):
    copy = copy_of(begun)
    before = contents(copy.root / ".git")
    for command in (["ps"], ["list"], ["show", "1"], ["doctor"]):
        copy.crew(*command)
    assert contents(copy.root / ".git") == before


def test_a_command_in_a_copy_does_not_run_in_the_worktree_of_its_original(begun):
    copy = copy_of(begun)
    copy.crew("exec", "1", "--", "touch", "from-the-copy")
    assert not (worktree(begun) / "from-the-copy").exists()


def test_a_copy_of_a_living_crew_ends_none_of_its_agents(begun, running):
    (begun.folder / "wait").touch()
    begun.ok("retry", "A")
    runner = running("--drain")
    until((begun.folder / "waits").exists)
    (agent, _), *_ = owned_processes(place(begun).id)
    copy = copy_of(begun)
    assert {one["pid"] for one in copy.ok("ps", "--json").json} == {None}
    assert "processes" not in checks(copy)
    (begun.folder / "go").touch()
    assert copy.crew("doctor", "--repair").code == 0
    assert find_process(agent)
    copy.started.clear()
    other = copy.start("run", "--drain")
    until(lambda: copy.runner_pid() == other.pid)
    until(lambda: bool(owned_processes(place(copy).id)))
    assert find_process(agent)
    (begun.folder / "wait").unlink()
    assert (other.wait(), runner.wait()) == (0, 0)
    assert (begun.status("1"), copy.status("1")) == ("merged", "merged")
    other.communicate(), runner.communicate()


def test_a_copy_shares_no_secret_and_no_address_with_its_original(begun):
    secret = begun.root / ".crew" / "secret"
    (begun.root / ".crew" / "mcp-address").write_text("http://127.0.0.1:1/mcp\n")
    assert secret.exists()
    copy = copy_of(begun)
    copy.ok("spawn")
    assert not (copy.root / ".crew" / "mcp-address").exists()
    finish(copy)
    assert (copy.root / ".crew" / "secret").read_bytes() != secret.read_bytes()


def test_a_copy_with_its_worktrees_keeps_what_is_in_them(begun):
    (worktree(begun) / "later").write_text("no checkpoint has it\n")
    both = begun.root.parent / "both"
    both.mkdir()
    copy = scene_at(begun, both / begun.root.name)
    for one in (begun.root, worktree(begun).parent):
        subprocess.run(["cp", "-a", one, both / one.name], check=True)
    before = contents(worktree(begun))
    finish(copy)
    assert "later" in copy.git("ls-tree", "--name-only", "main").split()
    assert contents(worktree(begun)) == before
    finish(begun)


def test_a_copy_with_the_same_folder_for_worktrees_gets_one_of_its_own(scene, tmp_path):
    shared = tmp_path / "shared"
    lay(scene, config=f'dir = "{shared}"\n')
    before = contents(shared / "1")
    copy = copy_of(scene)
    finish(copy)
    assert contents(shared / "1") == before
    assert place(copy).worktrees == str(shared / f"copy-{place(copy).id[:8]}")
    finish(scene)


def layouts(scene: CliScene, how: str) -> CliScene:
    old, top = scene.root, scene.root.parent
    if how == "the repository alone":
        return moved_to(scene, top / "moved")
    if how == "to another folder":
        return moved_to(scene, top / "elsewhere" / "moved")
    if how == "both":
        worktree(scene).parent.rename(top / "moved-worktrees")
        return moved_to(scene, top / "moved")
    if how == "a copy, and the original is deleted":
        copy = copy_of(scene)
        shutil.rmtree(old)
        return copy
    inner = top / "inner"  # "the folder above"
    inner.mkdir()
    for one in (old, worktree(scene).parent):
        one.rename(inner / one.name)
    return scene_at(scene, inner / old.name)


HOW = (
    "the repository alone",
    "to another folder",
    "both",
    "the folder above",
    "a copy, and the original is deleted",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", HOW)
def test_a_crew_that_was_moved_continues_in_its_worktree(scene, kind, how):
    lay(scene, kind)
    (worktree(scene) / "later").write_text("no checkpoint has it\n")
    moved = layouts(scene, how)
    assert checks(moved) == {"place": "wrong"}
    said = moved.crew("run", "--drain")
    assert "agent A is stuck" in said.err
    assert len([one for one in said.err.splitlines() if "moved" in one]) == 1
    assert checks(moved) == {}
    finish(moved)
    assert "later" in moved.git("ls-tree", "--name-only", "main").split()
    assert checks(moved) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_repairs_the_links_of_a_moved_crew(scene, kind):
    lay(scene, kind)
    moved = layouts(scene, "the repository alone")
    said = moved.crew("doctor", "--repair", "--json")
    assert {one["check"] for one in said.json if one["state"] == "repaired"} == {"place"}
    status = ["git", "-C", worktree(scene), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == "?? draft\n"


def test_the_hooks_and_objects_of_a_moved_repository_are_found_in_its_worktrees(begun):
    hook = begun.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {begun.folder}/hooked\n")
    hook.chmod(0o755)
    moved = layouts(begun, "the repository alone")
    finish(moved)
    assert (begun.folder / "hooked").exists()


def test_a_worktree_that_did_not_come_along_is_made_again(begun):
    gone = begun.root.parent / "unknown"
    worktree(begun).parent.rename(gone)
    moved = layouts(begun, "the repository alone")
    before = contents(gone)
    assert "no worktree of 1" in moved.ok("spawn").err
    finish(moved)
    assert contents(gone) == before


def test_what_a_dead_runner_left_ends_when_its_crew_was_moved(begun, running):
    (begun.folder / "wait").touch()
    begun.ok("retry", "A")
    runner = running("--drain")
    until((begun.folder / "waits").exists)
    crew = place(begun).id
    top = [pid for pid, _ in owned_processes(crew)]
    for pid in (runner.pid, *top):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 19)  # nobody ends the others
    os.kill(runner.pid, 9)
    runner.wait()
    runner.communicate()
    left = [pid for pid in top if find_process(pid)]
    moved = layouts(begun, "the repository alone")
    (begun.folder / "wait").unlink()
    moved.ok("spawn")
    assert owned_processes(crew) == ()
    assert [pid for pid in left if find_process(pid)] == []


def test_a_copy_of_a_moved_crew_does_not_take_its_worktrees(begun):
    moved = layouts(begun, "the repository alone")
    copy = copy_of(moved)
    finish(moved)
    finish(copy)
    assert place(copy).id != place(moved).id


def test_the_copy_of_a_moved_crew_may_also_begin(begun):
    """Then the worktrees are its own, and the other begins from the checkpoints."""
    moved = layouts(begun, "the repository alone")
    copy = copy_of(moved)
    finish(copy)
    finish(moved)


def test_a_repository_that_is_reached_by_another_path_is_no_copy(begun):
    crew = place(begun)
    link = begun.root.parent / "link"
    link.symlink_to(begun.root)
    mount = begun.root.parent / "mount"
    mount.mkdir()
    scene_at(begun, link).ok("spawn")
    bound = ["bwrap", "--dev-bind", "/", "/", "--bind", begun.root, mount, CREW, "-C", mount]
    said = subprocess.run([*bound, "spawn"], capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == ("C\n", "")
    assert place(begun) == crew
    assert checks(begun) == {}


def test_a_linked_worktree_of_the_person_is_the_same_crew(begun):
    begun.git("worktree", "add", "-q", "../own", "-b", "own")
    scene_at(begun, begun.root.parent / "own").ok("spawn", "Eve")
    assert "Eve" in begun.ok("ps").out
    assert checks(begun) == {}


def test_a_backup_in_the_place_of_its_original_is_that_crew(begun):
    crew, backup = place(begun), begun.root.parent / "backup"
    subprocess.run(["cp", "-a", begun.root, backup], check=True)
    shutil.rmtree(begun.root)
    backup.rename(begun.root)
    assert begun.ok("spawn").err == ""
    assert place(begun) == crew
    finish(begun)


def test_an_older_crew_is_recorded_by_its_first_command_that_writes(begun):
    crew = place(begun)
    (begun.root / ".git" / "crew" / "place").unlink()
    begun.ok("ps")
    assert read_place(begun.root / ".git") is None
    assert begun.ok("spawn").err == ""
    assert place(begun) == crew


def test_a_copy_of_an_older_crew_is_known_by_its_worktrees(begun):
    before = contents(worktree(begun))
    (begun.root / ".git" / "crew" / "place").unlink()
    copy = copy_of(begun)
    assert checks(copy) == {"place": "wrong"}
    finish(copy)
    assert contents(worktree(begun)) == before
    begun.ok("spawn")
    assert place(begun).id != place(copy).id
    finish(begun)


def test_an_older_crew_that_was_moved_is_known_by_its_worktrees(begun):
    (begun.root / ".git" / "crew" / "place").unlink()
    moved = layouts(begun, "the repository alone")
    assert checks(moved) == {"place": "wrong"}
    finish(moved)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": 1}', '{"id": "x", "path": "a\\u0000"}'])
def test_a_record_that_cannot_be_read_is_written_again(begun, content):
    file = begun.root / ".git" / "crew" / "place"
    crew = place(begun).id
    file.write_text(content)
    begun.ok("spawn")
    assert (place(begun).id, json.loads(file.read_text())["path"]) == (crew, str(file.parents[1]))


def test_a_record_that_another_user_may_not_read_is_that_of_a_living_crew(begun, monkeypatch):
    """What cannot be read may be the crew itself, and a copy ends no process."""
    copy = copy_of(begun)
    file = begun.root / ".git" / "crew" / "place"
    file.unlink()
    file.mkdir()
    assert "copy of" in copy.ok("spawn").err


SETTLING = {
    "copy": ("store.set", "runner.drop_originals", "git.forget_worktree", "store.keep_place"),
    "move": ("git.point_worktree", "git.link_repository", "git.name_worktree", "store.record"),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", SETTLING)
def test_a_crew_that_dies_again_and_again_while_it_settles_ends_in_its_place(begun, way, when):
    before = contents(worktree(begun))
    new = copy_of(begun) if way == "copy" else layouts(begun, "both")
    for point in SETTLING[way]:
        died = subprocess.run(
            [CREW, "spawn"],
            cwd=new.root,
            env={**os.environ, "CREW_CRASH_AT": f"{point}.{when}"},
            capture_output=True,
            check=False,
        )
        assert died.returncode in {-9, 0}
    new.ok("spawn")
    assert checks(new) == {}
    finish(new)
    if way == "copy":
        assert contents(worktree(begun)) == before
        finish(begun)


@pytest.mark.parametrize("point", ["git.sync_place.before", "git.sync_place.after"])
@pytest.mark.parametrize("dies", ["git.move_journal.before", "git.move_journal.after", ""])
def test_a_delivery_that_was_killed_is_finished_where_the_repository_is_now(begun, point, dies):
    (begun.folder / "go").touch()
    begun.ok("retry", "A")
    env = {**os.environ, "CREW_CRASH_AT": point}
    run = [CREW, "run", "--drain"]
    died = subprocess.run(run, cwd=begun.root, env=env, capture_output=True, check=False)
    assert died.returncode == -9
    moved = layouts(begun, "the repository alone")
    env = {**os.environ, "CREW_CRASH_AT": dies}
    died = subprocess.run(
        [CREW, "spawn"], cwd=moved.root, env=env, capture_output=True, check=False
    )
    assert died.returncode == (-9 if dies else 0)
    assert moved.crew("run", "--drain").code == 0
    assert (moved.root / "draft").read_text() == "draft\n"
    assert moved.git("status", "--porcelain", "--", ".", ":!.crew") == ""


def test_a_new_crew_in_a_repository_with_the_record_of_another_place_is_at_home(bare_scene):
    lay_crew(bare_scene.root)
    bare_scene.ok("spawn")
    copy = copy_of(bare_scene)
    shutil.rmtree(copy.root / ".crew")
    copy.ok("init")
    copy.ok("spawn")
    assert place(copy).id != place(bare_scene).id
    assert "place" not in checks(copy)
