"""Plans: every fault is named at once, and a new plan keeps what is finished."""

from dataclasses import replace

import pytest

from crew.domain.kernel.errors import UsageError
from crew.domain.quests.item_tasks import step_text
from crew.domain.quests.position import is_unfinished
from crew.domain.quests.quest_plan import (
    LONGEST,
    chains_behind,
    faults,
    next_to_write,
    quests_to_write,
    read_steps,
    tasks_recorded,
)
from crew.domain.rows.quest import PlanItem, Quest, QuestState
from crew.domain.world import apply_all, with_rows
from domain.quest_life import ROOT, Life, steps
from refusals import raises_code


def found(*planned, most=50, finished=()):
    return list(faults(tuple(planned), most=most, finished=finished))


def step(key, *deps, title="Do it", **texts):
    return PlanItem(key=key, title=title, deps=deps, **texts)


# Shapes


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (None, ()),
        ([], ()),
        ("a, b", ()),
        ({"id": "a"}, ()),
        (["a"], ("1",)),
        ([{"id": "a", "title": "t"}, 7], ("2",)),
        ([{"id": "a", "titel": "t", "prio": 1}], ("1", "prio, titel")),
        ([{"id": ["a"]}], ("1", "id")),
        ([{"id": True}], ("1", "id")),
        ([{"id": "a", "files": [False]}], ("1", "files")),
        ([{"id": "a", "title": None}], ("1", "title")),
        ([{"id": "a", "description": "x" * (LONGEST + 1)}], ("1", "description")),
        ([{"id": "a", "dependencies": "b"}], ("1", "dependencies")),
        ([{"id": "a", "files": [["x"]]}], ("1", "files")),
    ],
)
def test_whatever_has_the_wrong_shape_is_said_so_that_it_can_be_mended(values, named):
    with raises_code(UsageError, "invalid_plan", *named) as refused:
        read_steps(values)
    assert refused.value.hint


def test_steps_are_read_with_all_their_fields_and_numbers_may_be_ids():
    values = {
        "id": 1,
        "title": " Parse ",
        "description": "d",
        "dependencies": [2],
        "files": ["a.py"],
        "acceptance": "it parses",
    }
    assert read_steps([values]) == (
        PlanItem(
            key="1",
            title="Parse",
            description="d",
            deps=("2",),
            files=("a.py",),
            acceptance="it parses",
        ),
    )


# Faults


def test_a_sound_plan_has_no_faults():
    assert found(step("a"), step("b", "a"), step("c", "a", "b")) == []


@pytest.mark.parametrize(
    ("planned", "words"),
    [
        ([step("a", "b"), step("b", "a")], "items wait for each other in a cycle: "),
        ([step("a", "a")], "items wait for each other in a cycle: a → a"),
        ([step("a", "x")], "item a waits for 'x', which is not in the plan"),
        ([step("a"), step("a")], "the id 'a' is used 2 times"),
        ([step("a b")], "'a b' cannot be an id"),
        ([step("")], "'' cannot be an id"),
        ([step("../up")], "'../up' cannot be an id"),
        ([step("x" * 41)], "cannot be an id"),
        ([step("-a")], "'-a' cannot be an id"),
        ([step("a", title="")], "item a needs a title of one line"),
        ([step("a", title="one\ntwo")], "item a needs a title of one line"),
        ([step("a", files=("f" * 90_000,))], "the texts of item a are longer than"),
    ],
)
def test_a_fault_is_named_with_its_step(planned, words):
    assert [fault for fault in found(*planned) if words in fault]


def test_too_many_steps_are_too_many():
    assert found(*(step(f"s{n}") for n in range(4)), most=3) == [
        "4 items are too many; the limit is 3"
    ]


def test_a_plan_that_is_far_too_long_costs_the_runner_next_to_nothing():
    class Unread(tuple):
        __slots__ = ()

        def __iter__(self):
            raise AssertionError("it is too long to be looked at")

    endless = Unread(step("a") for _ in range(51))
    assert list(faults(endless, most=50)) == ["51 items are too many; the limit is 50"]


