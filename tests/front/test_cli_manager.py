"""`crew manager`: an agent that works through the board with crew's own commands."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.conftest import need
from crew.agents.terminal.tmux import is_installed
from crew.domain.kernel.errors import CrewError
from crew.runner.background import manager_door
from crew.runner.background.manager_door import ask_for_runner
from crew.store.runner_lock import find_runner
from crew.system.processes.process import working_bwrap
from crew.workplace import find_workplace
from front.conftest import until

MANAGER = """\
cat > "$SCENE/manager-prompt"
case "$(cat "$SCENE/manager-plan" 2>/dev/null)" in
  close) crew close 1 --reason superseded ;;
  write) echo x > written-by-manager ; git commit -q --allow-empty -m mine ;;
  fail) exit 3 ;;
  run) crew run --detach --agents 1 > "$SCENE/pid" 2> "$SCENE/said" ;;
  stay) crew run 2> "$SCENE/said" ;;
  plan) crew new --title planned ; crew close 1 --reason tried ;;
esac
echo "1: a person must choose"
echo DONE
"""


@pytest.fixture
def managed(scene):
    script = scene.folder / "manager.sh"
    script.write_text(MANAGER)
    config = scene.root / ".crew" / "config.toml"
    config.write_text(
        config.read_text()
        + f'[agents.boss]\nrole = "manager"\ncommand_template = "sh {script}"\n'
        + f'prompt_via = "stdin"\nenv = {{ SCENE = "{scene.folder}" }}\n'
    )
    return scene


def auto(scene, *more):
    return scene.crew("manager", "boss", "--auto", *more)


def test_an_empty_board_needs_no_manager(managed):
    said = auto(managed)
    assert (said.code, "nothing is open" in said.err) == (0, True)
    assert not (managed.folder / "manager-prompt").exists()


def test_only_a_manager_manages(managed):
    refused = managed.refused(2, "not_a_manager", "manager", "sh", "--auto")
    assert "boss, claude-manager" in refused.hint
    managed.refused(3, "not_found", "manager", "nobody")


@pytest.mark.parametrize("how", [(), ("--auto",)])
def test_a_manager_whose_program_is_missing_is_not_started(managed, how):
    managed.configure('[agents.ghost]\nrole = "manager"\ncommand_template = "no-such-program"\n')
    managed.ok("new", "--title", "one")
    refused = managed.refused(1, "not_installed", "manager", "ghost", *how)
    assert "no-such-program" in refused.message
    assert "`crew manager NAME`" in refused.hint


def test_the_manager_decides_and_the_board_is_empty(managed):
    managed.ok("new", "--title", "superseded")
    (managed.folder / "manager-plan").write_text("close")
    assert auto(managed).code == 0
    assert managed.ok("show", "1", "--json").json["status"] == "closed"


def test_what_it_cannot_decide_is_listed_with_the_reason(managed):
    managed.ok("new", "--title", "choose a colour")
    managed.ok("new", "--title", "paint it", "--after", "1")
    said = auto(managed, "--json")
    assert said.code == 6
    document = said.json
    assert document["error"]["code"] == "check_failed"
    assert [(one["task"], one["why"]) for one in document["open"]] == [
        ("1", "ready to start"),
        ("2", "waits for 1"),
    ]


def test_its_end_is_one_document_too(managed):
    assert managed.ok("manager", "--stop", "--json").json["stopped"] is True
    assert auto(managed, "--json").json["open"] == []


def test_it_is_told_the_board_and_its_commands(managed):
    managed.ok("new", "--title", "choose a colour")
    auto(managed)
    told = (managed.folder / "manager-prompt").read_text()
    assert "1 [todo] choose a colour: ready to start" in told
    assert "crew close" in told
    assert "crew retry" in told


def test_it_cannot_change_a_file_of_the_repository(managed):
    need(working_bwrap(), "bwrap")
    managed.ok("new", "--title", "choose a colour")
    (managed.folder / "manager-plan").write_text("write")
    auto(managed)
    assert not (managed.root / "written-by-manager").exists()


def test_a_runner_that_it_starts_is_outside_its_sandbox_and_outlives_it(managed):
    need(working_bwrap(), "bwrap")
    managed.ok("new", "--title", "one")
    (managed.folder / "manager-plan").write_text("run")
    try:
        auto(managed, "--max-steps", "1")
        pid = (managed.folder / "pid").read_text().strip()
        assert pid, (managed.folder / "said").read_text()
        assert "sandbox:" not in (managed.folder / "said").read_text()  # of its own, not of runners
        until(lambda: managed.ok("show", "1", "--json").json["status"] != "todo")
        assert find_runner(managed.root / ".crew" / "lock")["pid"] == int(pid)
        namespace = Path("/proc/self/ns/mnt").readlink()
        assert Path(f"/proc/{pid}/ns/mnt").readlink() == namespace
        assert "CREW_RUNNER_DOOR" not in Path(f"/proc/{pid}/environ").read_text()
    finally:
        managed.crew("stop", "--now")


def test_the_manager_of_a_terminal_starts_a_runner_that_outlives_the_terminal(managed):
    need(working_bwrap(), "bwrap")
    need(is_installed(), "tmux")
    config = managed.root / ".crew" / "config.toml"
    command = f"sh {managed.folder}/manager.sh < $CREW_PROMPT_FILE; sleep 600"
    config.write_text(config.read_text() + f"interactive_template = {json.dumps(command)}\n")
    (managed.folder / "manager-plan").write_text("run")
    lock = managed.root / ".crew" / "lock"
    try:
        managed.ok("manager", "boss")
        until(lambda: find_runner(lock) is not None)
        runner = find_runner(lock)
        managed.ok("manager", "--stop")
        assert find_runner(lock) == runner
        namespace = Path("/proc/self/ns/mnt").readlink()
        assert Path(f"/proc/{runner['pid']}/ns/mnt").readlink() == namespace
    finally:
        managed.crew("manager", "--stop")
        managed.crew("stop", "--now")


def test_it_does_not_become_a_runner_itself(managed):
    managed.ok("new", "--title", "one")
    (managed.folder / "manager-plan").write_text("stay")
    auto(managed)
    assert "crew run --detach" in (managed.folder / "said").read_text()


def test_instructions_are_planned_although_the_board_is_empty(managed):
    (managed.folder / "manager-plan").write_text("plan")
    said = auto(managed, "-p", "write a poem")
    told = (managed.folder / "manager-prompt").read_text()
    assert "write a poem" in told
    assert "no task is open" in told
    assert managed.ok("show", "1", "--json").json["title"] == "planned"
    assert (said.code, "nothing is open" in said.err) == (0, True)


def test_a_manager_that_fails_is_told_as_that(managed):
    managed.ok("new", "--title", "choose a colour")
    (managed.folder / "manager-plan").write_text("fail")
    managed.refused(1, "manager_failed", "manager", "boss", "--auto")


def test_a_manager_that_asks_before_its_door_is_open_waits_for_it(scene):
    asking = scene.start_anew("run", "--detach", CREW_RUNNER_DOOR="1")
    time.sleep(1.0)  # it has asked, and no process has answered
    assert asking.poll() is None
    serving = subprocess.Popen([sys.executable, "-c", SERVE, scene.root])
    try:
        assert asking.wait(timeout=60) == 0, asking.stderr.read()
        assert find_runner(scene.root / ".crew" / "lock") is not None
    finally:
        serving.kill()
        serving.wait()
        scene.crew("stop", "--now")


def test_a_manager_without_a_door_is_refused(scene, monkeypatch):
    monkeypatch.setattr(manager_door, "OPENING_LIMIT_S", 0.1)
    with pytest.raises(CrewError) as refused:
        ask_for_runner(find_workplace(scene.root), count=None, kind=None, drain=False)
    assert refused.value.code == "no_manager_door"


SERVE = """
import sys
from pathlib import Path
from crew.runner.background.manager_door import serve
from crew.workplace import find_workplace
serve(find_workplace(Path(sys.argv[1])), lambda: True, every_s=0.1)
"""


@pytest.mark.faults
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("effect", ["runner.ask_door", "runner.answer_door"])
def test_a_death_at_the_managers_door_leaves_a_crew_that_can_be_started(scene, effect, when):
    env = {**os.environ, "CREW_CRASH_AT": f"{effect}.{when}"}
    lock, door = scene.root / ".crew" / "lock", {"CREW_RUNNER_DOOR": "1"}
    serving = [subprocess.Popen([sys.executable, "-c", SERVE, scene.root], env=env)]
    try:
        until(lambda: _is_read(scene.root / ".crew" / "start-runner"))
        scene.crew("run", "--detach", **door, CREW_CRASH_AT=env["CREW_CRASH_AT"])
        if serving[0].poll() is not None:
            serving.append(subprocess.Popen([sys.executable, "-c", SERVE, scene.root]))
            until(lambda: _is_read(scene.root / ".crew" / "start-runner"))
        scene.crew("run", "--detach", **door)
        assert find_runner(lock) is not None
    finally:
        for one in serving:
            one.kill()
            one.wait()
        scene.crew("stop", "--now")


def _is_read(pipe):
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
