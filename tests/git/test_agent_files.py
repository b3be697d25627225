"""Files of a task's own repository that crew reads as data: its index, alternates and locks."""

import hashlib
import os
import shutil

import pytest

from crew.git.checkpoints.reflogs import left_behind
from crew.git.repository import commit_of
from crew.git.task_repository import agent_refs, lay_repository, take_in
from crew.git.task_repository.agent_index import has_sound_index, is_sound
from crew.git.task_repository.agent_refs import agent_git_of, other_tips
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.stale_locks import order_stamp
from crew.git.worktrees.worktree_admin import REFILL, finish_making, git_dir_for, mark_refill
from crew.git.worktrees.worktrees import ensure_worktree, heal, state_of
from git.people import Person
from refusals import raises_code


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "tree"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    return Person(tree)


@pytest.fixture
def crew_git(repo, agent):
    return git_dir_for(repo, agent.path)


def test_an_index_is_sound_if_it_is_whole_or_missing(crew_git):
    agent_git = agent_git_of(crew_git)
    index = agent_git / "index"
    whole = index.read_bytes()
    assert has_sound_index(agent_git)
    index.write_bytes(whole[:-30])
    assert not has_sound_index(agent_git)
    index.unlink()
    assert has_sound_index(agent_git)
    os.mkfifo(index)
    assert not has_sound_index(agent_git)


def test_of_a_damaged_repository_its_index_is_kept_only_if_it_is_whole(crew_git, agent):
    agent.git("update-ref", "refs/remotes/elsewhere/main", "HEAD")
    agent.git("branch", "mine")
    tip = agent.git("rev-parse", "HEAD")
    assert other_tips(crew_git) == {"refs/heads/crew-7": tip, "refs/heads/mine": tip}
    kept = lay_repository._kept(crew_git)
    assert kept["index"] == (agent_git_of(crew_git) / "index").read_bytes()
    assert any(f"{tip} refs/heads/mine\n".encode() in content for content in kept.values())
    (agent_git_of(crew_git) / "index").write_bytes(b"nonsense")
    assert {name for name in kept if name not in lay_repository._kept(crew_git)} == {"index"}
    shutil.rmtree(agent_git_of(crew_git))
    assert lay_repository._kept(crew_git) == {}


