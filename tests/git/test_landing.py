"""Landed work reaches the target branch and changes nothing that is not committed."""

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from crew.domain.kernel.names import landed_ref
from crew.git import spawn_git
from crew.git.delivery import checkout_sync, delivery, running_gits
from crew.git.delivery.delivery import deliver, repair_sync
from crew.git.delivery.landed_refs import integration_tip
from crew.git.delivery.running_gits import can_look
from crew.git.delivery.sync_journal import JOURNAL
from crew.git.merges.merges import Merged, advance, merge
from crew.git.repository import commit_of, find_repository
from crew.system.crash_points import EFFECTS
from git.people import Person


def land(repo, person, files, *, remove=(), name="work"):
    """Another worktree commits on top of the integration ref and lands it."""
    tip = integration_tip(repo, "main")
    place = repo.common_dir.parent.parent / f"lander-{name}-{tip[:8]}"
    person.git("worktree", "add", "-q", "--detach", str(place), tip)
    other = Person(place)
    for gone in remove:
        (place / gone).unlink()
    commit = other.commit(files, name)
    person.git("worktree", "remove", "--force", str(place))
    advance(repo, landed_ref("main"), to=commit, expected=tip)
    return commit


def test_the_integration_ref_starts_at_the_target_and_stays_when_asked_again(repo, person):
    first = integration_tip(repo, "main")
    person.commit({"x": "x"})
    assert first == integration_tip(repo, "main") == commit_of(repo, "main~1")


def test_a_target_that_has_it_all_is_current(repo, person):
    integration_tip(repo, "main")
    assert deliver(repo, "main", hold_s=0).state == "current"
    person.commit({"x": "x"})
    assert deliver(repo, "main", hold_s=0).state == "current"


def test_a_branch_nobody_has_checked_out_is_moved(repo, person):
    person.git("switch", "-q", "-c", "other")
    commit = land(repo, person, {"new.txt": "new\n"})
    delivery = deliver(repo, "main", hold_s=0)
    assert (delivery.state, delivery.commit) == ("delivered", commit)
    assert commit_of(repo, "main") == commit
    assert not (person.path / "new.txt").exists()


def test_a_checkout_follows_and_is_clean(repo, person):
    commit = land(
        repo, person, {"new/deep.txt": "new\n", "a.txt": "changed\n"}, remove=["sub/c.txt"]
    )
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == ""
    assert (person.path / "new/deep.txt").read_text() == "new\n"
    assert not (person.path / "sub").exists()
    assert not (repo.common_dir / "index.lock").exists()
    assert not (repo.common_dir / JOURNAL).exists()
    assert deliver(repo, "main", hold_s=0).state == "current"