def test_of_very_many_faults_only_the_first_are_told_and_none_at_length():
    life = Life()
    life.turn(ROOT)
    life.begin(ROOT)
    unknown = [f"{n}{'x' * 10_000}" for n in range(60)]
    with pytest.raises(UsageError) as refused:
        life.plan(ROOT, [{"id": "a", "title": "t", "dependencies": unknown}])
    assert refused.value.message.startswith("the plan has 60 faults: item a waits for '0xxx")
    assert refused.value.message.endswith("; and 10 more")
    assert len(refused.value.message) < 12_000


def test_what_a_step_waits_for_counts_once_however_it_is_written():
    (read,) = read_steps([{"id": " a ", "title": "t", "dependencies": ["b", " b ", 2, 2]}])
    assert (read.key, read.deps) == ("a", ("b", "2"))


def test_all_faults_are_named_at_once():
    life = Life()
    life.turn(ROOT)
    life.begin(ROOT)
    before = life.world
    bad = [*steps(a="b", b="a", c="nobody"), {"id": "c", "title": "twice"}, {"id": "!"}]
    with pytest.raises(UsageError) as refused:
        life.plan(ROOT, bad)
    message = refused.value.message
    for words in ("cycle", "'nobody'", "'c' is used 2", "'!' cannot be", "needs a title"):
        assert words in message
    assert message.startswith("the plan has 5 faults: ")
    assert refused.value.code == "invalid_plan"
    assert life.world is before


def test_a_step_may_wait_for_a_finished_one_that_the_plan_does_not_name_any_more():
    assert found(step("b", "a"), finished=["a"]) == []


# A new plan


def replanning():
    """a is merged, b under way, c to do; the planner follows up in b."""
    life = Life(slots=3).planned(a="", b="a", c="b")
    life.finish("a")
    task = life.task("b")
    life.turn(task, "needs-role-followup", role="pathseeker", resume=True)
    life.begin(task)
    return life, task


def test_a_new_plan_keeps_what_is_finished_whether_it_names_it_or_not():
    for named in ({"b": "a", "c": "b"}, {"a": "", "b": "a", "c": "b"}):
        life, task = replanning()
        first = life.task("a")
        reply = life.plan(task, steps(**named))
        assert reply.endswith("a are finished and stay as they are")
        assert (life.task("a"), life.state("a")) == (first, "merged")
        assert [step.key for step in life.quest.steps] == ["a", "b", "c"]


def test_what_is_done_and_waits_for_the_merge_queue_is_finished_too():
    life = Life().planned(a="", b="")
    life.turn(life.task("a"))
    life.gate(life.task("a"))
    life.turn(life.task("a"))
    task = life.task("b")
    life.turn(task, "needs-role-followup", role="pathseeker")
    life.begin(task)
    life.plan(task, steps(b=""))
    assert (life.state("a"), [s.key for s in life.quest.steps]) == ("done", ["a", "b"])


def test_a_step_that_the_new_plan_leaves_out_is_closed():
    life, task = replanning()
    dropped = life.task("c")
    life.plan(task, steps(b="a"))
    assert life.world.tasks[dropped].state == "closed"
    assert life.world.tasks[dropped].close_reason == "the plan has changed"
    assert life.world.positions[dropped].state == "dropped"


def split(life, task):
    """The planner leaves the item out in which it was asked, and two new ones replace it."""
    life.plan(task, steps(b1="a", b2="a", c="b1 b2"))


def test_a_split_replaces_the_step_in_which_it_is_asked_for_by_two():
    life, task = replanning()
    split(life, task)
    assert (life.state("b1"), life.state("b2"), life.state("c")) == (
        "in_progress",
        "in_progress",
        "todo",
    )
    waits_for = life.world.tasks[life.task("c")].deps
    assert waits_for == (life.task("b1"), life.task("b2"))


