"""What becomes of delivered and of waiting work when a person rewrites the branch."""

import subprocess

import pytest

from front.conftest import commit_in, refs, until, worktree

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


def rewrite(scene, how: str) -> None:
    """The ways in which a person changes the history of the branch that is checked out."""
    {
        "reset": lambda: scene.git("reset", "-q", "--hard", "HEAD~1"),
        "amend": lambda: scene.git("commit", "-q", "--amend", "-m", "my words"),
        "rebase": lambda: _rebase(scene),
        "squash": lambda: _squash(scene),
        "filter": lambda: _filter(scene),
        "revert": lambda: scene.git("revert", "-m", "1", "--no-edit", "HEAD"),
        "stash": lambda: _stash(scene),
    }[how]()


def _rebase(scene) -> None:
    """As `git pull --rebase` does it: somebody else's commit below, and no merge commits."""
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
    subprocess.run(
        ["git", *change, "--", "main"],
        cwd=scene.root,
        check=True,
        capture_output=True,
        env={
            "PATH": "/usr/bin:/bin",
            "FILTER_BRANCH_SQUELCH_WARNING": "1",
            "HOME": str(scene.folder),
        },
    )
    scene.git("update-ref", "-d", "refs/original/refs/heads/main")


def _stash(scene) -> None:
    """Uncommitted work is put away, the history goes back, and the work returns."""
    (scene.root / "readme").write_text("my words\n")
    scene.git("stash", "-q")
    scene.git("reset", "-q", "--hard", "HEAD~1")
    scene.git("stash", "pop", "-q")


@pytest.fixture
def marked(scene):
    """The first commit is called `start`."""
    scene.git("tag", "start")
    return scene


KEEPS = ("amend", "rebase", "squash", "filter", "revert")
DROPS = ("reset", "stash")


@pytest.mark.parametrize("how", DROPS)
def test_what_a_person_took_out_after_its_delivery_stays_out(marked, how):
    first, second = deliver(marked, "one", "two")
    rewrite(marked, how)
    tip = marked.git("rev-parse", "HEAD")
    assert "main" not in marked.ok("doctor").out.partition("deliveries")[2].partition("\n")[0]
    third = marked.ok("new", "--title", "three").out.strip()
    told = marked.ok("run", "--drain").err
    last = {"reset": second, "stash": second}[how]
    assert f"main was rewritten, and no longer has the work of task {last}" in told
    assert files_on(marked) == {f"file-{first}", f"file-{third}"}
    assert marked.git("rev-parse", "main^1") == tip
    assert (marked.status(last), marked.status(third)) == ("merged", "merged")
    assert dropped(marked, last) is not None
    assert dropped(marked, first) is None
    marked.ok("doctor")


@pytest.mark.parametrize("how", KEEPS)
def test_a_rewrite_that_keeps_the_content_drops_nothing(marked, how):
    first, second = deliver(marked, "one", "two")
    rewrite(marked, how)
    tip, shown = marked.git("rev-parse", "HEAD"), files_on(marked)
    marked.ok("doctor")
    third = marked.ok("new", "--title", "three").out.strip()
    told = marked.ok("run", "--drain").err
    assert "no longer has" not in told
    assert ("main was rewritten: crew continues from" in told) == (how != "revert")
    assert marked.git("rev-parse", "main^1") == tip
    assert files_on(marked) == shown | {f"file-{third}"}
    assert [dropped(marked, task) for task in (first, second)] == [None, None]
    assert marked.crew("inbox", "--json").json == []


def test_a_forced_upstream_drops_its_commit_for_good(marked):
    first, second = deliver(marked, "one", "two")
    upstream = marked.folder / "upstream.git"
    marked.git("clone", "-q", "--bare", str(marked.root), str(upstream))
    marked.git("remote", "add", "origin", str(upstream))
    other = marked.folder / "other"
    marked.git("clone", "-q", str(upstream), str(other))
    for args in (("reset", "-q", "--hard", "HEAD~1"), ("push", "-q", "-f", "origin", "HEAD:main")):
        subprocess.run(["git", *args], cwd=other, check=True)
    marked.git("fetch", "-q", "origin")
    marked.git("reset", "-q", "--hard", "origin/main")
    third = marked.ok("new", "--title", "three").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{first}", f"file-{third}"}
    assert dropped(marked, second) is not None


def test_the_inbox_tells_how_to_bring_dropped_work_back(marked):
    (task,) = deliver(marked, "one")
    rewrite(marked, "reset")
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
    rewrite(marked, "reset")
    marked.ok("run", "--drain", "-q")
    assert dropped(marked, task) is not None
    marked.git("reset", "-q", "--hard", tip)
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    assert dropped(marked, task) is None
    assert marked.ok("inbox", "--json").json == []
    assert files_on(marked) == {f"file-{task}", f"file-{second}"}