def test_a_file_that_may_be_run_is_changed_and_may_still_be_run(repo, person):
    person.write("run.sh", "one\n").chmod(0o755)
    person.commit()
    land(repo, person, {"run.sh": "two\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "run.sh").read_text() == "two\n"
    assert os.access(person.path / "run.sh", os.X_OK)


# What is not committed stays


def test_unrelated_changes_staged_or_not_stay_as_they_are(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n", "new.txt": "new\n"})
    person.write("b.txt", "staged\n")
    person.git("add", "b.txt")
    person.write("b.txt", "staged, then changed\n")
    person.write("sub/c.txt", "changed\n")
    person.write("untracked ü.txt", "u\n")
    before = person.tree()
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    after = person.tree()
    assert after.pop("new.txt") == b"new\n"
    assert after == before | {"a.txt": b"landed\n"}
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("diff", "--cached", "--name-only") == "b.txt"
    assert person.git("show", ":b.txt") == "staged"
    person.git("commit", "-qam", "mine")
    assert person.git("show", "HEAD:a.txt") == "landed"


def changed(person):
    person.write("a.txt", "mine\n")


def staged(person):
    person.write("a.txt", "mine\n")
    person.git("add", "a.txt")


def staged_and_put_back(person):
    staged(person)
    person.write("a.txt", "a1\na2\na3\n")


def deleted(person):
    (person.path / "a.txt").unlink()


def executable(person):
    (person.path / "a.txt").chmod(0o755)


def turned_into_a_link(person):
    deleted(person)
    (person.path / "a.txt").symlink_to("b.txt")


def turned_into_a_folder(person):
    deleted(person)
    person.write("a.txt/mine", "x")


def assumed_unchanged(person):
    person.git("update-index", "--assume-unchanged", "a.txt")
    changed(person)


def untracked(person):
    person.write("new/file.txt", "mine\n")


def untracked_and_identical(person):
    person.write("new/file.txt", "landed\n")


def ignored(person):
    (person.path / ".git" / "info" / "exclude").write_text("new\n")
    untracked(person)


def untracked_file_where_a_folder_goes(person):
    person.write("new", "mine\n")


def link_where_a_folder_goes(person):
    (person.path.parent / "elsewhere").mkdir()
    (person.path / "new").symlink_to("../elsewhere")


def folder_where_a_file_goes(person):
    person.write("new/file.txt/mine", "x")


def merge_unfinished(person):
    person.git("switch", "-q", "-c", "side")
    person.commit({"b.txt": "side\n"})
    person.git("switch", "-q", "main")
    person.git("merge", "-q", "--no-commit", "--no-ff", "side")


def rebase_unfinished(person):
    person.git("rebase", "-q", "--exec", "false", "--root", check=False)


def lock_held(person):
    (person.path / ".git" / "index.lock").write_text("")


OBSTACLES = [
    changed,
    staged,
    staged_and_put_back,
    deleted,
    executable,
    turned_into_a_link,
    turned_into_a_folder,
    assumed_unchanged,
    untracked,
    untracked_and_identical,
    ignored,
    untracked_file_where_a_folder_goes,
    link_where_a_folder_goes,
    folder_where_a_file_goes,
    merge_unfinished,
    rebase_unfinished,
    lock_held,
]


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda obstacle: obstacle.__name__)
def test_a_delivery_waits_and_changes_not_a_byte(repo, person, obstacle):
    integration_tip(repo, "main")
    land(repo, person, {"a.txt": "landed\n", "new/file.txt": "landed\n"})
    obstacle(person)
    before, index = person.tree(), (repo.common_dir / "index").read_bytes()
    main = commit_of(repo, "main")
    delivery = deliver(repo, "main", hold_s=0)
    assert delivery.state == "waiting"
    assert delivery.reason
    assert delivery.remedy
    assert "\n" not in delivery.reason + delivery.remedy
    assert person.tree() == before
    assert (repo.common_dir / "index").read_bytes() == index
    assert commit_of(repo, "main") == delivery.commit == main
    assert not (repo.common_dir / JOURNAL).exists()
    assert (repo.common_dir / "index.lock").exists() == (obstacle is lock_held)


@pytest.mark.parametrize("obstacle", [changed, staged, staged_and_put_back, deleted])
def test_the_reason_names_the_file(repo, person, obstacle):
    land(repo, person, {"a.txt": "landed\n"})
    obstacle(person)
    assert "a.txt" in deliver(repo, "main", hold_s=0).reason


def test_a_delivery_that_waited_is_made_when_the_way_is_free(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n"})
    person.write("a.txt", "mine\n")
    assert deliver(repo, "main", hold_s=0).state == "waiting"
    person.git("checkout", "-q", "a.txt")
    assert deliver(repo, "main", hold_s=0).commit == commit


def test_a_filter_is_left_to_the_person(repo, person):
    person.git("config", "filter.crypt.clean", "cat")
    land(repo, person, {".gitattributes": "*.key filter=crypt\n", "x.key": "k\n"})
    assert "filter 'crypt'" in deliver(repo, "main", hold_s=0).reason


@pytest.fixture
def library(tmp_path) -> Person:
    """A repository that can be a submodule."""
    made = Person(tmp_path / "library")
    made.path.mkdir()
    made.git("init", "-q")
    made.commit({"l": "l1\n"})
    return made


ALLOWED = ("-c", "protocol.file.allow=always")


def _land_head(repo, person, change):
    """Land a commit that is made in a clone, with the checkout as it was."""
    tip = integration_tip(repo, "main")
    clone = Person(person.path.parent / f"clone-{tip[:8]}")
    person.git("clone", "-q", "--no-local", str(person.path), str(clone.path))
    clone.git("reset", "-q", "--hard", tip)
    change(clone)
    commit = clone.commit()
    person.git("fetch", "-q", str(clone.path), commit)
    advance(repo, landed_ref("main"), to=commit, expected=tip)
    return commit


def _adding(library, path="lib"):
    url = str(library.path)
    return lambda clone: clone.git(*ALLOWED, "submodule", "--quiet", "add", url, path)


def _leading_to(name):
    def change(who):
        (who.path / "link").unlink(missing_ok=True)
        (who.path / "link").symlink_to(name)

    return change


@pytest.mark.parametrize(
    ("target", "state", "shown"),
    [("a.txt", "delivered", "b.txt"), ("sub/c.txt", "waiting", "sub/c.txt")],
)
def test_a_link_is_delivered_unless_the_person_changed_it(repo, person, target, state, shown):
    _leading_to("a.txt")(person)
    person.commit()
    _land_head(repo, person, _leading_to("b.txt"))
    _leading_to(target)(person)
    assert deliver(repo, "main", hold_s=0).state == state
    assert os.readlink(person.path / "link") == shown  # noqa: PTH115 - as a text


def _pointing(library):
    commit = library.commit({"l": "l2\n"})
    return lambda clone: clone.git("update-index", "--cacheinfo", f"160000,{commit},lib")


@pytest.mark.parametrize("path", ["lib", "deps/lib"])
def test_a_submodule_is_delivered_and_the_command_that_fills_it_works(repo, person, library, path):
    commit = _land_head(repo, person, _adding(library, path))
    delivery = deliver(repo, "main", hold_s=0)
    assert (delivery.state, delivery.commit, delivery.reason) == ("delivered", commit, "")
    assert delivery.remedy.endswith(f" -- {path}")
    assert person.git("status", "--porcelain") == ""
    assert list((person.path / path).iterdir()) == []
    person.git("config", "--global", "protocol.file.allow", "always")
    subprocess.run(delivery.remedy, shell=True, check=True, capture_output=True)
    assert (person.path / path / "l").read_text() == "l1\n"
    later = land(repo, person, {"a.txt": "later\n"})
    assert deliver(repo, "main", hold_s=0).commit == later


def test_a_submodule_that_moves_leaves_its_checkout_alone(repo, person, library):
    _land_head(repo, person, _adding(library))
    deliver(repo, "main", hold_s=0)
    person.git(*ALLOWED, "submodule", "--quiet", "update", "--init")
    person.write("lib/l", "mine\n")
    before = person.tree()
    commit = _land_head(repo, person, _pointing(library))
    delivery = deliver(repo, "main", hold_s=0)
    assert (delivery.state, delivery.commit) == ("delivered", commit)
    assert "submodule update" in delivery.remedy
    assert person.tree() == before
    assert person.git("ls-files", "-s", "lib").split()[1] == library.git("rev-parse", "HEAD")


def test_a_submodule_that_goes_takes_nothing_of_the_person_with_it(repo, person, library):
    _land_head(repo, person, _adding(library))
    deliver(repo, "main", hold_s=0)
    _land_head(repo, person, lambda clone: clone.git("rm", "-q", "lib"))
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert not (person.path / "lib").exists()
    assert person.git("status", "--porcelain") == ""


def _replaced(clone):
    clone.git("rm", "-q", "lib")
    clone.write("lib/own.txt", "a file\n")


@pytest.mark.parametrize("is_filled", [False, True])
def test_files_in_the_place_of_a_submodule_wait_only_if_it_is_checked_out(
    repo, person, library, is_filled
):
    _land_head(repo, person, _adding(library))
    deliver(repo, "main", hold_s=0)
    if is_filled:
        person.git(*ALLOWED, "submodule", "--quiet", "update", "--init")
    before = person.tree()
    _land_head(repo, person, _replaced)
    delivery = deliver(repo, "main", hold_s=0)
    if is_filled:
        assert "submodule lib is checked out" in delivery.reason
        assert person.tree() == before
        person.git("submodule", "--quiet", "deinit", "-f", "lib")
        delivery = deliver(repo, "main", hold_s=0)
    assert delivery.state == "delivered"
    assert (person.path / "lib" / "own.txt").read_text() == "a file\n"
    assert person.git("status", "--porcelain") == ""


@pytest.mark.parametrize("files", [{"lib/a.txt": "new\n"}, {}])
def test_a_file_below_a_folder_that_became_a_link_stays(repo, person, tmp_path, files):
    """The link leads out of the checkout, to a file with the content that git knows."""
    person.commit({"lib/a.txt": "old\n"})
    land(repo, person, files, remove=() if files else ("lib/a.txt",))
    elsewhere = tmp_path / "elsewhere"
    (person.path / "lib").rename(elsewhere)
    (person.path / "lib").symlink_to(elsewhere)
    delivery = deliver(repo, "main", hold_s=0)
    assert (delivery.state, (elsewhere / "a.txt").read_text()) == ("waiting", "old\n")
    assert "lib is in the way" in delivery.reason


def test_a_submodule_waits_for_files_that_lie_in_its_place(repo, person, library):
    person.write("lib/mine.txt", "mine\n")
    _land_head(repo, person, _adding(library))
    assert "lib/mine.txt is in the way" in deliver(repo, "main", hold_s=0).reason
    (person.path / "lib" / "mine.txt").rename(person.path / "elsewhere")
    assert deliver(repo, "main", hold_s=0).state == "delivered"


def test_files_and_folders_may_take_each_others_place(repo, person):
    tip = integration_tip(repo, "main")
    person.git("switch", "-q", "--detach")
    (person.path / "a.txt").unlink()
    (person.path / "sub" / "c.txt").unlink()
    (person.path / "sub").rmdir()
    (person.path / "link\nü").symlink_to("b.txt")
    person.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    commit = person.commit({"a.txt/inside": "x\n", "sub": "file\n"})
    expected = person.tree()
    person.git("switch", "-q", "main")
    advance(repo, landed_ref("main"), to=commit, expected=tip)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.tree() == expected
    assert person.git("status", "--porcelain") == ""
    assert (person.path / "link\nü").is_symlink()
    assert os.access(person.path / "run.sh", os.X_OK)


def test_line_ends_are_written_as_the_landed_attributes_say(repo, person):
    land(repo, person, {".gitattributes": "*.win text eol=crlf\n", "x.win": "one\ntwo\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "x.win").read_bytes() == b"one\r\ntwo\r\n"
    assert person.git("status", "--porcelain") == ""
    land(repo, person, {"x.win": "one\ntwo\nthree\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"


# Other places


@pytest.mark.parametrize("setting", ["attribute", "autocrlf"])
@pytest.mark.parametrize("is_edited", [False, True])
def test_a_file_whose_line_ends_git_would_convert_is_delivered_unless_it_was_edited(
    repo, person, setting, is_edited
):
    person.commit({"w.txt": "one\r\n", "v.txt": "one\r\n"})
    if setting == "autocrlf":
        person.git("config", "core.autocrlf", "input")
    else:
        person.commit({".gitattributes": "* text=auto\n"})
    if is_edited:
        (person.path / "w.txt").write_bytes(b"one\r\nmine\r\n")
    land(repo, person, {"w.txt": "one\ntwo\n", "v.txt": "one\r\ntwo\r\n"})
    assert deliver(repo, "main", hold_s=0.01).state == ("waiting" if is_edited else "delivered")
    kept = b"one\r\nmine\r\n" if is_edited else b"one\ntwo\n"
    assert (person.path / "w.txt").read_bytes() == kept
    assert person.git("status", "--short").strip() == ("M w.txt" if is_edited else "")


def test_a_linked_worktree_of_a_person_follows_too(repo, person, tmp_path):
    person.git("switch", "-q", "--detach")
    side = Person(tmp_path / "side tree")
    person.git("worktree", "add", "-q", str(side.path), "main")
    side.write("b.txt", "mine\n")
    commit = land(repo, person, {"a.txt": "landed\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert side.git("rev-parse", "HEAD") == commit
    assert side.git("status", "--porcelain") == "M b.txt"
    assert (person.path / "a.txt").read_text() == "a1\na2\na3\n"


def test_a_target_checked_out_twice_or_in_a_lost_place_waits(repo, person, tmp_path):
    land(repo, person, {"a.txt": "landed\n"})
    side = tmp_path / "side"
    person.git("worktree", "add", "-q", "--force", str(side), "main")
    assert "and" in deliver(repo, "main", hold_s=0).reason
    person.git("switch", "-q", "--detach")
    side.rename(tmp_path / "moved")
    assert "cannot be found" in deliver(repo, "main", hold_s=0).reason


def test_a_bare_repository_is_delivered_by_moving_the_branch(person, tmp_path):
    bare = tmp_path / "bare.git"
    person.git("clone", "-q", "--bare", str(person.path), str(bare))
    repo = find_repository(bare)
    commit = land(repo, Person(bare), {"x": "x\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert commit_of(repo, "main") == commit


def test_a_checkout_that_is_called_bare_is_still_a_checkout(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n"})
    person.git("config", "core.bare", "true")
    told = deliver(repo, "main", hold_s=0)
    assert told.state == "waiting"
    assert "core.bare false" in told.remedy
    person.git("config", "core.bare", "false")
    assert deliver(repo, "main", hold_s=0).commit == commit


def test_commits_of_others_make_it_diverged_until_they_are_merged_in(repo, person):
    landed = land(repo, person, {"a.txt": "landed\n"})
    theirs = person.commit({"b.txt": "person\n"})
    assert deliver(repo, "main", hold_s=0).state == "diverged"
    merged = merge(repo, onto=landed, head=theirs, message="take main in", at=1)
    assert isinstance(merged, Merged)
    advance(repo, landed_ref("main"), to=merged.commit, expected=landed)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "a.txt").read_text() == "landed\n"


def test_a_target_that_was_deleted_waits(repo, person):
    land(repo, person, {"a.txt": "landed\n"})
    person.git("switch", "-q", "--detach")
    person.git("branch", "-D", "main")
    told = deliver(repo, "main", hold_s=0)
    assert "no longer exists" in told.reason
    assert told.remedy.endswith("git branch main refs/crew/landed/main")


def test_a_target_that_was_deleted_is_over_once_another_branch_has_what_landed(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n"})
    person.git("switch", "-q", "-c", "trunk")
    person.git("branch", "-D", "main")
    assert deliver(repo, "main", landed=frozenset({commit}), hold_s=0).state == "waiting"
    person.git("merge", "-q", landed_ref("main"))
    to_land = person.git("commit-tree", "-m", "green", "-p", commit, f"{commit}^{{tree}}")
    believed = frozenset({commit, to_land})
    assert deliver(repo, "main", landed=believed, hold_s=0).state == "waiting"
    told = deliver(repo, "main", landed=frozenset({commit}), hold_s=0)
    assert (told.state, told.commit) == ("over", commit)
    assert commit_of(repo, landed_ref("main")) is None
    assert deliver(repo, "main", landed=frozenset({commit}), hold_s=0).state == "over"


# A person in the very same moment


def at_the_moment(monkeypatch, name, act):
    """Let somebody act just before one step of a sync."""
    step = getattr(checkout_sync, name)

    def after_acting(*args, **kwargs):
        act()
        return step(*args, **kwargs)

    monkeypatch.setattr(checkout_sync, name, after_acting)


@pytest.mark.parametrize("moment", ["_next_index", "_stage_files", "check_free", "_refresh"])
def test_whatever_takes_time_is_done_before_the_index_is_locked(repo, person, monkeypatch, moment):
    land(repo, person, {"a.txt": "landed\n"})
    lock, seen = person.path / ".git" / "index.lock", []
    at_the_moment(monkeypatch, moment, lambda: seen.append(lock.exists()))
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert True not in seen
    assert seen


def test_no_process_is_started_while_the_index_is_locked(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n", "new.txt": "landed\n"})
    lock, seen, start = person.path / ".git" / "index.lock", [], spawn_git._start

    def look_and_start(*args):
        seen.append(lock.exists())
        return start(*args)

    monkeypatch.setattr(spawn_git, "_start", look_and_start)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert set(seen) == {False}
    assert person.git("diff-files") == ""


def test_nothing_can_move_the_branch_while_files_are_placed(repo, person, monkeypatch):
    """Else the files would be taken back, and an edit made meanwhile would keep landed lines."""
    commit, refused = land(repo, person, {"new.txt": "new\n"}), []
    started = commit_of(repo, "main")

    def move():
        tree = person.git("rev-parse", "main^{tree}")
        other = person.git("commit-tree", "-p", started, "-m", "other", tree)
        refused.append(person.git("update-ref", "refs/heads/main", other, check=False))

    at_the_moment(monkeypatch, "place_all", move)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (refused, commit_of(repo, "main")) == ([""], commit)


def test_a_command_that_starts_late_is_seen_just_before_the_lock(repo, person, monkeypatch, slow):
    land(repo, person, {"a.txt": "landed\n"})
    monkeypatch.setattr(checkout_sync, "QUIET_PATIENCE_S", 60)
    began, ended = [], []
    start = functools.partial(subprocess.Popen, [slow, "0.4"], cwd=person.path)
    next_index = checkout_sync._next_index

    def made_beside_a_command(*args, **kwargs):
        began.append(start())
        return next_index(*args, **kwargs)

    monkeypatch.setattr(checkout_sync, "_next_index", made_beside_a_command)
    at_the_moment(monkeypatch, "_take_index_lock", lambda: ended.extend(c.poll() for c in began))
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert set(ended) == {0}


def test_an_index_that_changes_all_the_time_is_refreshed_all_the_same(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n"})

    def change():
        if commit_of(repo, "main") == commit_of(repo, landed_ref("main")):
            os.utime(person.path / ".git" / "index")

    at_the_moment(monkeypatch, "_take_index_lock", change)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.git("diff-files") == ""


@pytest.fixture
def slow(monkeypatch, tmp_path):
    """A git command of another program; what this process starts would count as crew's own."""
    if not can_look():
        pytest.skip("only /proc shows what other programs do")
    monkeypatch.setattr(
        running_gits, "_is_ours", lambda pid: b"git-slow" not in running_gits._stat(pid)
    )
    return shutil.copy(shutil.which("sleep"), tmp_path / "git-slow")


def test_the_lock_is_held_until_a_command_that_may_have_read_the_index_has_ended(
    repo, person, monkeypatch, slow
):
    land(repo, person, {"a.txt": "landed\n"})
    began, ended = [], []
    start = functools.partial(subprocess.Popen, [slow, "0.4"], cwd=person.path)
    at_the_moment(monkeypatch, "_install_index", lambda: began or began.append(start()))
    at_the_moment(monkeypatch, "_unlock_index", lambda: ended.append(began[0].poll()))
    assert deliver(repo, "main", hold_s=60).state == "delivered"
    assert (set(ended), began[0].wait()) == ({0}, 0)


def test_a_command_at_work_ends_undisturbed_before_the_index_is_locked(
    repo, person, monkeypatch, slow
):
    land(repo, person, {"a.txt": "landed\n"})
    monkeypatch.setattr(checkout_sync, "QUIET_PATIENCE_S", 60)
    with subprocess.Popen([slow, "0.4"], cwd=person.path) as command:
        ended = []
        at_the_moment(monkeypatch, "_take_index_lock", lambda: ended.append(command.poll()))
        assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert set(ended) == {0}


def test_a_command_that_does_not_end_holds_up_a_delivery_for_a_bounded_time(
    repo, person, monkeypatch, slow
):
    monkeypatch.setattr(checkout_sync, "QUIET_PATIENCE_S", 0.1)
    land(repo, person, {"a.txt": "landed\n"})
    with subprocess.Popen([slow, "600"], cwd=person.path) as endless:
        try:
            assert deliver(repo, "main", hold_s=0.1).state == "delivered"
            assert endless.poll() is None
        finally:
            endless.kill()


def test_without_a_look_at_other_programs_the_lock_is_held_for_a_while(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n"})
    slept = []
    monkeypatch.setattr(checkout_sync, "can_look", lambda: False)
    monkeypatch.setattr(
        checkout_sync, "time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)
    )
    assert deliver(repo, "main", hold_s=0.3).state == "delivered"
    assert slept == [0.3]


def test_a_merge_that_begins_while_a_delivery_is_prepared_is_waited_for(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n"})
    merging = repo.common_dir / "MERGE_HEAD"
    before = person.tree()
    at_the_moment(monkeypatch, "_refuse_moved", lambda: merging.write_text(f"{'1' * 40}\n"))
    assert "merge is unfinished" in deliver(repo, "main", hold_s=0).reason
    assert person.tree() == before
    assert not (repo.common_dir / "index.lock").exists()


@pytest.mark.parametrize("moment", ["_stage_files", "_await_index_lock"])
def test_an_index_that_changes_while_a_delivery_is_prepared_is_taken_anew(
    repo, person, monkeypatch, moment
):
    land(repo, person, {"a.txt": "landed\n"})
    person.write("mine.txt", "mine\n")
    staged = []

    def stage_once():
        if not staged:
            staged.append(person.git("add", "mine.txt"))

    at_the_moment(monkeypatch, moment, stage_once)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.git("diff", "--cached", "--name-only") == "mine.txt"


def test_an_index_that_was_written_back_as_it_was_is_mended(repo, person):
    person.commit({"gone.txt": "old\n"})
    index = person.path / ".git" / "index"
    land(repo, person, {"a.txt": "landed\n", "new.txt": "new\n"}, remove=["gone.txt"])
    stale = index.read_bytes()
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    index.write_bytes(stale)
    assert person.git("status", "--porcelain") != ""
    assert deliver(repo, "main", hold_s=0).state == "current"
    assert person.git("status", "--porcelain") == ""


def test_an_old_index_stays_if_the_person_has_edited_a_file_since(repo, person):
    index = person.path / ".git" / "index"
    land(repo, person, {"a.txt": "landed\n", "new.txt": "new\n"})
    stale = index.read_bytes()
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    index.write_bytes(stale)
    person.write("a.txt", "mine\n")
    before = person.git("diff", "--cached", "--name-only")
    assert deliver(repo, "main", hold_s=0).state == "current"
    assert person.git("diff", "--cached", "--name-only") == before != ""
    assert (person.path / "a.txt").read_text() == "mine\n"


def test_what_a_person_unstaged_of_a_delivery_is_not_taken_for_a_stale_index(repo, person):
    land(repo, person, {"a.txt": "landed\n", "new.txt": "new\n"})
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    person.git("rm", "-q", "new.txt")
    before = person.git("status", "--porcelain")
    assert deliver(repo, "main", hold_s=0).state == "current"
    assert person.git("status", "--porcelain") == before != ""


@pytest.mark.parametrize("moment", ["_next_index", "_stage_files", "place_all", "advance"])
def test_an_edit_in_any_moment_of_a_delivery_survives(repo, person, monkeypatch, moment):
    land(repo, person, {"a.txt": "landed\n", "b.txt": "landed\n", "new.txt": "landed\n"})
    at_the_moment(monkeypatch, moment, lambda: person.write("b.txt", "my edit\n"))
    delivery = deliver(repo, "main", hold_s=0)
    assert (person.path / "b.txt").read_text() == "my edit\n"
    if moment != "advance":
        assert delivery.state == "waiting"
        assert (person.path / "a.txt").read_text() == "a1\na2\na3\n"
        assert not (person.path / "new.txt").exists()
        assert person.git("status", "--porcelain") == "M b.txt"
    assert not (repo.common_dir / "index.lock").exists()


def test_an_edit_through_a_file_that_was_open_before_survives(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n"})
    with (person.path / "a.txt").open("a") as editor:

        def write():
            editor.write("typed\n")
            editor.flush()

        at_the_moment(monkeypatch, "_refresh", write)
        assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert (person.path / "a.txt").read_text() == "landed\n"
    kept = next(person.path.glob("a.txt.before-crew-*"))
    assert kept.read_text() == "a1\na2\na3\ntyped\n"


def test_a_file_that_appears_in_the_moment_of_a_delivery_survives(repo, person, monkeypatch):
    land(repo, person, {"a.txt": "landed\n", "new.txt": "landed\n"})
    at_the_moment(monkeypatch, "place_all", lambda: person.write("new.txt", "mine\n"))
    assert deliver(repo, "main", hold_s=0).state == "waiting"
    assert person.tree()["new.txt"] == b"mine\n"
    assert person.tree()["a.txt"] == b"a1\na2\na3\n"


def test_a_branch_that_moves_in_the_moment_of_a_delivery_is_not_overwritten(
    repo, person, monkeypatch
):
    land(repo, person, {"a.txt": "landed\n"})
    tree = person.git("rev-parse", "main^{tree}")
    other = person.git("commit-tree", "-p", "main", "-m", "other", tree)
    placed, move = [], lambda: person.git("update-ref", "refs/heads/main", other)
    at_the_moment(monkeypatch, "_lock_branch", move)
    at_the_moment(monkeypatch, "place_all", lambda: placed.append("a file"))
    assert deliver(repo, "main", hold_s=0).state == "diverged"
    assert (commit_of(repo, "main"), placed) == (other, [])
    assert person.git("status", "--porcelain") == ""


def test_somebody_who_checks_the_target_out_while_it_moves_gets_it_whole(repo, person, monkeypatch):
    commit = land(repo, person, {"a.txt": "landed\n"})
    person.git("switch", "-q", "-c", "other")
    move = delivery.advance

    def switched_in_between(*args, **kwargs):
        person.git("switch", "-q", "main")
        move(*args, **kwargs)

    monkeypatch.setattr(delivery, "advance", switched_in_between)
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == ""


# Killed half-way


@pytest.mark.parametrize("point", ["git.advance.after", "git.sync_place_folders.before"])
def test_a_killed_delivery_of_a_submodule_alone_is_finished(repo, person, library, point):
    _land_head(repo, person, _adding(library))
    deliver(repo, "main", hold_s=0)
    commit = _land_head(repo, person, _pointing(library))
    assert deliver_and_die(person, point).returncode == -9
    repair_sync(repo)
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == ""


DELIVER = """
import sys
from pathlib import Path
from crew.git.delivery.delivery import deliver
from crew.git.repository import find_repository
print(deliver(find_repository(Path(sys.argv[1])), "main", hold_s=0).state)
"""


def deliver_and_die(person, point):
    return subprocess.run(
        [sys.executable, "-c", DELIVER, str(person.path)],
        env={**os.environ, "CREW_CRASH_AT": point},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_killed_delivery_leaves_no_lock_on_the_target(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n"})
    assert deliver_and_die(person, "git.advance.before").returncode == -9
    lock = repo.common_dir / "refs" / "heads" / "main.lock"
    lock.write_text(f"{commit}\n")
    repair_sync(repo)
    assert not lock.exists()
    assert deliver(repo, "main", hold_s=0).state == "delivered"


POINTS = [
    "git.sync_journal.before",
    "git.sync_journal.after",
    "git.sync_lock_index.before",
    "git.sync_lock_index.after",
    "git.sync_lock_index.after:2",
    "git.sync_next_index.before",
    "git.sync_next_index.after",
    "git.write_attributes.before",
    "git.write_attributes.after",
    "git.sync_stage_files.before",
    "git.sync_stage_files.after",
    "git.sync_seen.before",
    "git.sync_seen.after",
    "git.sync_set_aside.before",
    "git.sync_set_aside.after",
    "git.sync_set_aside.after:2",
    "git.sync_set_aside.after:3",
    "git.sync_place.before",
    "git.sync_place.after",
    "git.sync_place.after:2",
    "git.sync_place.after:3",
    "git.advance.before",
    "git.advance.after",
    "git.sync_refresh.before",
    "git.sync_refresh.after",
    "git.sync_install_index.before",
    "git.sync_install_index.after",
    "git.sync_install_index.after:2",
    "git.sync_log_head.before",
    "git.sync_log_head.after",
    "git.sync_place_folders.before",
    "git.sync_place_folders.after",
    "git.sync_unlock_index.before",
    "git.sync_unlock_index.after",
    "git.sync_delete_staging.before",
    "git.sync_delete_staging.after",
    "git.sync_forget.before",
    "git.sync_forget.after",
]


def test_every_effect_of_a_delivery_is_a_point_to_die_at():
    covered = {point.rsplit(".", 1)[0] for point in POINTS}
    undoing = {"git.sync_unplace", "git.sync_put_back", "git.sync_rescue"}
    assert {name for name in EFFECTS if name.startswith("git.sync_")} - undoing <= covered


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_delivery_is_undone_or_finished(repo, person, point):
    commit = land(
        repo,
        person,
        {"a.txt": "landed\n", "b.txt": "landed\n", "new/x.txt": "landed\n"},
        remove=["sub/c.txt"],
    )
    person.write("mine.txt", "staged\n")
    person.git("add", "mine.txt")
    person.write("mine.txt", "staged, then changed\n")
    before = person.tree()
    died = deliver_and_die(person, point)
    assert died.returncode == -9, died.stderr
    repair_sync(repo)
    repair_sync(repo)
    assert not (repo.common_dir / "index.lock").exists()
    assert not (repo.common_dir / JOURNAL).exists()
    assert not (repo.common_dir / "crew-sync").exists()
    if commit_of(repo, "main") == commit:
        assert (person.path / "a.txt").read_text() == "landed\n"
    else:
        assert person.tree() == before
    assert person.git("status", "--porcelain") == "AM mine.txt"
    assert person.git("show", ":mine.txt") == "staged"
    assert deliver(repo, "main", hold_s=0).state in {"delivered", "current"}
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == "AM mine.txt"
    assert (person.path / "mine.txt").read_text() == "staged, then changed\n"
    assert not (person.path / "sub").exists()


UNDO_POINTS = [
    "git.sync_unplace.before",
    "git.sync_unplace.after",
    "git.sync_put_back.before",
    "git.sync_put_back.after",
    "git.sync_unlock_index.before",
]


@pytest.mark.parametrize("point", UNDO_POINTS)
def test_a_repair_that_is_killed_too_is_repaired(repo, person, point):
    land(repo, person, {"a.txt": "landed\n", "b.txt": "landed\n", "new.txt": "landed\n"})
    before = person.tree()
    assert deliver_and_die(person, "git.advance.before").returncode == -9
    assert deliver_and_die(person, point).returncode == -9
    repair_sync(repo)
    assert person.tree() == before
    assert person.git("status", "--porcelain") == ""


def test_work_done_between_the_kill_and_the_repair_stays(repo, person):
    land(repo, person, {"a.txt": "landed\n", "b.txt": "landed\n"})
    assert deliver_and_die(person, "git.advance.before").returncode == -9
    with (person.path / "a.txt").open("a") as file:
        file.write("and mine\n")
    repair_sync(repo)
    assert (person.path / "a.txt").read_text() == "landed\nand mine\n"
    assert (person.path / "b.txt").read_text() == "b\n"
    assert deliver(repo, "main", hold_s=0).state == "waiting"


def test_a_lock_that_somebody_else_took_since_is_not_removed(repo, person):
    land(repo, person, {"a.txt": "landed\n"})
    assert deliver_and_die(person, "git.sync_lock_index.after").returncode == -9
    lock = repo.common_dir / "index.lock"
    lock.unlink()
    lock.write_text("DIRC of another git")
    repair_sync(repo)
    assert lock.read_text() == "DIRC of another git"


def test_an_index_left_behind_by_a_kill_is_brought_up_even_after_the_lock_was_removed(repo, person):
    commit = land(repo, person, {"a.txt": "landed\n", "new.txt": "landed\n"})
    assert deliver_and_die(person, "git.sync_install_index.before").returncode == -9
    (repo.common_dir / "index.lock").unlink()
    person.write("b.txt", "mine\n")
    person.git("add", "b.txt")
    repair_sync(repo)
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == "M  b.txt"


def test_a_journal_of_a_checkout_that_is_gone_is_forgotten(repo, person, tmp_path):
    land(repo, person, {"a.txt": "landed\n"})
    assert deliver_and_die(person, "git.advance.before").returncode == -9
    journal = repo.common_dir / JOURNAL
    gone = json.loads(journal.read_text()) | {"path": str(tmp_path / "gone")}
    journal.write_text(json.dumps(gone))
    repair_sync(repo)
    assert not journal.exists()
