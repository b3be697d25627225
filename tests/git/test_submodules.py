"""Worktrees and folders of gates have the files of submodules, from the person's own clones."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from crew.git.checkpoints.checkpoints import take_checkpoint
from crew.git.checkpoints.nested_repositories import strays, unpushed
from crew.git.commit_files import read_commit
from crew.git.merges.conflict_sides import dropped_sides
from crew.git.worktrees.submodules import missing_content, module_dirs
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from warm import warm_python

ALLOWED = ("-c", "protocol.file.allow=always")
FILES = {"text.txt": b"library\n", "inner/text.txt": b"inner\n"}


@dataclass(frozen=True)
class Library:
    """The source of a submodule, which has one of its own, and its commits."""

    source: Person
    first: str
    second: str

    def is_unreachable(self) -> None:
        """As without a network."""
        for folder in (self.source.path, self.source.path.with_name("inner")):
            shutil.rmtree(folder)


@pytest.fixture
def library(person, tmp_path) -> Library:
    """The person has it in `libs/it`, at the first commit; their clone has the second one too."""
    inner, source = Person(tmp_path / "inner"), Person(tmp_path / "library")
    for one in (inner, source):
        one.path.mkdir()
        one.git("init", "-q")
        one.commit({"text.txt": f"{one.path.name}\n"})
    source.git(*ALLOWED, "submodule", "--quiet", "add", str(inner.path), "inner")
    first = source.commit(message="with an inner one")
    second = source.commit({"more.txt": "more\n"})
    person.git(
        *ALLOWED, "submodule", "--quiet", "add", "--name", "a/b", str(source.path), "libs/it"
    )
    at = Person(person.path / "libs" / "it")
    at.git("checkout", "-q", first)
    person.git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    at.git("checkout", "-q", first)
    person.commit(message="with a library")
    return Library(source, first, second)


@pytest.fixture
def agent(repo, library, tmp_path, kind) -> Person:
    library.is_unreachable()
    return made(repo, tmp_path / "tree 7", kind)


def made(repo, path, kind="own") -> Person:
    ensure_worktree(repo, path, branch="crew-7", base="main", kind=kind)
    return Person(path)


def files_of(folder: Path) -> dict[str, bytes]:
    found = Person(folder / "libs" / "it").tree()
    return {name: content for name, content in found.items() if name != ".gitmodules"}


def own(agent) -> Person:
    return Person(agent.path / "libs" / "it")


def unpushed_in(repo, agent):
    git_dir, state = git_dir_for(repo, agent.path), state_of(repo, agent.path)
    assert strays(repo, agent.path, state, git_dir=git_dir, landed="main") == ()
    return unpushed(repo, agent.path, state, git_dir=git_dir, landed="main")


def test_a_worktree_has_the_files_of_submodules_and_nothing_changed(repo, agent):
    assert files_of(agent.path) == FILES
    assert agent.git("status", "--porcelain", "--ignored") == ""
    status = agent.git("submodule", "status", "--recursive").splitlines()
    assert [line.split()[1] for line in status] == ["libs/it", "libs/it/inner"]
    assert state_of(repo, agent.path).changed == ()
    assert unpushed_in(repo, agent) == ()
    assert take_checkpoint(repo, agent.path, "7", label="step", at=100.0) is None


def test_a_submodule_has_a_repository_of_its_own_without_remotes(repo, agent, person):
    before = files_below(repo.common_dir / "modules")
    inner = own(agent)
    assert inner.git("remote") == ""
    inner.git("config", "core.editor", "something")
    inner.git("branch", "mine")
    inner.commit({"new.txt": "new\n"})
    assert files_below(repo.common_dir / "modules") == before
    assert person.git("status", "--porcelain") == ""


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_agent_moves_a_submodule_to_another_commit_of_the_persons_clone(repo, agent, library):
    own(agent).git("checkout", "-q", library.second)
    agent.commit(message="newer")
    assert state_of(repo, agent.path).changed == ()
    assert unpushed_in(repo, agent) == ()


def test_a_commit_that_exists_only_in_the_worktree_is_named_and_kept(repo, agent, person):
    commit = own(agent).commit({"new.txt": "new\n"})
    agent.commit(message="with work inside")
    assert unpushed_in(repo, agent) == (f"libs/it: {commit}",)
    kept = take_checkpoint(repo, agent.path, "7", label="step", at=100.0)
    assert commit in kept.notes.commits
    mine = Person(person.path / "libs" / "it")
    mine.git("fetch", "-q", str(own(agent).path), commit)
    assert unpushed_in(repo, agent) == ()


def test_a_commit_that_the_agent_got_from_a_remote_is_not_named(repo, agent, tmp_path):
    commit = own(agent).commit({"new.txt": "new\n"})
    own(agent).git("clone", "-q", "--bare", ".", str(tmp_path / "pushed.git"))
    own(agent).git("fetch", "-q", str(tmp_path / "pushed.git"), f"{commit}:refs/remotes/o/main")
    agent.commit(message="with pushed work")
    assert unpushed_in(repo, agent) == ()


def test_edits_in_a_submodule_are_uncommitted_work(repo, agent):
    own(agent).write("text.txt", "edited\n")
    assert state_of(repo, agent.path).changed == ("libs/it",)


@pytest.mark.parametrize("kind", ["own", "linked"])
def test_each_gate_finds_the_submodules_of_its_commit(repo, person, library, tmp_path, kind):
    first = person.git("rev-parse", "HEAD")
    Person(person.path / "libs" / "it").git("checkout", "-q", library.second)
    person.commit(message="newer")
    library.is_unreachable()
    gate = tmp_path / "gate"
    ensure_detached(repo, gate, first, kind=kind)
    assert files_of(gate) == FILES
    inner = Person(gate / "libs" / "it")
    inner.commit({"text.txt": "spoiled\n", "left.txt": "left\n"})
    (inner.path / "untracked.txt").write_text("left\n")
    ensure_detached(repo, gate, first, kind=kind)
    assert files_of(gate) == FILES
    assert Person(gate).git("status", "--porcelain", "--ignored") == ""
    ensure_detached(repo, gate, "main", kind=kind)
    assert files_of(gate) == {**FILES, "more.txt": b"more\n"}


def test_the_clones_of_a_linked_worktree_count_too(repo, person, library, tmp_path):
    other = tmp_path / "other"
    person.git("worktree", "add", "-q", str(other), "-b", "other")
    Person(other).git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    shutil.rmtree(repo.common_dir / "modules")
    assert [one.name for one in module_dirs(repo.common_dir)] == ["b", "inner"]
    assert files_of(made(repo, tmp_path / "7").path) == FILES


def test_what_nobody_has_cloned_is_empty_and_named(repo, person, library, tmp_path):
    assert missing_content(repo, "main") == ()
    shutil.rmtree(repo.common_dir / "modules" / "a" / "b" / "modules")
    assert missing_content(repo, "main") == ("libs/it/inner",)
    assert files_of(made(repo, tmp_path / "7").path) == {"text.txt": b"library\n"}
    shutil.rmtree(repo.common_dir / "modules")
    assert missing_content(repo, "main") == ("libs/it",)
    gate = tmp_path / "gate"
    ensure_detached(repo, gate, "main")
    assert list((gate / "libs" / "it").iterdir()) == []


def test_gitmodules_of_an_agent_decides_nothing(repo, person, library, tmp_path, marker):
    """Names and paths that lead elsewhere, and addresses and settings that run something."""
    (person.path / ".gitmodules").write_text(
        f'[submodule "../../../hooks"]\n\tpath = libs/it\n\turl = ext::sh -c touch% {marker}\n'
        f"\tupdate = !touch '{marker}'\n\tignore = all\n"
        '[submodule "x"]\n\tpath = ../outside\n\turl = /\n'
    )
    person.commit(message="hostile")
    gate = tmp_path / "gate"
    ensure_detached(repo, gate, "main")
    assert files_of(gate) == FILES
    assert not marker.exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        *("gate", "inner", "library", "my prójects")
    ]


@pytest.mark.parametrize("below", ["modules", "modules/libs"])
def test_a_link_in_the_agents_repository_leads_nothing_elsewhere(repo, library, tmp_path, below):
    agent, outside = made(repo, tmp_path / "7"), tmp_path / "outside"
    outside.mkdir()
    place = agents_git_dir(repo, agent.path) / below
    shutil.rmtree(place)
    place.symlink_to(outside)
    shutil.rmtree(agent.path)
    made(repo, agent.path)
    assert list(outside.iterdir()) == []


def test_commits_of_an_agent_survive_the_loss_of_its_folder(repo, library, tmp_path):
    agent = made(repo, tmp_path / "7")
    commit = own(agent).commit({"new.txt": "new\n"})
    shutil.rmtree(agent.path)
    made(repo, agent.path)
    place = agents_git_dir(repo, agent.path) / "modules" / "libs" / "it"
    assert Person(place).git("cat-file", "-t", commit) == "commit"


STORY = """
import sys
from pathlib import Path
from crew.git.merges.conflict_sides import dropped_sides
from crew.git.repository import find_repository
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree

