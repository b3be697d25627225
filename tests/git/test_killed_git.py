"""A git of crew that another process kills is run again, and its locks do not stay."""

import shutil

import pytest

from crew.git import git_command, killed_git
from crew.git.branches import claim_branch
from crew.git.checkpoints.checkpoints import checkpoints, drop_checkpoints, take_checkpoint
from crew.git.delivery.delivery import deliver
from crew.git.delivery.landed_refs import integration_tip
from crew.git.git_command import GitFailed, git
from crew.git.refs import advance, begun_advance, delete_refs, is_prepared
from crew.git.repository import commit_of
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
from git.people import Person

DYING_GIT = """\
#!/bin/sh
case "$* " in *"$DIES_IN "*)
  read left < "$DEATHS"
  if [ "$left" -gt 0 ]; then
    echo $((left - 1)) > "$DEATHS"
    case "$DIES" in after) {git} "$@" > "$DEATHS.lost" ;; esac
    printf '%s' "$LEAVES" | while read -r lock; do printf '%s' "$HOLDS" > "$lock"; done
    kill -9 $$
  fi ;;
esac
exec {git} "$@"
"""


@pytest.fixture
def dies(repo, tmp_path, monkeypatch):
    """Lets crew's next calls of one command die, before or after it acts, and leave these locks."""
    program, deaths = tmp_path / "bin" / "git", tmp_path / "deaths"
    program.parent.mkdir()
    program.write_text(DYING_GIT.format(git=shutil.which("git")))
    program.chmod(0o755)
    deaths.write_text("0\n")
    monkeypatch.setattr(killed_git, "STAYS_EMPTY_S", 0.05)
    monkeypatch.setattr(git_command, "LAST_WAIT_S", 0.1)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("DEATHS", str(deaths))

    def prepare(command, *leaves, times=1, holds="", when="before"):
        monkeypatch.setenv("DIES_IN", command)
        monkeypatch.setenv("DIES", when)
        monkeypatch.setenv("HOLDS", holds)
        lines = (f"{repo.common_dir / lock}\n" for lock in leaves)
        monkeypatch.setenv("LEAVES", "".join(lines))
        deaths.write_text(f"{times}\n")
        return deaths

    yield prepare
    assert deaths.read_text() == "0\n", "the command was not called as often as it should die"


def test_a_call_that_only_reads_is_made_again(repo, person, dies):
    dies("rev-parse", times=3)
    assert commit_of(repo, "main") == person.git("rev-parse", "main")


def test_a_git_that_is_killed_each_time_fails_in_the_end(repo, dies):
    left = dies("rev-parse", times=killed_git.MOST_RUNS)
    with pytest.raises(GitFailed):
        git(repo.common_dir, "rev-parse", "main")
    assert left.read_text() == "0\n"


def test_settings_that_could_not_be_read_do_not_count_as_none(repo, dies):
    (repo.common_dir / "config").touch()
    dies("config", times=killed_git.MOST_RUNS)
    with pytest.raises(GitFailed):
        git(repo.common_dir, "rev-parse", "main")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_branch_that_was_being_moved_is_moved_without_a_lock_left(repo, person, dies, when):
    before = person.git("rev-parse", "main")
    to = person.git("commit-tree", "-p", before, "-m", "next", "main^{tree}")
    lock = repo.common_dir / "refs" / "heads" / "main.lock"
    dies("update-ref", "refs/heads/main.lock", holds=f"{to}\n", when=when)
    advance(repo, "refs/heads/main", to=to, expected=before)
    assert person.git("rev-parse", "main") == to
    assert not lock.exists()


def test_refs_that_were_being_deleted_are_deleted(repo, person, dies):
    head = person.git("rev-parse", "main")
    names = {f"refs/crew/x/{number}": head for number in range(3)}
    for name in names:
        person.git("update-ref", name, head)
    person.git("pack-refs", "--all")
    locks = [*(f"{name}.lock" for name in names), "packed-refs.lock", "packed-refs.new"]
    (repo.common_dir / "refs" / "crew" / "x").mkdir(parents=True, exist_ok=True)
    dies("update-ref", *locks)
    delete_refs(repo, names)
    assert person.git("for-each-ref", "refs/crew") == ""
    assert not [lock for lock in locks if (repo.common_dir / lock).exists()]


