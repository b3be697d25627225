"""What a crew finds when it starts again, and what requests do to a crew at work."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from crew.domain.requests import Request
from crew.domain.world import World
from crew.runner.requests.ask_crew import RequestRefused, ask
from crew.store.fact_log import facts_after
from crew.system.processes.ownership import owned_processes
from runner.conftest import scenes_in
from runner.scene import PATIENCE_S, DriverScene, check_the_end, until
from runner.stories import done, work
from warm import Forked

SESSION = {"run": 'echo "$CREW_SESSION ${CREW_RESUME-new}" >> PLACE/sessions; touch PLACE/stepping'}
GO = {"run": "until test -e PLACE/go; do sleep 0.02; done"}
DRAFT = {"write": {"path": "draft.txt", "text": "draft\n"}}


def _running(scene: DriverScene, proof: str = "stepping") -> Forked:
    """The crew, once its agent has left this proof."""
    running = scene.start()
    file = scene.path.parent.parent / proof
    until(lambda: file.exists() or running.poll() is not None, what=f"{proof} of the agent")
    assert running.poll() is None, scene.said()
    return running


def _hanging(scene: DriverScene) -> Forked:
    """The crew, once its scripted agent hangs: a step killed earlier would be played again."""
    running = _running(scene)
    until((scene.path / ".crew" / "sessions" / "script-1.json").exists, what="the step's last act")
    return running


def _until_logged(scene: DriverScene, task: str, word: str) -> None:
    """The agent has said it; only now the runner has heard it, too."""
    until(lambda: word in scene.log_of(task), what=f"{word} in the log")


def _kill(running: Forked) -> None:
    running.kill()
    running.wait()


def _moves(scene: DriverScene, kind: str) -> list[tuple[str | None, str | None, str]]:
    db = scene.workplace.db
    moves = [(f.source, f.target, f.trigger) for _, f in facts_after(db) if f.kind == kind]
    db.close()
    return [move for move in moves if move[1]]


def _ask(scene: DriverScene, verb: str, settled=lambda _world: True, **args) -> object:
    workplace = scene.workplace
    try:
        return ask(workplace, Request(verb=verb, args=args), settled=settled)
    finally:
        workplace.db.close()


def test_resume_goes_on_in_the_session_that_was_killed(make_scene):
    script = {"steps": [[SESSION, DRAFT, {"hang": True}], done(SESSION, {"commit": "all"})]}
    scene = make_scene({"default": script}, tasks=["one"], agents=1)
    base = scene.git("rev-parse", "HEAD")
    _kill(_hanging(scene))
    scene.run()
    check_the_end(scene, base=base, merged=1)
    first, second = (scene.path.parent.parent / "sessions").read_text().splitlines()
    assert (first.split()[1], second.split()[1]) == ("new", "1")
    assert first.split()[0] == second.split()[0]
    run = scene.world.runs["1.1"]
    assert (run.steps, run.attempt) == (1, 2)
    assert (scene.path / "draft.txt").read_text() == "draft\n"


RESET_PROGRAM = """
case "$CREW_TASK_TITLE-$CREW_RUN_ID" in
  *.2) test -e draft.txt && git add draft.txt
       echo "$CREW_TASK_TITLE" > "$CREW_TASK_TITLE.txt"; git add -A; git commit -qm again; echo DONE
       exit;;
  missing-*) ;;
  dirty-*) echo draft > draft.txt;;
  finished-*) echo x > finished.txt; git add -A; git commit -qm x; echo DONE;;
  clean-*) echo I am not DONE; echo x > clean-1.txt; git add -A; git commit -qm x;;
