"""Where the repository is, which branch work lands on, and what is refused."""

import shutil
import subprocess
import threading

import pytest

from crew.domain.kernel.errors import Conflict, CrewError, UsageError
from crew.git import repository
from crew.git.git_command import GitAnswer
from crew.git.repository import (
    branch_around,
    check_usable,
    commit_of,
    current_branch,
    exclude_locally,
    find_repository,
    head_commit,
    landed_commits,
    may_be_packed,
    refs_like,
    target_branch,
)
from git.people import Person
from refusals import raises_code


def test_it_is_found_from_a_subfolder_and_from_a_linked_worktree(person, tmp_path):
    person.git("worktree", "add", "-q", str(tmp_path / "side tree"), "-b", "side")
    for start in (person.path, person.path / "sub", tmp_path / "side tree", person.path / ".git"):
        repo = find_repository(start)
        assert repo.root == person.path
        assert repo.common_dir == person.path / ".git"


def test_a_bare_repository_is_its_own_root(person, tmp_path):
    bare = tmp_path / "bare.git"
    person.git("clone", "-q", "--bare", str(person.path), str(bare))
    Person(bare).git("worktree", "add", "-q", str(tmp_path / "w"), "main")
    for start in (bare, tmp_path / "w"):
        assert find_repository(start).root == bare
    repo = find_repository(bare)
    check_usable(repo)
    assert head_commit(repo) == person.git("rev-parse", "HEAD")


def test_a_submodule_and_a_separate_git_dir_have_their_own_root(person, tmp_path):
    other = Person(tmp_path / "super")
    other.path.mkdir()
    other.git("init", "-q")
    other.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(person.path), "lib"
    )
    other.commit()
    assert find_repository(other.path / "lib" / "sub").root == other.path / "lib"
    Person(other.path / "lib").git("worktree", "add", "-q", str(tmp_path / "libtree"), "-b", "x")
    assert find_repository(tmp_path / "libtree").root == other.path / "lib"
    check_usable(find_repository(other.path))
    away = tmp_path / "away"
    away.mkdir()
    subprocess.run(
        ["git", "init", "-q", "--separate-git-dir", tmp_path / "store", away], check=True
    )
    assert find_repository(away).root == away


def test_a_folder_outside_any_repository_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError) as refused:
        find_repository(tmp_path)
    assert refused.value.exit_code == 2
    assert "git init" in refused.value.hint


def test_revisions_become_ids_or_nothing(repo, person):
    head = person.git("rev-parse", "HEAD")
    assert head_commit(repo) == commit_of(repo, "main") == commit_of(repo, head) == head
    assert commit_of(repo, "nothing") is None
    assert commit_of(repo, "--all") is None


def test_a_detached_head_has_no_branch(repo, person):
    assert current_branch(repo) == "main"
    person.git("switch", "-q", "--detach")
    assert current_branch(repo) is None
    check_usable(repo)


def test_where_head_is_costs_no_process(repo, person, monkeypatch):
    person.git("switch", "-q", "--detach")
    monkeypatch.setattr("crew.git.repository.ask", lambda *_args, **_more: pytest.fail("git ran"))
    assert current_branch(repo) is None
    (repo.common_dir / "HEAD").write_text("ref: refs/heads/dev\n")
    assert current_branch(repo) == "dev"


def test_the_target_is_what_git_says_then_the_configuration_then_origin_then_main(repo, person):
    for branch in ("one", "two", "three"):
        person.git("branch", branch)
    assert target_branch(repo, None) == "main"
    person.git("update-ref", "refs/remotes/origin/three", "HEAD")
    person.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/three")
    assert target_branch(repo, None) == "three"
    assert target_branch(repo, "two") == "two"
    person.git("config", "crew.defaultBranch", "one")
    assert target_branch(repo, "two") == "one"


def test_without_such_a_branch_the_one_checked_out_is_the_target(repo, person):
    person.git("branch", "-m", "main", "trunk")
    assert target_branch(repo, None) == "trunk"
    person.git("switch", "-q", "--detach")
    person.git("branch", "crew-7")
    assert target_branch(repo, None) == "trunk"
    person.git("branch", "another")
    with raises_code(UsageError, "no_branch", "main") as refused:
        target_branch(repo, None)
    assert "crew.defaultBranch" in refused.value.hint


@pytest.mark.parametrize(
    ("options", "hint"), [((), "git commit"), (("--bare",), "push a first commit")]
)
def test_a_repository_without_commits_is_refused(tmp_path, options, hint):
    empty = Person(tmp_path / "empty")
    empty.path.mkdir()
    empty.git("init", "-q", *options)
    with raises_code(UsageError, "no_commits") as refused:
        check_usable(find_repository(empty.path))
    assert hint in refused.value.hint


def test_a_shallow_clone_is_refused(person, tmp_path):
    person.commit({"x": "x"})
    person.git("clone", "-q", "--depth=1", f"file://{person.path}", str(tmp_path / "shallow"))
    with raises_code(UsageError, "shallow_clone") as refused:
        check_usable(find_repository(tmp_path / "shallow"))
    assert "unshallow" in refused.value.hint