def test_a_lock_on_the_packed_refs_that_no_git_holds_stops_no_deletion(repo, person, monkeypatch):
    """A killed git of a person or an agent left it while crew was running."""
    monkeypatch.setattr(git_command, "LAST_WAIT_S", 0.0)
    head = person.git("rev-parse", "main")
    person.git("update-ref", "refs/crew/x", head)
    (repo.common_dir / "packed-refs.lock").touch()
    delete_refs(repo, {"refs/crew/x": head})
    assert person.git("for-each-ref", "refs/crew") == ""
    assert not (repo.common_dir / "packed-refs.lock").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_branch_that_was_being_claimed_is_claimed(repo, person, dies, when):
    base = person.git("rev-parse", "main")
    dies("update-ref", "refs/heads/crew-7.lock", when=when)
    claim_branch(repo, "crew-7", base=base)
    assert person.git("rev-parse", "crew-7") == base
    assert not (repo.common_dir / "refs" / "heads" / "crew-7.lock").exists()


def test_old_checkpoints_are_dropped_once(repo, person, dies, tmp_path):
    tree = tmp_path / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    (tree / "new").write_text("new\n")
    take_checkpoint(repo, tree, "7", label="one", at=1.0)
    dies("update-ref", when="after")
    assert drop_checkpoints(repo, older_than=2.0) == 1
    assert checkpoints(repo, "7") == []


def test_the_index_of_a_task_is_written_again(repo, person, dies, tmp_path):
    tree = tmp_path / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    head = Person(tree).commit({"a.txt": "mine\n"})
    Person(tree).write("b.txt", "uncommitted\n")
    crew_git = repo.common_dir / "crew" / "folders" / "7"
    dies("reset", crew_git / "index.lock", holds="DIRC")
    state = state_of(repo, tree)
    assert (state.head, state.changed) == (head, ("b.txt",))
    assert person.git("rev-parse", "crew-7") == head
    assert not (crew_git / "index.lock").exists()


@pytest.mark.parametrize("command", ["pack-objects", "unpack-objects"])
def test_commits_that_were_being_taken_in_are_taken_in(repo, person, dies, tmp_path, command):
    tree = tmp_path / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    head = Person(tree).commit({"ä.txt": "mine\n"})  # only git checks such a name
    dies(command, times=2)
    assert state_of(repo, tree).head == head
    assert person.git("show", "crew-7:ä.txt") == "mine"


def test_the_folder_of_a_gate_is_brought_to_its_commit(repo, person, dies, tmp_path):
    path = tmp_path / "gate"
    ensure_detached(repo, path, person.git("rev-parse", "main"))
    commit = person.commit({"a.txt": "next\n"})
    crew_git = repo.common_dir / "crew" / "folders" / "gate"
    dies("read-tree", crew_git / "index.lock")
    ensure_detached(repo, path, commit)
    assert (path / "a.txt").read_text() == "next\n"


@pytest.mark.parametrize(
    ("command", "when"),
    [
        *((command, "after") for command in ("read-tree", "checkout-index", "add")),
        *((command, "before") for command in ("checkout-index", "update-ref")),
    ],
)
def test_a_delivery_goes_through_and_leaves_no_lock_in_the_checkout(
    repo, person, dies, command, when
):
    integration_tip(repo, "main")
    before = person.git("rev-parse", "main")
    person.git("checkout", "-q", "-b", "side")
    landed = person.commit({"a.txt": "landed\n", "new.txt": "new\n"})
    person.git("checkout", "-q", "main")
    advance(repo, "refs/crew/landed/main", to=landed, expected=before)
    dies(command, when=when)
    done = deliver(repo, "main", hold_s=0.0)
    if done.state == "waiting":  # the git that was started early died: the next try delivers
        done = deliver(repo, "main", hold_s=0.0)
    assert (done.state, person.git("status", "--short")) == ("delivered", "")
    assert (person.path / "a.txt").read_text() == "landed\n"
    locks = {lock.name for lock in repo.common_dir.rglob("*.lock")}
    assert locks <= {"crew.lock", "crew-sync.lock"}