esac
touch "PLACE/$CREW_TASK_TITLE"
while :; do sleep 1; done
"""


@pytest.fixture(scope="module")
def reset(tmp_path_factory) -> Iterator[DriverScene]:
    """Four agents whose runner was killed; one worktree was deleted before it came back."""
    names = ["missing", "dirty", "finished", "clean"]
    with scenes_in(tmp_path_factory.mktemp("reset")) as make:
        config = '[run]\nrecovery = "reset"\nbackoff_s = 0.01\n'
        template = json.dumps(RESET_PROGRAM)
        config += f"[agents.program]\ncommand_template = {template}\n"
        scene = make(tasks=names, config=config, agents=4, kind="program")
        base = scene.git("rev-parse", "HEAD")
        running = _running(scene, "missing")
        for name in names:
            until((scene.path.parent.parent / name).exists, what=name)
        _until_logged(scene, "3", "DONE")
        _kill(running)
        subprocess.run(["rm", "-rf", str(scene.worktrees / "1")], check=True)
        scene.run()
        check_the_end(scene, base=base, merged=4)
        yield scene


def _runs(scene: DriverScene, task: int) -> list[str]:
    return [run.state for run in scene.world.runs.values() if run.task == str(task)]


def test_reset_gives_back_a_task_whose_worktree_is_missing(reset):
    assert _runs(reset, 1) == ["failed", "complete"]
    assert (reset.path / "missing.txt").exists()


def test_reset_keeps_what_a_dirty_worktree_held_and_gives_the_task_back(reset):
    assert _runs(reset, 2) == ["failed", "complete"]
    assert reset.kept("2")["draft.txt"] == "draft"
    assert (reset.path / "draft.txt").read_text() == "draft\n"


def test_reset_checks_a_clean_worktree_whose_log_says_done(reset):
    assert _runs(reset, 3) == ["complete"]
    assert reset.world.runs["3.1"].steps == 1


def test_reset_gives_back_a_clean_task_that_is_not_done(reset):
    assert _runs(reset, 4) == ["failed", "complete"]
    assert (reset.path / "clean-1.txt").exists()
    assert (reset.path / "clean.txt").exists()


def test_a_done_of_an_earlier_step_does_not_count_for_a_killed_one(make_scene):
    program = """
case $CREW_RUN_ID-$CREW_ROUND in
  *.1-1) echo BROKEN > a.txt; git add -A; git commit -qm a; echo DONE;;
  *.1-2) touch PLACE/stepping; while :; do sleep 1; done;;
  *) echo fine > a.txt; git add -A; git commit -qm b; echo DONE;;