def test_a_branch_below_one_of_crews_names_is_refused(repo, person):
    person.git("branch", "crew-ui/colours")
    check_usable(repo)
    person.git("branch", "crew-12/x")
    with raises_code(Conflict, "branch_in_the_way", "crew-12/x"):
        check_usable(repo)


def test_a_repository_whose_objects_are_gone_is_refused(repo, person):
    shutil.rmtree(person.path / ".git" / "objects")
    (person.path / ".git" / "objects").mkdir()
    with raises_code(CrewError, "unreadable_repository"):
        check_usable(repo)


def test_excluding_adds_each_pattern_once_and_keeps_what_is_there(repo, person):
    exclude = repo.common_dir / "info" / "exclude"
    exclude.write_text("*.mine")
    exclude_locally(repo, ["/.crew/", "/.crew/", "*.log"])
    exclude_locally(repo, ["*.log", "*.mine"])
    exclude_locally(repo, ["*.tmp"])
    assert exclude.read_text() == "*.mine\n/.crew/\n*.log\n*.tmp\n"
    person.write(".crew/x", "x")
    assert person.git("status", "--porcelain") == ""


def test_excluding_works_without_the_info_folder_and_at_the_same_time(repo):
    shutil.rmtree(repo.common_dir / "info")
    threads = [
        threading.Thread(target=exclude_locally, args=(repo, [f"/{number}"]))
        for number in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (repo.common_dir / "info" / "exclude").read_text().split()
    assert sorted(lines) == sorted(f"/{number}" for number in range(10))


def test_what_landed_is_read_from_files_that_hold_a_commit(repo, person):
    tip = person.git("rev-parse", "main")
    assert list(landed_commits(repo)) == []
    for name in ("main", "deep/one"):
        person.git("update-ref", f"refs/crew/landed/{name}", tip)
    (repo.common_dir / "refs/crew/landed/damaged").write_text("garbage")
    assert list(landed_commits(repo)) == [tip, tip]


@pytest.mark.parametrize("is_packed", [False, True])
def test_refs_are_listed_by_name_with_their_commits(repo, person, is_packed):
    tip = person.git("rev-parse", "main")
    person.git("branch", "crew-1")
    person.git("tag", "-a", "-m", "x", "v1")
    if is_packed:
        person.git("pack-refs", "--all")
    assert refs_like(repo, "refs/heads/crew-*") == {"refs/heads/crew-1": tip}
    assert refs_like(repo, "refs/tags/")["refs/tags/v1"] != tip
    assert refs_like(repo, "refs/none/") == {}
    assert may_be_packed(repo, "refs/heads/crew-1") is is_packed
    assert not may_be_packed(repo, "refs/heads/crew")
    (repo.common_dir / "reftable").mkdir()
    assert may_be_packed(repo, "refs/heads/crew")


def test_a_symbolic_ref_that_its_file_does_not_show_is_asked_of_git(repo, person, monkeypatch):
    asked = []

    def answer(_where, *args):
        asked.append(args)
        return GitAnswer(code=0, out=b"refs/remotes/origin/trunk\n", err="")

    monkeypatch.setattr(repository, "ask", answer)
    (repo.common_dir / "refs/remotes/origin").mkdir(parents=True)
    head = repo.common_dir / "refs/remotes/origin/HEAD"
    assert repository._origin_head(repo) is None
    head.write_text(f"{'1' * 40}\n")
    assert (repository._origin_head(repo), asked) == (None, [])
    for text in ("ref: refs/heads/.invalid\n", "odd\n"):
        head.write_text(text)
        assert repository._origin_head(repo) == "trunk"
    assert asked == [("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")] * 2
    head.write_text("ref: refs/remotes/origin/main\n")
    assert (repository._origin_head(repo), len(asked)) == ("main", 2)


def test_the_branch_of_another_repository_inside_is_not_the_persons(person, tmp_path):
    repo, agents = find_repository(person.path), tmp_path / "agents"
    inner = Person(person.path / "inner")
    inner.path.mkdir()
    inner.git("init", "-q", "-b", "theirs")
    assert branch_around(repo, inner.path, agents=agents) == "main"


def test_in_a_worktree_of_a_person_its_branch_counts_and_in_one_of_an_agent_the_main_one(
    person, tmp_path
):
    repo, agents = find_repository(person.path), tmp_path / "agents"
    for tree, branch in ((tmp_path / "mine", "topic"), (agents / "1", "crew-1")):
        person.git("worktree", "add", "-q", "-b", branch, str(tree))
        (tree / "deep").mkdir()
    assert branch_around(repo, tmp_path / "mine" / "deep", agents=agents) == "topic"
    assert branch_around(repo, agents / "1" / "deep", agents=agents) == "main"
    Person(tmp_path / "mine").git("checkout", "-q", "--detach")
    assert branch_around(repo, tmp_path / "mine", agents=agents) is None
