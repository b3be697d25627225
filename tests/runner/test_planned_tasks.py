"""A planned step becomes one task, whatever dies in between, and the task follows the plan."""

import asyncio
import json
import tomllib
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, cast

import pytest

from crew.config.workflow_files import read_workflow
from crew.domain.commands import CommandKind, WriteItems
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.quests.item_tasks import ItemTask
from crew.domain.quests.position import first_position
from crew.domain.rows.quest import PlanItem, Quest
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.workflow import as_text
from crew.domain.rules import Rules
from crew.domain.scope import Scope
from crew.domain.world import World, apply_all, with_rows
from crew.runner.doers.quest_doers import write_items
from crew.runner.engine import Engine
from crew.runner.outside.plan_items import PlannedTasks
from crew.runner.quest_start import begin_quest
from crew.tasks.files_source import FilesSource
from crew.tasks.task_source import NewTask, TaskChanges
from front.quest_scene import SMALL

PLAN = [
    {"id": "a", "title": "Step a", "description": "First."},
    {"id": "b", "title": "Step b", "dependencies": ["a"], "files": ["b.txt"], "acceptance": "b"},
]


@pytest.fixture
def source(tmp_path):
    found = FilesSource(tmp_path, namespace="default")
    found.ensure()
    found.add(NewTask(title="the request", labels=("quest",)), at=1.0)
    return found


def told(source, step, **more) -> TaskItem:
    wanted = ItemTask(
        quest="1",
        key=step.key,
        id=step.task,
        title=step.title,
        text=step.description,
        base="crew-1",
    )
    return PlannedTasks(source).tell(replace(wanted, **more))


def test_a_step_is_a_task_below_its_request_on_the_quests_branch(source):
    step = PlanItem(key="a", title="Step a", description="Do it.")
    item = told(source, step)
    assert (item.id, item.title, item.body.strip()) == ("2", "Step a", "Do it.")
    assert (item.parent, item.base, set(item.labels)) == ("1", "crew-1", {"quest-1", "step-a"})


def test_a_step_that_was_made_before_a_crash_is_found_and_not_made_again(source):
    step = PlanItem(key="a", title="Step a", description="Do it.")
    first = told(source, step)
    assert told(source, step) == first
    assert told(source, step._replace(task=first.id)) == first
    assert len(source.scan().items) == 2


def test_steps_of_the_same_name_in_two_quests_are_two_tasks(source):
    step = PlanItem(key="a", title="Step a")
    first = told(source, step)
    other = told(source, step, quest="7", base="crew-7")
    assert first.id != other.id


def test_a_task_that_is_some_other_steps_already_is_not_taken_for_a_new_one(source):
    """A step that was given up and planned again under its old name is a new task."""
    step = PlanItem(key="a", title="Step a")
    first = told(source, step)
    assert told(source, step, taken=frozenset({first.id})).id != first.id


def test_a_changed_plan_changes_the_text_and_what_it_waits_for_and_nothing_else(source):
    one, two = (told(source, PlanItem(key=key, title=key)).id for key in "ab")
    step = PlanItem(key="c", title="Step c", description="Old.")
    made = told(source, step, deps=(one,))
    source.edit(made.id, TaskChanges(add_labels=("mine",)))
    changed = step._replace(title="Better", description="New.", task=made.id)
    now = told(source, changed, deps=(two,))
    assert (now.id, now.title, now.body.strip(), now.deps) == (made.id, "Better", "New.", (two,))
    assert "mine" in now.labels
    assert told(source, changed, deps=(two,)) == now