esac
"""
    config = '[run]\nrecovery = "reset"\nbackoff_s = 0.01\n'
    config += f"[agents.program]\ncommand_template = {json.dumps(program)}\n"
    scene = make_scene(tasks=["one"], config=config, agents=1, kind="program")
    base = scene.git("rev-parse", "HEAD")
    _kill(_running(scene))
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert _runs(scene, 1) == ["failed", "complete"]


def test_reset_hears_done_in_the_log_of_an_agent_that_speaks_json(make_scene):
    """The script player and Claude print events, so the word is inside of one."""
    config = '[run]\nrecovery = "reset"\nbackoff_s = 0.01\n'
    steps = [[*work("a.txt"), {"done": True}, SESSION, {"hang": True}]]
    scene = make_scene({"default": {"steps": steps}}, tasks=["one"], config=config, agents=1)
    base = scene.git("rev-parse", "HEAD")
    running = _hanging(scene)
    _until_logged(scene, "1", "DONE")
    _kill(running)
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert _runs(scene, 1) == ["complete"]


@pytest.fixture
def hanging(make_scene) -> DriverScene:
    """One agent that hangs in its first step, with a daemon, a draft and much to lose."""
    script = {
        "steps": [[DRAFT, {"daemon": 600}, SESSION, {"hang": True}], done({"commit": "all"})],
        "on_resumed": [done({"commit": "all"})],
    }
    return make_scene({"default": script}, tasks=["one"], agents=1)


def _is_settled(world: World) -> bool:
    return not any(agent.killing for agent in world.agents.values())


def test_kill_ends_everything_keeps_the_work_and_gives_the_task_back(hanging):
    base = hanging.git("rev-parse", "HEAD")
    running = _hanging(hanging)
    workplace = hanging.workplace
    before = {pid for pid, _ in owned_processes(workplace.repo_id)}
    _ask(hanging, "kill", _is_settled, agent="A")
    assert before.isdisjoint({pid for pid, _ in owned_processes(workplace.repo_id)})
    assert ("working", "idle", "killed") in _moves(hanging, "agent")
    assert ("in_progress", "todo", "killed") in _moves(hanging, "task")
    assert hanging.kept("1")["draft.txt"] == "draft"
    assert running.wait(timeout=PATIENCE_S) == 0, hanging.said()
    check_the_end(hanging, base=base, merged=1)
    assert (hanging.path / "draft.txt").read_text() == "draft\n"


def test_kill_ends_what_a_dead_runner_left_behind(hanging):
    _kill(_hanging(hanging))
    marker = f"{hanging.workplace.repo_id}/1.1/1/1/1"
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, "CREW_OWNER": marker})
    _ask(hanging, "kill", agent="A")
    assert orphan.wait(timeout=PATIENCE_S) != 0
    assert owned_processes(hanging.workplace.repo_id) == ()
    world = hanging.world
    assert (world.agents["A"].state, world.tasks["1"].state) == ("idle", "todo")
    assert hanging.kept("1")["draft.txt"] == "draft"


def test_a_task_that_is_closed_while_an_agent_works_at_it_is_never_merged(hanging):
    base = hanging.git("rev-parse", "HEAD")
    running = _hanging(hanging)
    _ask(hanging, "close", _is_settled, task="1", reason="no longer wanted")
    assert running.wait(timeout=PATIENCE_S) == 0, hanging.said()
    world = hanging.world
    assert (world.agents["A"].state, world.tasks["1"].state) == ("idle", "closed")
    assert hanging.git("rev-parse", "main") == base
    assert not hanging.worktrees.exists()
    assert hanging.kept("1")["draft.txt"] == "draft"
    assert str(hanging.workplace.source.show("1").status) == "closed"


def test_a_second_runner_is_refused_with_the_pid_and_start_of_the_first(hanging):
    running = _hanging(hanging)
    holder = json.loads((hanging.path / ".crew" / "lock").read_text())
    second = DriverScene(path=hanging.path, options=hanging.options)
    refused = second.run(code=5)["error"]
    assert f"pid {running.pid}" in refused
    assert holder["started"] in refused
    assert running.poll() is None
    _kill(running)


def test_stop_lets_a_step_finish_and_starts_no_other(make_scene):
    script = {"steps": [[SESSION, GO, *work("a.txt")], done(*work("b.txt"))]}
    scene = make_scene({"default": script}, tasks=["one"], agents=1)
    base = scene.git("rev-parse", "HEAD")
    running = _running(scene)
    assert _ask(scene, "stop") == running.pid
    assert running.poll() is None
    (scene.path.parent.parent / "go").touch()
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    run = scene.world.runs["1.1"]
    assert (run.steps, run.stepping, run.state) == (1, False, "working")
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert scene.world.runs["1.1"].steps == 2


def test_stop_now_ends_steps_and_keeps_everything(hanging):
    base = hanging.git("rev-parse", "HEAD")
    running = _hanging(hanging)
    _ask(hanging, "stop", now=True)
    assert running.wait(timeout=PATIENCE_S) == 0, hanging.said()
    assert owned_processes(hanging.workplace.repo_id) == ()
    run = hanging.world.runs["1.1"]
    assert (run.stepping, run.state) == (True, "working")
    assert (hanging.worktrees / "1" / "draft.txt").read_text() == "draft\n"
    assert hanging.kept("1")["draft.txt"] == "draft"
    hanging.run()
    check_the_end(hanging, base=base, merged=1)
    assert list(hanging.world.runs) == ["1.1"]


def test_a_request_that_cannot_be_done_is_refused_in_words(hanging):
    running = _hanging(hanging)
    with pytest.raises(RequestRefused) as refused:
        _ask(hanging, "assign", agent="A", task="1")
    assert (refused.value.exit_code, refused.value.code) == (5, "agent_busy")
    assert "crew ps" in refused.value.hint
    _kill(running)


def test_a_terminated_runner_ends_like_one_that_was_asked_to_stop(make_scene):
    script = {"steps": [[SESSION, GO, *work("a.txt")], done(*work("b.txt"))]}
    scene = make_scene({"default": script}, tasks=["one"], agents=1)
    running = _running(scene)
    running.terminate()
    (scene.path.parent.parent / "go").touch()
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    run = scene.world.runs["1.1"]
    assert (run.steps, run.stepping) == (1, False)
