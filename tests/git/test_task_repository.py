"""A task's own repository: its commits are taken in, and nothing it contains harms another task."""

import hashlib
import os
import shutil
import zlib
from pathlib import Path

import pytest

from crew.domain.kernel.errors import Conflict
from crew.git.checkpoints import reflogs
from crew.git.checkpoints.checkpoints import checkpoints, restore, take_checkpoint
from crew.git.commit_files import read_commit
from crew.git.repository import commit_of, find_repository
from crew.git.task_repository import store_objects
from crew.git.task_repository.agent_refs import main_repository_of
from crew.git.task_repository.shown_branches import show_newest
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.worktrees import ensure_worktree, follow, heal, remove_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from refusals import raises_code


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    return Person(tree)


@pytest.fixture
def git_dir(repo, agent) -> Path:
    return agents_git_dir(repo, agent.path)


def take(repo, agent, *, with_ignored=False):
    return take_checkpoint(repo, agent.path, "7", label="step", at=1.0, with_ignored=with_ignored)


def restored(repo, tmp_path):
    restore(repo, "7", None, tmp_path / "restored")
    return Person(tmp_path / "restored").tree()


def kept_after_removal(repo, agent, commit) -> bool:
    """Whether a commit outlives its worktree, its branch and a cleaning of all loose objects."""
    take(repo, agent, with_ignored=True)
    remove_worktree(repo, agent.path)
    person = Person(repo.root)
    person.git("gc", "-q", "--prune=now")
    person.git("fsck", "--strict", "--connectivity-only")
    return commit_of(repo, commit) == commit


def test_only_a_folder_that_crew_made_names_its_main_repository(repo, agent, tmp_path):
    assert main_repository_of(agent.path) == repo.common_dir
    tree, elsewhere = tmp_path / "forged", tmp_path / "elsewhere" / "7"
    for folder in (tree, elsewhere / "repository"):
        folder.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {elsewhere}/repository")
    assert main_repository_of(tree) is None
    (elsewhere / "gitdir").write_text(f"{tree}/.git")
    assert main_repository_of(tree) is None


# Commits are taken in


def test_commits_exist_only_in_the_task_s_own_repository_until_crew_takes_them_in(repo, agent):
    base = commit_of(repo, "main")
    head = agent.commit({"x.txt": "x\n"})
    assert (commit_of(repo, head), commit_of(repo, "crew-7")) == (None, base)
    assert state_of(repo, agent.path).head == head
    assert commit_of(repo, "crew-7") == head
    assert state_of(repo, agent.path).changed == ()


def many_commits(agent, _person, _repo):
    for number in range(30):
        agent.git("commit", "-q", "--allow-empty", "-m", str(number))


def merge_of_what_landed(agent, person, repo):
    landed = person.commit({"landed.txt": "landed\n"})
    agent.commit({"own.txt": "own\n"})
    show_newest(repo, agent.path, "main")
    agent.git("merge", "-q", "-m", "merge", "main")
    assert agent.git("merge-base", "HEAD", landed) == landed


def many_objects(agent, _person, _repo):
    agent.commit(
        {f"folder/{number}": f"{number}\n" for number in range(store_objects.MOST_LOOSE + 10)}
    )


def detached(agent, _person, _repo):
    agent.git("switch", "-q", "--detach")
    agent.commit({"x.txt": "x\n"})


def another_branch(agent, _person, _repo):
    agent.git("switch", "-q", "-c", "topic/new")
    agent.commit({"x.txt": "x\n"})


def amended(agent, _person, repo):
    agent.commit({"x.txt": "x\n"})
    state_of(repo, agent.path)
    agent.git("commit", "-q", "--amend", "-m", "other words")


def reset(agent, _person, repo):
    agent.commit({"x.txt": "x\n"})
    state_of(repo, agent.path)
    agent.git("reset", "-q", "--hard", "main")


def packed(agent, _person, _repo):
    agent.commit({"x.txt": "x\n"})
    agent.git("gc", "-q", "--prune=now")
    agent.git("pack-refs", "--all")
    agent.git("commit-graph", "write", "--reachable")
    agent.git("multi-pack-index", "write")


def without_its_branch(agent, _person, _repo):
    head = agent.commit({"x.txt": "x\n"})
    agent.git("switch", "-q", "--detach")
    agent.git("branch", "-D", "crew-7")
    assert agent.git("rev-parse", "HEAD") == head