CHANGES = {
    "a file": lambda agent, _own: agent.write("new", "x"),
    "the pointer": lambda agent, _own: (agent.path / ".git").write_text("gitdir: /elsewhere"),
    "crew's HEAD": lambda _agent, own: (own / "HEAD").write_text("ref: refs/heads/other\n"),
    "its HEAD": lambda agent, _own: agent.git("switch", "-q", "-c", "other"),
    "its index": lambda agent, _own: (agent.write("a.txt", "x"), agent.git("add", "a.txt")),
    "a commit": lambda agent, _own: agent.git("commit", "-q", "--allow-empty", "-m", "x"),
    "a lock": lambda _agent, own: (agent_git_of(own) / "HEAD.lock").touch(),
    "a lock of a branch": lambda _a, own: (agent_git_of(own) / "refs/heads/x.lock").touch(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_an_agent_changes_changes_the_stamp(repo, agent, crew_git, what):
    before = order_stamp(repo, agent.path, "crew-7")
    assert before == order_stamp(repo, agent.path, "crew-7") is not None
    CHANGES[what](agent, crew_git)
    assert order_stamp(repo, agent.path, "crew-7") != before


@pytest.mark.parametrize("name", ["refs/heads/crew-7", "refs/heads/crew-7.lock"])
def test_what_a_person_changes_at_the_branch_changes_the_stamp(repo, agent, name):
    before = order_stamp(repo, agent.path, "crew-7")
    (repo.common_dir / name).write_text("x")
    assert order_stamp(repo, agent.path, "crew-7") != before


def test_only_a_repository_of_its_own_has_a_stamp(repo, tmp_path):
    ensure_worktree(repo, tmp_path / "l", branch="crew-8", base="main", kind="linked")
    assert order_stamp(repo, tmp_path / "l", "crew-8") is None
    assert order_stamp(repo, tmp_path / "nothing", "crew-9") is None


def emptied(info, _file):
    shutil.rmtree(info)


def a_file_in_its_place(info, _file):
    emptied(info, _file)
    info.write_text("x")


def a_folder_as_the_list(_info, file):
    file.unlink()
    file.mkdir()
    (file / "x").touch()


def another_list(_info, file):
    file.write_text("/elsewhere\n")


@pytest.mark.parametrize(
    "change", [emptied, a_file_in_its_place, a_folder_as_the_list, another_list]
)
def test_the_list_of_object_folders_is_restored(repo, agent, crew_git, change):
    objects = agent_git_of(crew_git) / "objects"
    file = objects / "info" / "alternates"
    before = file.read_bytes()
    change(objects / "info", file)
    take_in.seeing(repo, crew_git)
    assert file.read_bytes() == before
    assert agent.git("log", "--format=%s", "-1") != ""


def test_without_its_objects_nothing_is_taken_in(repo, crew_git):
    shutil.rmtree(agent_git_of(crew_git) / "objects")
    with pytest.raises(take_in.NotTakenIn, match="are missing"):
        take_in.seeing(repo, crew_git)


def test_a_worktree_that_is_filled_again_is_marked_until_it_is_whole(crew_git):
    mark_refill(crew_git)
    assert (crew_git / REFILL).exists()
    finish_making(crew_git)
    finish_making(crew_git)
    assert not (crew_git / REFILL).exists()


@pytest.mark.parametrize("method", ["sha1", "sha256"])
def test_an_index_ends_in_the_checksum_of_either_kind_of_repository(method):
    content = b"DIRC" + b"x" * 100
    signed = content + hashlib.new(method, content).digest()
    assert is_sound(signed)
    assert is_sound(content + bytes(20))
    assert not is_sound(signed[:4] + b"y" + signed[5:])
    assert not is_sound(b"DIRT" + signed[4:])


def test_a_commit_that_only_orig_head_names_was_left_behind(repo, person, tmp_path):
    tree = Person(tmp_path / "linked")
    ensure_worktree(repo, tree.path, branch="crew-8", base="main", kind="linked")
    lost = tree.commit({"new": "x\n"})
    tree.git("reset", "-q", "--hard", "HEAD~1")
    git_dir = git_dir_for(repo, tree.path)
    shutil.rmtree(git_dir / "logs")
    shutil.rmtree(repo.common_dir / "logs")
    head = tree.git("rev-parse", "HEAD")
    assert left_behind(repo, git_dir, head=head, branch="crew-8") == (lost,)
    (git_dir / "ORIG_HEAD").unlink()
    assert left_behind(repo, git_dir, head=head, branch="crew-8") == ()


def many_tags(at, count):
    return "".join(f"{at} refs/tags/release/2026-{n:06d}-candidate\n" for n in range(count))


def test_packed_refs_of_a_large_repository_are_read(repo, person, tmp_path):
    tags = many_tags(commit_of(repo, "main"), 56_000)
    (repo.common_dir / "packed-refs").write_text(f"# pack-refs with: peeled sorted \n{tags}")
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    agent = Person(tmp_path / "7")
    head = agent.commit({"b.txt": "b\n"})
    agent.git("pack-refs", "--all")
    assert state_of(repo, agent.path).head == head


@pytest.fixture
def short_lists(monkeypatch):
    """Lists of refs may have 10,000 bytes."""
    for module in (agent_refs, lay_repository):
        monkeypatch.setattr(module, "LARGEST_LIST", 10_000)


@pytest.mark.parametrize("is_packed", [False, True])
def test_more_refs_than_crew_reads_are_told_and_lose_nothing(
    repo, agent, crew_git, short_lists, is_packed
):
    packed = agent_git_of(crew_git) / "packed-refs"
    head = agent.commit({"b.txt": "b\n"})
    if is_packed:
        agent.git("pack-refs", "--all")
    before = packed.read_text()
    packed.write_text(before + many_tags(head, 200))
    for _ in range(2):
        with raises_code(NotTakenIn, "too_many_refs"):
            state_of(repo, agent.path)
        heal(repo, agent.path)
    assert agent.git("rev-parse", "HEAD") == head
    packed.write_text(before)
    assert state_of(repo, agent.path).head == head


def test_of_very_many_refs_an_agent_sees_the_branches(repo, person, tmp_path, short_lists):
    at = commit_of(repo, "main")
    person.git("branch", "other")
    person.git("pack-refs", "--all")
    with (repo.common_dir / "packed-refs").open("a") as file:
        file.write(many_tags(at, 200))
    ensure_worktree(repo, tmp_path / "7", branch="crew-7", base="main")
    agent = Person(tmp_path / "7")
    refs = agent.git("for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/crew-7", "refs/heads/main", "refs/heads/other"]
    assert state_of(repo, agent.path).head == at
