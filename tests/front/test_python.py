"""crew from Python: the same rows and requests as the commands, typed, and never in the way."""

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import crew as package
from crew import Crew
from crew.domain.kernel.errors import Conflict, NotFound, TimedOut, UsageError
from crew.runner.requests.runner_pipe import ask_runner
from crew.system.processes.ownership import find_process
from front.conftest import CREW, until
from front.quest_scene import asked, questing, step, written
from refusals import raises_code

ROOT = Path(__file__).parents[2]


@pytest.fixture
def crew(scene):
    with Crew(scene.root) as found:
        yield found


def test_importing_the_package_loads_nothing_of_it(tmp_path):
    code = "import sys, crew; print(crew.__version__, [m for m in sys.modules if 'crew.' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == f"{package.__version__} []\n"
    with pytest.raises(AttributeError, match="has no attribute 'Crow'"):
        _ = package.Crow


def test_a_repository_without_a_crew_is_refused_unless_one_is_wanted(bare_scene):
    with pytest.raises(UsageError, match="has no crew yet"):
        Crew(bare_scene.root)
    with Crew(bare_scene.root, init=True) as made:
        assert made.root == bare_scene.root
        assert made.tasks() == []


def test_tasks_are_made_listed_and_run_to_their_end(scene, crew):
    one = crew.new_task("first", "Do it.", labels=("x",))
    two = crew.new_task("second", after=(one.id,), priority=1)
    assert (one.id, one.body.strip(), one.labels, two.deps) == ("1", "Do it.", ("x",), ("1",))
    running = crew.run(agents=1)
    events = list(crew.events(follow=True, until=lambda: running.is_over))
    assert running.wait(timeout_s=60) == 0
    assert [task.status for task in crew.tasks()] == ["merged", "merged"]
    numbers = [event.number for event in events]
    assert numbers == sorted(numbers)
    assert [e.subject for e in events if (e.kind, e.target) == ("task", "merged")] == ["1", "2"]
    assert events == list(crew.events())


@pytest.mark.parametrize(
    ("named", "args"),
    [({"agent": "nobody"}, ("--agent", "nobody")), ({"after": ("9",)}, ("--after", "9"))],
)
def test_a_new_task_is_refused_as_on_the_command_line(scene, crew, named, args):
    said = scene.refused(3, "not_found", "new", "--title", "x", *args)
    with pytest.raises(NotFound) as caught:
        crew.new_task("x", **named)
    assert (caught.value.message, caught.value.hint) == (said.message, said.hint)
    assert crew.tasks() == []


def test_events_can_be_asked_for_by_number_time_and_subject(crew, scene):
    before = datetime.now(UTC)
    crew.new_task("first")
    crew.run(agents=1).wait()
    everything = list(crew.events())
    assert list(crew.events(since=before)) == everything
    assert list(crew.events(since=datetime.now(UTC))) == []
    assert list(crew.events(after=everything[2].number)) == everything[3:]
    assert {event.kind for event in crew.events(subject="task:1")} == {"task"}
    assert everything[0].at.tzinfo is UTC


def test_a_runner_is_stopped_with_its_context_and_only_one_can_be_up(scene, crew):
    scene.plan("1", "wait")
    crew.new_task("first")
    with crew.run(drain=False) as running:
        until(lambda: scene.agent()["status"] == "working")
        assert running.code is None
        with pytest.raises(Conflict):
            crew.run()
        with pytest.raises(TimedOut):
            running.wait(timeout_s=0.1)
        running.stop(now=True)
        assert running.wait(timeout_s=60) == 0
    assert scene.runner_pid() is None


def test_a_stop_that_the_runner_was_too_young_to_hear_is_asked_for_again(crew, monkeypatch):
    heard = []

    def hear(*args, **more):
        """At first it is dropped, as by a runner that holds the lock and has not begun."""
        heard.append(None if not heard else ask_runner(*args, **more))
        return heard[-1]

    monkeypatch.setattr("crew.front.python.runner_process.ask_runner", hear)
    with crew.run(drain=False) as running:
        pass
    assert running.code == 0
    assert heard == [None, {"reply": running.pid}]


