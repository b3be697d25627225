"""git-lfs: folders have contents, new ones are taken in, and crew runs no program for that."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crew.git import lfs, spawn_git
from crew.git.checkpoints.checkpoints import restore, restore_into_worktree, take_checkpoint
from crew.git.delivery.delivery import deliver
from crew.git.git_command import git
from crew.git.merges.conflict_sides import conflict_sides, dropped_sides
from crew.git.merges.merges import MergeConflict, Merged, merge
from crew.git.repository import commit_of, find_repository
from crew.git.task_repository.take_in import NotTakenIn
from crew.git.worktrees.persons_commits import take_persons
from crew.git.worktrees.spare_worktrees import brought_to, make_spare
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
from git.conftest import agents_git_dir
from git.people import Person
from refusals import raises_code
from warm import warm_python

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")

FIRST, SECOND = b"first\0" * 50_000, b"second\0" * 60_000


def pointer(content: bytes) -> str:
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


@pytest.fixture
def person(person) -> Person:
    """Ann, with a file in git-lfs."""
    person.git("lfs", "install")
    person.git("lfs", "track", "*.bin")
    (person.path / "big.bin").write_bytes(FIRST)
    person.commit()
    assert person.git("show", "HEAD:big.bin") + "\n" == pointer(FIRST)
    return person


@pytest.fixture
def tree(tmp_path) -> Path:
    return tmp_path / "trees" / "7"


@pytest.fixture
def agent(repo, tree) -> Person:
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    return Person(tree)


def store_file(common: Path, content: bytes) -> Path:
    oid = hashlib.sha256(content).hexdigest()
    return common / "lfs" / "objects" / oid[:2] / oid[2:4] / oid


def save(agent, content=SECOND, name="big.bin") -> str:
    (agent.path / name).parent.mkdir(exist_ok=True)
    (agent.path / name).write_bytes(content)
    return agent.commit()


def landed(repo, agent) -> str:
    """The state of the task's work, merged and landed on main."""
    head = state_of(repo, agent.path).head
    made = merge(repo, onto=commit_of(repo, "main"), head=head, message="m", at=1)
    assert isinstance(made, Merged)
    git(repo.common_dir, "update-ref", "refs/crew/landed/main", made.commit)
    return made.commit


# Folders have contents


def test_a_worktree_has_the_content_and_is_clean_for_crew_and_for_the_agent(repo, agent):
    assert (agent.path / "big.bin").read_bytes() == FIRST
    assert state_of(repo, agent.path).changed == ()
    for way in ("process", "clean"):
        agent.git("config", f"filter.lfs.{way}", "false")
    assert agent.git("status", "--porcelain") == ""


def test_a_plain_worktree_and_a_lost_one_have_the_content_too(repo, tree, kind):
    for _ in range(2):
        ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
        assert (tree / "big.bin").read_bytes() == FIRST
        assert state_of(repo, tree).changed == ()
        shutil.rmtree(tree)


def test_a_spare_has_the_content_and_gets_that_of_a_later_commit(repo, person, tree):
    spare = make_spare(repo, tree.parent, commit=commit_of(repo, "main"))
    (person.path / "big.bin").write_bytes(SECOND)
    (person.path / "more.bin").write_bytes(FIRST)
    new = person.commit()
    later = brought_to(repo, spare, commit=new)
    git(repo.common_dir, "branch", "crew-7", new)
    ensure_worktree(repo, tree, branch="crew-7", base=new, is_new=True, spare=later)
    assert (tree / "big.bin").read_bytes() == SECOND
    assert (tree / "more.bin").read_bytes() == FIRST
    assert state_of(repo, tree).changed == ()


def test_the_folder_of_a_gate_has_the_contents_of_each_commit(repo, person, tree):
    first = commit_of(repo, "main")
    second = save(person)
    for commit, content in ((first, FIRST), (second, SECOND), (first, FIRST)):
        ensure_detached(repo, tree, commit)
        assert (tree / "big.bin").read_bytes() == content
        assert state_of(repo, tree).changed == ()
        (tree / "big.bin").write_bytes(b"a gate was here")


