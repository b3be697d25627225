"""What a role is told of its quest."""

from dataclasses import replace

from crew.domain.quests.brief import brief_of
from crew.domain.world import noted
from domain.quest_life import ROOT, Life
from domain.scenes import holding


def settled(life, task):
    brief = brief_of(life.world, life.run(task))
    answered = [words for exchange in brief.answered for words in exchange]
    return [tuple(words) for words in (*brief.decided, *answered)]


def planned_after_a_question():
    """Only the first role heard that names must be unique."""
    life = Life()
    life.turn(ROOT, "needs-user-input", question="May two names be equal?")
    life.ask("answer", question=life.question.id, text="Never: names are unique")
    life.turn(ROOT, summary="requirements are in docs/requirements.md")
    life.begin(ROOT)
    life.plan(
        ROOT, [{"id": "a", "title": "Do a"}, {"id": "b", "title": "Do b", "dependencies": ["a"]}]
    )
    life.say(ROOT, "complete", summary="a before b")
    life.end(ROOT)
    life.look(ROOT)
    return life


def test_a_task_of_no_quest_has_no_brief():
    world = holding("working")
    assert brief_of(world, world.runs["1.1"]) is None


def test_an_item_knows_what_only_an_earlier_role_heard():
    life = planned_after_a_question()
    assert settled(life, life.task("a")) == [
        ("chaoswhisperer decided", "requirements are in docs/requirements.md"),
        ("pathseeker decided", "a before b"),
        ("chaoswhisperer asked a person", "May two names be equal?"),
        ("The answer", "Never: names are unique"),
    ]


def test_an_item_knows_the_plan_and_how_far_it_is():
    life = planned_after_a_question()
    life.finish("a")
    brief = brief_of(life.world, life.run(life.task("b")))
    assert (brief.quest, brief.title, brief.key) == (ROOT, "Big request", "b")
    assert [tuple(line) for line in brief.plan] == [
        ("a", "Do a", "merged"),
        ("b", "Do b", "in_progress"),
    ]


def test_an_item_knows_what_it_builds_on_and_no_other():
    life = Life().planned(a="", b="a", c="")
    life.turn(life.task("a"), summary="wrote the parser")
    life.gate(life.task("a"))
    life.turn(life.task("a"), summary="tried empty input")
    life.land(life.task("a"))
    (built,) = brief_of(life.world, life.run(life.task("b"))).built
    assert (built.key, built.title) == ("a", "Do a")
    assert built.summaries == (
        ("codeweaver", "wrote the parser"),
        ("siegemaster", "tried empty input"),
    )
    assert brief_of(life.world, life.run(life.task("c"))).built == ()


def test_the_last_role_of_the_request_knows_all_that_was_built():
    life = Life().planned(a="", b="")
    life.finish("a")
    life.finish("b")
    brief = brief_of(life.world, life.run(ROOT))
    assert (brief.key, [one.key for one in brief.built]) == ("", ["a", "b"])


def test_what_a_new_session_of_a_role_asked_itself_is_settled_too():
    life = Life().planned(a="")
    life.turn(life.task("a"), "needs-user-input", question="Tabs?")
    life.ask("answer", question=life.question.id, text="Spaces")
    assert settled(life, life.task("a"))[-2:] == [
        ("codeweaver asked a person", "Tabs?"),
        ("The answer", "Spaces"),
    ]


def test_an_item_builds_on_what_landed_before_its_branch_has_it():
    life = Life().planned(a="", b="a")
    life.turn(life.task("a"), summary="wrote the parser")
    life.gate(life.task("a"))
    life.turn(life.task("a"))
    task = life.world.tasks[life.task("a")]
    life.record([noted(task, "landed", at=life.now, landed_commit="c0ffee")])
    (built,) = brief_of(life.world, life.run(life.task("b"))).built
    assert (built.key, built.commit) == ("a", "c0ffee")


def test_answers_come_in_the_order_of_their_questions_and_crew_asks_for_itself():
    life = Life()
    for number in range(11):
        life.turn(ROOT, "needs-user-input", question=f"Question {number}?")
        life.ask("answer", question=life.question.id, text=f"Answer {number}")
    asked = life.world.questions
    blocked = {"q11": replace(asked["q11"], about="blocked")}
    stored = replace(life.world, questions=dict(sorted({**asked, **blocked}.items())))
    found = brief_of(stored, life.run(ROOT)).answered
    assert [one.answer.words for one in found] == [f"Answer {number}" for number in range(11)]
    assert [one.asked.author for one in found[-2:]] == [
        "chaoswhisperer asked a person",
        "crew asked a person",
    ]