def test_a_git_killed_in_a_move_of_main_leaves_no_lock_on_a_persons_head(repo, person):
    """Real git holds the lock of HEAD while it moves the branch that HEAD names."""
    before = person.git("rev-parse", "main")
    to = person.git("commit-tree", "-p", before, "-m", "next", "main^{tree}")
    with (
        (repo.common_dir / "crew.lock").open("w") as lock,
        begun_advance(
            repo, "refs/heads/main", to=to, expected=before, keep_open=lock.fileno()
        ) as begun,
    ):
        assert is_prepared(begun)
        assert (repo.common_dir / "refs" / "heads" / "main.lock").exists()
        assert not (repo.common_dir / "HEAD.lock").exists()


def test_a_delivery_is_in_the_log_of_head(repo, person):
    integration_tip(repo, "main")
    before = person.git("rev-parse", "main")
    landed = person.git("commit-tree", "-p", before, "-m", "next", "main^{tree}")
    advance(repo, "refs/crew/landed/main", to=landed, expected=before)
    assert deliver(repo, "main", hold_s=0.0).state == "delivered"
    assert person.git("rev-parse", "HEAD@{0}", "HEAD@{1}").split() == [landed, before]
    assert person.git("reflog", "-1", "--format=%gs", "main") == "crew"


def test_a_lock_of_another_git_stays_and_is_waited_for(repo, person, dies):
    before = person.git("rev-parse", "main")
    to = person.git("commit-tree", "-p", before, "-m", "next", "main^{tree}")
    dies("update-ref", "refs/heads/main.lock", holds=f"{before}\n")
    with pytest.raises(GitFailed):
        advance(repo, "refs/heads/main", to=to, expected=before)
    assert (repo.common_dir / "refs" / "heads" / "main.lock").read_text() == f"{before}\n"


def test_the_lock_of_a_persons_index_stays(repo, person):
    lock = repo.common_dir / "index.lock"
    lock.touch()
    env = {"GIT_DIR": str(repo.common_dir), "GIT_INDEX_FILE": str(repo.common_dir / "index")}
    killed_git.clear_locks_of(person.path, ("add", "--refresh"), env=env, stdin=None)
    killed_git.clear_locks_of(person.path, ("reset",), env={}, stdin=None)
    assert lock.exists()


def test_the_locks_go_in_the_repository_on_which_the_killed_git_worked(repo, tmp_path):
    """A call may name another git dir than that of the folder in which it runs."""
    inner = Person(tmp_path / "inner")
    inner.path.mkdir()
    inner.git("init", "-q")
    lock = inner.path / ".git" / "refs" / "heads" / "main.lock"
    lock.write_text(f"{'1' * 40}\n")
    env = {"GIT_DIR": str(inner.path / ".git")}
    move = ("update-ref", "refs/heads/main", "1" * 40)
    killed_git.clear_locks_of(repo.root, move, env=env, stdin=None)
    assert not lock.exists()


@pytest.mark.parametrize(
    ("args", "stdin", "moves"),
    [
        (("update-ref", "-m", "crew", "refs/x", "1", "0"), b"", {"refs/x": "1"}),
        (("update-ref", "--no-deref", "refs/x", "1"), b"", {"refs/x": "1"}),
        (("update-ref", "-d", "refs/x", "1"), b"", {"refs/x": ""}),
        (
            ("-c", "a=b", "update-ref", "--stdin"),
            b"start\ncreate refs/a 1\nupdate refs/b 2 3\ndelete refs/c 4\nverify refs/d 5\n",
            {"refs/a": "1", "refs/b": "2", "refs/c": ""},
        ),
    ],
)
def test_the_refs_that_a_killed_git_was_to_move(args, stdin, moves):
    assert dict(killed_git._moves(args, stdin)) == moves