@pytest.mark.parametrize("way", ["longer ids", "sparse", "shown elsewhere"])
def test_odd_repositories_have_contents_too(tmp_path, tree, way):
    person = Person(tmp_path / "odd")
    person.path.mkdir()
    person.git("init", "-q", f"--object-format={'sha256' if way == 'longer ids' else 'sha1'}")
    person.git("lfs", "install", "--local")
    person.git("lfs", "track", "*.bin")
    person.commit({"left/out.txt": "x\n"})
    save(person, FIRST)
    save(person, SECOND, "left/out.bin")
    if way == "sparse":
        person.git("sparse-checkout", "set", "--no-cone", "/*", "!/left/")
    if way == "shown elsewhere":
        person.git("worktree", "add", "-q", str(tmp_path / "linked"))
        person = Person(tmp_path / "linked")
        person.git("switch", "-q", "--ignore-other-worktrees", "main")
        Person(tmp_path / "odd").git("switch", "-q", "-d")
    repo = find_repository(person.path)
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    assert (tree / "big.bin").read_bytes() == FIRST
    assert (tree / "left").exists() == (way != "sparse")
    assert agent.git("status", "--porcelain") == ""
    save(agent)
    assert state_of(repo, tree).changed == ()
    landed(repo, agent)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "big.bin").read_bytes() == SECOND
    assert person.git("status", "--porcelain") == ""


def test_a_file_that_may_be_run_is_filled_and_may_still_be_run(repo, person, tree):
    (person.path / "tool.bin").write_bytes(SECOND)
    (person.path / "tool.bin").chmod(0o755)
    person.commit()
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert os.access(tree / "tool.bin", os.X_OK)
    assert not os.access(tree / "big.bin", os.X_OK)
    (tree / "tool.bin").chmod(0o644)
    assert state_of(repo, tree).changed == ("tool.bin",)


def test_an_edit_is_seen_and_the_same_content_again_is_not(repo, agent):
    (agent.path / "big.bin").write_bytes(SECOND)
    assert state_of(repo, agent.path).changed == ("big.bin",)
    (agent.path / "big.bin").write_bytes(FIRST)
    assert state_of(repo, agent.path).changed == ()
    os.utime(agent.path / "big.bin", (4e9, 4e9))
    assert state_of(repo, agent.path).changed == ()


def test_an_edit_in_the_moment_after_the_checkout_is_seen(repo, agent):
    (agent.path / "big.bin").write_bytes(FIRST[:-1] + b"x")
    assert state_of(repo, agent.path).changed == ("big.bin",)


def test_a_person_s_commits_on_the_branch_bring_their_contents(repo, person, agent):
    person.git("switch", "-q", "crew-7")
    save(person)
    assert take_persons(repo, agent.path)
    assert (agent.path / "big.bin").read_bytes() == SECOND
    assert state_of(repo, agent.path).changed == ()


def test_a_filter_of_another_name_or_another_program_is_never_run(repo, person, tree, marker):
    person.git("config", "filter.lfs.smudge", f"touch '{marker}'; git-lfs smudge -- %f")
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert (tree / "big.bin").read_text() == pointer(FIRST)
    assert not marker.exists()


def test_who_skips_all_contents_has_pointers_in_tasks_too(repo, person, tree):
    person.git("config", "filter.lfs.smudge", "git-lfs smudge --skip -- %f")
    person.git("config", "filter.lfs.process", "git-lfs filter-process --skip")
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert (tree / "big.bin").read_text() == pointer(FIRST)
    assert state_of(repo, tree).changed == ()


# Contents are missing


