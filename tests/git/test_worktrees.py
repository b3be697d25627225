"""Worktrees are made once, left alone when whole, and healed from every half-made state."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from crew.domain.kernel.errors import Conflict, NotFound
from crew.git.branches import claim_branch
from crew.git.refs import Moved
from crew.git.repository import commit_of, find_repository
from crew.git.task_repository.shown_branches import show_newest
from crew.git.worktrees import worktree_admin
from crew.git.worktrees.worktree_list import delete_branch, worktree_paths
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, remove_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from refusals import raises_code


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "work trees" / "ü-7"


@pytest.fixture
def make(kind):
    """Makes the worktree, or repairs it."""

    def make(repo, tree):
        return ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)

    make.kind = kind
    return make


def entries(repo):
    """The git dirs of all worktrees of either kind."""
    folders = (repo.common_dir / "worktrees", repo.common_dir / "crew" / "folders")
    return [entry for folder in folders if folder.exists() for entry in folder.iterdir()]


only_linked = pytest.mark.parametrize("kind", ["linked"])
"""For tests about the files of `git worktree` itself."""


def admin(repo, tree):
    return worktree_admin.git_dir_for(repo, tree)


def assert_whole(repo, tree, *, head=None):
    state = state_of(repo, tree)
    assert state.branch == "crew-7"
    assert state.head == (head or commit_of(repo, "main"))
    assert state.changed == ()
    assert (tree / "sub" / "c.txt").read_text() == "c\n"
    assert not (admin(repo, tree) / "locked").exists()


def test_a_new_worktree_has_its_branch_at_the_base(repo, tree, person, make):
    assert make(repo, tree) == commit_of(repo, "crew-7") == commit_of(repo, "main")
    assert_whole(repo, tree)
    assert "branch" not in (repo.common_dir / "config").read_text()
    assert worktree_paths(repo) == {person.path: "main", tree: "crew-7"}


@pytest.fixture
def laid(repo, tmp_path, kind):
    """A worktree for a branch that was made just now."""
    tree = tmp_path / "trees" / "7"

    def lay():
        is_new = claim_branch(repo, "crew-7", base=commit_of(repo, "main"))
        ensure_worktree(repo, tree, branch="crew-7", base="main", is_new=is_new, kind=kind)
        return tree

    return lay


@only_linked
def test_a_worktree_of_a_new_branch_is_to_git_like_any_other(repo, person, laid):
    tree = laid()
    assert_whole(repo, tree)
    assert worktree_paths(repo) == {person.path: "main", tree: "crew-7"}
    assert person.git("worktree", "prune", "--verbose") == ""
    with pytest.raises(AssertionError, match="already checked out"):
        person.git("switch", "crew-7")
    agent = Person(tree)
    commit = agent.commit({"a.txt": "mine\n"})
    assert commit_of(repo, "crew-7") == commit
    agent.git("fsck", "--strict")
    person.git("gc", "-q", "--prune=now")
    assert state_of(repo, tree).head == commit
    person.git("worktree", "remove", str(tree))
    assert not tree.exists()


@only_linked
def test_a_new_worktree_takes_no_name_that_another_one_has(repo, person, laid, tmp_path):
    person.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine" / "7"))
    tree = laid()
    assert_whole(repo, tree)
    assert worktree_paths(repo)[tmp_path / "mine" / "7"] == "mine"
    assert sorted(entry.name for entry in entries(repo)) == ["7", "71"]


def test_settings_that_worktrees_have_for_themselves_are_copied_as_git_does(repo, person, laid):
    person.git("config", "extensions.worktreeConfig", "true")
    person.git("config", "--worktree", "user.name", "Somebody")
    tree = laid()
    assert_whole(repo, tree)
    assert Person(tree).git("config", "user.name") == "Somebody"


def test_a_whole_worktree_is_left_exactly_as_it_is(repo, tree, make):
    make(repo, tree)
    agent = Person(tree)
    commit = agent.commit({"a.txt": "mine\n"})
    agent.write("a.txt", "more\n")
    agent.write("new\nfile", "x")
    (tree / "b.txt").unlink()
    agent.git("add", "a.txt")
    index = (agents_git_dir(repo, tree) / "index").read_bytes()
    before = agent.tree()
    assert make(repo, tree) == commit
    assert agent.tree() == before
    assert (agents_git_dir(repo, tree) / "index").read_bytes() == index
    assert sorted(state_of(repo, tree).changed) == ["a.txt", "b.txt", "new\nfile"]


def test_a_worktree_whose_files_the_agent_deleted_is_left_empty(repo, tree, make):
    make(repo, tree)
    for file in list(tree.iterdir()):
        if file.name != ".git":
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    make(repo, tree)
    assert sorted(state_of(repo, tree).changed) == ["a.txt", "b.txt", "sub/c.txt"]


def test_a_worktree_on_no_branch_is_at_the_commit_of_its_head(repo, tree, make):
    make(repo, tree)
    agent = Person(tree)
    agent.git("switch", "-q", "--detach")
    commit = agent.commit({"a.txt": "mine\n"})
    assert make(repo, tree) == commit


def test_an_existing_branch_is_used_again(repo, tree, person, make):
    person.git("branch", "crew-7", "main")
    person.commit({"x": "x"})
    assert make(repo, tree) == commit_of(repo, "main~1")


def test_twenty_worktrees_at_once_all_come_out_whole(repo, tmp_path, kind):
    def one(number):
        return ensure_worktree(
            repo, tmp_path / f"w{number}", branch=f"crew-{number}", base="main", kind=kind
        )

    with ThreadPoolExecutor(20) as pool:
        heads = list(pool.map(one, range(20)))
    assert set(heads) == {commit_of(repo, "main")}
    for number in range(20):
        assert state_of(repo, tmp_path / f"w{number}").changed == ()
    assert len(worktree_paths(repo)) == 21


def test_the_same_worktree_asked_for_by_many_is_made_once(repo, tree, make):
    with ThreadPoolExecutor(8) as pool:
        heads = list(pool.map(lambda _: make(repo, tree), range(8)))
    assert set(heads) == {commit_of(repo, "main")}
    assert_whole(repo, tree)
    assert len(entries(repo)) == 1


def test_hooks_do_not_run_and_submodules_do_not_matter(repo, person, tree, marker, make):
    hooks = tree.parents[1] / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    (hooks / "post-checkout").chmod(0o755)
    person.git("config", "core.hooksPath", str(hooks))
    library = Person(tree.parents[1] / "library")
    library.path.mkdir()
    library.git("init", "-q")
    library.commit({"l": "l"})
    url = str(library.path)
    person.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib")
    person.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "lib")
    make(repo, tree)
    assert_whole(repo, tree)
    ensure_detached(repo, tree.parents[1] / "gate", "main", kind=make.kind)
    remove_worktree(repo, tree)
    assert not tree.exists()
    assert not marker.exists()


def test_a_bare_repository_has_worktrees_too(person, tmp_path, tree, make):
    bare = tmp_path / "bare.git"
    person.git("clone", "-q", "--bare", str(person.path), str(bare))
    repo = find_repository(bare)
    make(repo, tree)
    assert_whole(repo, tree)
    remove_worktree(repo, tree)
    assert not tree.exists()


def test_somebody_elses_folder_is_refused_and_kept(repo, tree, person, make, kind):
    tree.mkdir(parents=True)
    (tree / "thesis.txt").write_text("years")
    with raises_code(Conflict, "worktree_not_ours"):
        make(repo, tree)
    with pytest.raises(Conflict):
        ensure_detached(repo, tree, "main", kind=kind)
    with pytest.raises(Conflict):
        remove_worktree(repo, tree)
    assert (tree / "thesis.txt").read_text() == "years"
    for path in (person.path, person.path / "a.txt"):
        with pytest.raises(Conflict):
            make(repo, path)
    with pytest.raises(Conflict):
        remove_worktree(repo, person.path)


def test_a_persons_own_worktree_is_refused_and_kept(repo, tree, person, make, kind):
    person.git("worktree", "add", "-q", "--detach", str(tree))
    (tree / "a.txt").write_text("theirs")
    with pytest.raises(Conflict):
        make(repo, tree)
    with pytest.raises(Conflict):
        ensure_detached(repo, tree, "main", kind=kind)
    assert (tree / "a.txt").read_text() == "theirs"


def test_a_branch_checked_out_elsewhere_or_in_the_way_is_a_conflict(repo, tree, person, make):
    person.git("switch", "-q", "-c", "crew-7")
    with raises_code(Conflict, "branch_checked_out"):
        make(repo, tree)
    person.git("switch", "-q", "main")
    person.git("branch", "-m", "crew-7", "crew-7/x")
    with raises_code(Conflict, "branch_in_the_way"):
        make(repo, tree)


# What a kill leaves behind


@only_linked
def test_killed_before_anything_but_the_mark_was_written(repo, tree, make):
    half = repo.common_dir / "worktrees" / tree.name
    half.mkdir(parents=True)
    (half / "locked").write_text("initializing")
    make(repo, tree)
    assert_whole(repo, tree)
    assert len(entries(repo)) == 1


@pytest.mark.parametrize("missing", ["HEAD", "commondir"])
def test_killed_while_the_git_dir_was_written(repo, tree, missing, make):
    make(repo, tree)
    git_dir = admin(repo, tree)
    (git_dir / missing).unlink()
    (git_dir / "locked").write_text("initializing")
    for file in list(tree.iterdir()):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    make(repo, tree)
    assert_whole(repo, tree)


@only_linked
def test_killed_between_adding_and_the_checkout(repo, tree, person, make):
    person.git("worktree", "add", "-q", "--no-checkout", "-b", "crew-7", str(tree))
    make(repo, tree)
    assert_whole(repo, tree)


@only_linked
def test_killed_in_the_middle_of_the_first_checkout(repo, tree, person, make):
    person.git("worktree", "add", "-q", "--no-checkout", "-b", "crew-7", str(tree))
    (admin(repo, tree) / "index.lock").write_bytes(b"half an ind")
    (admin(repo, tree) / "locked").write_text("initializing")
    (tree / "a.txt").write_text("a1\na")
    make(repo, tree)
    assert_whole(repo, tree)


def test_a_lost_directory_comes_back_with_what_was_staged(repo, tree, make):
    make(repo, tree)
    agent = Person(tree)
    head = agent.commit({"done.txt": "done\n"})
    agent.write("staged.txt", "staged\n")
    agent.git("add", "staged.txt")
    shutil.rmtree(tree)
    assert make(repo, tree) == head
    assert (tree / "staged.txt").read_text() == "staged\n"
    assert state_of(repo, tree).changed == ("staged.txt",)


def test_a_lost_directory_is_refilled_even_if_the_refill_was_killed(repo, tree, make):
    make(repo, tree)
    shutil.rmtree(tree)
    worktree_admin.mark_refill(admin(repo, tree))
    worktree_admin.point(admin(repo, tree), tree)
    (tree / "a.txt").write_text("a1")
    make(repo, tree)
    assert_whole(repo, tree)


def test_a_worktree_that_lost_its_git_file_keeps_its_files(repo, tree, make):
    make(repo, tree)
    (tree / "a.txt").write_text("mine\n")
    (tree / ".git").unlink()
    make(repo, tree)
    assert state_of(repo, tree).changed == ("a.txt",)
    assert (tree / "a.txt").read_text() == "mine\n"


def test_a_git_file_pointed_at_another_repository_is_pointed_back(repo, tree, tmp_path, make):
    make(repo, tree)
    evil = Person(tmp_path / "evil")
    evil.path.mkdir()
    evil.git("init", "-q")
    (tree / ".git").write_text(f"gitdir: {evil.path}/.git\n")
    make(repo, tree)
    assert_whole(repo, tree)


def test_files_whose_git_dir_was_pruned_are_adopted(repo, tree, make):
    make(repo, tree)
    head = Person(tree).commit({"done.txt": "done\n"})
    (tree / "a.txt").write_text("mine\n")
    (tree / "new.txt").write_text("new\n")
    state_of(repo, tree)  # with it goes what crew has not yet taken in
    shutil.rmtree(admin(repo, tree))
    assert make(repo, tree) == head
    assert sorted(state_of(repo, tree).changed) == ["a.txt", "new.txt"]


@pytest.mark.parametrize(
    "deleted", [("HEAD",), ("commondir",), ("gitdir",), ("HEAD", "gitdir"), ("crew-ready", "HEAD")]
)
def test_files_whose_git_dir_was_deleted_in_part_are_adopted(repo, tree, deleted, make):
    make(repo, tree)
    head = Person(tree).commit({"done.txt": "done\n"})
    (tree / "a.txt").write_text("mine\n")
    git_dir = admin(repo, tree)
    for name in deleted:
        (git_dir / name).unlink()
    assert make(repo, tree) == head
    assert state_of(repo, tree).changed == ("a.txt",)
    assert worktree_paths(repo)[tree] == "crew-7"
    assert len(entries(repo)) == 1


@pytest.mark.parametrize("deleted", ["HEAD", "commondir", "gitdir"])
def test_a_worktree_whose_git_dir_was_deleted_in_part_is_removed_with_it(repo, tree, deleted, make):
    make(repo, tree)
    (admin(repo, tree) / deleted).unlink()
    remove_worktree(repo, tree)
    assert not tree.exists()
    assert entries(repo) == []


def test_a_worktree_that_lost_its_index_keeps_its_files(repo, tree, make):
    make(repo, tree)
    (tree / "a.txt").write_text("mine\n")
    (admin(repo, tree) / "index").unlink()
    make(repo, tree)
    assert state_of(repo, tree).changed == ("a.txt",)


# Gates


def test_a_gate_worktree_is_exact_and_keeps_only_named_ignored_files(repo, person, tmp_path, kind):
    first = commit_of(repo, "main")
    second = person.commit({"a.txt": "second\n", ".gitignore": "cache/\n*.tmp\n"})
    gate = tmp_path / "gate"
    ensure_detached(repo, gate, second, kind=kind)
    for name in ("cache/x", "left/over", "b.txt", "left.tmp"):
        Person(gate).write(name, "dirt\n")
    Person(gate).git("init", "-q", "nested")
    (admin(repo, gate) / "index.lock").touch()
    ensure_detached(repo, gate, second, kind=kind, keep=("cache/",))
    assert state_of(repo, gate).changed == ()
    assert (gate / "cache" / "x").exists()
    assert not (gate / "left").exists()
    assert not (gate / "left.tmp").exists()
    assert not (gate / "nested").exists()
    ensure_detached(repo, gate, first, kind=kind)
    assert (state_of(repo, gate).head, state_of(repo, gate).branch) == (first, None)
    assert (gate / "a.txt").read_text() == "a1\na2\na3\n"
    with pytest.raises(NotFound):
        ensure_detached(repo, gate, "nothing")


def test_a_gate_worktree_forgets_a_merge_it_was_killed_in(repo, person, tmp_path, kind):
    gate = tmp_path / "gate"
    ours = person.commit({"a.txt": "ours\n"})
    person.git("switch", "-q", "--detach", "HEAD~1")
    theirs = person.commit({"a.txt": "theirs\n"})
    ensure_detached(repo, gate, ours, kind=kind)
    Person(gate).git("merge", theirs, check=False)
    assert state_of(repo, gate).unfinished == "merge"
    ensure_detached(repo, gate, ours, kind=kind)
    assert (state_of(repo, gate).changed, state_of(repo, gate).unfinished) == ((), None)


# Removing


def test_removing_is_repeatable_and_leaves_the_branch(repo, tree, make):
    make(repo, tree)
    remove_worktree(repo, tree)
    remove_worktree(repo, tree)
    assert list(tree.parent.iterdir()) == []
    assert entries(repo) == []
    assert commit_of(repo, "crew-7") is not None
    make(repo, tree)
    assert_whole(repo, tree)


def test_a_removal_killed_half_way_is_finished(repo, tree, make):
    make(repo, tree)
    tree.rename(tree.with_name(f".{tree.name}.crew-gone-1"))
    remove_worktree(repo, tree)
    assert list(tree.parent.iterdir()) == []
    assert worktree_paths(repo).get(tree) is None
    make(repo, tree)
    shutil.rmtree(admin(repo, tree))
    remove_worktree(repo, tree)
    assert not tree.exists()


@only_linked
def test_a_worktree_somebody_locked_is_not_removed(repo, tree, person, make):
    make(repo, tree)
    person.git("worktree", "lock", "--reason", "mine", str(tree))
    with raises_code(Conflict, "worktree_locked", "mine"):
        remove_worktree(repo, tree)
    assert tree.exists()


def test_a_branch_is_deleted_only_where_it_was_expected_and_free(repo, tree, person, make):
    make(repo, tree)
    head = Person(tree).commit({"x": "x"})
    with raises_code(Conflict, "branch_checked_out"):
        delete_branch(repo, "crew-7", expected=head)
    remove_worktree(repo, tree)
    with pytest.raises(Moved):
        delete_branch(repo, "crew-7", expected=commit_of(repo, "main"))
    delete_branch(repo, "crew-7", expected=head)
    delete_branch(repo, "crew-7", expected=head)
    assert commit_of(repo, "crew-7") is None


def test_the_unfinished_work_of_an_agent_is_named(repo, tree, person, make):
    make(repo, tree)
    agent = Person(tree)
    agent.commit({"a.txt": "agent\n"})
    person.commit({"a.txt": "person\n"})
    show_newest(repo, tree, "main")
    agent.git("merge", "main", check=False)
    assert state_of(repo, tree).unfinished == "merge"
    assert state_of(repo, tree).changed == ("a.txt",)
    agent.git("merge", "--abort")
    agent.git("rebase", "main", check=False)
    assert state_of(repo, tree).unfinished == "rebase"


@pytest.mark.parametrize("kind", ["own"])
def test_the_git_dir_is_found_without_a_look_at_each_folder_above_it(repo, tree, make, monkeypatch):
    """Each step asks for it several times. Through a link it is found too, more slowly."""
    make(repo, tree)
    link = tree.with_name("link")
    link.symlink_to(tree)
    assert admin(repo, link) == admin(repo, tree)
    monkeypatch.setattr(worktree_admin, "_real", None)
    assert admin(repo, tree).parent == repo.common_dir / "crew" / "folders"


def test_nothing_here_touches_the_persons_checkout(repo, tree, person, make):
    person.write("a.txt", "uncommitted\n")
    person.write("untracked.txt", "u\n")
    person.git("add", "a.txt")
    index = (repo.common_dir / "index").read_bytes()
    before = person.tree()
    make(repo, tree)
    ensure_detached(repo, tree.parent / "gate", "main", kind=make.kind)
    remove_worktree(repo, tree)
    assert person.tree() == before
    assert (repo.common_dir / "index").read_bytes() == index


def test_a_folder_has_a_repository_of_its_own_unless_it_is_to_be_linked(repo, tmp_path):
    folders = {"work": tmp_path / "7", "gate": tmp_path / "gate", "linked": tmp_path / "8"}
    ensure_worktree(repo, folders["work"], branch="crew-7", base="main")
    ensure_detached(repo, folders["gate"], "main")
    ensure_detached(repo, folders["linked"], "main", kind="linked")
    owns = [
        worktree_admin.is_own(worktree_admin.git_dir_for(repo, folder))
        for folder in folders.values()
    ]
    assert owns == [True, True, False]
    branches = dict(zip(folders.values(), ("crew-7", "", ""), strict=True))
    assert worktree_paths(repo) == {repo.root: "main", **branches}


def test_a_branch_without_commits_has_no_head(repo, tree):
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind="linked")
    Person(tree).git("switch", "-q", "--orphan", "fresh")
    assert (state_of(repo, tree).head, state_of(repo, tree).branch) == (None, "fresh")


def test_a_repository_in_a_folder_named_as_crews_own_is_not_taken_for_one(tmp_path):
    for place in ("crew/folders/.git", "crew/folders/mine.git"):
        assert not worktree_admin.is_own(tmp_path / place)
    assert worktree_admin.is_own(tmp_path / ".git/crew/folders/7")


@pytest.mark.parametrize("left", ["a file", "a folder"])
def test_a_kill_while_the_pointer_is_written_leaves_nothing_in_the_worktree(repo, tmp_path, left):
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    (tree / ".git").unlink()
    unfinished = tree / ".git.crew-new"
    unfinished.mkdir() if left == "a folder" else unfinished.write_text("gitdir: ")
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert state_of(repo, tree).changed == ()
    assert not unfinished.exists()
