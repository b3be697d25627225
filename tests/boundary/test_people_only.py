"""A step cannot act as a person, whatever its environment is, and each attempt is reported."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agents.conftest import need
from crew.runner.requests.door_folder import door_socket
from crew.system.processes.process import working_bwrap
from crew.workplace import Workplace
from front.conftest import CREW, until
from front.mcp_scene import running_crew, waiting_step

AGENT = """\
try() {{ name=$1; shift; "$@" >"$SCENE/$name.out" 2>&1; echo "$?" >"$SCENE/$name.code"; }}
mkdir -p "$SCENE"
{acts}
echo x > file; git add -A; git commit -q -m work
echo DONE
"""

CONFIG = """
[sandbox]
mode = "{mode}"
[agents.thief]
command_template = "sh {agent}"
env = {{ SCENE = "{scene}" }}
"""

LEAVE = (  # a double fork in a session of its own, with an empty environment
    "import os,sys,time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        time.sleep(0.2)\n"
    "        code = os.spawnve(os.P_WAIT, sys.argv[1], sys.argv[1:], {})\n"
    "        open(os.path.join({scene!r}, 'left.code'), 'w').write(str(code))\n"
    "    os._exit(0)\n"
    "while not os.path.exists(os.path.join({scene!r}, 'left.code')): time.sleep(0.05)\n"
)


def modes() -> list[str]:
    return ["off", *(["auto", "strict"] if working_bwrap() else [])]


def steal(scene, mode: str, acts: str) -> Path:
    """Run a crew whose one agent does this before its work; the folder with what came of it."""
    agent = scene.folder / "thief.sh"
    agent.write_text(AGENT.format(acts=acts))
    scene.configure(CONFIG.format(mode=mode, agent=agent, scene=scene.folder))
    scene.ok("new", "--title", "work")
    scene.ok("new", "--title", "another", "--label", "rest")
    scene.ok("close", "2")
    scene.crew("run", "--agent", "thief", "--drain")
    return scene.folder


PERSONS = {
    "answer": "answer q1 yes",
    "close": "close 1",
    "edit": "edit 1 --skip-review",
    "config": "config set complete.command true",
    "stop": "stop",
    "new": "new --title more",
    "kill": "kill A",
    "merge": "merge 1",
    "accept": "merge 1 --accept",
    "comment": "comment 2 hello",
    "back": "comment 1 --request-changes no",
    "repair": "doctor --repair",
    "clean": "clean --yes",
}


@pytest.mark.parametrize("mode", modes())
def test_the_commands_of_people_are_refused_and_reported(scene, mode):
    root = shlex.quote(str(scene.root))
    acts = "\n".join(f"try {name} crew -C {root} {line}" for name, line in PERSONS.items())
    before = (scene.root / ".crew/config.toml").read_text()
    found = steal(scene, mode, acts)
    codes = {name: (found / f"{name}.code").read_text().strip() for name in PERSONS}
    assert codes == dict.fromkeys(PERSONS, "4")
    assert "is for people" in (found / "answer.out").read_text()
    entries = scene.ok("inbox", "--json").json
    assert sum(one["count"] for one in entries) == len(PERSONS)
    assert {(one["kind"], one["task"], one["run"]) for one in entries} == {
        ("suspicion", "1", "1.1")
    }
    assert [one["act"] for one in entries if one["count"] == 2] == ["`crew merge`"]
    assert "`crew answer`" in {one["act"] for one in entries}
    assert (scene.root / ".crew/config.toml").read_text().startswith(before)
    assert [scene.status("1"), scene.status("2")] == ["merged", "closed"]
    assert len(scene.ok("list", "-a", "--json").json) == 2


@pytest.mark.parametrize("mode", modes())
def test_a_step_cannot_shed_its_marker(scene, mode):
    crew, root = shlex.quote(str(CREW)), shlex.quote(str(scene.root))
    script = scene.folder / "leave.py"
    script.write_text(LEAVE.replace("{scene!r}", repr(str(scene.folder))))
    acts = f"""
