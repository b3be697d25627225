"""One task at a terminal of its own: real tmux, real git, and an agent that does what is typed."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from crew.store.database import open_database
from crew.system.processes.ownership import find_process, owned_processes
from front.conftest import CREW, PATIENCE_S, CliScene, last_run, until
from front.mcp_scene import Step

PANE = """\
echo "$1 $2" >> "$SCENE/sessions-$CREW_TASK_ID"
echo "agent of task $CREW_TASK_ID is here"
while read -r line; do eval "$line"; done
"""
"""Whatever is typed is done; the session it was given is written down."""

HEADLESS = """\
echo "step${CREW_RESUME:+ again} $CREW_SESSION" >> "$SCENE/sessions-$CREW_TASK_ID"
while [ -e "$SCENE/wait" ]; do sleep 0.05; done
echo "$CREW_TASK_ID" > "headless-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""

REVIEWER = """\
echo "$CREW_TASK_ID" >> "$SCENE/reviews"
printf '%s\\n' "$CREW_TOKEN" "$CREW_MCP_URL" > "$SCENE/reviewer"
cat "$SCENE/verdict"
"""

CONFIG = """\
[run]
agents = 0
backoff_s = 0.05
stuck_after = 2
[agents]
worker_default = "fake"
reviewer_default = "judge"
[agents.fake]
command_template = "sh {folder}/headless.sh"
interactive_template = "sh {folder}/pane.sh new {{{{.Session}}}}"
interactive_resume = "sh {folder}/pane.sh resumed {{{{.Session}}}}"
env = {{ SCENE = "{folder}" }}
[agents.judge]
role = "reviewer"
command_template = "sh {folder}/reviewer.sh"
env = {{ SCENE = "{folder}" }}
[complete]
command = "test ! -e broken"
"""


