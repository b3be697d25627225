"""An agent whose commits git refuses: the agent and the person get git's own words."""

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap
from runner.scene import DriverScene

LEFT = {"write": {"path": "a.txt", "text": "x\n"}}
AGENT = {"default": {"steps": [[LEFT, {"done": True}]] * 9}}


def set_hook(scene: DriverScene) -> None:
    hook = scene.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'lint: a.txt has no header' >&2\nexit 1\n")
    hook.chmod(0o755)


def take_identity(scene: DriverScene) -> None:
    scene.git("config", "user.useConfigOnly", "true")
    scene.git("config", "user.email", "")
    scene.git("config", "user.name", "")


def break_filter(scene: DriverScene) -> None:
    """Such as git-lfs that is not installed in the sandbox."""
    scene.git("config", "filter.broken.clean", "no-such-program")
    scene.git("config", "filter.broken.required", "true")
    (scene.path / ".git" / "info").mkdir(exist_ok=True)
    scene.commit({".gitattributes": "a.txt filter=broken\n"})


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (set_hook, "lint: a.txt has no header"),
        (take_identity, "empty ident name"),
        (break_filter, "clean filter 'broken' failed"),
    ],
    ids=["a hook", "no identity", "a filter"],
)
def test_an_agent_and_a_person_get_the_words_with_which_git_refuses(make_scene, refuse, words):
    need(working_bwrap(), "bwrap")
    scene = make_scene(AGENT, tasks=["one"], agents=1)
    refuse(scene)
    scene.run()
    (run,) = scene.world.runs.values()
    assert scene.world.tasks["1"].state == "error"
    assert words in run.error
    assert all(line.startswith("> ") for line in run.notes.splitlines() if words in line)
    assert not (scene.path / "a.txt").exists()


def test_work_that_git_would_commit_is_only_named(make_scene):
    scene = make_scene(AGENT, tasks=["one"], agents=1)
    scene.run()
    (run,) = scene.world.runs.values()
    assert run.error.endswith("it said DONE, and work was left uncommitted")
    assert run.notes.splitlines() == ["> a.txt"]


def test_a_lock_that_an_agent_s_git_left_is_gone_in_its_next_round(make_scene):
    lock = {"run": 'touch "$(git rev-parse --git-dir)/index.lock"; ! git add a.txt'}
    rounds = [[LEFT, lock, {"done": True}], [{"commit": "a"}, {"done": True}]]
    scene = make_scene({"default": {"steps": rounds}}, tasks=["one"], agents=1)
    scene.run()
    assert scene.world.tasks["1"].state == "merged"
    (run,) = scene.world.runs.values()
    assert run.round == 2