def test_a_content_that_is_not_here_is_named_with_the_command_that_brings_it(
    repo, person, tree, tmp_path
):
    person.git("init", "-q", "--bare", str(tmp_path / "far.git"))
    person.git("remote", "add", "origin", f"file://{tmp_path}/far.git")
    person.git("push", "-q", "origin", "main")
    store_file(repo.common_dir, FIRST).unlink()
    with raises_code(lfs.ContentMissing, "lfs_content_missing", "big.bin") as refused:
        ensure_worktree(repo, tree, branch="crew-7", base="main")
    with raises_code(lfs.ContentMissing, "lfs_content_missing", "big.bin"):
        ensure_worktree(repo, tree, branch="crew-7", base="main")
    command = refused.value.hint.partition(": ")[2]
    subprocess.run(command.replace(str(person.path), f"'{person.path}'"), shell=True, check=True)
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert (tree / "big.bin").read_bytes() == FIRST
    assert state_of(repo, tree).changed == ()


def test_who_chose_some_contents_may_miss_others(repo, person, tree):
    person.git("config", "lfs.fetchexclude", "*.bin")
    store_file(repo.common_dir, FIRST).unlink()
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    assert (tree / "big.bin").read_text() == pointer(FIRST)


def test_a_damaged_content_fills_nothing(repo, tree):
    file = store_file(repo.common_dir, FIRST)
    file.chmod(0o644)
    file.write_bytes(FIRST[:-1] + b"x")
    with raises_code(lfs.ContentMissing, "lfs_content_missing", "big.bin"):
        ensure_worktree(repo, tree, branch="crew-7", base="main")


# New contents


def test_new_contents_are_taken_in_with_the_commits_also_those_in_between(repo, agent):
    save(agent, b"between" * 9999)
    head = save(agent)
    state = state_of(repo, agent.path)
    assert (state.head, state.changed) == (head, ())
    assert commit_of(repo, "crew-7") == head
    for content in (SECOND, b"between" * 9999):
        assert store_file(repo.common_dir, content).read_bytes() == content
    assert not list((repo.common_dir / "lfs" / "tmp").glob("crew-*"))


def test_the_first_content_of_a_repository_is_taken_in(tmp_path):
    path = tmp_path / "plain"
    path.mkdir()
    person = Person(path)
    person.git("init", "-q")
    person.commit({"a.txt": "a\n"})
    subprocess.run(["git", "lfs", "install", "--skip-repo"], check=True, capture_output=True)
    repo, tree = find_repository(path), tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    agent.git("lfs", "track", "*.bin")
    head = save(agent)
    assert (state_of(repo, tree).head, state_of(repo, tree).changed) == (head, ())
    assert store_file(repo.common_dir, SECOND).read_bytes() == SECOND


def forged(agent, repo):
    """Another content under the right name."""
    file = store_file(agents_git_dir(repo, agent.path), SECOND)
    file.unlink()
    file.write_bytes(SECOND[:-1] + b"x")


def shorter(agent, repo):
    file = store_file(agents_git_dir(repo, agent.path), SECOND)
    file.unlink()
    file.write_bytes(SECOND[:-1])


def not_there(agent, repo):
    store_file(agents_git_dir(repo, agent.path), SECOND).unlink()


def a_link(agent, repo):
    """A link to the same content elsewhere."""
    file = store_file(agents_git_dir(repo, agent.path), SECOND)
    file.rename(agent.path.parent / "elsewhere")
    file.symlink_to(agent.path.parent / "elsewhere")


def a_linked_folder(agent, repo):
    folder = agents_git_dir(repo, agent.path) / "lfs"
    folder.rename(agent.path.parent / "elsewhere")
    folder.symlink_to(agent.path.parent / "elsewhere")


def a_pipe(agent, repo):
    file = store_file(agents_git_dir(repo, agent.path), SECOND)
    file.unlink()
    os.mkfifo(file)