class Context(CliScene):
    """A scene whose tasks are worked at in terminals."""

    def worktree(self, task="1") -> Path:
        return self.root.parent / f"{self.root.name}-worktrees" / task

    def commit(self, name, text="x\n", *, task="1") -> str:
        folder = self.worktree(task)
        (folder / name).write_text(text)
        for args in (["add", name], ["commit", "-q", "-m", f"write {name}"]):
            subprocess.run(["git", *args], cwd=folder, check=True)
        return self.git("-C", str(folder), "rev-parse", "HEAD")

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", "tmux.sock", *args],
            cwd=self.root / ".crew",
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    def sessions(self) -> list[str]:
        return sorted(self.tmux("list-sessions", "-F", "#{session_name}").splitlines())

    def pane_pid(self, task="1") -> int:
        return int(self.tmux("display-message", "-p", "-t", f"=crew-{task}:", "#{pane_pid}"))

    def shows(self, words, *, task="1") -> bool:
        return words in self.crew("peek", task).out

    def given(self, task="1") -> list[str]:
        """The sessions that agents were given for this task, in order."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / f"sessions-{task}").read_text().splitlines()
        return []

    def answered(self, verb: str) -> int:
        """How many such requests the runner has answered."""
        counting = "SELECT count(*) FROM requests WHERE verb = ? AND reply IS NOT NULL"
        with contextlib.closing(open_database(self.root / ".crew" / "crew.db")) as db:
            return int(db.execute(counting, (verb,)).fetchone()[0])

    def new(self, title="a task", *more: str) -> str:
        return self.ok("new", "--title", title, *more).out.strip()

    def task(self, task="1"):
        return self.ok("show", task, "--json").json

    def wait_for(self, status, *, task="1") -> None:
        until(lambda: self.status(task) == status)

    def wait_for_draft(self) -> None:
        """All of it: a shell makes the file before it writes into it."""
        draft = self.worktree() / "draft.txt"
        until(lambda: draft.exists() and draft.read_text() == "draft\n")

    def kept(self, task="1") -> dict[str, str]:
        """Every file of every checkpoint of a task, newest last, by name."""
        found = {}
        pattern = f"refs/crew/checkpoints/{task}"
        for ref in self.git(
            "for-each-ref", "--sort=creatordate", "--format=%(refname)", pattern
        ).split():
            for name in self.git("ls-tree", "-r", "--name-only", ref).splitlines():
                found[name] = self.git("show", f"{ref}:{name}")
        return found


@pytest.fixture
def desk(bare_scene):
    scene = Context(bare_scene.root, bare_scene.folder)
    for name, text in (("pane", PANE), ("headless", HEADLESS), ("reviewer", REVIEWER)):
        (scene.folder / f"{name}.sh").write_text(text)
    scene.ok("init")
    (scene.root / ".crew" / "config.toml").write_text(CONFIG.format(folder=scene.folder))
    yield scene
    (scene.folder / "wait").unlink(missing_ok=True)
    scene.end()
    scene.tmux("kill-server")


@pytest.fixture
def open_desk(desk):
    """Task 1 is at a terminal."""
    desk.new()
    desk.ok("start", "1")
    return desk


@pytest.fixture
def runner(desk):
    """Starts `crew run`; it ends with the test."""

    def start(*args: str):
        process = desk.start("run", *args)
        until(lambda: desk.runner_pid() == process.pid)
        return process

    return start


WITH_RUNNER = [
    pytest.param(False, id="alone"),
    pytest.param(True, id="with a runner", marks=pytest.mark.faults),
]


@pytest.fixture(params=WITH_RUNNER)
def either(request, desk, runner):
    """A task at a terminal, once without a runner and once with one."""
    if request.param:
        runner()
    desk.new()
    desk.ok("start", "1")
    return desk


# start, and what one sees of it


def test_start_gives_a_task_a_worktree_and_a_session(either):
    until(lambda: either.shows("agent of task 1 is here"))
    assert either.sessions() == ["crew-1"]
    assert either.worktree().is_dir()
    task = either.task()
    assert (task["status"], task["session"], task["branch"]) == ("in_progress", "crew-1", "crew-1")
    assert either.status("1") == "in_progress"


def test_a_task_at_a_terminal_is_seen_as_such(open_desk):
    assert "session: crew-1 (attach with `crew attach 1`)" in open_desk.ok("show", "1").out
    assert "fake (crew-1)" in open_desk.ok("list").out
    assert "task 1 is at a terminal with fake: crew attach 1" in open_desk.ok("ps").err
    assert open_desk.ok("list", "--json").json[0]["session"] == "crew-1"


def test_the_bar_tells_the_task_the_agent_and_how_to_leave(open_desk, attached):
    screen = attached(open_desk, "1")
    screen.until("#1 a task | fake")
    screen.until("detach: C-g")


def test_a_person_attaches_types_leaves_and_the_session_goes_on(open_desk, attached):
    screen = attached(open_desk, "1")
    screen.until("agent of task 1 is here")
    screen.type("echo typed-$((40+2))\r")
    screen.until("typed-42")
    screen.type("\x07")
    assert screen.ended() == 0
    assert open_desk.sessions() == ["crew-1"]
    again = attached(open_desk, "1")
    again.until("typed-42")
    again.type("\x07")
    assert again.ended() == 0


def test_start_takes_its_agent_by_the_name_of_worker_too(desk):
    desk.new()
    desk.ok("start", "1", "--worker", "fake")
    assert desk.task()["run"]["kind"] == "fake"


def test_what_is_sent_is_typed_and_entered(open_desk):
    open_desk.ok("send", "1", "echo answer-$((40+2))")
    until(lambda: open_desk.shows("answer-42"))
    open_desk.ok("send", "1", "--no-enter", "echo later-$((1+1))")
    assert not open_desk.shows("later-2")
    open_desk.ok("send", "1", "")
    until(lambda: open_desk.shows("later-2"))


def test_a_large_paste_arrives_whole(open_desk):
    text = "".join(f"echo line {n} >> pasted\n" for n in range(3000))
    open_desk.ok("send", "1", "-", stdin=text)
    pasted = open_desk.worktree() / "pasted"
    until(lambda: pasted.exists() and pasted.read_text().endswith("line 2999\n"))
    assert len(pasted.read_text().splitlines()) == 3000


def test_exec_runs_beside_the_session_and_its_code_is_ours(open_desk):
    said = open_desk.crew("exec", "1", "--", "sh", "-c", "pwd; echo $CREW_TASK_ID; exit 7")
    assert (said.code, said.lines) == (7, [str(open_desk.worktree()), "1"])
    missing = open_desk.crew("exec", "1", "--", "no-such-program")
    assert missing.code == 3
    open_desk.new("another")
    assert open_desk.crew("exec", "2", "--", "true").code == 5


def test_attach_without_a_terminal_says_how_to_look(open_desk):
    assert "crew peek 1" in open_desk.refused(2, "no_tty", "attach", "1").hint


def test_a_task_without_a_session_cannot_be_attached_to(desk):
    desk.new()
    assert "crew start 1" in desk.refused(5, "no_terminal", "attach", "1").hint


def test_a_second_start_is_refused_and_the_session_stays(open_desk):
    before = open_desk.pane_pid()
    assert "crew attach 1" in open_desk.refused(5, "has_terminal", "start", "1").hint
    assert open_desk.pane_pid() == before


def test_a_start_whose_setup_fails_leaves_nothing_behind(desk):
    desk.configure('[worktree]\nsetup_command = "echo no compiler >&2; exit 4"\n')
    desk.new()
    assert "no compiler" in desk.refused(1, "start_failed", "start", "1").message
    assert not desk.worktree().exists()
    assert desk.git("branch", "--list", "crew-1") == ""
    assert desk.sessions() == []
    assert desk.task()["status"] == "todo"


# The end of a session


@pytest.mark.parametrize("last_words", ["exit 0", "exit 3", "kill -9 $$", "exec true"])
def test_a_session_that_ends_is_an_error_with_its_work_kept(either, last_words):
    either.ok("send", "1", "echo draft > draft.txt")
    either.wait_for_draft()
    either.ok("send", "1", last_words)
    either.wait_for("error")
    assert either.task()["session"] is None
    assert either.kept()["draft.txt"] == "draft"
    either.ok("start", "1")
    assert either.status("1") == "in_progress"
    assert (either.worktree() / "draft.txt").read_text() == "draft\n"


def test_stop_ends_the_session_and_everything_in_it(either):
    either.ok("send", "1", "echo draft > draft.txt; setsid sleep 600 & trap '' HUP TERM; sleep 500")
    either.wait_for_draft()
    pid = either.pane_pid()
    either.ok("stop", "1")
    assert (either.status("1"), either.sessions()) == ("error", [])
    assert find_process(pid) is None
    assert owned_processes(f"pane/{_repo_id(either)}") == ()
    assert either.kept()["draft.txt"] == "draft"
    assert either.crew("stop", "1").code == 5


KEEPS_WRITING = (
    "trap '' HUP TERM; i=0; while touch n$i; do echo $i >> \"$SCENE/written\"; i=$((i+1)); done"
)


def test_clean_keeps_what_a_terminal_writes_until_its_end(either):
    if either.runner_pid():
        either.refused(5, "lock_held", "clean", "--yes")
        assert either.sessions() == ["crew-1"]
        return
    either.ok("send", "1", KEEPS_WRITING)
    written = either.folder / "written"
    until(lambda: written.exists() and len(written.read_text().split()) > 20)
    pid, marker = either.pane_pid(), f"pane/{_repo_id(either)}"
    said = either.ok("clean", "--yes", "--json")
    assert (said.json["terminals"], "ends the terminal crew-1" in said.err) == (["crew-1"], True)
    assert (either.sessions(), find_process(pid), owned_processes(marker)) == ([], None, ())
    assert {f"n{number}" for number in written.read_text().split()} <= set(either.kept())
    assert either.status("1") == "todo"
    assert "message m1 waits" in either.ok("send", "1", "more").err
    either.ok("doctor")


def test_clean_ends_what_a_terminal_left_when_it_was_killed(open_desk):
    marker = f"pane/{_repo_id(open_desk)}"
    open_desk.ok("send", "1", "setsid -f sleep 600; touch begun")
    until((open_desk.worktree() / "begun").exists)
    open_desk.tmux("kill-server")
    assert owned_processes(marker) != ()
    assert open_desk.ok("clean", "--yes", "--json").json["terminals"] == []
    assert owned_processes(marker) == ()


def test_clean_ends_a_terminal_that_no_row_names(open_desk):
    pid = open_desk.pane_pid()
    open_desk.tmux("rename-session", "-t", "=crew-1", "stray")
    assert open_desk.ok("clean", "--yes", "--json").json["terminals"] == ["stray"]
    assert (open_desk.sessions(), find_process(pid)) == ([], None)


def test_clean_ends_the_manager_of_a_terminal_too(desk):
    script = f"sh {desk.folder}/pane.sh new boss"
    desk.configure(f'[agents.boss]\nrole = "manager"\ncommand_template = "{script}"\n')
    desk.ok("manager", "boss")
    assert "every terminal belongs to a task" in desk.ok("doctor").out
    assert desk.sessions() == ["crew-manager"]
    desk.ok("clean", "--yes")
    assert desk.sessions() == []


def test_doctor_reports_a_terminal_that_no_row_names_and_ends_it(open_desk):
    (open_desk.worktree() / "draft.txt").write_text("draft\n")
    pid = open_desk.pane_pid()
    with contextlib.closing(open_database(open_desk.root / ".crew" / "crew.db")) as db:
        for table in ("rows", "facts"):
            db.execute(f"DELETE FROM {table}")
    said = open_desk.crew("doctor")
    assert (said.code, f"crew-1 (process {pid}) belongs to no task" in said.out) == (1, True)
    assert "ended the terminal crew-1" in open_desk.crew("doctor", "--repair").out
    assert (open_desk.sessions(), find_process(pid)) == ([], None)
    assert (open_desk.worktree() / "draft.txt").exists()
    open_desk.ok("doctor")


def test_a_repair_ends_the_terminal_of_a_lost_task_before_it_keeps_the_work(open_desk):
    open_desk.ok("send", "1", KEEPS_WRITING)
    written = open_desk.folder / "written"
    until(lambda: written.exists() and len(written.read_text().split()) > 20)
    for file in (open_desk.root / ".crew/tasks/default").glob("1.*"):
        file.unlink()
    open_desk.crew("doctor", "--repair")
    assert (open_desk.sessions(), open_desk.worktree().exists()) == ([], False)
    assert {f"n{number}" for number in written.read_text().split()} <= set(open_desk.kept())


def _repo_id(scene) -> str:
    from crew.workplace import find_workplace  # noqa: PLC0415

    workplace = find_workplace(scene.root)
    try:
        return workplace.repo_id
    finally:
        workplace.db.close()


def test_stop_and_an_exit_at_the_same_moment_are_one_end(either):
    either.ok("send", "1", "sleep 0.2; exit 0")
    said = either.crew("stop", "1")
    assert said.code in {0, 5}, said
    either.wait_for("error")
    assert either.sessions() == []
    either.ok("start", "1")
    until(lambda: either.shows("agent of task 1 is here"))
    assert (either.status("1"), either.sessions()) == ("in_progress", ["crew-1"])


def test_start_continue_goes_on_with_the_same_agent_session(either):
    until(lambda: len(either.given()) == 1)
    either.ok("stop", "1")
    either.ok("start", "1", "-c")
    until(lambda: len(either.given()) == 2)
    (_, first), (how, second) = (line.split() for line in either.given())
    assert (how, second) == ("resumed", first)


def test_a_killed_tmux_server_leaves_an_error_that_can_be_started_again(either):
    either.ok("send", "1", "echo draft > draft.txt")
    either.wait_for_draft()
    server = int(either.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGKILL)
    until(lambda: "error" in either.ok("list", "--status", "error").out)
    assert either.kept()["draft.txt"] == "draft"
    until(lambda: either.crew("start", "1").code == 0)
    until(lambda: either.shows("agent of task 1 is here"))


def test_the_locks_of_a_git_that_died_in_a_session_go_with_it(open_desk):
    """Not while the session is open: it is for whoever works there to say what is dead."""
    open_desk.commit("a.txt")
    git_dir = Path(open_desk.git("-C", str(open_desk.worktree()), "rev-parse", "--git-dir"))
    locks = [
        git_dir / "index.lock",
        git_dir / "HEAD.lock",
        git_dir / "refs/heads/crew-1.lock",
    ]
    for lock in locks:
        lock.touch()
    open_desk.crew("complete", "1")
    assert all(lock.exists() for lock in locks)
    open_desk.tmux("kill-server")
    until(lambda: open_desk.crew("start", "1", "--continue").code == 0)
    assert not any(lock.exists() for lock in locks)
    open_desk.commit("b.txt")
    open_desk.ok("complete", "1")


@pytest.mark.parametrize("args", [["list"], ["ps"], ["show", "1"], ["poll", "1", "-s", "error"]])
def test_without_a_runner_whoever_looks_notices_a_session_that_died(open_desk, args):
    os.kill(int(open_desk.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    until(lambda: open_desk.crew(*args).code == 0 and open_desk.status("1") == "error")
    assert open_desk.ok("list", "--json").json[0]["session"] is None


def test_several_tasks_at_once_and_a_session_survives_the_end_of_crew(desk, runner):
    running = runner()
    for title in ("one", "two", "three"):
        desk.new(title)
    for task in ("1", "2", "3"):
        desk.ok("start", task)
    assert desk.sessions() == ["crew-1", "crew-2", "crew-3"]
    pids = [desk.pane_pid(task) for task in ("1", "2", "3")]
    running.kill()
    running.wait()
    desk.ok("send", "2", "echo still-$((40+2))")
    until(lambda: desk.shows("still-42", task="2"))
    again = runner()
    assert [desk.pane_pid(task) for task in ("1", "2", "3")] == pids
    desk.ok("stop", "3")
    assert desk.sessions() == ["crew-1", "crew-2"]
    assert again.poll() is None


def test_the_end_of_a_session_is_heard_while_no_crew_runs(desk, runner):
    desk.new()
    running = runner()
    desk.ok("start", "1")
    running.kill()
    running.wait()
    desk.ok("send", "1", "exit 3")
    desk.wait_for("error")
    assert desk.task()["run"]["error"] == "the session ended: exit code 3"


# Between agents and terminals


def test_a_task_moves_between_the_runner_and_a_terminal_in_one_session(desk, runner):
    (desk.folder / "wait").touch()
    desk.new()
    runner("--agents", "1")
    until(lambda: len(desk.given()) == 1)
    desk.ok("start", "1")
    until(lambda: len(desk.given()) == 2)
    until(lambda: desk.agent()["status"] == "idle")
    desk.ok("send", "1", "echo half > half.txt; git add half.txt; git commit -qm half")
    tree = str(desk.worktree())
    until(lambda: desk.git("-C", tree, "log", "-1", "--format=%s") == "half")
    desk.ok("start", "1", "--headless")
    assert desk.sessions() == []
    until(lambda: len(desk.given()) == 3)
    desk.ok("start", "1")
    until(lambda: len(desk.given()) == 4)
    desk.ok("start", "1", "--headless")
    (desk.folder / "wait").unlink()
    desk.wait_for("merged")
    hows = [line.rpartition(" ")[0] for line in desk.given()]
    assert hows[:4] == ["step", "resumed", "step again", "resumed"]
    assert len({line.split()[-1] for line in desk.given()}) == 1
    until(lambda: "half.txt" in desk.git("ls-tree", "--name-only", "main").splitlines())


def test_a_headless_start_without_a_runner_waits_for_one(desk, runner):
    desk.new()
    said = desk.ok("start", "1", "--headless")
    assert "none is up: `crew run` starts one" in said.err
    assert desk.status("1") == "in_progress"
    runner("--agents", "1")
    desk.wait_for("merged")


def test_a_task_at_a_terminal_is_left_alone_by_the_runner(desk, runner):
    desk.new()
    desk.ok("start", "1")
    desk.new("for the runner")
    runner("--agents", "1")
    desk.wait_for("merged", task="2")
    assert desk.sessions() == ["crew-1"]
    assert [line.split()[0] for line in desk.given()] == ["new"]


def test_stop_ends_the_step_of_an_agent_too(desk, runner):
    (desk.folder / "wait").touch()
    desk.new()
    runner("--agents", "1")
    until(lambda: len(desk.given()) == 1)
    desk.ok("stop", "1")
    assert desk.status("1") == "error"
    until(lambda: desk.agent()["status"] == "idle")


# complete


def test_complete_checks_the_work_and_the_task_is_done(either):
    head = either.commit("a.txt")
    said = either.ok("complete", "1", "-m", "all good")
    assert "task 1 is done and waits for its merge: crew merge 1" in said.err
    task = either.task()
    assert (task["status"], task["comments"][-1]["text"]) == ("done", "all good")
    assert either.sessions() == ["crew-1"]
    either.ok("merge", "1")
    assert head in either.git("rev-list", "main")
    until(lambda: either.sessions() == [] and not either.worktree().exists())


def test_a_completed_task_waits_for_its_merge_and_every_view_says_so(open_desk):
    open_desk.commit("a.txt")
    open_desk.ok("complete", "1")
    drained = open_desk.ok("run", "--drain")
    assert "1 a task is done and waits for its merge: crew merge 1" in drained.err
    assert "(waits for crew merge 1)" in open_desk.ok("list").out
    assert "waits for its merge: crew merge 1" in open_desk.ok("show", "1").out
    assert "task 1 is done and waits for its merge: crew merge 1" in open_desk.ok("ps").err
    assert "task 1 is done and waits for its merge: crew merge 1" in open_desk.ok("d", "--once").out
    assert open_desk.task()["awaits_merge"] is True
    document = open_desk.ok("run", "--drain", "--json").json
    assert (document["awaits_merge"], document["not_merged"]) == (["1"], [])
    assert open_desk.ok("d", "--json").json["awaits_merge"] == ["1"]
    open_desk.ok("new", "--title", "next", "--after", "1")
    blocked = open_desk.crew("run", "--drain")
    assert blocked.code == 6
    assert "blocked by 1 (crew merge 1)" in blocked.err
    open_desk.ok("merge", "1")
    assert not open_desk.task()["awaits_merge"]


def test_complete_can_queue_the_task_for_its_merge_at_once(open_desk):
    head = open_desk.commit("a.txt")
    said = open_desk.ok("complete", "1", "--merge")
    assert "task 1 is done and in the merge queue" in said.err
    assert "no runner is up: `crew run` merges it, and so does `crew merge 1`" in said.err
    open_desk.ok("run", "--drain")
    assert head in open_desk.git("rev-list", "main")


def test_a_config_can_queue_every_completed_task(desk):
    desk.configure("merge = true\n")
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    desk.ok("complete", "1")
    desk.ok("run", "--drain")
    assert desk.status("1") == "merged"


def test_complete_in_the_session_knows_its_task(either):
    either.commit("a.txt")
    either.ok("send", "1", "crew complete && echo finished-$((40+2))")
    either.wait_for("done")
    until(lambda: either.shows("finished-42"))


def test_complete_in_the_worktree_knows_its_task(open_desk):
    open_desk.commit("a.txt")
    open_desk.ok("complete", cwd=open_desk.worktree())
    assert open_desk.status("1") == "done"
    assert open_desk.crew("complete").code == 2


@pytest.mark.parametrize(
    ("prepare", "ask", "named"),
    [
        (lambda desk: None, "nothing_committed", ""),
        (lambda desk: (desk.worktree() / "loose").write_text("x"), "uncommitted", "\n> loose"),
        (lambda desk: desk.commit("broken"), "red_gate", ""),
    ],
)
def test_complete_says_what_is_wrong_and_the_task_stays_in_progress(either, prepare, ask, named):
    prepare(either)
    assert named in either.refused(6, "check_failed", "complete", "1").message
    assert last_run(either).ask == ask
    assert (either.status("1"), either.sessions()) == ("in_progress", ["crew-1"])


def test_complete_tells_of_a_conflict_before_anybody_merges(open_desk):
    open_desk.commit("readme", "theirs\n")
    (open_desk.root / "readme").write_text("ours\n")
    open_desk.git("commit", "-q", "-am", "ours")
    assert "\n> readme" in open_desk.refused(6, "check_failed", "complete", "1").message
    assert last_run(open_desk).ask == "conflict"
    folder = open_desk.worktree()
    subprocess.run(["git", "merge", "-q", "-s", "ours", "main"], cwd=folder, check=True)
    open_desk.ok("complete", "1")
    assert open_desk.status("1") == "done"


@pytest.mark.parametrize("with_runner", WITH_RUNNER)
def test_complete_says_that_the_gate_cannot_be_run(desk, runner, with_runner):
    config = desk.root / ".crew" / "config.toml"
    config.write_text(config.read_text().replace("test ! -e broken", "no-such-gate"))
    if with_runner:
        runner()
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    assert "no-such-gate" in desk.refused(1, "not_checked", "complete", "1").message
    assert desk.status("1") == "in_progress"


def test_complete_by_two_at_once_is_one_check_and_both_hear_of_it(desk, runner):
    count = desk.folder / "gates"
    gate = f"echo x >> '{count}'; while [ -e '{desk.folder}/wait' ]; do sleep 0.05; done"
    config = desk.root / ".crew" / "config.toml"
    config.write_text(config.read_text().replace("test ! -e broken", gate))
    runner()
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    (desk.folder / "wait").touch()
    one = desk.start("complete", "1")
    until(count.exists)
    other = desk.start("complete", "1")
    until(lambda: desk.answered("complete") == 2)
    desk.refused(5, "being_checked", "start", "1", "--headless")
    (desk.folder / "wait").unlink()
    for process in (one, other):
        process.communicate(timeout=PATIENCE_S)
    assert [one.returncode, other.returncode] == [0, 0]
    assert count.read_text() == "x\n"


def test_stop_does_not_wait_for_a_gate(desk, runner):
    config = desk.root / ".crew" / "config.toml"
    gate = f"touch '{desk.folder}/gate'; sleep 600"
    config.write_text(config.read_text().replace("test ! -e broken", gate))
    runner()
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    completing = desk.start("complete", "1")
    until((desk.folder / "gate").exists)
    desk.ok("stop", "1")
    assert (desk.status("1"), desk.sessions()) == ("error", [])
    completing.communicate(timeout=PATIENCE_S)
    assert completing.returncode != 0


def test_a_check_that_was_killed_is_taken_up_by_the_next_complete(desk):
    config = desk.root / ".crew" / "config.toml"
    gate = f"touch '{desk.folder}/gate'; while [ -e '{desk.folder}/wait' ]; do sleep 0.05; done"
    config.write_text(config.read_text().replace("test ! -e broken", gate))
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    (desk.folder / "wait").touch()
    completing = desk.start("complete", "1")
    until((desk.folder / "gate").exists)
    completing.kill()
    completing.communicate(timeout=PATIENCE_S)
    (desk.folder / "wait").unlink()
    desk.ok("new", "--title", "another")
    assert desk.status("1") == "in_progress"
    desk.ok("complete", "1")
    assert desk.status("1") == "done"


def test_closing_a_task_ends_its_session_and_keeps_its_branch(either):
    head = either.commit("a.txt")
    either.ok("close", "1")
    until(lambda: either.sessions() == [] and not either.worktree().exists())
    assert either.git("rev-parse", "crew-1") == head


def test_a_done_task_can_be_opened_once_more(open_desk):
    open_desk.commit("a.txt")
    open_desk.ok("complete", "1")
    open_desk.ok("start", "1")
    assert open_desk.status("1") == "in_progress"
    open_desk.commit("b.txt")
    open_desk.ok("complete", "1")
    assert open_desk.status("1") == "done"


def test_requested_changes_reach_the_agent_at_its_terminal(either):
    either.commit("a.txt")
    either.ok("complete", "1")
    either.ok("send", "1", "echo reading; exec cat > /dev/null")  # an agent that only reads
    until(lambda: either.shows("\nreading"))
    said = either.ok("comment", "1", "-R", "more tests")
    assert "typed into its terminal" in said.err
    until(lambda: either.shows("> more tests"))
    assert (either.status("1"), either.sessions()) == ("in_progress", ["crew-1"])
    until(lambda: either.shows("crew complete"))
    either.commit("b.txt")
    either.ok("complete", "1")
    assert either.status("1") == "done"


def test_requested_changes_wait_for_an_agent_once_the_terminal_has_ended(open_desk):
    open_desk.commit("a.txt")
    open_desk.ok("complete", "1")
    open_desk.tmux("kill-server")
    said = open_desk.ok("comment", "1", "-R", "more tests")
    assert "an agent gets the text with its next step" in said.err
    task = open_desk.task()
    assert (task["status"], task["session"], task["run"]["state"]) == (
        "in_progress",
        None,
        "working",
    )


def spoken_for(desk, file) -> Step:
    """Whatever wrote its token and its address into this file, as a client of crew."""
    token, url = file.read_text().splitlines()
    return Step(desk, "1", token, url, str(desk.root), desk.worktree())


def test_an_agent_at_a_terminal_reads_asks_and_signals_with_a_token_of_its_own(desk, runner):
    runner()
    desk.new()
    desk.ok("start", "1")
    file = desk.folder / "env"
    told = f"printf '%s\\n' \"$CREW_TOKEN\" \"$CREW_MCP_URL\" > '{file}.new'"
    desk.ok("send", "1", f"{told}; mv '{file}.new' '{file}'")
    until(file.exists)
    agent = spoken_for(desk, file)
    assert json.loads(agent.by_http("get-task").text)["id"] == "1"
    assert agent.by_stdio("report-progress", text="x").refused
    desk.ok("send", "1", "crew signal needs-user-input --question '/dev/null which colour?'")
    until(lambda: desk.ok("inbox", "--json").json != [])
    desk.ok("answer", "q1", "/dev/null blue")
    until(lambda: desk.shows("> /dev/null blue"))
    heard = agent.by_http("signal-back", signal="complete", summary="finished")
    assert "crew checks the work" in heard.text
    until(lambda: desk.shows("nothing was committed"))
    desk.commit("a.txt")
    agent.by_stdio("signal-back", signal="complete", summary="finished")
    desk.wait_for("done")
    desk.ok("stop", "1")
    assert "that terminal has ended" in agent.by_http("get-task").text


# review


def verdict(desk, text):
    (desk.folder / "verdict").write_text(text)


def asked(desk):
    with contextlib.suppress(FileNotFoundError):
        return len((desk.folder / "reviews").read_text().splitlines())
    return 0


@pytest.fixture
def reviewed(desk):
    """Two reviewers must pass a commit; task 1 is at a terminal with one commit."""
    desk.configure("min_reviews = 2\n")
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    return desk


def test_a_review_that_fails_is_answered_and_one_that_passes_completes(reviewed):
    verdict(reviewed, "no tests\nFAIL\n")
    refused = reviewed.refused(6, "check_failed", "complete", "1")
    assert refused.message.count("no tests") == 2
    task = reviewed.task()
    assert last_run(reviewed).ask == "review"
    assert (task["status"], task["review_count"]) == ("in_progress", 2)
    reviewed.commit("b.txt")
    verdict(reviewed, "fine now\nPASS\n")
    reviewed.ok("complete", "1")
    task = reviewed.task()
    assert (task["status"], task["review_count"], asked(reviewed)) == ("done", 4, 4)
    assert [c["type"] for c in task["comments"]] == ["report"] * 4
    assert len(task["run"]["verdicts"]) == 4


def test_a_review_leaves_its_prompt_and_a_script_that_repeats_it(open_desk):
    commit = open_desk.commit("a.txt")
    verdict(open_desk, "PASS\n")
    open_desk.ok("review", "1")
    scripts = open_desk.root / ".crew/scripts"
    assert commit in (scripts / "review-1-prompt.txt").read_text()
    again = subprocess.run([scripts / "review-1.sh"], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout, asked(open_desk)) == (0, "PASS\n", 2)


def test_a_reviewer_reads_its_task_and_changes_nothing(desk, runner):
    runner()
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    wait = 'while [ ! -e "$SCENE/verdict" ]; do sleep 0.05; done\n'
    (desk.folder / "reviewer.sh").write_text(REVIEWER.replace("cat ", f"{wait}cat "))
    review = desk.start("review", "1")
    until((desk.folder / "reviewer").exists)
    reviewer = spoken_for(desk, desk.folder / "reviewer")
    for way in (reviewer.by_http, reviewer.by_stdio):
        assert json.loads(way("get-task").text)["id"] == "1"
        assert way("signal-back", signal="complete", summary="x").refused
    said = reviewer.by_shell("signal-back", signal="complete", summary="x")
    assert (said.refused, "this token is for a review" in said.text) == (True, True)
    verdict(desk, "PASS\n")
    assert review.wait(PATIENCE_S) == 0
    assert "that review has ended" in reviewer.by_stdio("get-task").text
    assert desk.status("1") == "in_progress"


def test_an_old_pass_never_approves_a_new_commit(reviewed):
    verdict(reviewed, "PASS\n")
    for count in (1, 2):
        said = reviewed.ok("review", "1", "--json")
        assert said.json["passed"]
        assert reviewed.task()["review_count"] == count
    new = reviewed.commit("b.txt")
    verdict(reviewed, "not this one\nFAIL\n")
    assert reviewed.crew("complete", "1").code == 6
    failed = [v for v in reviewed.task()["run"]["verdicts"] if not v["passed"]]
    assert {v["commit"] for v in failed} == {new}


def test_a_pass_of_this_commit_is_not_asked_for_again(reviewed):
    verdict(reviewed, "PASS\n")
    reviewed.ok("review", "1")
    reviewed.ok("complete", "1")
    assert (reviewed.status("1"), asked(reviewed)) == ("done", 2)


def test_a_review_that_does_not_pass_exits_with_six(open_desk):
    open_desk.commit("a.txt")
    verdict(open_desk, "hm\n")
    said = open_desk.crew("review", "1")
    assert said.code == 6
    assert "no verdict: the last line must be PASS or FAIL alone" in said.out
    task = open_desk.task()
    assert (task["review_count"], task["run"]["verdicts"][0]["passed"]) == (1, False)
    again = open_desk.crew("review", "1", "--json")
    assert (again.code, again.json["passed"]) == (6, False)
    assert again.json["error"]["code"] == "check_failed"


def test_the_older_name_of_review_works_as_ever_and_is_in_no_list(open_desk):
    open_desk.commit("a.txt")
    verdict(open_desk, "hm\nFAIL\n")
    said, older = (open_desk.crew(name, "1", "--json") for name in ("review", "run-review"))
    assert (older.code, older.json) == (said.code, said.json)
    assert "run-review" not in open_desk.ok("--help").out


def test_who_says_no_later_takes_the_pass_of_this_commit_back(reviewed):
    verdict(reviewed, "PASS\n")
    for _ in range(2):
        reviewed.ok("review", "1")
    verdict(reviewed, "on second thoughts\nFAIL\n")
    assert reviewed.crew("review", "1").code == 6
    refused = reviewed.refused(6, "check_failed", "complete", "1")
    assert "on second thoughts" in refused.message
    assert reviewed.status("1") == "in_progress"


def test_a_task_that_says_so_is_not_reviewed(desk):
    desk.configure("min_reviews = 1\n")
    desk.new("quick", "--skip-review")
    desk.ok("start", "1")
    desk.commit("a.txt")
    desk.ok("complete", "1")
    assert (desk.status("1"), asked(desk)) == ("done", 0)


def test_a_config_that_says_so_has_nothing_reviewed(desk):
    desk.configure("min_reviews = 1\nskip_review = true\n")
    desk.new()
    desk.ok("start", "1")
    desk.commit("a.txt")
    desk.ok("complete", "1")
    assert (desk.status("1"), asked(desk)) == ("done", 0)


def test_a_killed_review_leaves_no_process_and_no_worktree(open_desk):
    open_desk.commit("a.txt")
    (open_desk.folder / "reviewer.sh").write_text(f"touch '{open_desk.folder}/up'; sleep 600\n")
    reviewing = open_desk.start("review", "1")
    until((open_desk.folder / "up").exists)
    trees = open_desk.worktree().parent
    assert len(list(trees.glob(".review-*"))) == 1
    open_desk.ok("new", "--title", "other")
    open_desk.ok("start", "2")
    assert len(list(trees.glob(".review-*"))) == 1  # it goes on while others come and go
    reviewing.kill()
    reviewing.communicate(timeout=PATIENCE_S)
    open_desk.ok("stop", "2")
    assert list(trees.glob(".review-*")) == []
    until(lambda: owned_processes(f"review/{_repo_id(open_desk)}") == ())


# Many at once


def start_all(desk, count, *, at_once):
    for number in range(count):
        desk.new(f"task {number}")
    todo = [str(number + 1) for number in range(count)]
    running = []
    said = []
    while todo or running:
        while todo and len(running) < at_once:
            running.append(desk.start("start", todo.pop(0)))
        out, err = running[0].communicate(timeout=100)
        said.append((running.pop(0).returncode, out, err))
    assert [code for code, _, _ in said] == [0] * count, said
    assert not [err for _, _, err in said if ".lock" in err or "Traceback" in err]
    assert len(desk.sessions()) == count
    assert len(list((desk.root / ".git/crew/folders").iterdir())) == count
    assert len(list(desk.worktree().parent.iterdir())) == count


def test_many_starts_at_once_are_all_there(desk):
    start_all(desk, 8, at_once=4)


@pytest.mark.faults
@pytest.mark.timeout(240)
@pytest.mark.parametrize("with_runner", [False, True])
def test_fifty_starts_at_once_are_all_there(desk, runner, with_runner):
    if with_runner:
        runner()
    start_all(desk, 50, at_once=10)


# A person's screen


@pytest.fixture
def attached(on_screen):
    """`crew attach` on a terminal of its own."""
    return lambda desk, task: on_screen([CREW, "attach", task], cwd=desk.root)
