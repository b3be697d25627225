"""Merges in memory and compare-and-swap."""

import functools
import os
import signal
import threading

import pytest

from crew.git import spawn_git
from crew.git.git_command import GitFailed
from crew.git.merges import conflict_sides
from crew.git.merges.conflict_sides import dropped_sides
from crew.git.merges.merges import (
    MergeConflict,
    Merged,
    Moved,
    Unmergeable,
    advance,
    contains,
    merge,
)
from crew.git.refs import begun_advance
from crew.git.repository import commit_of
from crew.system.file_locks import held


def split(person, ours, theirs):
    """Two commits on top of the same one."""
    base = person.git("rev-parse", "HEAD")
    left = person.commit(ours, "ours")
    person.git("switch", "-q", "--detach", base)
    right = person.commit(theirs, "theirs")
    person.git("switch", "-q", "main")
    return left, right


def test_a_clean_merge_has_both_parents_and_both_sides(repo, person):
    ours, theirs = split(person, {"a.txt": "A\n"}, {"b.txt": "B\n"})
    merged = merge(repo, onto="main", head=theirs, message="merge 7\n\nby A", at=1_700_000_000.9)
    assert isinstance(merged, Merged)
    assert person.git("log", "-1", "--format=%P", merged.commit) == f"{ours} {theirs}"
    assert person.git("show", f"{merged.commit}:b.txt") == "B"
    assert person.git("log", "-1", "--format=%an %ae %ct %s", merged.commit) == (
        "crew crew@localhost 1700000000 merge 7"
    )
    assert person.git("status", "--porcelain") == ""


def test_the_same_merge_gives_the_same_commit(repo, person):
    _, theirs = split(person, {"a.txt": "A\n"}, {"b.txt": "B\n"})
    same = {merge(repo, onto="main", head=theirs, message="m", at=5.0) for _ in range(3)}
    assert len(same) == 1
    assert merge(repo, onto="main", head=theirs, message="m", at=6.0) not in same


def test_a_conflict_names_its_paths_even_strange_ones(repo, person):
    name = "två\nlines.txt"
    ours, theirs = split(person, {name: "A\n", "a.txt": "x\n"}, {name: "B\n", "a.txt": "y\n"})
    conflict = merge(repo, onto=ours, head=theirs, message="m", at=1)
    assert isinstance(conflict, MergeConflict)
    assert sorted(conflict.paths) == ["a.txt", name]
    assert "Merge conflict in a.txt" in conflict.detail


def test_a_file_changed_here_and_deleted_there_is_a_conflict(repo, person):
    ours, _ = split(person, {"a.txt": "A\n"}, {})
    person.git("switch", "-q", "--detach", f"{ours}~1")
    (person.path / "a.txt").unlink()
    theirs = person.commit()
    conflict = merge(repo, onto=ours, head=theirs, message="m", at=1)
    assert isinstance(conflict, MergeConflict)
    assert conflict.paths == ("a.txt",)
    assert "modify/delete" in conflict.detail


def test_a_bad_name_and_unrelated_histories_are_errors_not_conflicts(repo, person):
    with pytest.raises(GitFailed):
        merge(repo, onto="main", head="nothing", message="m", at=1)
    missing = merge(repo, onto="main", head="1" * 40, message="m", at=1)
    assert missing == Unmergeable(reason="the commit 111111111111 is missing or damaged")
    person.git("switch", "-q", "--orphan", "other")
    person.commit({"z": "z"})
    other = merge(repo, onto="main", head="other", message="m", at=1)
    assert other == Unmergeable(reason="its branch has no commit in common with the target")


def test_union_applies_as_the_attributes_of_the_target_say(repo, person):
    before = split(person, {"log.md": "ours\n"}, {"log.md": "theirs\n"})
    plain = merge(repo, onto=before[0], head=before[1], message="m", at=1)
    assert isinstance(plain, MergeConflict)
    person.commit({"doc/.gitattributes": "*.md merge=union\n", "doc/log.md": "start\n"})
    ours, theirs = split(person, {"doc/log.md": "start\nours\n"}, {"doc/log.md": "start\ntheirs\n"})
    merged = merge(repo, onto=ours, head=theirs, message="m", at=1)
    assert isinstance(merged, Merged)
    lines = person.git("show", f"{merged.commit}:doc/log.md").split()
    assert lines == ["start", "ours", "theirs"]


def test_a_file_marked_as_not_mergeable_conflicts_although_its_lines_would_merge(repo, person):
    person.commit({".gitattributes": "*.lock -merge\n", "x.lock": "1\n2\n3\n4\n5\n6\n7\n"})
    ours, theirs = split(
        person, {"x.lock": "one\n2\n3\n4\n5\n6\n7\n"}, {"x.lock": "1\n2\n3\n4\n5\n6\nseven\n"}
    )
    assert isinstance(merge(repo, onto=ours, head=theirs, message="m", at=1), MergeConflict)
    person.git("rm", "-q", ".gitattributes")
    bare = person.commit()
    assert isinstance(merge(repo, onto=bare, head=theirs, message="m", at=1), Merged)