def a_folder(agent, repo):
    file = store_file(agents_git_dir(repo, agent.path), SECOND)
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "arrange", [forged, shorter, not_there, a_link, a_linked_folder, a_pipe, a_folder]
)
def test_a_content_that_is_not_exactly_what_the_pointer_names_is_not_taken_in(repo, agent, arrange):
    before = commit_of(repo, "crew-7")
    save(agent)
    arrange(agent, repo)
    with raises_code(NotTakenIn, "lfs_content_not_taken_in", "big.bin"):
        state_of(repo, agent.path)
    assert commit_of(repo, "crew-7") == before
    assert not store_file(repo.common_dir, SECOND).exists()
    assert not list((repo.common_dir / "lfs" / "tmp").glob("crew-*"))


ODD = {
    "a path for an oid": pointer(SECOND).replace("sha256:", "sha256:../../"),
    "an extension": pointer(SECOND).replace("oid", "ext-0-x sha256:" + "0" * 64 + "\noid"),
    "no last line end": pointer(SECOND)[:-1],
    "a huge size": pointer(SECOND).replace(f"size {len(SECOND)}", "size " + "9" * 30),
    "a negative size": pointer(SECOND).replace("size ", "size -"),
    "an older version": pointer(SECOND).replace(
        "git-lfs.github.com/spec/v1", "hawser.github.com/spec/v1"
    ),
    "more lines": pointer(SECOND) + "x y\n",
}


@pytest.mark.parametrize("odd", ODD)
def test_a_pointer_of_another_form_is_refused_since_git_lfs_might_follow_it(repo, agent, odd):
    before = commit_of(repo, "crew-7")
    blob = agent.git("hash-object", "-w", "--stdin", input=ODD[odd])
    agent.git("update-index", "--cacheinfo", f"100644,{blob},big.bin")
    agent.git("commit", "-q", "-m", "odd")
    with raises_code(NotTakenIn, "lfs_content_not_taken_in", "big.bin"):
        state_of(repo, agent.path)
    assert commit_of(repo, "crew-7") == before


def test_a_pointer_in_a_file_that_git_lfs_does_not_have_is_text(repo, agent):
    head = agent.commit({"notes.txt": pointer(SECOND)})
    assert state_of(repo, agent.path).head == head
    assert commit_of(repo, "crew-7") == head


def test_text_becomes_a_pointer_by_new_attributes_only_with_its_content(repo, agent):
    agent.commit({"notes.txt": pointer(SECOND)})
    before = state_of(repo, agent.path).head
    agent.git("-c", "filter.lfs.required=false", "lfs", "track", "*.txt", check=False)
    agent.git("add", ".gitattributes")
    agent.git("commit", "-q", "-m", "track")
    with raises_code(NotTakenIn, "lfs_content_not_taken_in", "notes.txt"):
        state_of(repo, agent.path)
    assert commit_of(repo, "crew-7") == before