repo, path = find_repository(Path(sys.argv[1])), Path(sys.argv[2])
ensure_worktree(repo, path / "7", branch="crew-7", base="main")
ensure_detached(repo, path / "gate", "main")
"""


@pytest.mark.parametrize("point", [f"{at}:{n}" for at in ("before", "after") for n in range(1, 5)])
def test_a_kill_while_they_are_written_changes_nothing_in_the_end(person, library, tmp_path, point):
    argv = ["-c", STORY, str(person.path), str(tmp_path)]
    for crash_at, code in ((f"git.write_submodule.{point}", -9), ("", 0)):
        env = {**os.environ, "CREW_CRASH_AT": crash_at}
        ended = warm_python().run(argv, cwd=Path.cwd(), env=env)
        assert ended.returncode == code, ended.stderr
    for name in ("7", "gate"):
        assert files_of(tmp_path / name) == FILES
        assert Person(tmp_path / name).git("status", "--porcelain", "--ignored") == ""


def test_a_merge_that_sets_a_submodule_back_is_noticed(repo, person, library):
    base = person.git("rev-parse", "HEAD")
    Person(person.path / "libs" / "it").git("checkout", "-q", library.second)
    theirs = person.commit(message="newer")
    person.git("switch", "-q", "-c", "crew-7", base)
    ours = person.commit({"a.txt": "mine\n"}, "mine, and the submodule as it was checked out")
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=ours) == ()
    person.git("switch", "-q", "--detach", base)
    Person(person.path / "libs" / "it").git("checkout", "-q", library.first)
    ours = person.commit({"a.txt": "mine\n"}, "mine")
    person.git("merge", "-q", "--no-edit", theirs)
    merged = person.git("rev-parse", "HEAD")
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=merged) == ()
    result = person.commit(message="everything, with the submodule as it still is")
    found = dropped_sides(repo, ours=ours, theirs=theirs, result=result)
    assert [one.path for one in found] == ["libs/it"]


def test_commits_with_longer_ids_are_read_without_git_too(tmp_path):
    person = Person(tmp_path / "repo")
    person.path.mkdir()
    person.git("init", "-q", "--object-format=sha256")
    first, second = person.commit({"a.txt": "a\n"}), person.commit({"a.txt": "b\n"}, "two")
    found = read_commit(person.path / ".git", second)
    assert found is not None
    assert (found.parents, found.subject) == ((first,), "two")
    assert found.tree == person.git("rev-parse", f"{second}^{{tree}}")