try unset env -u CREW_TOKEN -u CREW_DOOR {crew} -C {root} close 1
try empty env -i {crew} -C {root} close 1
try session setsid -w env -i {crew} -C {root} close 1
try again env -i {crew} -C {root} close 1
{shlex.quote(sys.executable)} {shlex.quote(str(script))} {crew} -C {root} close 1
"""
    found = steal(scene, mode, acts)
    names = ("unset", "empty", "session", "again", "left")
    assert {(found / f"{name}.code").read_text().strip() for name in names} == {"4"}
    entries = [(one["act"], one["count"]) for one in scene.ok("inbox", "--json").json]
    assert entries == [("`crew close`", 5)]
    assert scene.status("1") == "merged"


@pytest.mark.parametrize("mode", modes())
def test_the_commands_of_people_are_refused_and_reported_in_a_gate(scene, mode):
    line = f"{shlex.quote(str(CREW))} -C {shlex.quote(str(scene.root))}"
    gate = scene.folder / "gate.sh"
    gate.write_text(f"env -i {line} close 1; {line} config set complete.command true; exit 0\n")
    scene.configure(f'[sandbox]\nmode = "{mode}"\n[complete]\ncommand = "sh {gate}"\n')
    scene.ok("new", "--title", "work")
    scene.crew("run", "--drain")
    assert scene.status("1") == "merged"
    entries = scene.ok("inbox", "--json").json
    assert {(one["kind"], one["act"]) for one in entries} == {
        ("suspicion", "`crew close`"),
        ("suspicion", "`crew config set`"),
    }
    assert all("gate" in one["question"] for one in entries)
    assert "gate.sh" in scene.ok("config", "get", "complete.command").out


def test_what_a_step_may_do_stays_allowed(scene):
    acts = """
try show crew show "$CREW_TASK_ID"
try list crew list
try comment crew comment "$CREW_TASK_ID" --type friction "no network"
try ps crew ps --json
try signal crew signal complete --summary done
"""
    found = steal(scene, "off", acts)
    codes = {one.stem: one.read_text().strip() for one in found.glob("*.code")}
    assert codes == dict.fromkeys(("show", "list", "comment", "ps", "signal"), "0")
    assert scene.ok("inbox", "--json").json == []


def test_an_entry_is_shown_counted_and_dismissed(scene):
    root = shlex.quote(str(scene.root))
    steal(scene, "off", "\n".join(f"try a{n} crew -C {root} close 1" for n in range(2)))
    (entry,) = scene.ok("inbox", "--json").json
    assert entry["question"] == "the worker of task 1 tried `crew close`, 2 times"
    assert "suspicion s1" in scene.ok("ps").out + scene.ok("ps").err
    assert "tried `crew close`" in scene.ok("inbox", "s1").out
    told = [fact for fact in scene.ok("events", "--json").json if "suspicion" in fact["subject"]]
    assert [fact["trigger"] for fact in told] == ["suspected", "suspected_again"]
    assert scene.ok("answer", "s1", "seen", "--json").json["status"] == "dismissed"
    assert scene.ok("inbox", "--json").json == []
    assert scene.crew("answer", "s1", "seen").code == 5


def test_the_marker_of_another_crew_counts_for_nothing(scene, tmp_path):
    """An agent that works on crew itself runs crews of its own."""
    there = tmp_path / "there"
    acts = f"""
git init -q {there}; git -C {there} commit -q --allow-empty -m first
try init crew -C {there} init
try new crew -C {there} new --title inner
try close crew -C {there} close 1
"""
    found = steal(scene, "off", acts)
    codes = {one.stem: one.read_text().strip() for one in found.glob("*.code")}
    assert codes == {"init": "0", "new": "0", "close": "0"}
    assert scene.ok("inbox", "--json").json == []


@pytest.mark.parametrize("mode", modes())
@pytest.mark.parametrize("kind", ["own", "linked"])
def test_an_agent_that_follows_hints_makes_no_crew_in_its_worktree(scene, mode, kind):
    scene.configure(f'[worktree]\nkind = "{kind}"\n')
    acts = f"""