@pytest.mark.parametrize("file", [3, 4, 5, 6, 7, 8])
def test_a_runner_that_dies_while_it_makes_steps_makes_each_once(make_scene, file):
    done = {"run": "crew signal complete --summary fine"}
    script = {
        "tasks": {
            "Request": {"as_planner": [[{"run": "crew quest plan PLACE/plan.json"}, done], [done]]},
            **{
                f"Step {key}": {
                    "as_writer": [
                        [{"write": {"path": f"{key}.txt", "text": "x\n"}}, {"commit": key}, done]
                    ]
                }
                for key in "ab"
            },
        }
    }
    scene = make_scene(script)
    scene.write({".crew/workflows/two.toml": SMALL})
    (scene.path.parent.parent / "plan.json").write_text(json.dumps(PLAN))
    workplace = scene.make()
    assert begin_quest(workplace, "Request", workflow="two") == "1"
    workplace.db.close()
    scene.run(code=-9, CREW_CRASH_AT=f"tasks.put_in_place.after:{file}")
    scene.run()
    tasks = scene.world.tasks.values()  # a crash may cost a number, never make a second task
    assert sorted(task.title for task in tasks) == ["Request", "Step a", "Step b"]
    assert {task.state for task in tasks} == {"merged"}
    assert scene.world.quests["1"].state == "complete"


@dataclass
class Telling:
    """A desk at which steps are told to a source that notes what it hears and gives ids from 3."""

    known: World
    heard: list[ItemTask] = field(default_factory=list)

    @property
    def outside(self) -> "Telling":
        return self

    async def tell_step(self, step: ItemTask) -> TaskItem:
        self.heard.append(step)
        number = str(2 + len(self.heard))
        return TaskItem(id=number, title=step.title, labels=step.labels, base="crew-1")

    def world(self) -> World:
        return self.known

    def now(self) -> float:
        return 9.0

    def record(self, facts: list[Fact]) -> None:
        self.known = apply_all(self.known, facts)


def walked(*steps: PlanItem, second: Task) -> World:
    """A quest that walks these steps, and a second task beside that of its request."""
    quest = Quest(
        id="1",
        workflow="two",
        definition=as_text(read_workflow("two", tomllib.loads(SMALL))),
        slots=3,
        plan=tuple(tuple(step) for step in steps),
    )
    root = Task(id="1", title="Request", state="in_progress", quest="1", branch="crew-1")
    position = replace(first_position(quest, "1"), stage="walk")
    return with_rows([quest, position, root, second])


def telling(*steps: PlanItem, second: Task) -> Telling:
    context = Telling(walked(*steps, second=second))
    asyncio.run(write_items(cast("Any", context), WriteItems(subject="1")))
    return context


def test_a_task_that_was_closed_as_a_stray_is_not_taken_for_a_step_that_comes_back():
    """It was made for a plan that lost the step meanwhile: closed, it would count as finished."""
    stray = Task(id="2", title="Step a", state="closed", quest="1")
    context = telling(PlanItem(key="a", title="Step a"), second=stray)
    assert [step.taken for step in context.heard] == [frozenset({"1", "2"})]
    assert context.known.quests["1"].steps[0].task == "3"


@pytest.mark.parametrize(("gone", "deps"), [(True, ()), (False, ("2",))])
def test_a_step_does_not_wait_for_one_that_the_source_has_lost(gone, deps):
    finished = Task(id="2", title="Step a", state="merged", quest="1", gone=gone)
    first = PlanItem(key="a", title="Step a", task="2", told=True)
    context = telling(first, PlanItem(key="b", title="Step b", deps=("a",)), second=finished)
    assert [step.deps for step in context.heard] == [deps]


def test_a_step_that_cannot_be_told_is_tried_again_and_stops_nobody_else():
    class Mute:
        tried = 0

        async def tell_step(self, _step: ItemTask) -> TaskItem:
            self.tried += 1
            raise Conflict("the file cannot be written", hint="mend it")

        def foresee(self, _targets: tuple[str, ...]) -> None:
            pass

    outside, clock = Mute(), count(0.0, 100.0)
    engine = Engine(
        outside=cast("Any", outside),
        rules=Rules(stuck_after=2),
        epoch=1,
        world=walked(PlanItem(key="a", title="A"), second=Task(id="2", written="todo")),
        store=apply_all,
        now=lambda: next(clock),
        session_of=str,
        scope=Scope(kinds=frozenset({CommandKind.WRITE_ITEMS})),
    )
    asyncio.run(engine.run(until=lambda: outside.tried == 5))
    assert engine.failure is None
