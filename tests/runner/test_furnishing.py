"""A new worktree gets what it needs, once; what fails goes again; nobody's work is in danger."""

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.conftest import need
from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.rows.task import Task
from crew.git.checkpoints.checkpoints import checkpoints, take_checkpoint
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktree_list import worktree_paths
from crew.git.worktrees.worktrees import remove_worktree, state_of
from crew.runner.outside.local_machine import LocalOutside
from crew.system.processes.ownership import owned_processes
from crew.system.processes.process import working_bwrap
from git.people import Person
from runner.scene import DriverScene, until
from warm import warm_python

SEED = int(os.environ.get("CREW_SEED", time.time_ns()))
SECRET = {".env": "KEY=1\n"}


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


class Crew:
    """A scene whose worktrees are made as the runner makes them."""

    def __init__(self, scene: DriverScene) -> None:
        self.scene = scene
        self.workplace = scene.make()
        self.base = scene.git("rev-parse", "main")

    def start(self, number: str = "1", **task: str) -> Person:
        """The worktree of a task, in its first minute or again."""
        known = Task(id=number, target="main", **task)
        outside = LocalOutside(self.workplace)
        making = outside.ensure_worktree(known, branch=f"crew-{number}", base=self.base)
        return Person(Path(asyncio.run(making)))

    def log(self, number: str = "1") -> str:
        return self.scene.log_of(number)

    @property
    def refs(self) -> list[str]:
        return self.scene.git("for-each-ref", "--format=%(refname)").split()


@pytest.fixture
def make_crew(make_scene):
    made: list[Crew] = []

    def make(worktree: str = "", *, agent: str = "", untracked=None, **options) -> Crew:
        config = f"[agents.helper]\nadapter = 'scripted'\n{agent}\n[worktree]\n{worktree}\n"
        scene = make_scene(config=f"[agents]\nworker_default = 'helper'\n{config}", **options)
        scene.write(untracked or {})
        made.append(Crew(scene))
        return made[-1]

    yield make
    for crew in made:
        crew.workplace.db.close()


def test_a_worktree_with_nothing_asked_for_is_marked_and_left_alone(make_crew):
    crew = make_crew()
    config = (crew.scene.path / ".git" / "config").read_bytes()
    agent = crew.start()
    assert sorted(agent.tree()) == ["readme.txt", "shared.txt"]
    assert (crew.scene.path / ".git" / "config").read_bytes() == config
    assert not (crew.scene.path / ".git" / "info" / "crew.config").exists()