WAYS = [many_commits, merge_of_what_landed, many_objects, detached, another_branch, amended, reset]
WAYS += [packed, without_its_branch]


@pytest.mark.parametrize("way", WAYS)
def test_the_branch_of_the_task_follows_its_head(repo, person, agent, way):
    way(agent, person, repo)
    head = agent.git("rev-parse", "HEAD")
    state = state_of(repo, agent.path)
    assert (state.head, commit_of(repo, "crew-7"), state.changed) == (head, head, ())
    assert person.git("fsck", "--strict", "--no-dangling") == ""
    packs = list((repo.common_dir / "objects" / "pack").glob("*.pack"))
    assert len(packs) == (1 if way is many_objects else 0)


def test_a_commit_is_kept_whose_line_in_the_reflog_was_half_written_at_the_last_look(
    repo, agent, git_dir
):
    head = agent.commit({"x.txt": "1\n"})
    log = git_dir / "logs" / "HEAD"
    earlier = log.read_bytes()
    lost = agent.commit({"x.txt": "2\n"})
    agent.git("reset", "-q", "--hard", "HEAD~1")
    (git_dir / "ORIG_HEAD").unlink()
    line = f"{head} {lost} A <a@b> 1 +0000\tcommit: two\n".encode()
    log.write_bytes(earlier + line[:60])
    assert take(repo, agent) is None
    log.write_bytes(earlier + line)
    assert take(repo, agent).notes.reset_away == (lost,)


def orig_head(agent):
    agent.git("reset", "-q", "--hard", "HEAD")


def a_tag(agent):
    agent.git("tag", "before")


def a_branch(agent):
    agent.git("branch", "backup")


@pytest.mark.parametrize("name_it", [None, orig_head, a_tag, a_branch])
def test_of_a_long_line_of_commits_only_the_new_ones_are_looked_at(
    repo, agent, monkeypatch, name_it
):
    agent.commit({"x.txt": "first\n"})
    if name_it is not None:
        name_it(agent)
    agent.commit({"x.txt": "second\n"})
    looked_at = list[str]()

    def noted(common_dir, commit):
        looked_at.append(commit)
        return read_commit(common_dir, commit)

    assert take(repo, agent) is None
    monkeypatch.setattr(reflogs, "read_commit", noted)
    monkeypatch.setattr(reflogs, "existing", None)
    made = []
    for number in range(3):
        made.append(agent.commit({"x.txt": f"{number}\n"}))
        assert take(repo, agent) is None
    assert looked_at == made


def test_a_new_runner_starts_no_git_for_a_line_of_more_than_a_hundred_commits(
    repo, agent, monkeypatch
):
    for _ in range(110):
        agent.git("commit", "-q", "--allow-empty", "-m", "step")
    state_of(repo, agent.path)  # takes them in
    monkeypatch.setattr(reflogs, "existing", None)
    assert take(repo, agent) is None
    agent.commit({"x.txt": "x\n"})
    assert take(repo, agent) is None


def test_a_commit_that_was_reset_away_after_a_long_line_is_kept(repo, agent):
    for number in range(3):
        agent.commit({"x.txt": f"{number}\n"})
    assert take(repo, agent) is None
    lost = agent.commit({"x.txt": "lost\n"})
    agent.git("reset", "-q", "--hard", "HEAD~2")
    agent.commit({"x.txt": "new\n"})
    assert lost in take(repo, agent).notes.reset_away


def test_a_move_of_the_branch_by_a_person_is_a_conflict_and_nothing_is_lost(repo, person, agent):
    state_of(repo, agent.path)
    person.git("branch", "-f", "crew-7", person.commit({"p.txt": "p\n"}))
    moved = commit_of(repo, "crew-7")
    head = agent.commit({"x.txt": "x\n"})
    with raises_code(Conflict, "branch_moved", "crew-7") as refused:
        state_of(repo, agent.path)
    assert f"git branch -f crew-7 {head[:10]}" in refused.value.hint
    assert commit_of(repo, "crew-7") == moved
    assert head in take(repo, agent).notes.reset_away