@pytest.mark.parametrize("resume", [True, False])
def test_the_planner_ends_its_own_part_before_the_item_it_left_out_is_given_up(resume):
    """Its step goes on, its words are kept, and who asked is answered and not called again."""
    life = Life().planned(b="")
    task = life.task("b")
    life.turn(task, "needs-role-followup", role="pathseeker", resume=resume)
    life.begin(task)
    split_up = steps(b1="", b2="")
    life.plan(task, split_up)
    agent = str(life.run(task).agent)
    assert not life.world.agents[agent].killing
    assert life.world.tasks[task].state == "in_progress"
    life.restart()
    life.plan(task, split_up)
    life.say(task, "complete", summary="b is two items")
    life.end(task)
    life.look(task, uncommitted=("notes.txt",))
    assert (life.world.tasks[task].state, life.world.tasks[task].close_reason) == (
        "closed",
        "the plan has changed",
    )
    assert life.world.agents[agent].killing
    life.kill(task)
    assert [(one.role, one.signal, one.words) for one in life.world.positions[task].said] == [
        ("codeweaver", "needs-role-followup", "not mine"),
        ("pathseeker", "complete", "b is two items"),
    ]
    assert life.world.positions[f"{task}/1"].state == "complete"
    assert life.world.positions[task].state == "dropped"
    for key in ("b1", "b2"):
        life.finish(key)
    assert life.run(ROOT).role == "lawbringer"


def test_a_planner_that_asks_a_person_after_it_left_its_item_out_still_gets_the_answer():
    life, task = replanning()
    split(life, task)
    life.say(task, "needs-user-input", question="two or three?")
    life.end(task)
    life.restart()
    life.ask("answer", question=life.question.id, text="two")
    run = life.begin(task)
    assert (run.role, run.ask) == ("pathseeker", "answer")
    life.say(task, "complete", summary="two")
    life.end(task)
    life.look(task)
    assert life.world.tasks[task].state == "closed"


def test_a_planner_that_asks_another_role_after_it_left_its_item_out_goes_on_after_it():
    life, task = replanning()
    split(life, task)
    life.say(task, "needs-role-followup", role="spiritmender", reason="a look")
    life.end(task)
    life.turn(task, summary="looked")
    assert (life.run(task).role, life.run(task).ask) == ("pathseeker", "followed")
    life.turn(task, summary="planned")
    assert life.world.tasks[task].state == "closed"


def test_an_item_that_is_left_out_is_given_up_at_once_when_its_planner_is_killed():
    life, task = replanning()
    split(life, task)
    life.kill(task)
    assert life.world.tasks[task].state == "closed"


def test_a_planner_that_crashes_after_it_left_its_item_out_is_called_again():
    life, task = replanning()
    split(life, task)
    life.end(task)
    run = life.begin(task)
    assert (run.role, run.ask) == ("pathseeker", "no_signal")


def test_a_split_item_is_given_up_when_its_quest_is_cancelled():
    life, task = replanning()
    split(life, task)
    life.ask("quest_cancel", quest=ROOT)
    assert life.world.tasks[task].state == "closed"


def test_a_step_whose_text_changes_keeps_its_task_and_is_told_anew():
    life, task = replanning()
    before = life.task("c")
    changed = [*steps(b="a"), {"id": "c", "title": "Do c better", "dependencies": ["a"]}]
    life.plan(task, changed)
    assert life.task("c") == before
    assert life.world.tasks[before].title == "Do c better"
    assert life.state("c") == "in_progress", "it waits for b no more"


def test_a_step_that_is_put_later_ends_its_turn_then_waits_without_a_slot():
    life = Life().planned(a="", b="")
    late, planner = life.task("a"), life.task("b")
    life.begin(late)
    life.turn(planner, "needs-role-followup", role="pathseeker")
    life.begin(planner)
    life.plan(planner, steps(c="", a="c", b=""))
    life.say(late, "complete", summary="built")
    life.end(late)
    life.look(late)
    life.gate(late)
    assert (life.run(late).role, life.run(late).agent) == ("siegemaster", None)
    assert late not in life.working
    life.finish("c")
    assert late in life.working
    life.turn(late)
    assert life.state("a") == "done"


def test_whoever_has_a_step_put_before_its_own_goes_on_in_its_session_after_that():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "needs-role-followup", role="pathseeker", resume=True)
    asker = life.world.positions[task].session
    life.begin(task)
    life.plan(task, steps(first="", a="first"))
    life.say(task, "complete", summary="put one before it")
    life.end(task)
    life.look(task)
    assert task not in life.working
    life.finish("first")
    run = life.begin(task)
    assert (run.role, run.session) == ("codeweaver", asker)


def test_a_step_that_comes_back_after_it_was_dropped_is_a_new_task():
    life, task = replanning()
    before = life.task("c")
    life.plan(task, steps(b="a"))
    life.plan(task, steps(b="a", c="a"))
    assert life.task("c") != before
    assert life.state("c") == "in_progress"


