"""Work on removed commits is made again without them, and a rewrite is judged by its content."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from crew.domain.kernel.names import landed_ref, superseded_ref
from crew.git.delivery import delivery
from crew.git.delivery.rewrites import (
    Removal,
    dropped,
    is_rewritten,
    newest_delivered,
    rename,
    renamed,
    replay,
    supersede,
)
from crew.git.merges.merges import contains
from crew.git.repository import ref_tip


def merged(person, branch: str, files: dict[str, str], *, onto: str = "main") -> str:
    """Work on a branch of its own, merged as crew lands it; the merge commit."""
    person.git("switch", "-q", "-c", branch, onto)
    person.commit(files, f"work of {branch}")
    person.git("switch", "-q", onto)
    person.git("merge", "-q", "--no-ff", "-m", f"Merge {branch}", branch)
    return person.git("rev-parse", "HEAD")


def removal(repo, person, was: str, *, given_up=(), offered=()) -> Removal:
    now = person.git("rev-parse", "main")
    made = supersede(repo, "main", now=now, removed=(was,), landed="", branches={})
    return Removal(target="main", superseded=made, given_up=given_up, offered=offered)


def names_in(person, rev: str) -> set[str]:
    return set(person.git("ls-tree", "-r", "--name-only", rev).splitlines())


def subjects(person, revs: str) -> list[str]:
    return person.git("log", "--reverse", "--format=%s by %an", revs).splitlines()


def test_each_commit_of_the_work_is_made_again_with_its_author_and_message(repo, person):
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("switch", "-q", "-c", "two")
    person.commit({"two.txt": "2\n"}, "first of two")
    person.git("config", "user.name", "Ben")
    head = person.commit({"more.txt": "3\n"}, "second of two")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.git("rev-parse", "main")
    done = replay(repo, head, onto=onto, removal=removal(repo, person, was))
    assert not contains(repo, ancestor=was, descendant=done.commit)
    assert names_in(person, done.commit) == names_in(person, onto) | {"two.txt", "more.txt"}
    said = subjects(person, f"{onto}..{done.commit}")
    assert [line.partition(" by ")[0] for line in said] == ["first of two", "second of two"]
    assert said[1].endswith(" by Ben")
    again = replay(repo, head, onto=onto, removal=removal(repo, person, was))
    assert again.commit == done.commit


def test_work_without_removed_commits_stays_as_it_is(repo, person):
    base = person.git("rev-parse", "main")
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("switch", "-q", "-c", "two", base)
    head = person.commit({"two.txt": "2\n"}, "two")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", base)
    assert replay(repo, head, onto=base, removal=removal(repo, person, was)).commit == head


def test_work_that_has_nothing_of_its_own_becomes_the_commit_that_it_is_put_on(repo, person):
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.git("rev-parse", "main")
    assert replay(repo, was, onto=onto, removal=removal(repo, person, was)).commit == onto


def test_work_that_landed_and_was_given_up_is_not_taken_for_removed(repo, person):
    """It is in the integration tip, and so is a later state of its dependent."""
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("branch", "landed")
    first = merged(person, "two", {"two.txt": "2\n"}, onto="landed")
    tip = merged(person, "three", {"two.txt": "2\nand 3\n"}, onto="landed")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.git("rev-parse", "main")
    found = removal(repo, person, was, given_up=(tip,))
    second = replay(repo, person.git("rev-parse", "two"), onto=onto, removal=found)
    assert names_in(person, second.commit) == names_in(person, onto) | {"two.txt"}
    third = replay(repo, person.git("rev-parse", "three"), onto=second.commit, removal=found)
    assert person.git("show", f"{third.commit}:two.txt") == "2\nand 3"
    assert subjects(person, f"{second.commit}..{third.commit}")[0].startswith("work of three")
    assert not contains(repo, ancestor=first, descendant=third.commit)


def test_a_conflict_names_a_commit_whose_merge_leaves_out_what_was_removed(repo, person):
    was = merged(person, "one", {"a.txt": "removed\n", "one.txt": "1\n"})
    person.git("switch", "-q", "-c", "two")
    head = person.commit({"a.txt": "removed and mine\n"}, "two")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.commit({"a.txt": "by a person\n"}, "a person's")
    found = removal(repo, person, was)
    done = replay(repo, head, onto=onto, removal=found)
    assert done.conflict is not None
    assert done.conflict.paths == ("a.txt",)
    assert ref_tip(repo, superseded_ref("main")) is not None
    person.git("switch", "-q", "two")
    assert "CONFLICT" in person.git("merge", "-q", done.superseding, check=False)
    resolved = person.commit({"a.txt": "by a person and mine\n"}, "resolved")
    offered = Removal(target="main", superseded=found.superseded, offered=(done.superseding,))
    last = replay(repo, resolved, onto=onto, removal=offered)
    assert names_in(person, last.commit) == names_in(person, onto)
    assert person.git("show", f"{last.commit}:a.txt") == "by a person and mine"
    assert not contains(repo, ancestor=was, descendant=last.commit)


def test_a_side_that_a_person_chose_wins_in_work_that_is_made_again(repo, person):
    was = merged(person, "one", {"a.txt": "removed\n"})
    person.git("switch", "-q", "-c", "two")
    head = person.commit({"a.txt": "mine\n"}, "two")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.commit({"a.txt": "by a person\n"}, "a person's")
    done = replay(repo, head, onto=onto, removal=removal(repo, person, was), favours="mine")
    assert person.git("show", f"{done.commit}:a.txt") == "mine"


# What a rewrite dropped


def rewritten(repo, person, act) -> list[str]:
    landed = {"1": merged(person, "one", {"one.txt": "1\n2\n3\n"})}
    landed["2"] = was = merged(person, "two", {"two.txt": "x\ny\n"})
    act()
    now = person.git("rev-parse", "main")
    return [task for task, _ in dropped(repo, landed, was=was, now=now)]


def test_only_the_work_that_a_reset_took_away_is_dropped(repo, person):
    assert rewritten(repo, person, lambda: person.git("reset", "-q", "--hard", "HEAD~1")) == ["2"]


def test_a_renamed_file_is_still_there(repo, person):
    def act():
        person.git("mv", "two.txt", "moved.txt")
        person.git("commit", "-q", "--amend", "-m", "with another name")

    assert rewritten(repo, person, act) == []


@pytest.mark.parametrize(("content", "is_dropped"), [("1\n2\n", False), ("3\n", True)])
def test_work_of_which_a_person_kept_less_than_half_is_dropped(repo, person, content, is_dropped):
    def act():
        person.git("reset", "-q", "--hard", "HEAD~2")
        person.commit({"one.txt": content, "two.txt": "x\ny\n"}, "what I keep")

    assert rewritten(repo, person, act) == ["1"] * is_dropped


def test_lines_that_other_work_had_replaced_before_do_not_count(repo, person):
    first = merged(person, "one", {"one.txt": "1\n"})
    was = merged(person, "two", {"one.txt": "2\n"})
    person.git("commit", "-q", "--amend", "-m", "other words")
    person.commit({"b.txt": "b\n"}, "more")
    now = person.git("rev-parse", "main")
    assert dropped(repo, {"1": first, "2": was}, was=was, now=now) == ()


def test_what_to_pick_fits_a_merge_and_an_ordinary_commit(repo, person):
    one, plain = merged(person, "one", {"one.txt": "1\n"}), person.commit({"p.txt": "p\n"}, "plain")
    person.git("reset", "-q", "--hard", "HEAD~2")
    now = person.git("rev-parse", "main")
    found = dict(dropped(repo, {"1": one, "2": plain}, was=plain, now=now))
    assert found == {"1": f"-m 1 {one}", "2": plain}
    for pick in found.values():
        person.git("cherry-pick", *pick.split())
    assert {"one.txt", "p.txt"} <= names_in(person, "main")


def test_what_is_gone_for_good_is_no_fault(repo, person):
    gone, now = "1" * 40, person.git("rev-parse", "main")
    assert dropped(repo, {"1": gone}, was=gone, now=now) == ()
    assert supersede(repo, "main", now=now, removed=(gone,), landed=gone, branches={})
    assert is_rewritten(repo, "main", gone)


# Reflogs


def test_the_reflog_tells_what_the_branch_had(repo, person):
    first, second = person.git("rev-parse", "main"), person.commit({"b.txt": "b\n"}, "b")
    person.git("reset", "-q", "--hard", first)
    assert newest_delivered(repo, "main", ["2" * 40, second, first]) == second
    assert newest_delivered(repo, "other", [second]) == ""


def test_a_new_name_is_proven_by_the_reflog_alone(repo, person):
    tip = person.git("rev-parse", "main")
    person.git("update-ref", landed_ref("main"), tip)
    assert renamed(repo, "main") == ""
    person.git("branch", "copy")
    person.git("branch", "-m", "main", "some/trunk")
    assert renamed(repo, "main") == "some/trunk"
    for _ in range(2):
        rename(repo, "main", "some/trunk")
        assert ref_tip(repo, landed_ref("some/trunk")) == tip
        assert ref_tip(repo, landed_ref("main")) is None
    person.git("branch", "-m", "some/trunk", "other")
    assert (renamed(repo, "main"), renamed(repo, "some/trunk")) == ("other", "other")


# What once went wrong


def test_work_with_a_strange_history_is_made_again_all_the_same(repo, person):
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("switch", "-q", "-c", "two")
    person.git("switch", "-q", "--orphan", "elsewhere")
    person.commit({"orphan.txt": "o\n"}, "an orphan")
    person.git("merge", "-q", "--no-edit", "--allow-unrelated-histories", "two")
    head = person.git("rev-parse", "HEAD")
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.git("rev-parse", "main")
    done = replay(repo, head, onto=onto, removal=removal(repo, person, was))
    assert names_in(person, done.commit) == names_in(person, onto) | {"orphan.txt"}


@pytest.mark.parametrize("author", [b". <a@b> 1700000000 +0000", b"A <a@b> -5 +0000"])
def test_an_author_that_git_would_not_write_becomes_crew(repo, person, author):
    was = merged(person, "one", {"one.txt": "1\n"})
    plain = person.commit({"two.txt": "2\n"}, "two")
    raw = subprocess.run(
        ["git", "cat-file", "commit", plain], cwd=person.path, capture_output=True, check=True
    ).stdout
    odd = re.sub(rb"(?m)^author .*$", b"author " + author, raw)
    hashed = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    made = subprocess.run(hashed, input=odd, cwd=person.path, capture_output=True, check=True)
    person.git("reset", "-q", "--hard", "HEAD~2")
    onto, found = person.git("rev-parse", "main"), removal(repo, person, was)
    done = replay(repo, made.stdout.decode().strip(), onto=onto, removal=found)
    assert names_in(person, done.commit) == names_in(person, onto) | {"two.txt"}


def test_conflicts_at_the_same_time_are_all_kept(repo, person):
    was = merged(person, "one", {"a.txt": "removed\n"})
    heads = []
    for number in range(4):
        person.git("switch", "-q", "-c", f"work-{number}", was)
        heads.append(person.commit({"a.txt": f"mine {number}\n"}, "mine"))
    person.git("switch", "-q", "main")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.commit({"a.txt": "by a person\n"}, "a person's")
    found = removal(repo, person, was)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda head: replay(repo, head, onto=onto, removal=found), heads))
    kept = ref_tip(repo, superseded_ref("main"))
    assert all(contains(repo, ancestor=one.superseding, descendant=kept) for one in done)


@pytest.mark.parametrize(("old", "new"), [("main", "main/v2"), ("main/v2", "main")])
def test_a_name_below_the_old_one_takes_over_what_crew_keeps(repo, person, old, new):
    tip = person.git("rev-parse", "main")
    person.git("update-ref", landed_ref(old), tip)
    rename(repo, old, new)
    assert (ref_tip(repo, landed_ref(new)), ref_tip(repo, landed_ref(old))) == (tip, None)


def test_a_record_of_removed_commits_that_was_deleted_holds_up_no_other_work(repo, person):
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("branch", "backup")
    person.git("reset", "-q", "--hard", "HEAD~1")
    onto = person.git("rev-parse", "main")
    person.git("switch", "-q", "-c", "two")
    head = person.commit({"two.txt": "2\n"}, "two")
    gone = Removal(target="main", superseded="1" * 40, given_up=(was,))
    assert replay(repo, head, onto=onto, removal=gone).commit == head


def test_a_reset_at_the_moment_of_a_delivery_is_not_undone(repo, person, monkeypatch):
    person.git("switch", "-q", "--detach")
    base = person.git("rev-parse", "main")
    person.git("switch", "-q", "main")
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("update-ref", landed_ref("main"), merged(person, "two", {"two.txt": "2\n"}))
    person.git("reset", "-q", "--hard", was)
    person.git("reflog", "expire", "--expire=now", "--all")
    plain = delivery.newest_delivered

    def reset_first(*args):
        person.git("reset", "-q", "--hard", base)
        return plain(*args)

    monkeypatch.setattr(delivery, "newest_delivered", reset_first)
    done = delivery.deliver(repo, "main", last_seen=was)
    assert done.state != "delivered"
    assert names_in(person, "main") == names_in(person, base)


def test_a_reset_before_an_upgrade_is_found_in_the_reflog(repo, person):
    base = person.git("rev-parse", "main")
    was = merged(person, "one", {"one.txt": "1\n"})
    person.git("update-ref", landed_ref("main"), was)
    person.git("reset", "-q", "--hard", base)
    done = delivery.deliver(repo, "main", last_seen="")
    assert (done.state, done.commit) == ("rewritten", was)
