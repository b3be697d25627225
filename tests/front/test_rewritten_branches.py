"""What becomes of delivered and of waiting work when a person rewrites the branch."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from front.conftest import CliScene, commit_in, refs, until

KILLED = -9
BEFORE_DELIVERY = {"CREW_CRASH_AT": "git.sync_journal.before"}
AFTER_DELIVERY = {"CREW_CRASH_AT": "git.sync_install_index.after"}


def deliver(scene, *titles: str) -> list[str]:
    tasks = [scene.ok("new", "--title", title).out.strip() for title in titles]
    scene.ok("run", "--drain", "-q")
    assert [scene.status(task) for task in tasks] == ["merged"] * len(tasks)
    return tasks


def files_on(scene, rev: str = "main") -> set[str]:
    names = scene.git("ls-tree", "--name-only", rev).splitlines()
    return {name for name in names if name.startswith("file-")}


def dropped(scene, task: str):
    return scene.ok("show", task, "--json").json["dropped_at"]


def _reset(scene) -> None:
    scene.git("reset", "-q", "--hard", "HEAD~1")


def _amend(scene) -> None:
    scene.git("commit", "-q", "--amend", "-m", "my words")


def _pull_rebase(scene) -> None:
    """Somebody else's commit below, and no merge commits any more."""
    scene.git("branch", "-q", "upstream", "start")
    scene.git("switch", "-q", "upstream")
    commit_in(scene.root, "theirs", "theirs\n")
    scene.git("switch", "-q", "main")
    scene.git("rebase", "-q", "upstream")


def _squash(scene) -> None:
    scene.git("reset", "-q", "--soft", "start")
    scene.git("commit", "-q", "-m", "all of it in one commit")


def _filter(scene) -> None:
    """As `git filter-repo`: every commit is another one, and no old one is left."""
    change = [
        "filter-branch",
        "-f",
        "--env-filter",
        "GIT_AUTHOR_NAME=Other; export GIT_AUTHOR_NAME",
    ]
    env = {**os.environ, "FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(
        ["git", *change, "--", "main"], cwd=scene.root, check=True, capture_output=True, env=env
    )
    scene.git("update-ref", "-d", "refs/original/refs/heads/main")


def _revert(scene) -> None:
    """Work that landed as a merge; a rebase made it an ordinary commit."""
    is_merge = " " in scene.git("log", "-1", "--format=%p")
    scene.git("revert", *(("-m", "1") if is_merge else ()), "--no-edit", "HEAD")


def _stash(scene) -> None:
    """Uncommitted work is put away, the history goes back, and the work returns."""
    (scene.root / "readme").write_text("my words\n")
    scene.git("stash", "-q")
    scene.git("reset", "-q", "--hard", "HEAD~1")
    scene.git("stash", "pop", "-q")


def _force_push(scene) -> None:
    """Somebody else drops the commit from the upstream, which the person then takes over."""
    upstream, other = scene.folder / "upstream.git", scene.folder / "other"
    scene.git("clone", "-q", "--bare", str(scene.root), str(upstream))
    scene.git("remote", "add", "origin", str(upstream))
    scene.git("clone", "-q", str(upstream), str(other))
    for args in (("reset", "-q", "--hard", "HEAD~1"), ("push", "-q", "-f", "origin", "HEAD:main")):
        subprocess.run(["git", *args], cwd=other, check=True)
    scene.git("fetch", "-q", "origin")
    scene.git("reset", "-q", "--hard", "origin/main")


def _merge_by_hand(scene) -> None:
    scene.git("switch", "-q", "-c", "side", "start")
    commit_in(scene.root, "theirs", "theirs\n")
    scene.git("switch", "-q", "main")
    scene.git("merge", "-q", "--no-edit", "side")


@dataclass(frozen=True)
class Way:
    """A change of the history: is the last work still in the files, and which commits remain?"""

    act: Callable[[CliScene], None]
    keeps_work: bool = True
    drops: bool = False
    rewrites: bool = True