def test_the_commits_of_a_lost_folder_are_taken_in_and_its_files_come_back(repo, agent):
    head = agent.commit({"x.txt": "x\n"})
    shutil.rmtree(agent.path)
    follow(repo, agent.path)
    assert commit_of(repo, "crew-7") == head
    assert ensure_worktree(repo, agent.path, branch="crew-7", base="main") == head
    state = state_of(repo, agent.path)
    assert (state.head, state.changed, state.branch) == (head, (), "crew-7")
    assert agent.git("status", "--porcelain") == ""


def test_an_emptied_folder_is_left_to_the_next_start_which_fills_it(repo, agent):
    agent.commit({"x.txt": "x\n"})
    shutil.rmtree(agent.path)
    agent.path.mkdir()
    heal(repo, agent.path)
    assert list(agent.path.iterdir()) == []
    ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    assert (state_of(repo, agent.path).changed, agent.tree()["x.txt"]) == ((), b"x\n")


# What the agent made elsewhere in its repository


@pytest.mark.parametrize("is_detached", [False, True])
def test_commits_of_a_repository_in_place_of_its_own_are_kept(repo, agent, is_detached):
    (agent.path / ".git").unlink()
    agent.git("init", "-q", "-b", "mine")
    side = agent.commit({"x.txt": "x\n"})
    agent.git("switch", "-q", "--orphan", "other")
    other = agent.commit({"y.txt": "y\n"})
    if is_detached:
        agent.git("switch", "-q", "--detach")
        agent.git("branch", "-D", "other")
    heal(repo, agent.path)
    kept = take(repo, agent)
    assert {side, other} <= set(kept.notes.reset_away)
    assert take(repo, agent) is None
    assert kept_after_removal(repo, agent, side)
    assert commit_of(repo, other) == other


def test_a_repository_in_place_of_its_own_may_be_on_a_branch_without_commits(repo, agent):
    (agent.path / ".git").unlink()
    agent.git("init", "-q", "-b", "mine")
    side = agent.commit({"x.txt": "x\n"})
    agent.git("switch", "-q", "--orphan", "empty")
    heal(repo, agent.path)
    assert side in take(repo, agent).notes.reset_away


def test_a_hostile_repository_in_place_of_its_own_does_no_harm(repo, agent, tmp_path):
    (agent.path / ".git").unlink()
    agent.git("init", "-q", "-b", "mine")
    agent.commit({"x.txt": "x\n"})
    os.mkfifo(agent.path / ".git" / "objects" / "info" / "alternates")
    os.mkfifo(agent.path / ".git" / "packed-refs")
    (agent.path / ".git" / "objects" / "ff").symlink_to(tmp_path)
    heal(repo, agent.path)
    assert take(repo, agent) is not None
    remove_worktree(repo, agent.path)


def on_a_branch(agent):
    agent.git("switch", "-q", "-c", "side")
    lost = agent.commit({"side.txt": "s\n"})
    agent.git("switch", "-q", "crew-7")
    shutil.rmtree(agent.path / agent.git("rev-parse", "--git-path", "logs"))
    return lost


def on_a_tag(agent):
    lost = on_a_branch(agent)
    agent.git("tag", "-a", "mine", "-m", "mine", lost)
    agent.git("branch", "-q", "-D", "side")
    return lost


def in_the_stash(agent):
    agent.write("a.txt", "stashed\n")
    agent.git("stash", "-q")
    return agent.git("rev-parse", "refs/stash")


def in_packed_refs(agent):
    lost = on_a_branch(agent)
    agent.git("pack-refs", "--all")
    return lost


def on_its_own_main(agent):
    lost = on_a_branch(agent)
    agent.git("branch", "-q", "-f", "main", lost)
    agent.git("branch", "-q", "-D", "side")
    agent.git("pack-refs", "--all")
    return lost


def in_its_notes(agent):
    agent.git("notes", "add", "-m", "note")
    return agent.git("rev-parse", "refs/notes/commits")


MADE = [on_a_branch, on_a_tag, in_the_stash, in_packed_refs, on_its_own_main, in_its_notes]


@pytest.mark.parametrize("make", MADE)
def test_what_the_agent_made_elsewhere_outlives_its_folder(repo, agent, make):
    assert kept_after_removal(repo, agent, make(agent))