try ps crew ps
try events crew events
try tui crew tui
try list crew list
try init crew init
try again crew init --tasks tk
try empty env -i {shlex.quote(str(CREW))} init
mkdir -p sub; try sub crew -C sub init; rmdir sub
"""
    found = steal(scene, mode, acts)
    said = {one.stem: one.read_text() for one in found.glob("*.out")}
    assert "crew init" not in said["ps"] + said["events"] + said["tui"] + said["list"]
    codes = {one.stem: one.read_text().strip() for one in found.glob("*.code")}
    views = {name: codes.pop(name) for name in ("ps", "events", "list")}
    assert views == dict.fromkeys(views, "0" if mode == "off" else "3")
    codes.pop("tui")
    assert codes == dict.fromkeys(("init", "again", "empty", "sub"), "4")
    assert (scene.status("1"), scene.git("ls-tree", "--name-only", "main", ".crew")) == (
        "merged",
        "",
    )


def test_python_is_refused_as_the_command_is(scene):
    program = scene.folder / "steal.py"
    program.write_text(
        "from crew import Crew\n"
        "from crew.domain.kernel.errors import CrewError\n"
        "import sys\n"
        "try:\n    Crew(sys.argv[1]).new_task('more')\n"
        "except CrewError as error:\n    sys.exit(error.exit_code)\n"
    )
    line = shlex.join([sys.executable, str(program), str(scene.root)])
    found = steal(scene, "off", f"try python env -i {line}")
    assert (found / "python.code").read_text().strip() == "4"
    assert len(scene.ok("list", "-a", "--json").json) == 2


CALLS = {
    "answer-question": {"question": "q1", "text": "yes"},
    "create-task": {"title": "more"},
    "create-quest": {"request": "more"},
    "cancel-quest": {"quest": "1"},
    "send-message": {"task": "2", "text": "hello"},
    "retry": {"subject": "1"},
    "merge-task": {"task": "1"},
    "start-runner": {},
}


def test_an_assistant_without_a_token_cannot_act_as_a_person_in_a_step(scene):
    lines = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": k, "arguments": v}}
        for n, (k, v) in enumerate(CALLS.items())
    ]
    calls = scene.folder / "calls.json"
    calls.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    root, file = shlex.quote(str(scene.root)), shlex.quote(str(calls))
    acts = f"cd {root}; try mcp env -i {shlex.quote(str(CREW))} mcp < {file}; cd -"
    found = steal(scene, "off", acts)
    answers = [line for line in (found / "mcp.out").read_text().splitlines() if line[:1] == "{"]
    assert len(answers) == len(CALLS)
    assert all("is for people" in answer for answer in answers)
    until(lambda: len(scene.ok("inbox", "--json").json) == len(CALLS))
    acts_seen = [entry["act"] for entry in scene.ok("inbox", "--json").json]
    assert all(act.startswith("the tool for `crew ") for act in acts_seen)
    assert len(scene.ok("list", "-a", "--json").json) == 2


def test_a_step_that_sees_no_crew_has_the_door(scene):
    """The repository is hidden, as a sandbox hides it; what the token allows works."""
    need(working_bwrap(), "bwrap")
    with running_crew(scene, tasks=2):
        step = waiting_step(scene)

        def inside(*args: str) -> subprocess.CompletedProcess[str]:
            hidden = ("--dev-bind", "/", "/", "--tmpfs", str(scene.root), "--unshare-pid")
            place = ("--proc", "/proc", "--chdir", str(step.worktree), "--")
            env = {
                "CREW_TOKEN": step.token,
                "CREW_DOOR": str(door_socket(Workplace(scene.root))),
                "CREW_TASK_ID": "1",
                "CREW_REPO": str(scene.root),
            }
            argv = [str(working_bwrap()), *hidden, *place, str(CREW), *args]
            return subprocess.run(
                argv, env={**os.environ, **env}, capture_output=True, text=True, check=False
            )

        assert json.loads(inside("show", "1", "--json").stdout)["body"] == "What to do."
        assert "task 1" in inside("show", "crew-1").stdout
        assert json.loads(
            inside("comment", "1", "--type", "friction", "no network", "--json").stdout
        )["reply"]
        codes = [
            inside(*line.split()).returncode
            for line in ("show 2", "list", "diff 1", "comment 2 x", "answer q1 yes", "stop --now")
        ]
        assert codes == [3, 3, 3, 4, 4, 4]
        assert inside("signal", "complete", "--summary", "done").returncode == 0
        (comment,) = scene.ok("show", "1", "--json").json["comments"]
        assert (comment["author"], comment["text"]) == ("A", "no network")
        entries = scene.ok("inbox", "--json").json
        assert [(one["act"], one["task"]) for one in entries] == [
            (f"`crew {name}`", "1") for name in ("comment", "answer", "stop")
        ]