def test_contains_knows_yes_no_and_that_a_missing_commit_is_nowhere(repo, person):
    head = person.commit({"x": "x"})
    assert contains(repo, ancestor="main~1", descendant=head)
    assert not contains(repo, ancestor=head, descendant="main~1")
    assert not contains(repo, ancestor="nothing", descendant=head)
    with pytest.raises(GitFailed):
        contains(repo, ancestor=head, descendant="nothing")


def test_one_of_many_compare_and_swaps_wins(repo, person):
    start = commit_of(repo, "main")
    commits = [person.commit({"x": str(number)}) for number in range(8)]
    advance(repo, "refs/crew/landed/main", to=start, expected=None)
    won, lost = [], []

    def race(commit):
        try:
            advance(repo, "refs/crew/landed/main", to=commit, expected=start)
            won.append(commit)
        except Moved as moved:
            lost.append(moved.at)

    threads = [threading.Thread(target=race, args=(commit,)) for commit in commits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert set(lost) == {commit_of(repo, "refs/crew/landed/main")} == set(won)


def test_moving_a_ref_is_repeatable_and_never_guesses(repo, person):
    first = commit_of(repo, "main")
    second = person.commit({"x": "x"})
    advance(repo, "refs/crew/x", to=first, expected=None)
    advance(repo, "refs/crew/x", to=first, expected=None)
    advance(repo, "refs/crew/x", to=second, expected=first)
    advance(repo, "refs/crew/x", to=second, expected=first)
    with pytest.raises(Moved):
        advance(repo, "refs/crew/x", to=first, expected=first)
    with pytest.raises(Moved):
        advance(repo, "refs/crew/y", to=first, expected=second)
    with pytest.raises(GitFailed):
        advance(repo, "refs/crew/x", to="1" * 40, expected=second)


@pytest.fixture
def begun(repo, person):
    """A move of refs/crew/x that has begun, and the commits it goes from and to."""
    first, second = commit_of(repo, "main"), person.commit({"x": "x"})
    advance(repo, "refs/crew/x", to=first, expected=None)
    with held(repo.common_dir / "lock") as lock:
        move = {"to": second, "expected": first, "keep_open": lock}
        with begun_advance(repo, "refs/crew/x", **move) as git:
            yield functools.partial(advance, repo, "refs/crew/x", **move, begun=git)


def test_a_move_that_has_begun_is_made_without_another_process(repo, begun, monkeypatch):
    monkeypatch.setattr(spawn_git, "_start", None)
    begun()
    monkeypatch.undo()
    assert commit_of(repo, "refs/crew/x") == begun.keywords["to"]
    begun()


def test_a_move_that_has_begun_locks_nothing_and_is_forgotten_with_its_git(repo, begun):
    assert not (repo.common_dir / "refs/crew/x.lock").exists()
    assert begun.keywords["begun"].end() == 0
    assert commit_of(repo, "refs/crew/x") == begun.keywords["expected"]
    begun()
    assert commit_of(repo, "refs/crew/x") == begun.keywords["to"]


def test_a_move_that_has_begun_sees_that_the_ref_was_moved_since(repo, person, begun):
    other = person.commit({"other": "other"})
    advance(repo, "refs/crew/x", to=other, expected=begun.keywords["expected"])
    with pytest.raises(Moved):
        begun()
    assert commit_of(repo, "refs/crew/x") == other


def test_the_lock_of_a_git_killed_in_its_move_is_removed(repo, begun):
    os.kill(begun.keywords["begun"]._pid, signal.SIGKILL)
    (repo.common_dir / "refs/crew/x.lock").write_text(begun.keywords["to"] + "\n")
    begun()
    assert commit_of(repo, "refs/crew/x") == begun.keywords["to"]


def test_a_result_that_lost_one_side_is_told(repo, person):
    name = "a\nb.txt"
    names = (name, "kept.txt", "rewritten.txt", "task's.txt")
    person.commit(dict.fromkeys(names, "base\n"))
    ours, theirs = split(
        person,
        dict.fromkeys(names, "base\nours\n"),
        {**dict.fromkeys(names[:3], "base\ntheirs\n"), "landed.txt": "one\ntwo\n"},
    )
    result = person.commit(
        {
            name: "base\nours\n",
            "kept.txt": "base\nours\ntheirs\n",
            "rewritten.txt": "   theirs\nand more\n",
            "task's.txt": "base\nother\n",
        }
    )
    found = dropped_sides(repo, ours=ours, theirs=theirs, result=result)
    assert {(one.path, one.side, one.loss, one.lines) for one in found} == {
        (name, "landed", "missing", ("theirs",)),
        ("rewritten.txt", "task", "missing", ("ours",)),
        ("landed.txt", "landed", "missing", ("one", "two")),
    }


def test_the_lines_of_a_task_that_landed_are_told_under_its_name(repo, person):
    person.commit({"f": "base\n"})
    ours, landed = split(person, {"f": "base\nours\n"}, {"f": "base\ntheirs\n"})
    theirs = person.git("commit-tree", f"{landed}^{{tree}}", "-p", landed, "-m", "x\n\nTask: 7")
    (found,) = dropped_sides(repo, ours=ours, theirs=theirs, result=ours)
    assert found.owners == ()
    second = person.git("rev-parse", f"{landed}~1")
    merge = person.git(
        *("commit-tree", f"{landed}^{{tree}}", "-p", second, "-p", landed, "-m", "m\n\nTask: 7")
    )
    (found,) = dropped_sides(repo, ours=ours, theirs=merge, result=ours)
    assert (found.side, found.owners) == ("landed", ("7",))


def test_what_git_itself_merges_is_in_order(repo, person):
    lines = [f"line {n}" for n in range(40)]
    person.commit({"f": "\n".join(lines), "old": "a\nb\nc\nd\n", "gone": "x\n", "image": "\0one"})
    first, second = list(lines), list(lines)
    first[3:5], second[30:31] = ["task"], ["landed", "landed"]
    head = person.git("rev-parse", "HEAD")
    person.git("mv", "old", "new")
    person.git("rm", "-q", "gone")
    ours = person.commit({"f": "\n".join(first), "image": "\0two", "empty": ""})
    person.git("checkout", "-q", head)
    theirs = person.commit({"f": "\n".join(second), "old": "a\nb\nC\nd\n"})
    person.git("checkout", "-q", ours)
    person.git("merge", "-q", "--no-edit", theirs)
    result = person.git("rev-parse", "HEAD")
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=result) == ()
    person.git("checkout", "-q", ours)
    person.git("merge", "-q", "--no-edit", "-s", "ours", theirs)
    dropped = person.git("rev-parse", "HEAD")
    found = dropped_sides(repo, ours=ours, theirs=theirs, result=dropped)
    assert {(one.path, one.side) for one in found} == {("f", "landed"), ("old", "landed")}