def test_a_pointer_of_the_person_without_a_content_does_not_hold_up_the_agent(repo, person, tree):
    person.git("config", "lfs.fetchexclude", "*.bin")
    store_file(repo.common_dir, FIRST).unlink()
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    agent.git("mv", "big.bin", "moved.bin")
    head = agent.commit({"a.txt": "new\n"})
    assert state_of(repo, tree).head == head
    head = agent.commit({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n*.x text\n"})
    assert state_of(repo, tree).head == head


def test_a_person_s_new_pointer_without_a_content_comes_with_a_merge(repo, person, agent):
    save(person)
    store_file(repo.common_dir, SECOND).unlink()
    agent.git("fetch", "-q", str(person.path), "main")
    agent.git(
        "-c",
        "filter.lfs.smudge=",
        "-c",
        "filter.lfs.process=",
        "-c",
        "filter.lfs.required=false",
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "m",
        "FETCH_HEAD",
    )
    state_of(repo, agent.path)
    assert commit_of(repo, "crew-7") == agent.git("rev-parse", "HEAD")


def test_more_and_larger_contents_than_crew_takes_in_are_refused(repo, agent, monkeypatch):
    monkeypatch.setattr(lfs, "LARGEST_TAKEN_IN", len(SECOND) - 1)
    save(agent)
    with raises_code(NotTakenIn, "lfs_content_not_taken_in", "big.bin"):
        state_of(repo, agent.path)
    monkeypatch.undo()
    monkeypatch.setattr(lfs, "MOST_TAKEN_IN", 0)
    with raises_code(NotTakenIn, "lfs_content_not_taken_in", "big.bin"):
        state_of(repo, agent.path)


# Checkpoints


def kept(repo, agent):
    return take_checkpoint(repo, agent.path, "7", label="step", at=1.0)


def test_a_checkpoint_has_pointers_and_is_restored_with_contents(repo, agent, tmp_path):
    save(agent)
    agent.write("a.txt", "not committed\n")
    one = kept(repo, agent)
    assert git(repo.common_dir, "show", f"{one.commit}:big.bin") + "\n" == pointer(SECOND)
    restore(repo, "7", None, tmp_path / "back")
    assert (tmp_path / "back" / "big.bin").read_bytes() == SECOND
    assert (tmp_path / "back" / "a.txt").read_text() == "not committed\n"


@pytest.mark.parametrize("name", ["big.bin", "new.bin"])
def test_an_uncommitted_content_that_the_store_has_is_kept_as_a_pointer(
    repo, person, agent, tmp_path, name
):
    save(person)
    (agent.path / name).write_bytes(SECOND)
    one = kept(repo, agent)
    assert git(repo.common_dir, "show", f"{one.commit}:{name}") + "\n" == pointer(SECOND)
    restore(repo, "7", None, tmp_path / "back")
    assert (tmp_path / "back" / name).read_bytes() == SECOND
    agent.git("checkout", "-q", "-f", ".")
    agent.git("clean", "-qfd")
    restore_into_worktree(repo, agent.path, one.commit)
    assert (agent.path / name).read_bytes() == SECOND


def test_an_uncommitted_content_that_only_the_agent_has_is_kept_whole(repo, agent, tmp_path):
    (agent.path / "big.bin").write_bytes(SECOND)
    kept(repo, agent)
    restore(repo, "7", None, tmp_path / "back")
    assert (tmp_path / "back" / "big.bin").read_bytes() == SECOND


def test_the_content_of_a_commit_that_was_reset_away_is_kept(repo, agent):
    save(agent)
    agent.git("reset", "-q", "--hard", "HEAD~1")
    kept(repo, agent)
    assert store_file(repo.common_dir, SECOND).read_bytes() == SECOND


def test_a_touched_file_costs_a_checkpoint_no_content(repo, agent):
    os.utime(agent.path / "big.bin", (4e9, 4e9))
    agent.write("a.txt", "not committed\n")
    one = kept(repo, agent)
    assert git(repo.common_dir, "show", f"{one.commit}:big.bin") + "\n" == pointer(FIRST)


# Landings and deliveries


def test_a_landing_is_delivered_with_its_contents(repo, person, agent):
    save(agent)
    save(agent, b"new" * 77_777, "more/new.bin")
    commit = landed(repo, agent)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert commit_of(repo, "main") == commit
    assert (person.path / "big.bin").read_bytes() == SECOND
    assert (person.path / "more/new.bin").read_bytes() == b"new" * 77_777
    assert person.git("status", "--porcelain") == ""
    person.git("config", "filter.lfs.process", "false")
    person.git("config", "filter.lfs.clean", "false")
    assert person.git("status", "--porcelain") == ""


def test_a_removed_file_and_one_that_leaves_git_lfs_are_delivered(repo, person, agent):
    agent.git("rm", "-q", "big.bin")
    agent.commit({".gitattributes": "", "plain.bin": "plain\n"})
    landed(repo, agent)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert not (person.path / "big.bin").exists()
    assert (person.path / "plain.bin").read_text() == "plain\n"
    assert person.git("status", "--porcelain") == ""


def test_an_edited_content_is_not_overwritten(repo, person, agent):
    save(agent)
    landed(repo, agent)
    (person.path / "big.bin").write_bytes(b"mine")
    waiting = deliver(repo, "main", hold_s=0)
    assert (waiting.state, "big.bin" in waiting.reason) == ("waiting", True)
    (person.path / "big.bin").write_bytes(FIRST)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "big.bin").read_bytes() == SECOND


def test_a_delivery_without_the_content_waits_and_names_the_command(repo, person, agent):
    save(agent)
    commit = landed(repo, agent)
    store_file(repo.common_dir, SECOND).unlink()
    waiting = deliver(repo, "main", hold_s=0)
    assert (waiting.state, "big.bin" in waiting.reason) == ("waiting", True)
    assert f"lfs fetch origin {commit}" in waiting.remedy


def test_who_has_pointers_in_the_checkout_gets_pointers(repo, person, agent):
    save(agent)
    landed(repo, agent)
    person.git("config", "filter.lfs.smudge", "git-lfs smudge --skip -- %f")
    person.git("config", "filter.lfs.process", "git-lfs filter-process --skip")
    (person.path / "big.bin").unlink()
    person.git("checkout", "-q", "big.bin")
    assert (person.path / "big.bin").read_text() == pointer(FIRST)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "big.bin").read_text() == pointer(SECOND)
    assert person.git("status", "--porcelain") == ""