def test_the_last_plan_counts_and_is_numbered():
    life = Life()
    life.turn(ROOT)
    life.begin(ROOT)
    life.plan(ROOT, steps(x=""))
    assert life.plan(ROOT, steps(a="", b="a")) == "2 items are planned"
    assert ([s.key for s in life.quest.steps], life.quest.plan_number) == (["a", "b"], 2)


def test_a_plan_that_is_handed_in_twice_changes_nothing_the_second_time():
    life, task = replanning()
    named = {"b": "a", "c": "b"}
    before = [(step.key, step.task, step.told) for step in life.quest.steps]
    life.plan(task, steps(**named))
    life.plan(task, steps(**named))
    assert [(step.key, step.task, step.told) for step in life.quest.steps] == before


# Steps as tasks


def test_a_step_says_what_to_do_where_and_when_it_is_finished():
    told = step_text(step("a", description="Parse it.", files=("p.py",), acceptance="It parses."))
    assert told == "Parse it.\n\nFiles:\n- p.py\n\nFinished when:\nIt parses."
    assert step_text(step("a")) == ""


def test_steps_are_not_told_before_the_planner_is_finished():
    life = Life()
    life.turn(ROOT)
    life.begin(ROOT)
    life.plan(ROOT, steps(a=""))
    assert list(quests_to_write(life.world)) == []
    assert life.task("a") == ""


def test_a_step_is_told_after_those_that_it_waits_for():
    life = Life().planned(b="a", a="")
    assert int(life.task("a")) < int(life.task("b"))


def test_nothing_more_is_told_of_a_cancelled_quest():
    life = Life().planned(a="")
    life.ask("quest_cancel", quest=ROOT)
    assert next_to_write(life.world, life.quest) == []
    assert list(quests_to_write(life.world)) == []


def test_a_step_that_is_over_is_not_told_of_a_change_and_holds_nobody_up():
    """As when it was merged, or its file was lost, before its new text could be written."""
    life = Life().planned(a="")
    life.finish("a")
    (over,) = life.quest.steps
    stale = over._replace(told=False, deps=("left-out",))
    life.world = replace(life.world, quests={ROOT: replace(life.quest, plan=(tuple(stale),))})
    assert list(quests_to_write(life.world)) == []
    assert not is_unfinished(life.world, ROOT)


def test_a_step_whose_file_cannot_be_read_is_told_once_it_can():
    life = Life().planned(a="", b="")
    (first, other), task = life.quest.steps, life.task("a")
    plan = (tuple(first._replace(told=False)), tuple(other))
    quest = replace(life.quest, plan=plan)
    corrupt = replace(life.world.tasks[task], corrupt=True)
    world = replace(life.world, tasks={**life.world.tasks, task: corrupt})
    assert next_to_write(world, quest) == []
    assert next_to_write(life.world, quest) == [quest.steps[0]]


def test_as_many_steps_are_told_at_once_as_can_be_walked_at_once():
    """Only those whose tasks can name what they wait for."""
    a, b, c, d = step("a"), step("b", "a"), step("c"), step("d")
    quest = Quest(id=ROOT, workflow="w", definition="", slots=2, plan=(*map(tuple, (a, b, c, d)),))
    world = with_rows([quest])
    assert next_to_write(world, quest) == [a, c]
    world = apply_all(world, [tasks_recorded(quest, {"a": "7", "c": "8"}, at=1.0)])
    assert [step.task for step in world.quests[ROOT].steps] == ["7", "", "8", ""]
    assert next_to_write(world, world.quests[ROOT]) == [b, d]


def test_the_longest_chain_behind_each_step_is_known():
    steps = [
        PlanItem(key="a", title="a", task="1"),
        PlanItem(key="b", title="b", deps=("a",), task="2"),
        PlanItem(key="c", title="c", deps=("b",), task="3"),
        PlanItem(key="d", title="d", deps=("a",), task="4"),
        PlanItem(key="e", title="e"),
    ]
    quest = Quest(
        id="9", workflow="w", definition="{}", slots=2, plan=tuple(tuple(s) for s in steps)
    )
    assert chains_behind(with_rows([quest])) == {"1": 2, "2": 1, "3": 0, "4": 0}
    over = replace(quest, state=QuestState.COMPLETE)
    assert chains_behind(with_rows([over])) == {}