OFTEN = {"reset", "amend", "revert"}
WAYS = {
    "reset": Way(_reset, keeps_work=False, drops=True),
    "force-push": Way(_force_push, keeps_work=False, drops=True),
    "stash": Way(_stash, keeps_work=False, drops=True),
    "amend": Way(_amend),
    "pull --rebase": Way(_pull_rebase),
    "squash": Way(_squash),
    "filter-repo": Way(_filter),
    "revert": Way(_revert, keeps_work=False, rewrites=False),
    "merge by hand": Way(_merge_by_hand, rewrites=False),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
at_any_moment = pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=name, marks=() if name in OFTEN else pytest.mark.faults)
        for name, way in WAYS.items()
    ],
)
"""`make faults` has the others."""


@pytest.fixture
def marked(scene):
    """The first commit is called `start`."""
    scene.git("tag", "start")
    return scene


@each_way
def test_after_a_delivery_the_branch_counts_as_it_is(marked, way):
    first, second = deliver(marked, "one", "two")
    way.act(marked)
    tip, shown = marked.git("rev-parse", "HEAD"), files_on(marked)
    assert (f"file-{second}" in shown) == way.keeps_work
    marked.ok("doctor")
    third = marked.ok("new", "--title", "three").out.strip()
    told = marked.ok("run", "--drain").err
    words = f"main was rewritten, and no longer has the work of task {second}"
    assert (words in told) == way.drops
    assert ("main was rewritten: crew continues from" in told) == (way.rewrites and not way.drops)
    assert marked.git("rev-parse", "main^1") == tip
    assert files_on(marked) == shown | {f"file-{third}"}
    assert (marked.status(second), marked.status(third)) == ("merged", "merged")
    assert [bool(dropped(marked, task)) for task in (first, second)] == [False, way.drops]
    assert [one["id"] for one in marked.ok("inbox", "--json").json] == ["rewrite-main"] * way.drops
    marked.ok("doctor")


def test_the_inbox_tells_how_to_bring_dropped_work_back(marked):
    (task,) = deliver(marked, "one")
    _reset(marked)
    marked.ok("run", "--drain", "-q")
    words = f"main was rewritten, and no longer has the work of task {task}"
    assert f"{words}: crew inbox rewrite-main" in marked.ok("ps").err
    (entry,) = marked.ok("inbox", "--json").json
    assert (entry["id"], entry["kind"], entry["question"]) == ("rewrite-main", "rewrite", words)
    shown = marked.ok("inbox", "rewrite-main").out
    command = next(line for line in shown.splitlines() if "git cherry-pick" in line)
    marked.git(*command.lstrip("> ").partition("  #")[0].split()[1:])
    assert files_on(marked) == {f"file-{task}"}
    assert marked.ok("answer", "rewrite-main", "seen", "--json").json["status"] == "seen"
    assert marked.ok("inbox", "--json").json == []
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{task}"}


def test_work_that_the_person_takes_back_itself_is_no_longer_dropped(marked):
    (task,) = deliver(marked, "one")
    tip = marked.git("rev-parse", "main")
    _reset(marked)
    marked.ok("run", "--drain", "-q")
    assert dropped(marked, task) is not None
    marked.git("reset", "-q", "--hard", tip)
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    assert dropped(marked, task) is None
    assert marked.ok("inbox", "--json").json == []
    assert files_on(marked) == {f"file-{task}", f"file-{second}"}


@at_any_moment
def test_what_landed_and_was_never_delivered_is_still_delivered(marked, way):
    (first,) = deliver(marked, "one")
    second = marked.ok("new", "--title", "two").out.strip()
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    assert files_on(marked) == {f"file-{first}"}
    old = marked.git("rev-parse", "HEAD")
    way.act(marked)
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == ({f"file-{first}"} if way.keeps_work else set()) | {f"file-{second}"}
    assert marked.status(second) == "merged"
    assert bool(dropped(marked, first)) == way.drops
    assert (old in marked.git("rev-list", "main").split()) != way.rewrites