def test_a_conflict_is_reported_as_binary(repo, person, agent):
    save(agent)
    save(person, b"mine" * 5000)
    head = state_of(repo, agent.path).head
    found = merge(repo, onto=commit_of(repo, "main"), head=head, message="m", at=1)
    assert isinstance(found, MergeConflict)
    assert found.paths == ("big.bin",)
    assert "CONFLICT (binary): big.bin" in found.detail


@pytest.mark.parametrize("favours", ["mine", "theirs"])
@pytest.mark.parametrize("ours", [b"as long", b"y" * len(FIRST), b"longer" * 77_777])
def test_a_favoured_side_of_a_conflict_wins_as_a_whole(repo, person, agent, favours, ours):
    save(agent)
    main = save(person, ours)
    head = state_of(repo, agent.path).head
    done = merge(repo, onto=main, head=head, message="m", at=1, favours=favours)
    assert isinstance(done, Merged)
    wins = SECOND if favours == "mine" else ours
    assert git(repo.common_dir, "show", f"{done.commit}:big.bin") + "\n" == pointer(wins)


def test_a_resolution_that_takes_one_side_drops_nothing(repo, person, agent):
    save(agent)
    main = save(person, b"mine" * 5000)
    ours = state_of(repo, agent.path).head
    sides = {"ours": ours, "theirs": main}
    assert dropped_sides(repo, **sides, result=ours) == ()
    assert dropped_sides(repo, **sides, result=main) == ()


def test_a_conflict_shows_no_hunks_of_pointers(repo, person, agent):
    save(agent)
    main = save(person, b"mine" * 5000)
    ours = state_of(repo, agent.path).head
    assert conflict_sides(repo, ours=ours, theirs=main, paths=("big.bin",)).hunks == ()


# Killed, and begun again

