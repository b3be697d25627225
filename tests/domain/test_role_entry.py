"""How roles begin at a task, how often they may, and how a person lets them go on."""

from crew.domain.kernel.errors import Conflict
from crew.domain.quests.role_entry import story
from domain.quest_life import ROOT, Life
from refusals import raises_code


def called_again(life, task, *, times):
    """codeweaver asks for spiritmender again and again; how often it could."""
    for number in range(times):
        life.begin(task)
        told = {"role": "spiritmender", "reason": f"again {number}", "resume": True}
        life.say(task, "needs-role-followup", **told)
        life.end(task)
        if life.position(task).state == "blocked":
            return number
        life.turn(task)
    return times


def test_a_role_that_is_called_too_often_blocks_the_step_and_a_person_is_asked():
    life = Life().planned(a="")
    task = life.task("a")
    assert called_again(life, task, times=9) == 4
    assert life.position(task).role == "spiritmender"
    assert life.question.question == (
        "item a is blocked: spiritmender was called 5 times. What shall spiritmender do?"
    )
    assert "codeweaver (needs-role-followup):\n> again 0" in life.question.context
    assert (life.question.task, life.question.role) == (task, "spiritmender")


def test_with_the_answer_the_role_that_was_called_begins():
    life = Life().planned(a="")
    task = life.task("a")
    called_again(life, task, times=9)
    life.ask("answer", question=life.question.id, text="once more")
    run = life.begin(task)
    assert (run.role, run.ask) == ("spiritmender", "role")
    assert "again 4" in run.notes
    assert "The answer:\n> once more" in run.notes
    assert life.position(task).state == "in_progress"


def test_a_blocked_request_names_the_quest():
    life = Life()
    for _ in range(4):
        life.begin(ROOT)
        life.end(ROOT)
    assert life.question.question.startswith("quest 1 is blocked: chaoswhisperer failed 4 times")


def test_a_blocked_step_frees_its_slot():
    life = Life(slots=1, agents=1).planned(a="", b="")
    task = life.task("a")
    for _ in range(4):
        life.begin(task)
        life.end(task)
    assert life.working == {life.task("b")}


def test_after_a_stubborn_complaint_the_answer_reaches_the_role_and_begins_a_new_count():
    life = Life().planned(a="")
    task = life.task("a")
    for _ in range(3):
        life.begin(task)
        life.say(task, "complete", summary="s")
        life.end(task)
        life.look(task, has_commits=False)
    assert life.position(task).state == "blocked"
    life.ask("answer", question=life.question.id, text="write the file")
    run = life.begin(task)
    assert (run.ask, run.complaints) == ("answer", 0)
    assert "write the file" in run.notes
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task, has_commits=False)
    assert life.position(task).state == "in_progress"


def test_a_question_is_answered_once():
    life = Life().planned(a="")
    life.turn(life.task("a"), "needs-user-input")
    life.ask("answer", question=life.question.id, text="yes")
    with raises_code(Conflict, "question_closed"):
        life.ask("answer", question=life.question.id, text="no")


def test_the_story_of_a_step_has_every_word_with_who_said_it():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "partially-complete", progress="half", continue_at="x")
    life.turn(task, summary="built")
    life.gate(task, passed=False, output="red")
    assert story(life.world, task, "and now?").split("\n\n") == [
        "codeweaver (partially-complete):\n> Done so far: half\n>\n> Continue at: x",
        "codeweaver (complete):\n> built",
        "ward (red):\n> red",
        "and now?",
    ]
    assert [one.session for one in life.position(task).said] == ["2.1/0", "2.1/1", ""]


def test_a_story_does_not_grow_for_ever():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "partially-complete", progress="x" * 9_000, continue_at="y")
    assert len(life.position(task).said[-1].words) == 4_000
