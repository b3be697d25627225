"""Killed at any effect and started again, the git layer ends where it would have ended anyway."""

import os
from pathlib import Path

import pytest

from crew.git.checkpoints.checkpoints import checkpoints
from crew.git.repository import commit_of
from crew.git.worktrees.worktree_list import worktree_paths
from crew.git.worktrees.worktrees import state_of
from git.people import Person
from warm import warm_python

STORY = """
import os
import shutil
import subprocess
import sys
from pathlib import Path
from crew.git.branches import claim_branch
from crew.git.checkpoints.checkpoints import (
    checkpoints, drop_checkpoints, restore, restore_into_worktree, take_checkpoint
)
from crew.git.merges.merges import merge
from crew.git.repository import commit_of, exclude_locally, find_repository
from crew.git.task_repository.shown_branches import show_newest
from crew.git.worktrees.spare_worktrees import brought_to, drop_spares, make_spare
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import (
    ensure_detached, ensure_worktree, heal, remove_worktree, state_of
)

repo = find_repository(Path(sys.argv[1]))
place, kind = Path(sys.argv[2]), sys.argv[3]
tree, out, progress = place / "tree", place / "out", place / "progress"
done = progress.read_text().split() if progress.exists() else []

def step(name, action):
    # A step that ended is written down; one that did not is simply done again.
    if name not in done:
        action()
        with progress.open("a") as file:
            file.write(name + "\\n")

def work():
    (tree / "a.txt").write_text("agent\\n")
    (tree / "new.txt").write_text("new\\n")
    subprocess.run(["git", "init", "-q", tree / "app"], check=True)
    (tree / "app" / "in.txt").write_text("inside\\n")
    subprocess.run("git add . && git commit -qm inside", cwd=tree / "app", shell=True, check=True)

def bring_back():
    is_begun = (git_dir_for(repo, tree) / "crew-restoring").exists()
    if is_begun or not state_of(repo, tree).changed:
        restore_into_worktree(repo, tree, checkpoints(repo, "7")[-1].commit)

def make():
    is_new = claim_branch(repo, "crew-7", base=commit_of(repo, "main"))
    ensure_worktree(repo, tree, branch="crew-7", base="main", is_new=is_new, kind=kind)

def spare():
    # Another branch's worktree, from a spare that was made one commit earlier.
    drop_spares(place)
    made = make_spare(repo, place, commit=commit_of(repo, "main~1"))
    made = brought_to(repo, made, commit=commit_of(repo, "main"))
    is_new = claim_branch(repo, "crew-8", base=made.commit)
    path = place / "8"
    how = {"is_new": is_new, "spare": made, "kind": kind}
    ensure_worktree(repo, path, branch="crew-8", base=made.commit, **how)
    make_spare(repo, place, commit=made.commit)
    drop_spares(place)

def gate():
    ensure_detached(repo, place / "gate", "main", kind=kind)
    (place / "gate" / "left.txt").write_text("by the gate")
    ensure_detached(repo, place / "gate", "main", kind=kind)
    assert not (place / "gate" / "left.txt").exists()

def commit():
    (place / "8" / "eight.txt").write_text("eight\\n")
    subprocess.run("git add . && git commit -qm eight", cwd=place / "8", shell=True, check=True)

def replace_git_dir():
    # The files stay; what the agent made in place of its repository is kept elsewhere.
    (place / "8" / ".git").unlink()
    subprocess.run(["git", "init", "-q", place / "8"], check=True)

def stage():
    # Of such a name only git knows that it is harmless.
    (place / "8" / "stäged.txt").write_text("staged\\n")
    subprocess.run(["git", "add", "stäged.txt"], cwd=place / "8", check=True)

def commit_staged():
    assert (place / "8" / "stäged.txt").exists()
    subprocess.run(["git", "commit", "-qm", "eight"], cwd=place / "8", check=True)

def spoil():
    # A pipe among the objects, and a file of crew's git dir lost.
    git_dir = git_dir_for(repo, place / "8")
    os.mkfifo(git_dir / "repository" / "objects" / "pack" / "pipe")
    (place / "8" / "möre.txt").write_text("more\\n")
    subprocess.run("git add . && git commit -qm eight", cwd=place / "8", shell=True, check=True)
    (git_dir / "commondir").unlink()

def swap():
    shutil.rmtree(place / "8")
    (place / "8").symlink_to(tree)

ensure_8 = lambda: ensure_worktree(repo, place / "8", branch="crew-8", base="main", kind=kind)
ensure = lambda: ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
step("exclude", lambda: exclude_locally(repo, ["/.crew/"]))
step("make", make)
step("work", work)
step("keep", lambda: take_checkpoint(repo, tree, "7", label="step", at=1.0))
step("remove", lambda: remove_worktree(repo, tree))
step("again", ensure)
step("back", bring_back)
step("restore", lambda: out.exists() or restore(repo, "7", None, out))
step("gate", gate)
step("spare", spare)
step("commit", commit)
step("follow", lambda: state_of(repo, place / "8"))
if kind == "own":
    step("replace", replace_git_dir)
    step("heal", lambda: heal(repo, place / "8"))
    step("stage", stage)
    step("lose", lambda: shutil.rmtree(place / "8"))
    step("refill", ensure_8)
    step("commit-staged", commit_staged)
    step("follow-staged", lambda: state_of(repo, place / "8"))
    step("spoil", spoil)
    step("rewrite", ensure_8)
    step("clean", lambda: heal(repo, place / "8"))
    step("show", lambda: show_newest(repo, place / "8", "main"))
    step("swap", swap)
    step("put-back", ensure_8)
step("merge", lambda: merge(repo, onto="main", head="crew-7", message="m", at=1.0))
step("ungate", lambda: remove_worktree(repo, place / "gate"))
"""