@at_any_moment
def test_a_delivery_that_was_killed_before_it_was_recorded_is_not_made_again(marked, way):
    task = marked.ok("new", "--title", "one").out.strip()
    assert marked.crew("run", "--drain", "-q", **AFTER_DELIVERY).code == KILLED
    (marked.root / ".git" / "index.lock").unlink(missing_ok=True)
    old = marked.git("rev-parse", "HEAD")
    assert files_on(marked) == {f"file-{task}"}
    way.act(marked)
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == ({f"file-{task}"} if way.keeps_work else set()) | {f"file-{second}"}
    assert marked.status(task) == "merged"
    assert bool(dropped(marked, task)) == way.drops
    assert (old in marked.git("rev-list", "main").split()) != way.rewrites


@at_any_moment
def test_work_that_was_begun_on_removed_commits_lands_without_them(marked, running, way):
    (first,) = deliver(marked, "one")
    marked.plan("2", "wait")
    second = marked.ok("new", "--title", "two").out.strip()
    running()
    until((marked.folder / f"waits-{second}").exists)
    old = marked.git("rev-parse", "main")
    way.act(marked)
    marked.let_go()
    marked.ok("poll", second, "--status", "merged")
    assert files_on(marked) == ({f"file-{first}"} if way.keeps_work else set()) | {f"file-{second}"}
    assert (old in marked.git("rev-list", "main").split()) != way.rewrites
    assert f"task {second}" in marked.git("log", "--format=%s", "main")


@at_any_moment
def test_a_rewrite_while_candidates_are_tested_starts_the_test_anew(marked, running, way):
    (first,) = deliver(marked, "one")
    gate = 'touch "$SCENE/tests"; while [ ! -e "$SCENE/tested" ]; do sleep 0.05; done'
    marked.configure(f"[complete]\ncommand = '''SCENE={marked.folder}; {gate}'''\n")
    marked.configure("[sandbox]\nmode = 'off'\n")
    (marked.folder / "tested").touch()
    running()
    second = marked.ok("new", "--title", "two").out.strip()
    marked.plan(second, "wait")
    until((marked.folder / f"waits-{second}").exists)
    (marked.folder / "tests").unlink(missing_ok=True)
    marked.let_go()
    marked.ok("poll", second, "--status", "merged")
    (marked.folder / "tested").unlink()
    third = marked.ok("new", "--title", "three").out.strip()
    (marked.folder / "tests").unlink(missing_ok=True)
    until((marked.folder / "tests").exists)
    way.act(marked)
    (marked.folder / "tested").touch()
    marked.ok("poll", third, "--status", "merged")
    kept = {f"file-{first}"} | ({f"file-{second}"} if way.keeps_work else set())
    assert files_on(marked) == kept | {f"file-{third}"}


def test_conflicting_work_on_removed_commits_goes_back_to_its_agent_and_lands_without_them(
    marked, running
):
    marked.plan("1", "clash")
    (first,) = deliver(marked, "one")
    agent = marked.folder / "agent.sh"
    agent.write_text(
        'if [ "$CREW_TASK_ID" = 2 ] && [ -e "$SCENE/again" ]; then\n'
        '  other=$(sed -n "s/^The commit to merge: //p" "$CREW_PROMPT_FILE")\n'
        '  git merge "$other" || true\n'
        "  printf 'by a person\\n1 and 2\\n' > shared; git add -A; git commit -q -m resolved\n"
        "  echo DONE; exit\n"
        "fi\n"
        'touch "$SCENE/waits"; while [ ! -e "$SCENE/go" ]; do sleep 0.05; done\n'
        'touch "$SCENE/again"; echo "1 and 2" > shared\n'
        "git add -A; git commit -q -m mine; echo DONE\n"
    )
    second = marked.ok("new", "--title", "two").out.strip()
    running()
    until((marked.folder / "waits").exists)
    _reset(marked)
    commit_in(marked.root, "shared", "by a person\n")
    marked.let_go()
    marked.ok("poll", second, "--status", "merged")
    assert marked.git("show", "main:shared") == "by a person\n1 and 2"
    assert "task 1" not in marked.git("log", "--format=%s", "main")
    assert files_on(marked) == set()
    assert marked.status(first) == "merged"