STORY = """
import subprocess, sys
from pathlib import Path
from crew.git.delivery.delivery import deliver
from crew.git.merges.merges import merge
from crew.git.repository import commit_of, find_repository
from crew.git.refs import advance
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of

repo, tree = find_repository(Path(sys.argv[1])), Path(sys.argv[2])
ensure_worktree(repo, tree, branch="crew-7", base="main")
if not (tree / "done").exists():
    (tree / "big.bin").write_bytes(b"second\\0" * 60_000)
    (tree / "done").touch()
    subprocess.run("git add -A && git commit -q -m second", shell=True, cwd=tree, check=True)
head = state_of(repo, tree).head
landed = commit_of(repo, "refs/crew/landed/main")
if landed is None:
    landed = merge(repo, onto="main", head=head, message="m", at=1).commit
    advance(repo, "refs/crew/landed/main", to=landed, expected=None)
ensure_detached(repo, tree.parent / "gate", landed)
print(deliver(repo, "main", hold_s=0).state)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "point",
    [f"git.fill_lfs:{n}" for n in (1, 2, 3)]
    + [f"git.note_lfs:{n}" for n in (1, 2, 3)]
    + ["git.take_in_lfs:1", "git.sync_stage_files:1", "git.sync_refresh:1"],
)
def test_a_story_that_is_killed_and_told_again_ends_the_same(person, repo, tree, point, when):
    name, _, count = point.partition(":")
    for crash_at, codes in ((f"{name}.{when}:{count}", {-9}), ("", {0})):
        env = {**os.environ, "CREW_CRASH_AT": crash_at}
        argv = ["-c", STORY, str(person.path), str(tree)]
        told = warm_python().run(argv, cwd=Path.cwd(), env=env)
        assert told.returncode in codes, told.stderr
    assert (person.path / "big.bin").read_bytes() == SECOND
    assert person.git("status", "--porcelain") == ""
    for folder in (tree, tree.parent / "gate"):
        assert (folder / "big.bin").read_bytes() == SECOND
        assert state_of(repo, folder).changed == ()
        assert not list(folder.rglob(".crew-lfs*"))


def test_an_unfinished_file_of_a_killed_crew_is_written_over(repo, tree):
    tree.mkdir(parents=True)
    fresh = f".crew-lfs-{hashlib.sha256(FIRST).hexdigest()[:16]}"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    for left in (tree / fresh, tree / fresh / "folder"):
        shutil.rmtree(tree / fresh, ignore_errors=True)
        left.parent.mkdir(exist_ok=True)
        left.write_text("half")
        (tree / "big.bin").write_text(pointer(FIRST))
        found = lfs.settle(tree, repo.common_dir / "crew/folders/7", fills=True)
        assert found.same == {"big.bin"}
        assert (tree / "big.bin").read_bytes() == FIRST
        assert (tree / fresh).is_dir() == (left.name == "folder")


# A repository without git-lfs


@pytest.fixture
def starts(monkeypatch):
    """The gits that crew starts."""
    seen, run = [], spawn_git.run

    def counted(argv, **options):
        seen.append(argv[3:])
        return run(argv, **options)

    monkeypatch.setattr(spawn_git, "run", counted)
    return seen


def life_of_a_task(person, tree, starts) -> list[str]:
    """The commands of git that crew starts for a task from its worktree to its delivery."""
    repo = find_repository(person.path)
    starts.clear()
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    agent = Person(tree)
    for name in ("a.txt", "b.txt"):
        agent.commit({name: "new\n"})
        agent.write("c.txt", name)
        state_of(repo, tree)
        kept(repo, agent)
    ensure_detached(repo, tree.parent / "gate", landed(repo, agent))
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    return [one[0] for one in starts if one[0] != "config"]


def test_a_repository_without_git_lfs_pays_nothing(tmp_path, starts):
    """The same gits as without git-lfs on the machine, and one less than with another filter."""
    counts = []
    for name in ("plain", "set up", "other filter"):
        person = Person(tmp_path / name / "repo")
        person.path.mkdir(parents=True)
        person.git("init", "-q")
        person.commit({"a.txt": "a\n", "b.txt": "b\n"})
        if name == "set up":
            subprocess.run(["git", "lfs", "install", "--local"], cwd=person.path, check=True)
        if name == "other filter":
            person.git("config", "filter.other.clean", "cat")
        counts.append(life_of_a_task(person, tmp_path / name / "trees" / "7", starts))
    plain, set_up, other = counts
    assert plain == set_up
    assert not {"ls-files", "check-attr", "rev-list"} & {*plain}
    assert "check-attr" in other