def test_lines_that_the_result_moved_to_a_new_file_are_not_lost(repo, person):
    person.commit({"f": "base\n"})
    ours, theirs = split(person, {"f": "base\nours\n"}, {"f": "base\ntheirs\n"})
    result = person.commit({"f": "base\nours\n", "g": "theirs\n"})
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=result) == ()


def test_a_submodule_is_of_one_side(repo, person):
    def at(commit: str) -> str:
        person.git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
        person.git("commit", "-q", "-m", "lib")
        return person.git("rev-parse", "HEAD")

    base = at("1" * 40)
    ours = at("2" * 40)
    person.git("checkout", "-q", base)
    theirs = at("3" * 40)
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=ours) == ()
    (found,) = dropped_sides(repo, ours=base, theirs=theirs, result=base)
    assert (found.path, found.loss) == ("lib", "binary")


def test_a_file_too_large_to_be_read_is_of_one_side(repo, person, monkeypatch):
    monkeypatch.setattr(conflict_sides, "LARGEST_JUDGED", 20)
    person.commit({"f": "base\n"})
    ours, theirs = split(person, {"f": "ours\n" * 9}, {"f": "theirs\n" * 9})
    result = person.commit({"f": "ours\ntheirs\n" * 9})
    found = dropped_sides(repo, ours=ours, theirs=theirs, result=result)
    assert {(one.side, one.loss) for one in found} == {("task", "binary"), ("landed", "binary")}
    assert dropped_sides(repo, ours=ours, theirs=theirs, result=ours) == ()


ABOUT_STATE = {
    "a new file": ({}, {".crew/x": "1\n"}, "adds"),
    "other letters": ({}, {".CREW/x": "1\n"}, "adds"),
    "a task": ({}, {".crew/tasks/1.md": "1\n"}, "only people"),
    "a changed task": ({".crew/tasks/1.md": "1\n"}, {".crew/tasks/1.md": "2\n"}, "only people"),
    "the same task": ({".crew/tasks/1.md": "1\n"}, {"new.txt": "1\n"}, ""),
    "nothing of it": ({}, {"crew/x": "1\n", "sub/.crew/x": "1\n"}, ""),
}


@pytest.mark.parametrize("story", ABOUT_STATE.values(), ids=ABOUT_STATE)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_merge_changes_no_file_of_crews_state(repo, person, story, is_packed):
    before, change, reason = story
    if before:
        person.commit(before, "before")
    ours, theirs = split(person, {"a.txt": "A\n"}, change)
    if is_packed:
        person.git("branch", "theirs", theirs)
        person.git("gc", "-q")
    merged = merge(repo, onto=ours, head=theirs, message="m", at=1.0)
    if reason:
        assert isinstance(merged, Unmergeable)
        assert reason in merged.reason
    else:
        assert isinstance(merged, Merged)