@pytest.mark.parametrize("how", ["reset", "amend", "squash"])
def test_what_landed_and_was_never_delivered_is_still_delivered(marked, how):
    (first,) = deliver(marked, "one")
    second = marked.ok("new", "--title", "two").out.strip()
    assert marked.crew("run", "--drain", "-q", **BEFORE_DELIVERY).code == KILLED
    assert files_on(marked) == {f"file-{first}"}
    rewrite(marked, how)
    marked.ok("run", "--drain", "-q")
    kept = set() if how == "reset" else {f"file-{first}"}
    assert files_on(marked) == kept | {f"file-{second}"}
    assert marked.status(second) == "merged"
    assert (dropped(marked, first) is not None) == (how == "reset")
    assert f"task {first}" not in marked.git("log", "--format=%s", "main") or how != "reset"


@pytest.mark.parametrize("how", ["reset", "amend"])
def test_a_delivery_that_was_killed_before_it_was_recorded_is_not_made_again(marked, how):
    task = marked.ok("new", "--title", "one").out.strip()
    assert marked.crew("run", "--drain", "-q", **AFTER_DELIVERY).code == KILLED
    until(lambda: marked.git("ls-tree", "--name-only", "main", f"file-{task}") != "")
    (marked.root / ".git" / "index.lock").unlink(missing_ok=True)
    rewrite(marked, how)
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    kept = set() if how == "reset" else {f"file-{task}"}
    assert files_on(marked) == kept | {f"file-{second}"}
    assert marked.status(task) == "merged"
    assert (dropped(marked, task) is not None) == (how == "reset")


@pytest.mark.parametrize("how", ["reset", "amend", "squash", "filter"])
def test_work_that_was_begun_on_removed_commits_lands_without_them(marked, running, how):
    (first,) = deliver(marked, "one")
    marked.plan("2", "wait")
    second = marked.ok("new", "--title", "two").out.strip()
    running()
    until((marked.folder / f"waits-{second}").exists)
    old = marked.git("rev-parse", "main")
    rewrite(marked, how)
    marked.let_go()
    marked.ok("poll", second, "--status", "merged")
    kept = set() if how == "reset" else {f"file-{first}"}
    assert files_on(marked) == kept | {f"file-{second}"}
    assert old not in marked.git("rev-list", "main").split()
    assert f"task {second}" in marked.git("log", "--format=%s", "main")


@pytest.mark.parametrize("how", ["reset", "amend"])
def test_a_rewrite_while_candidates_are_tested_starts_the_test_anew(marked, running, how):
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
    rewrite(marked, how)
    (marked.folder / "tested").touch()
    marked.ok("poll", third, "--status", "merged")
    kept = {f"file-{first}"} | (set() if how == "reset" else {f"file-{second}"})
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
    rewrite(marked, "reset")
    commit_in(marked.root, "shared", "by a person\n")
    marked.let_go()
    marked.ok("poll", second, "--status", "merged")
    assert marked.git("show", "main:shared") == "by a person\n1 and 2"
    assert "task 1" not in marked.git("log", "--format=%s", "main")
    assert files_on(marked) == set()
    assert marked.status(first) == "merged"


def test_a_branch_that_is_deleted_and_made_again_counts_as_it_is(marked):
    (task,) = deliver(marked, "one")
    marked.git("switch", "-q", "-c", "other", "start")
    marked.git("branch", "-q", "-D", "main")
    marked.git("branch", "-q", "main", "start")
    second = marked.ok("new", "--title", "two", "--base", "main").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{second}"}
    assert dropped(marked, task) is not None


def test_a_lost_database_brings_nothing_back(marked):
    deliver(marked, "one")
    for file in marked.root.glob(".crew/crew.db*"):
        file.unlink()
    rewrite(marked, "reset")
    marked.ok("init")
    second = marked.ok("new", "--title", "two").out.strip()
    marked.ok("run", "--drain", "-q")
    assert files_on(marked) == {f"file-{second}"}


def test_a_merge_by_hand_after_the_delivery_is_an_ordinary_commit(marked):
    (task,) = deliver(marked, "one")
    marked.git("switch", "-q", "-c", "side", "start")
    commit_in(marked.root, "theirs", "x\n")
    marked.git("switch", "-q", "main")
    marked.git("merge", "-q", "--no-edit", "side")
    second = marked.ok("new", "--title", "two").out.strip()
    assert "rewritten" not in marked.ok("run", "--drain").err
    assert files_on(marked) == {f"file-{task}", f"file-{second}"}
    assert worktree(marked, second).exists() is False


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