def test_files_folders_and_globs_are_copied_and_hidden_from_every_git(make_crew):
    crew = make_crew(
        'copy = [".env", "local", "*.key", "keys/**/*.pem"]',
        untracked={
            **SECRET,
            "local/a/b.txt": "b\n",
            "x.key": "x\n",
            "keys/deep/y.pem": "y\n",
            "other.txt": "no\n",
        },
    )
    (crew.scene.path / "local" / "run.sh").write_text("#!/bin/sh\n")
    (crew.scene.path / "local" / "run.sh").chmod(0o755)
    (crew.scene.path / "local" / "empty").mkdir()
    agent = crew.start()
    copied = {".env", "local/a/b.txt", "local/run.sh", "x.key", "keys/deep/y.pem"}
    assert set(agent.tree()) == copied | {"readme.txt", "shared.txt"}
    assert (agent.path / "local" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (agent.path / "local" / "empty").is_dir()
    assert agent.git("status", "--porcelain") == ""
    assert state_of(crew.workplace.repo, agent.path).changed == ()
    assert take_checkpoint(crew.workplace.repo, agent.path, "1", label="x", at=1.0) is None
    agent.git("add", "-A")
    assert agent.git("diff", "--cached", "--name-only") == ""


def test_a_copy_is_hidden_in_its_worktree_only(make_crew):
    crew = make_crew('copy = [".env"]', untracked=SECRET)
    crew.start()
    theirs = Person(crew.scene.path.parent / "theirs")
    crew.scene.git("worktree", "add", "-q", "-b", "theirs", str(theirs.path))
    theirs.write(".env", "mine\n")
    assert ".env" in crew.scene.git("status", "--porcelain")
    assert theirs.git("status", "--porcelain") == "?? .env"
    exclude = crew.scene.path / ".git" / "info" / "exclude"
    assert ".env" not in exclude.read_text()
    assert not (crew.scene.path / ".gitignore").exists()


def test_what_the_user_ignores_everywhere_stays_ignored(make_crew):
    home = Path(os.environ["HOME"])
    config = (home / ".gitconfig").read_text()
    (home / ".config" / "git").mkdir(parents=True, exist_ok=True)
    (home / ".config" / "git" / "ignore").write_text("*.swp")
    crew = make_crew('copy = [".env"]', untracked=SECRET)
    try:
        one = crew.start("1")
        (home / "ignored").write_text("*.orig\n")
        (home / ".gitconfig").write_text(f"{config}[core]\n\texcludesFile = ~/ignored\n")
        two = crew.start("2")
    finally:
        (home / ".gitconfig").write_text(config)
        (home / ".config" / "git" / "ignore").unlink()
    for agent, name in ((one, "a.swp"), (two, "a.orig")):
        agent.write(name, "x")
        assert agent.git("status", "--porcelain") == ""


def test_the_agents_patterns_hold_in_its_worktree(make_crew):
    crew = make_crew(agent='exclude_patterns = [".tool/", "*.tmp"]')
    agent = crew.start()
    for name in (".tool/cache", "a.tmp", "real.txt"):
        agent.write(name, "x")
    assert state_of(crew.workplace.repo, agent.path).changed == ("real.txt",)
    assert agent.git("status", "--porcelain") == "?? real.txt"


def test_names_that_look_like_patterns_hide_only_themselves(make_crew):
    odd = {"odd ": "x", "back\\slash": "x"}
    crew = make_crew("copy = ['odd ', 'back\\slash']", untracked=odd, name='r[x]* "q"')
    agent = crew.start()
    assert agent.git("status", "--porcelain") == ""
    agent.write("odd", "x")
    agent.write("backslash", "x")
    assert sorted(state_of(crew.workplace.repo, agent.path).changed) == ["backslash", "odd"]


def test_a_missing_entry_is_said_in_the_log_and_is_no_error(make_crew):
    crew = make_crew('copy = [".env", "*.key"]\nlink = ["node_modules"]')
    crew.start()
    for name in (".env", "*.key", "node_modules"):
        assert f"there is no {name} in the main checkout" in crew.log()


@pytest.mark.parametrize("entry", ["../x", "/etc/passwd", "a/../../x", "out/x", ".git/config", "."])
@pytest.mark.parametrize("key", ["copy", "link"])
def test_an_entry_that_leaves_the_repository_is_refused_and_nothing_stays(make_crew, key, entry):
    crew = make_crew(f'{key} = ["{entry}"]')
    (crew.scene.path / "out").symlink_to(crew.scene.path.parent)
    (crew.scene.path.parent / "x").mkdir()
    before = crew.refs
    with pytest.raises(UsageError, match="worktree"):
        crew.start()
    assert not (crew.scene.worktrees / "1").exists()
    assert crew.refs == before


def test_a_copy_does_not_go_through_a_symlink_of_the_branch(make_crew):
    crew = make_crew('copy = ["conf/local"]', untracked={"conf/local": "x\n"})
    outside = crew.scene.path.parent / "outside"
    outside.mkdir()
    side = Person(crew.scene.path.parent / "side")
    crew.scene.git("worktree", "add", "-q", "-b", "side", str(side.path))
    (side.path / "conf").symlink_to(outside)
    crew.base = side.commit(message="conf is a symlink")
    with pytest.raises(UsageError, match="leads out"):
        crew.start()
    assert list(outside.iterdir()) == []


def test_symlinks_are_kept_as_symlinks(make_crew):
    crew = make_crew('copy = ["local", "top"]', untracked={"local/a.txt": "a\n"})
    (crew.scene.path / "local" / "here").symlink_to("a.txt")
    (crew.scene.path / "local" / "away").symlink_to("/etc")
    (crew.scene.path / "top").symlink_to("/etc/passwd")
    agent = crew.start()
    assert (agent.path / "local" / "here").readlink() == Path("a.txt")
    assert (agent.path / "local" / "away").readlink() == Path("/etc")
    assert (agent.path / "top").readlink() == Path("/etc/passwd")


def test_a_tracked_file_is_never_overwritten(make_crew):
    crew = make_crew('copy = ["shared.txt", "conf"]', files={"conf/a.txt": "committed\n"})
    crew.scene.write({"shared.txt": "edited\n", "conf/a.txt": "edited\n", "conf/own": "own\n"})
    agent = crew.start()
    assert agent.tree()["shared.txt"] == b"top\n"
    assert agent.tree()["conf/a.txt"] == b"committed\n"
    assert agent.tree()["conf/own"] == b"own\n"
    agent.write("conf/new.txt", "by the agent\n")
    agent.write("shared.txt", "by the agent\n")
    assert sorted(state_of(crew.workplace.repo, agent.path).changed) == [
        "conf/new.txt",
        "shared.txt",
    ]


def test_a_tracked_file_that_the_agent_deleted_stays_deleted(make_crew):
    crew = make_crew('copy = ["shared.txt"]')
    agent = crew.start()
    (agent.path / "shared.txt").unlink()
    take_checkpoint(crew.workplace.repo, agent.path, "1", label="kept", at=1.0)
    subprocess.run(["rm", "-rf", str(agent.path)], check=True)
    agent = crew.start(branch="crew-1")
    assert state_of(crew.workplace.repo, agent.path).changed == ("shared.txt",)
    assert "shared.txt" not in agent.tree()


def test_a_link_is_shared_hidden_and_never_followed(make_crew):
    crew = make_crew(
        'link = ["node_modules", "deep/vendor"]',
        files={".gitignore": "node_modules/\n"},
        untracked={"node_modules/lib/a.js": "a\n", "deep/vendor/b.js": "b\n"},
    )
    agent = crew.start()
    assert (agent.path / "node_modules" / "lib" / "a.js").read_text() == "a\n"
    assert (agent.path / "node_modules").readlink() == crew.scene.path / "node_modules"
    assert agent.git("status", "--porcelain") == ""
    agent.git("add", "-A")
    assert agent.git("diff", "--cached", "--name-only") == ""
    agent.git("clean", "-ffdqx")
    crew.start(branch="crew-1", worktree=str(agent.path))
    remove_worktree(crew.workplace.repo, agent.path)
    assert not agent.path.exists()
    assert (crew.scene.path / "node_modules" / "lib" / "a.js").read_text() == "a\n"
    assert (crew.scene.path / "deep" / "vendor" / "b.js").read_text() == "b\n"


def test_a_folder_of_the_branch_stays_where_a_link_is_asked_for(make_crew):
    crew = make_crew('link = ["lib"]', files={"lib/a.txt": "a\n"})
    agent = crew.start()
    assert not (agent.path / "lib").is_symlink()
    assert "lib is in the worktree already" in crew.log()
    agent.write("lib/new.txt", "x")
    assert state_of(crew.workplace.repo, agent.path).changed == ("lib/new.txt",)


def test_a_setup_command_cannot_change_a_linked_folder(make_crew):
    need(working_bwrap(), "bwrap")
    crew = make_crew(
        'link = ["vendor"]\nsetup_command = "touch vendor/x; test ! -e vendor/x"',
        untracked={"vendor/a": "a\n"},
    )
    crew.start()
    assert names_in(crew.scene.path / "vendor") == ["a"]


def test_an_agent_cannot_change_a_linked_folder(make_scene):
    need(working_bwrap(), "bwrap")
    touch = {"run": "touch vendor/x; ls vendor > seen.txt"}
    scene = make_scene(
        {"default": {"steps": [[touch, {"commit": "seen"}, {"done": True}]]}},
        tasks=["look"],
        config='[worktree]\nlink = ["vendor"]\n',
        files={".gitignore": "vendor/\n"},
        agents=1,
    )
    scene.write({"vendor/a": "a\n"})
    scene.run()
    assert scene.git("show", "main:seen.txt") == "a"
    assert scene.git("ls-tree", "--name-only", "main", "vendor") == ""
    assert names_in(scene.path / "vendor") == ["a"]


SCRIPT = """#!/bin/bash
[[ -n $BASH_VERSION ]] && cd {{.Worktree}} && mkdir -p .tool
printf '%s\\n' "{{.TaskID}}" {{.Branch}} {{.GitDir}} '{{.RepoRoot}}' > .tool/said
echo from the script
"""


def test_the_agents_script_runs_first_then_the_repositorys_command(make_crew):
    crew = make_crew(
        'setup_command = "cat .tool/said; env | sort | grep ^CREW_ >> .tool/env; pwd"',
        agent=f"exclude_patterns = ['.tool/']\nsetup_script = '''{SCRIPT}'''",
        name="it's a repo",
    )
    agent = crew.start()
    root = crew.scene.path
    said = ["1", "crew-1", str(root / ".git"), str(root)]
    assert (agent.path / ".tool" / "said").read_text().splitlines() == said
    assert crew.log().splitlines() == [
        "=== worktree: [agents.helper] setup_script ===",
        "from the script",
        "=== worktree: [worktree] setup_command ===",
        *said,
        str(agent.path),
    ]
    given = dict(line.split("=", 1) for line in (agent.path / ".tool/env").read_text().splitlines())
    assert given["CREW_TASK_ID"] == "1"
    assert given["CREW_BRANCH"] == "crew-1"
    assert given["CREW_REPO"] == str(root)
    assert given["CREW_WORKTREE"] == str(agent.path)


def test_a_worktree_is_set_up_once_and_again_after_it_was_lost(make_crew):
    crew = make_crew('copy = [".env"]\nsetup_command = "echo up >> ../../ups"', untracked=SECRET)
    ups = crew.scene.path.parent / "ups"
    agent = crew.start()
    agent.write(".env", "changed by the agent\n")
    agent = crew.start(branch="crew-1", worktree=str(agent.path))
    assert agent.tree()[".env"] == b"changed by the agent\n"
    assert ups.read_text() == "up\n"
    agent.write("draft.txt", "draft\n")
    take_checkpoint(crew.workplace.repo, agent.path, "1", label="kept", at=1.0)
    subprocess.run(["rm", "-rf", str(agent.path)], check=True)
    agent = crew.start(branch="crew-1")
    assert ups.read_text() == "up\nup\n"
    assert agent.tree()[".env"] == b"KEY=1\n"
    assert agent.tree()["draft.txt"] == b"draft\n"


def test_a_failed_setup_takes_everything_back_and_says_why(make_crew):
    crew = make_crew('copy = [".env"]\nsetup_command = "echo one; echo two >&2; exit 3"')
    crew.scene.write(SECRET)
    before = crew.refs
    with pytest.raises(CrewError) as caught:
        crew.start()
    assert "[worktree] setup_command" in caught.value.message
    assert "code 3" in caught.value.message
    assert caught.value.message.endswith("one\ntwo")
    assert "crew logs 1" in caught.value.hint
    assert crew.refs == before
    assert worktree_paths(crew.workplace.repo) == {crew.scene.path: "main"}
    assert list(crew.scene.worktrees.iterdir()) == []
    assert "two" in crew.log()


def test_a_setup_that_takes_too_long_is_ended_with_all_it_started(make_crew):
    limit = '[run]\nstep_timeout = "0.5s"'
    crew = make_crew(f'setup_command = "sleep 1000 & sleep 1000"\n{limit}')
    with pytest.raises(CrewError, match=r"limit of 0\.5 s"):
        crew.start()
    assert not (crew.scene.worktrees / "1").exists()
    assert owned_processes(crew.workplace.repo_id) == ()


def test_a_setup_that_failed_can_be_mended_and_started_again(make_crew):
    crew = make_crew('setup_command = "test -e ../../mended"')
    with pytest.raises(CrewError):
        crew.start()
    (crew.scene.path.parent / "mended").touch()
    assert sorted(crew.start().tree()) == ["readme.txt", "shared.txt"]


@pytest.mark.parametrize("work", ["a commit", "a checkpoint", "only files"])
def test_a_failed_setup_removes_nothing_where_work_was(make_crew, work):
    crew = make_crew('setup_command = "test ! -e ../../broken"')
    agent = crew.start()
    git_dir = git_dir_for(crew.workplace.repo, agent.path)
    if work == "a commit":
        agent.commit({"a.txt": "a\n"})
    else:
        agent.write("a.txt", "a\n")
    if work == "a checkpoint":
        take_checkpoint(crew.workplace.repo, agent.path, "1", label="kept", at=1.0)
    if work == "only files":
        subprocess.run(["rm", "-rf", str(git_dir)], check=True)
    else:
        subprocess.run(["rm", "-rf", str(agent.path)], check=True)
    (crew.scene.path.parent / "broken").touch()
    for _ in range(2):
        with pytest.raises(CrewError, match="setup_command"):
            crew.start(branch="crew-1")
        assert agent.tree()["a.txt"] == b"a\n"
    assert "refs/heads/crew-1" in crew.refs


def test_a_cancelled_setup_is_ended_and_repeated(make_crew):
    crew = make_crew('setup_command = "touch ../../up; test -e ../../go || sleep 1000"')

    async def cancel() -> None:
        outside = LocalOutside(crew.workplace)
        making = outside.ensure_worktree(Task(id="1", target="main"), branch="crew-1", base="main")
        task = asyncio.ensure_future(making)
        up = crew.scene.path.parent / "up"
        await asyncio.to_thread(until, up.exists, what="the setup command")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert owned_processes(crew.workplace.repo_id) == ()
    (crew.scene.path.parent / "go").touch()
    crew.start()
    assert crew.log().count("=== worktree") == 2


def test_a_gate_gets_copies_links_and_the_setup_command(make_crew):
    crew = make_crew(
        'copy = [".env"]\nlink = ["vendor"]\nsetup_command = "echo up | tee made >> ../../ups"\n'
        '[complete]\ncommand = "cat .env vendor/a made"\n'
        '[gate]\nkeep = [".env", "vendor", "made"]',
        files={".gitignore": "made\n"},
        untracked={**SECRET, "vendor/a": "a\n"},
    )
    outside = LocalOutside(crew.workplace)

    async def twice() -> list[str]:
        return [(await outside.run_gate(crew.base, task="1")).output for _ in range(2)]

    outputs = asyncio.run(twice())
    assert [output.split() for output in outputs] == [["KEY=1", "a", "up"]] * 2
    assert (crew.scene.path.parent / "ups").read_text() == "up\n"
    outside.gates.tidy()
    assert (crew.scene.path / "vendor" / "a").read_text() == "a\n"


def test_a_gate_whose_setup_fails_is_an_error_and_leaves_no_worktree(make_crew):
    crew = make_crew('setup_command = "echo no; exit 4"\n[complete]\ncommand = "true"')
    outside = LocalOutside(crew.workplace)
    with pytest.raises(CrewError, match="code 4"):
        asyncio.run(outside.run_gate(crew.base, task="1"))
    assert worktree_paths(crew.workplace.repo) == {crew.scene.path: "main"}


MAKE = """
import asyncio, sys
from pathlib import Path
from crew.domain.kernel.errors import CrewError
from crew.domain.rows.task import Task
from crew.runner.outside.local_machine import LocalOutside
from crew.workplace import find_workplace

outside = LocalOutside(find_workplace(Path(sys.argv[1])))
task = Task(id="1", target="main")
try:
    asyncio.run(outside.ensure_worktree(task, branch="crew-1", base=sys.argv[2]))
except CrewError as error:
    sys.exit(error.message)
"""


def make_once(crew: Crew, crash_at: str = "") -> "subprocess.CompletedProcess[str]":
    return in_a_process(MAKE, crew, crash_at)


def in_a_process(program: str, crew: Crew, crash_at: str) -> "subprocess.CompletedProcess[str]":
    argv = ["-c", program, str(crew.scene.path), crew.base]
    return warm_python().run(argv, cwd=Path.cwd(), env={**os.environ, "CREW_CRASH_AT": crash_at})


POINTS = [
    *("furnish.mark:1", "furnish.mark:2", "furnish.make_folder", "furnish.place_copy:2"),
    *("furnish.place_link:1", "furnish.place_link:2", "furnish.note:1", "furnish.note:2"),
    *("git.write_excludes:1", "agents.put_session_file", "agents.spawn:2"),
]
OF_LINKED = ["git.write_excludes:3", "git.include_excludes"]
"""Only a linked worktree needs a setting in the person's repository for its excludes."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", [*POINTS, *OF_LINKED])
def test_killed_anywhere_and_started_again_a_worktree_is_furnished_the_same(make_crew, point, when):
    kind = "linked" if point in OF_LINKED else "own"
    crew = make_crew(
        f'kind = "{kind}"\n'
        'copy = ["local"]\nlink = ["vendor", "nothing"]\nsetup_command = "echo 1 > made"',
        agent="exclude_patterns = ['made', 'script']\nsetup_script = 'echo 1 > script'",
        untracked={"local/a": "a\n", "local/b": "b\n", "vendor/c": "c\n"},
    )
    (crew.scene.path / "local" / "empty").mkdir()
    (crew.scene.path / "local" / "link").symlink_to("a")
    name, _, count = point.partition(":")
    died = make_once(crew, f"{name}.{when}:{count or 1}")
    assert died.returncode == -9, died.stderr
    again = make_once(crew)
    assert again.returncode == 0, again.stderr
    agent = Person(crew.scene.worktrees / "1")
    own = [".git", "local", "made", "readme.txt", "script", "shared.txt", "vendor"]
    assert names_in(agent.path) == own
    assert names_in(agent.path / "local") == ["a", "b", "empty", "link"]
    assert agent.git("status", "--porcelain") == ""
    included = crew.scene.git("config", "--get-all", "include.path", check=False)
    assert included == ("info/crew.config" if kind == "linked" else "")
    assert checkpoints(crew.workplace.repo, "1") == []


GATE = """
import asyncio, sys
from pathlib import Path
from crew.runner.outside.local_machine import LocalOutside
from crew.workplace import find_workplace

outside = LocalOutside(find_workplace(Path(sys.argv[1])))
done = asyncio.run(outside.run_gate(sys.argv[2], task="1"))
print(done.output)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_gate_killed_while_it_was_furnished_is_furnished_by_the_next(make_crew, when):
    gate = '[complete]\ncommand = "cat made"\n[gate]\nkeep = ["made"]'
    crew = make_crew(f'setup_command = "echo up > made"\n{gate}', files={".gitignore": "made\n"})

    def run(crash_at=""):
        return in_a_process(GATE, crew, crash_at)

    assert run(f"furnish.note_made.{when}:1").returncode == -9
    assert [run().stdout.split() for _ in range(2)] == [["up"]] * 2


TAKEN_BACK = [
    *("furnish.mark", "agents.spawn", "git.set_aside", "git.forget_worktree"),
    *("git.delete_set_aside", "git.delete_ref:1", "git.delete_ref:2"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", TAKEN_BACK)
def test_killed_while_a_failure_is_taken_back_nothing_stays_after_the_next(make_crew, point, when):
    crew = make_crew('copy = ["local"]\nsetup_command = "exit 5"', untracked={"local/a": "a\n"})
    before = crew.refs
    name, _, count = point.partition(":")
    assert make_once(crew, f"{name}.{when}:{count or 1}").returncode == -9
    again = make_once(crew)
    assert "code 5" in again.stderr, again.stderr
    assert crew.refs == before
    assert worktree_paths(crew.workplace.repo) == {crew.scene.path: "main"}
    assert list(crew.scene.worktrees.iterdir()) == []


MANY = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from crew.domain.rows.task import Task
from crew.runner.outside.local_machine import LocalOutside
from crew.workplace import find_workplace

def start(number):
    outside = LocalOutside(find_workplace(Path(sys.argv[1])))
    task = Task(id=number, target="main")
    asyncio.run(outside.ensure_worktree(task, branch=f"crew-{number}", base=sys.argv[2]))

numbers = sys.argv[3:]
with ThreadPoolExecutor(len(numbers)) as pool:
    list(pool.map(start, numbers))
"""


def start_many(crew: Crew, numbers: range) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", MANY, str(crew.scene.path), crew.base, *map(str, numbers)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def test_fifty_starts_at_once_some_of_them_killed_are_all_furnished_in_the_end(make_crew):
    crew = make_crew(
        'copy = [".env"]\nlink = ["vendor"]\nsetup_command = "echo 1 > made"',
        agent="exclude_patterns = ['made']",
        untracked={**SECRET, "vendor/a": "a\n"},
    )
    chance = random.Random(SEED)
    numbers = [range(first, first + 10) for first in range(0, 50, 10)]
    makers = [start_many(crew, some) for some in numbers]
    for maker in makers[:3]:
        time.sleep(chance.uniform(0.1, 1.0))  # nothing is waited for: any moment will do
        maker.kill()
    for maker in makers:
        _, said = maker.communicate()
        assert maker.returncode in {0, -9}, f"CREW_SEED={SEED}\n{said}"
    for maker, some in zip(makers, numbers, strict=True):
        if maker.returncode:
            again = start_many(crew, some)
            _, said = again.communicate()
            assert again.returncode == 0, f"CREW_SEED={SEED}\n{said}"
    assert names_in(crew.scene.worktrees) == sorted(map(str, range(50)))
    for number in range(50):
        agent = Person(crew.scene.worktrees / str(number))
        assert names_in(agent.path) == [
            *(".env", ".git", "made", "readme.txt", "shared.txt", "vendor")
        ]
        assert state_of(crew.workplace.repo, agent.path).changed == ()