def test_a_quest_asks_and_is_answered_and_goes_on(scene, crew):
    questing(scene, {"a": {"writer": [asked("Which?"), written("a.txt")]}}, step("a"))
    quest = crew.quest("Request", workflow="small", slots=1)
    assert (quest.id, quest.state, repr(quest)) == ("1", "open", "Quest('1', open)")
    assert crew.run().wait() == 6
    (question,) = crew.questions()
    assert quest.questions() == [question]
    assert (question.question, question.role, question.task) == ("Which?", "writer", "2")
    assert crew.answer(question.id, "this").answer == "this"
    assert crew.questions() == []
    with pytest.raises(NotFound):
        crew.answer("q9", "x")
    assert crew.run().wait() == 0
    assert [one.state for one in crew.quests()] == ["complete"]
    assert crew.find_quest("1").show()["steps_done"] == 1
    with pytest.raises(NotFound):
        crew.find_quest("2")


def test_tasks_and_quests_start_from_the_branch_that_is_checked_out_or_named(scene, crew):
    scene.git("branch", "other")
    scene.git("checkout", "-q", "-b", "feature")
    assert crew.new_task("one").base == "feature"
    assert crew.new_task("two", base="other").base == "other"
    assert crew.quest("three", workflow="solo").show()["base"] == "feature"
    assert crew.quest("four", workflow="solo", base="other").show()["base"] == "other"
    for call in (crew.new_task, crew.quest):
        with raises_code(NotFound, "unknown_branch", "nowhere"):
            call("five", base="nowhere")
    assert len(crew.tasks()) == 4


def _idle(scene):
    """Nothing moves any more but a person: the moment at which a runner that drains would end."""
    with Crew(scene.root) as crew:
        until(crew.questions)
    until(lambda: all(agent["status"] == "idle" for agent in scene.ok("ps", "--json").json))


def test_the_example_of_the_manual_waits_for_a_person_who_takes_his_time(scene):
    turns = {"writer": [asked("Which?"), written("a.txt")]}
    questing(scene, {"a": turns}, step("a"))
    text = (ROOT / "docs" / "python.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    code = code.replace('"path/to/repository"', repr(str(scene.root)))
    request = 'quest("Add a login page\\n\\nWith e-mail and password."'
    assert request in code
    code = code.replace(request, 'quest("Request", workflow="small"')
    said = []

    def answers(_prompt):
        _idle(scene)
        time.sleep(1)
        return "this"

    names = {"input": answers, "print": lambda *words: said.append(words)}
    exec(code, names)
    assert [words[0] for words in said] == ["Which?", "complete"]
    assert (scene.root / "a.txt").exists()
    assert scene.runner_pid() is None or not find_process(scene.runner_pid())


def test_it_serves_where_a_loop_runs_already(scene, crew):
    questing(scene, {})

    async def in_a_notebook():
        quest = crew.quest("Request", workflow="small")
        quest.cancel("changed my mind")
        with pytest.raises(UsageError):
            crew.quest(" ")
        return quest.state

    assert asyncio.run(in_a_notebook()) == "cancelled"


def test_the_example_runs_to_its_end(tmp_path):
    env = {**os.environ, "PATH": f"{CREW.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "quest.py")],
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "chaoswhisperer asks: Formal or informal?\n" in done.stdout
    # The runner may end before the answer reaches it: then the next one continues.
    _, waited, after = done.stdout.partition("walk 1: waiting_for_user\n")
    assert waited
    assert "walk 1: in_progress\n" in after
    assert done.stdout.endswith(
        "3 of 3 steps, quest complete\non main: english.txt, german.txt, names.txt\n"
    )