POINTS = [
    "git.exclude",
    "git.claim_branch",
    "git.lay_worktree",
    "git.point_worktree",
    "git.reset_worktree",
    "git.finish_making",
    "git.copy_history",
    "git.commit_checkpoint",
    "git.advance",
    "git.set_aside",
    "git.forget_worktree",
    "git.delete_set_aside",
    "git.mark_restoring",
    "git.bring_back",
    "git.unstage",
    "git.copy_history:2",
    "git.make_nested",
    "git.restore_files",
    "git.place_restored",
    "git.switch_detached",
    "git.clean_worktree",
    "git.write_attributes",
    "git.commit_merge",
    "git.make_spare",
    "git.refresh_spare",
    "git.lay_worktree:2",
    "git.place_spare",
    "git.drop_spare",
]
OF_KIND = {
    "linked": [*POINTS, "git.worktree_add"],
    "own": [
        *POINTS,
        *("git.lay_repository", "git.lay_repository:2", "git.lay_repository:3"),
        *("git.note_mirror", "git.note_mirror:2", "git.note_mirror:4", "git.advance:2"),
        *("git.store_objects", "git.swap_ref", "git.bring_index", "git.renew_repository"),
        *("git.pack_commits", "git.store_commits"),
        *("git.set_aside_repository", "git.write_staged", "git.rewrite_worktree"),
        *("git.drop_special", "git.show_branch", "git.set_aside_stranger"),
    ],
}


class Told:
    """The story of one worktree, told in a process of its own until that ends or is killed."""

    def __init__(self, person, place, kind):
        place.mkdir()
        person.commit(message="second")
        self.arguments = [str(person.path), str(place), kind]

    def until_killed(self, point):
        died = self._tell(point)
        assert died.returncode == -9, died.stderr

    def to_its_end(self):
        ended = self._tell()
        assert ended.returncode == 0, ended.stderr

    def _tell(self, crash_at=""):
        env = {**os.environ, "CREW_CRASH_AT": crash_at}
        return warm_python().run(["-c", STORY, *self.arguments], cwd=Path.cwd(), env=env)


# Both kinds share most effects: of linked worktrees, only what no other kind does is in the quick
# part. There an effect is met by two kills, one before it and one after it; every single kill of
# both kinds is in the long one.
QUICK = [("own", point) for point in OF_KIND["own"]] + [
    ("linked", point) for point in ("git.worktree_add", "git.forget_worktree", "git.lay_worktree")
]
EVERY = [(kind, point) for kind, points in OF_KIND.items() for point in points]


@pytest.mark.parametrize("where", QUICK, ids="-".join)
def test_a_story_told_again_after_two_kills_ends_the_same(repo, person, tmp_path, where):
    kind, point = where
    name, _, count = point.partition(":")
    told = Told(person, tmp_path / "place", kind)
    told.until_killed(f"{name}.before:{count or 1}")
    told.until_killed(f"{name}.after:1")
    told.to_its_end()
    check_the_end(repo, person, tmp_path / "place")


@pytest.mark.faults
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", EVERY, ids="-".join)
def test_a_story_told_again_after_a_kill_ends_the_same(repo, person, tmp_path, where, when):
    kind, point = where
    name, _, count = point.partition(":")
    told = Told(person, tmp_path / "place", kind)
    told.until_killed(f"{name}.{when}:{count or 1}")
    told.to_its_end()
    check_the_end(repo, person, tmp_path / "place")


def check_the_end(repo, person, place):
    agent = Person(place / "tree")
    assert agent.tree() == Person(place / "out").tree()
    assert agent.tree()["new.txt"] == b"new\n"
    assert sorted(state_of(repo, agent.path).changed) == ["a.txt", "app/", "new.txt"]
    for place_of_app in (agent.path / "app", place / "out" / "app"):
        assert Person(place_of_app).git("log", "--format=%s") == "inside"
        assert Person(place_of_app).git("status", "--porcelain") == ""
    assert [kept.number for kept in checkpoints(repo, "7")] == [1]
    assert commit_of(repo, "crew-7") == commit_of(repo, "main")
    assert worktree_paths(repo) == {
        person.path: "main",
        agent.path: "crew-7",
        place / "8": "crew-8",
    }
    eight = Person(place / "8")
    assert state_of(repo, eight.path).changed == ()
    assert eight.git("log", "-1", "--format=%s crew-8", "crew-8") == "eight crew-8"
    assert eight.git("rev-parse", "HEAD") == commit_of(repo, "crew-8")
    assert eight.git("status", "--porcelain") == ""
    assert sorted(entry.name for entry in place.iterdir()) == ["8", "out", "progress", "tree"]
    assert person.git("status", "--porcelain") == ""