def test_a_tag_on_a_file_or_a_damaged_commit_does_not_cost_the_others(repo, agent, git_dir):
    lost = on_a_branch(agent)
    agent.git("tag", "file", agent.git("rev-parse", "HEAD:a.txt"))
    (git_dir / "refs" / "tags" / "nothing").write_text("1" * 40 + "\n")
    broken = agent.git("commit-tree", "-m", "x", agent.git("rev-parse", "HEAD^{tree}"))
    agent.git("tag", "broken", broken)
    forge(git_dir, broken, b"commit 3\0abc")
    whole = agent.git("commit-tree", "-m", "no tree", agent.git("rev-parse", "HEAD^{tree}"))
    agent.git("tag", "whole", whole)
    assert kept_after_removal(repo, agent, lost)


def test_a_forced_file_that_is_ignored_is_seen_and_kept(repo, agent, tmp_path):
    agent.commit({".gitignore": "*.log\n"})
    agent.write("big.log", "x" * 2_000_000)
    assert state_of(repo, agent.path).changed == ()
    agent.git("add", "-f", "big.log")
    assert state_of(repo, agent.path).changed == ("big.log",)
    assert take(repo, agent) is not None
    assert len(restored(repo, tmp_path)["big.log"]) == 2_000_000


@pytest.mark.parametrize("damage", ["HEAD", "branch"])
def test_refs_and_staged_files_outlive_a_damaged_head(repo, agent, git_dir, damage):
    lost, head = on_a_branch(agent), agent.commit({"x.txt": "x\n"})
    agent.write("a.txt", "staged\n")
    agent.git("add", "a.txt")
    file = git_dir / ("HEAD" if damage == "HEAD" else "refs/heads/crew-7")
    file.write_text("nonsense\n")
    heal(repo, agent.path)
    assert agent.git("show", ":a.txt") == "staged"
    assert agent.git("rev-parse", "side") == lost
    expected = head if damage == "HEAD" else commit_of(repo, "main")
    assert state_of(repo, agent.path).head == expected
    assert kept_after_removal(repo, agent, lost)


def test_a_repository_that_lost_its_objects_too_is_written_again(repo, agent, git_dir):
    (git_dir / "HEAD").write_text("nonsense\n")
    shutil.rmtree(git_dir / "objects")
    heal(repo, agent.path)
    head = agent.commit({"x.txt": "x\n"})
    assert state_of(repo, agent.path).head == head == commit_of(repo, "crew-7")


# The person's settings, hooks, tags and branches


def test_the_agent_has_the_person_s_name_tags_and_branches(repo, person, tmp_path):
    person.git("config", "user.name", "Ann of this repository")
    person.git("tag", "v1")
    person.git("branch", "topic")
    person.git("remote", "add", "origin", "https://example.org/x.git")
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    ensure_worktree(repo, tmp_path / "8", branch="crew-8", base="main")
    agent = Person(tmp_path / "8")
    assert agent.git("config", "user.name") == "Ann of this repository"
    assert agent.git("remote") == ""
    names = agent.git("for-each-ref", "--format=%(refname:short)").split()
    assert sorted(names) == ["crew-8", "main", "topic", "v1"]


@pytest.mark.parametrize("where", ["default", "relative", "absolute"])
def test_the_person_s_hooks_run_for_the_agent(repo, person, tmp_path, marker, where):
    folder = {"default": ".git/hooks", "relative": "hooks", "absolute": "hooks"}[where]
    script = person.write(f"{folder}/pre-commit", f"#!/bin/sh\ntouch '{marker}'\n")
    script.chmod(0o755)
    if where != "default":
        person.git("add", "-A")
        person.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "hooks")
        named = "hooks" if where == "relative" else str(person.path / "hooks")
        person.git("config", "core.hooksPath", named)
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    assert not marker.exists()
    Person(tmp_path / "7").commit({"x.txt": "x\n"})
    assert marker.exists()
    marker.unlink()
    assert state_of(repo, tmp_path / "7").changed == ()
    assert not marker.exists()


# What an agent may do to its repository


def forge(git_dir, name, content):
    """Write a loose object whose content is not that of its name."""
    file = git_dir / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(zlib.compress(content))


def put_pipe(file):
    remove(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)


def put_link(file):
    target = file.with_name(f"{file.name}-pipe")
    put_pipe(target)
    remove(file)
    file.symlink_to(target)


def put_folder(file):
    remove(file)
    file.mkdir(parents=True)