def test_work_that_is_put_back_after_its_notice_was_answered_is_no_longer_dropped(marked):
    (task,) = deliver(marked, "one")
    tip = marked.git("rev-parse", "main")
    _reset(marked)
    marked.ok("run", "--drain", "-q")
    marked.ok("answer", "rewrite-main", "seen")
    marked.git("reset", "-q", "--hard", tip)
    marked.ok("new", "--title", "two")
    marked.ok("run", "--drain", "-q")
    assert dropped(marked, task) is None


def test_a_branch_that_is_renamed_and_rewritten_is_asked_about_without_a_busy_loop(marked):
    marked.ok("new", "--title", "one")
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    marked.git("branch", "-m", "main", "trunk")
    marked.git("commit", "-q", "--amend", "-m", "other words")
    said = marked.crew("run", "--drain")
    assert said.code == 75, said
    assert "the branch main no longer exists" in said.err


def test_a_branch_that_is_deleted_and_made_again_counts_as_it_is(marked):
    (task,) = deliver(marked, "one")
    marked.git("switch", "-q", "-c", "other", "start")
    marked.git("branch", "-q", "-D", "main")
    marked.git("branch", "-q", "main", "start")
    second = marked.ok("new", "--title", "two", "--base", "main").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{second}"}
    assert dropped(marked, task) is not None


KILLS = [
    f"{effect}.{at}:{count}"
    for effect in ("git.commit_superseding", "git.commit_again", "git.advance")
    for at in ("before", "after")
    for count in (1, 2, 3)
]


@pytest.mark.parametrize(
    "point",
    [pytest.param(one, marks=() if one.endswith(":1") else pytest.mark.faults) for one in KILLS],
)
def test_a_kill_while_crew_follows_a_rewrite_changes_nothing_in_the_end(marked, point):
    (first,) = deliver(marked, "one")
    second = marked.ok("new", "--title", "two").out.strip()
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    _reset(marked)
    assert marked.crew("run", "--drain", "-q", CREW_CRASH_AT=point).code in {0, KILLED}
    (marked.root / ".git" / "index.lock").unlink(missing_ok=True)
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{second}"}
    assert [marked.status(task) for task in (first, second)] == ["merged", "merged"]
    assert dropped(marked, first) is not None
    log = marked.git("log", "--format=%s", "main").splitlines()
    assert log.count(f"task {second}") == 1
    marked.ok("doctor")


def test_a_lost_database_brings_nothing_back(marked):
    deliver(marked, "one")
    for file in marked.root.glob(".crew/crew.db*"):
        file.unlink()
    _reset(marked)
    marked.ok("init")
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{second}"}


def test_a_branch_that_is_renamed_during_a_run_is_followed(marked, running):
    (first,) = deliver(marked, "one")
    marked.plan("2", "wait")
    second = marked.ok("new", "--title", "two").out.strip()
    third = marked.ok("new", "--title", "three", "--after", second).out.strip()
    running()
    until((marked.folder / f"waits-{second}").exists)
    marked.git("branch", "-m", "main", "trunk")
    marked.let_go()
    marked.ok("poll", third, "--status", "merged")
    assert files_on(marked, "trunk") == {f"file-{task}" for task in (first, second, third)}
    assert marked.git("branch", "--list", "main") == ""
    assert refs(marked, "refs/crew/landed") == ["refs/crew/landed/trunk"]


def test_what_landed_before_a_branch_was_renamed_is_delivered_to_the_new_name(marked):
    task = marked.ok("new", "--title", "one").out.strip()
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    marked.git("branch", "-m", "main", "trunk")
    told = marked.ok("run", "--drain").err
    assert "trunk is the new name of main" in told
    assert files_on(marked, "trunk") == {f"file-{task}"}
    assert marked.status(task) == "merged"
    marked.ok("doctor")


def test_a_branch_that_is_gone_without_a_trace_is_asked_about(marked):
    task = marked.ok("new", "--title", "one").out.strip()
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    marked.git("switch", "-q", "-c", "other")
    marked.git("branch", "-q", "-D", "main")
    said = marked.crew("run", "--drain")
    assert said.code == 75, said
    assert "the branch main no longer exists" in said.err
    marked.git("branch", "main", "start")
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{task}"}