def put_nonsense(file):
    remove(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\0nonsense \xff\n" * 10)


def remove(file):
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


PLACES = ["HEAD", "index", "packed-refs", "refs/heads/crew-7", "refs/heads/x", "logs/HEAD"]
PLACES += ["config", "ORIG_HEAD", "HEAD.lock", "index.lock", "refs/stash", "info/exclude"]
PLACES += ["objects/info/alternates", "objects/info/commit-graph", "objects/info", "commondir"]
PLACES += ["objects/pack/multi-pack-index"]


PUT = [(place, put) for put in (put_pipe, put_nonsense) for place in PLACES]
RARE = [(place, put) for put in (put_link, put_folder) for place in PLACES]


@pytest.mark.parametrize(
    "damage", [*PUT, *(pytest.param(one, marks=pytest.mark.faults) for one in RARE)]
)
def test_whatever_is_put_into_it_the_files_are_kept_and_crew_goes_on(
    repo, agent, git_dir, tmp_path, damage
):
    place, put = damage
    head = agent.commit({"x.txt": "x\n"})
    agent.write("a.txt", "uncommitted\n")
    put(git_dir / place)
    assert take(repo, agent) is not None
    assert restored(repo, tmp_path) == agent.tree()
    heal(repo, agent.path)
    state = state_of(repo, agent.path)
    assert state.changed in {("a.txt",), ("a.txt", "x.txt")}
    assert state.head in {head, commit_of(repo, "main")}
    take(repo, agent)
    remove_worktree(repo, agent.path)
    assert commit_of(repo, head) == head
    ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    assert state_of(repo, agent.path).changed == ()


def replaced_by_init(agent):
    (agent.path / ".git").unlink()
    agent.git("init", "-q")
    agent.commit({}, "in another repository")


def initialised_again(agent):
    agent.git("init", "-q")


def as_link(agent):
    (agent.path / ".git").unlink()
    (agent.path / ".git").symlink_to(agent.path.parent)


def as_pipe(agent):
    (agent.path / ".git").unlink()
    os.mkfifo(agent.path / ".git")


def as_redirect(agent):
    (agent.path / ".git").write_text("gitdir: /dev/null\n")


def gone(agent):
    (agent.path / ".git").unlink()


@pytest.mark.parametrize(
    "replace", [replaced_by_init, initialised_again, as_link, as_pipe, as_redirect, gone]
)
def test_a_replaced_git_file_is_put_back_and_nothing_is_lost(repo, agent, tmp_path, replace):
    head = agent.commit({"x.txt": "x\n"})
    agent.write("new.txt", "new\n")
    replace(agent)
    assert take(repo, agent) is not None
    expected = {name: text for name, text in agent.tree().items() if name != ".git"}
    assert restored(repo, tmp_path) == expected
    heal(repo, agent.path)
    assert agent.git("rev-parse", "HEAD") == head == state_of(repo, agent.path).head
    assert state_of(repo, agent.path).changed == ("new.txt",)


FORGED = [(how, what) for how in ("forged", "missing") for what in ("blob", "tree", "commit")]


@pytest.mark.parametrize("damage", [*FORGED, ("pipe", "blob"), ("link", "tree")], ids="-".join)
def test_forged_or_missing_objects_are_refused_and_the_files_are_kept(
    repo, agent, git_dir, tmp_path, damage
):
    how, what = damage
    head = agent.commit({"x.txt": "x\n"})
    rev = {"blob": "HEAD:x.txt", "tree": "HEAD^{tree}", "commit": "HEAD"}[what]
    name = agent.git("rev-parse", rev)
    content = agent.git("cat-file", what, name) if what != "tree" else ""
    file = git_dir / "objects" / name[:2] / name[2:]
    if how == "forged":
        forged = content.replace("x", "y").replace("work", "evil").encode()
        forge(git_dir, name, f"{what} {len(forged)}\0".encode() + forged)
    elif how == "missing":
        file.unlink()
    else:
        {"pipe": put_pipe, "link": put_link}[how](file)
    before = commit_of(repo, "crew-7")
    with pytest.raises(NotTakenIn) as refused:
        state_of(repo, agent.path)
    assert refused.value.hint
    assert commit_of(repo, "crew-7") == before
    assert commit_of(repo, head) is None
    assert take(repo, agent) is not None
    assert restored(repo, tmp_path) == agent.tree()
    Person(repo.root).git("fsck", "--strict")


BAD_MODULES = '[submodule "x"]\n\tpath = x\n\turl = https://example.org\n\tupdate = !touch x\n'


@pytest.mark.parametrize("most_loose", [500, 0], ids=["loose", "packed"])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_content_that_git_refuses_is_refused_at_every_try(
    repo, agent, monkeypatch, most_loose, has_checkpoint
):
    """Neither a first try nor a checkpoint may leave objects that the next try would skip."""
    monkeypatch.setattr(store_objects, "MOST_LOOSE", most_loose)
    agent.write(".gitmodules", BAD_MODULES)
    if has_checkpoint:
        take(repo, agent)
    head = agent.commit({"x.txt": "x\n"})
    for _ in range(2):
        with pytest.raises(NotTakenIn, match="gitmodulesUpdate"):
            state_of(repo, agent.path)
    assert (commit_of(repo, head), commit_of(repo, "crew-7")) == (None, commit_of(repo, "main"))
    assert not list((repo.common_dir / "objects").glob("tmp_*"))


def test_an_index_that_leads_out_of_the_folder_writes_nothing_there(repo, agent, git_dir, tmp_path):
    agent.write("staged.txt", "staged\n")
    agent.git("add", "staged.txt")
    raw = (git_dir / "index").read_bytes().replace(b"staged.txt", b"../out.txt")
    (git_dir / "index").write_bytes(raw[:-20] + hashlib.sha1(raw[:-20]).digest())
    shutil.rmtree(agent.path)
    ensure_worktree(repo, agent.path, branch="crew-7", base="main")
    assert not (agent.path.parent / "out.txt").exists()
    assert state_of(repo, agent.path).head == commit_of(repo, "main")
    assert (agent.path / "a.txt").exists()


def test_one_task_s_damage_does_not_reach_another(repo, agent, git_dir, tmp_path):
    ensure_worktree(repo, tmp_path / "trees" / "8", branch="crew-8", base="main")
    other = Person(tmp_path / "trees" / "8")
    put_pipe(git_dir / "objects" / "pack" / f"pack-{'1' * 40}.idx")
    (git_dir / "refs" / "heads" / "crew-7").write_text("2" * 40 + "\n")
    with pytest.raises(NotTakenIn):
        state_of(repo, agent.path)
    head = other.commit({"x.txt": "x\n"})
    assert state_of(repo, other.path).head == head


# Repositories of other kinds


def test_a_repository_with_long_object_ids(tmp_path):
    person = Person(tmp_path / "long")
    person.path.mkdir()
    person.git("init", "-q", "--object-format=sha256")
    person.commit({"a.txt": "a\n"})
    repo = find_repository(person.path)
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    agent = Person(tmp_path / "7")
    head = agent.commit({"x.txt": "x\n"})
    agent.write("a.txt", "staged\n")
    agent.git("add", "a.txt")
    heal(repo, agent.path)
    assert agent.git("diff", "--cached", "--name-only") == "a.txt"
    assert (state_of(repo, agent.path).head, len(head)) == (head, 64)
    assert state_of(repo, agent.path).changed == ("a.txt",)
    lost = on_a_branch(agent)
    assert take(repo, agent) is not None
    assert [lost in kept.notes.reset_away for kept in checkpoints(repo, "7")] == [True]
    remove_worktree(repo, agent.path)
    assert commit_of(repo, "crew-7") == head


def test_a_sparse_checkout_of_the_agent_is_no_change(repo, agent, tmp_path):
    agent.git("sparse-checkout", "set", "--no-cone", "/a.txt")
    assert set(agent.tree()) == {"a.txt"}
    assert state_of(repo, agent.path).changed == ()
    agent.write("a.txt", "changed\n")
    head = agent.commit()
    assert state_of(repo, agent.path).head == head
    agent.write("a.txt", "again\n")
    take(repo, agent)
    assert set(restored(repo, tmp_path)) == {"a.txt", "b.txt", "sub/c.txt"}


def test_a_sparse_checkout_of_the_person_is_handed_on(repo, person, tmp_path):
    person.git("sparse-checkout", "set", "--no-cone", "/a.txt")
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    agent = Person(tmp_path / "7")
    assert set(agent.tree()) == {"a.txt"}
    assert agent.git("status", "--porcelain") == ""
    assert state_of(repo, agent.path).changed == ()
    head = agent.commit({"a.txt": "mine\n"})
    assert state_of(repo, agent.path).head == head
    assert agent.git("ls-tree", "--name-only", "HEAD").split() == ["a.txt", "b.txt", "sub"]
