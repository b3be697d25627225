"""What the step of a role means for its walk: the four signals, DONE, silence and errors."""

import pytest

from crew.domain.kernel.errors import Conflict
from crew.domain.rows.step import ErrorKind
from domain.quest_life import ROOT, RULES, Life, built_in
from refusals import raises_code

SEED = {
    "chaoswhisperer": {"complete", "needs-user-input"},
    "pathseeker": {
        "complete",
        "partially-complete",
        "needs-user-input",
        "needs-role-followup",
    },
    "codeweaver": {
        "complete",
        "partially-complete",
        "needs-user-input",
        "needs-role-followup",
    },
    "siegemaster": {"complete", "partially-complete", "needs-role-followup"},
    "lawbringer": {"complete", "needs-role-followup"},
    "spiritmender": {
        "complete",
        "partially-complete",
        "needs-user-input",
        "needs-role-followup",
    },
}
"""What each role can signal, word by word from seed 003."""

FOLLOWUPS = {
    "codeweaver": {"pathseeker", "spiritmender"},
    "siegemaster": {"codeweaver"},
    "lawbringer": {"spiritmender"},
    "spiritmender": {"codeweaver"},
}
"""Its "common followups"."""

RETRIES = {"pathseeker": 3, "siegemaster": 2, "lawbringer": 2}
"""Planner, tester, reviewer."""

TOLD = {
    "complete": {"summary": "s"},
    "partially-complete": {"progress": "p", "continue_at": "c"},
    "needs-user-input": {"question": "q?"},
    "needs-role-followup": {"role": "codeweaver", "reason": "r"},
}


def acting_as(role):
    """A quest in which this role has its turn, and the task at which it has."""
    life = Life()
    if role == "chaoswhisperer":
        return life, ROOT
    if role == "pathseeker":
        life.turn(ROOT)
        return life, ROOT
    life.planned(a="")
    task = life.task("a")
    if role in {"siegemaster", "spiritmender"}:
        life.turn(task)
        life.gate(task, passed=role == "siegemaster")
    if role == "lawbringer":
        life.finish("a")
        task = ROOT
    assert life.run(task).role == role
    return life, task


def test_the_roles_of_the_quest_and_their_signals_are_exactly_those_of_the_seed():
    roles = built_in().roles.values()
    assert {role.name: set(role.signals) for role in roles} == SEED


def test_the_common_followups_are_those_of_the_seed():
    roles = built_in().roles.values()
    assert {role.name: set(role.followups) for role in roles if role.followups} == FOLLOWUPS


def test_the_retries_of_planner_tester_and_reviewer_are_those_that_were_asked_for():
    roles = built_in().roles
    assert {name: roles[name].retries for name in RETRIES} == RETRIES
    ward = next(stage for stage in built_in().step_stages if stage.name == "ward")
    assert ward.limit == 3


@pytest.mark.parametrize("signal", TOLD)
@pytest.mark.parametrize("role", SEED)
def test_a_role_may_send_what_the_seed_says_and_for_anything_else_it_is_told_so(role, signal):
    life, task = acting_as(role)
    life.begin(task)
    told = dict(TOLD[signal])
    if signal == "needs-role-followup" and role == "codeweaver":
        told["role"] = "spiritmender"
    if signal in SEED[role]:
        assert life.say(task, signal, **told) == f"{signal} is recorded; end your step now"
        return
    before = life.world
    with raises_code(Conflict, "signal_not_allowed", role, signal) as refused:
        life.say(task, signal, **told)
    assert ", ".join(built_in().roles[role].signals) in refused.value.hint
    assert life.world is before
    life.say(task, "complete", summary="then so")
    assert life.run(task).signal == "complete"


# complete


@pytest.mark.parametrize("how", ["signal", "DONE"])
def test_a_role_that_is_complete_leads_on_whether_by_signal_or_by_done_alone(how):
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    if how == "signal":
        life.say(task, "complete", summary="built")
    life.end(task, done=how == "DONE")
    life.look(task)
    assert life.position(task).stage == "ward"
    assert life.position(task).said[-1].signal == "complete"


def test_the_next_role_is_told_what_the_last_one_said_in_a_session_of_its_own():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, summary="the parser is built")
    first = life.run(task).session
    life.gate(task)
    run = life.begin(task)
    assert (run.role, run.ask, run.session != first) == ("siegemaster", "role", True)
    assert "codeweaver said:\n> the parser is built" in run.notes


def test_what_a_role_leaves_uncommitted_goes_back_to_it():
    life = Life().planned(a="")
    task = life.task("a")
    session = life.begin(task).session
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task, uncommitted=("notes.txt",))
    run = life.run(task)
    assert (run.state, run.ask, run.role, run.session) == (
        "working",
        "uncommitted",
        "codeweaver",
        session,
    )
    assert life.position(task).stage == "build"


def test_a_builder_that_committed_nothing_is_sent_back_but_a_thinker_is_not():
    life = Life()
    life.begin(ROOT)
    life.say(ROOT, "complete", summary="thought")
    life.end(ROOT)
    life.look(ROOT, has_commits=False)
    assert life.run(ROOT).role == "pathseeker"
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.say(task, "complete", summary="s")
    life.end(task)
    life.look(task, has_commits=False)
    assert life.run(task).ask == "nothing_committed"


def test_a_planner_that_is_complete_without_a_plan_is_sent_back_and_then_asked_about():
    life = Life()
    life.turn(ROOT)
    for _ in range(2):
        life.turn(ROOT)
        assert (life.run(ROOT).role, life.run(ROOT).ask) == ("pathseeker", "no_plan")
    life.turn(ROOT)
    assert life.position(ROOT).state == "blocked"
    assert "no plan" in life.question.question


# partially-complete


def test_partially_complete_begins_the_same_role_in_a_new_session_at_the_continuation_point():
    life = Life().planned(a="")
    task = life.task("a")
    first = life.begin(task).session
    life.say(task, "partially-complete", progress="half of it", continue_at="parser.py, line 7")
    life.end(task)
    run = life.begin(task)
    assert (run.role, run.ask, run.session != first) == ("codeweaver", "partial", True)
    assert "half of it" in run.notes
    assert "parser.py, line 7" in run.notes
    moves = [f.target for f in life.facts if f.kind == "walk" and f.subject == task and f.target]
    assert moves[-2:] == ["partially_complete", "in_progress"]


def test_a_role_that_is_never_finished_is_asked_about_after_the_most_sessions_there_may_be():
    life = Life().planned(a="")
    task = life.task("a")
    for _ in range(RULES.max_steps):
        life.turn(task, "partially-complete")
    assert life.position(task).state == "blocked"
    assert "used 20 sessions" in life.question.question


def test_a_signal_wins_over_done_in_the_same_turn():
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.say(task, "partially-complete", progress="p", continue_at="c")
    life.end(task, done=True)
    assert (life.run(task).state, life.run(task).ask) == ("working", "partial")


# needs-user-input


def test_a_question_frees_the_slot_and_the_answer_resumes_the_very_session():
    life = Life(slots=1, agents=1).planned(a="", b="")
    task = life.task("a")
    session = life.begin(task).session
    life.say(task, "needs-user-input", question="which one?", context="two are there")
    life.end(task)
    assert life.position(task).state == "waiting_for_user"
    assert life.working == {life.task("b")}, "the slot serves another step"
    life.ask("stop_task", task=life.task("b"))
    life.kill(life.task("b"))
    life.ask("answer", question=life.question.id, text="the second")
    run = life.begin(task)
    assert (run.session, run.ask, run.session_used) == (session, "answer", True)
    assert run.notes == "You asked:\n> which one?\n\nThe answer:\n> the second"
    assert life.position(task).state == "in_progress"


def test_a_question_outlives_the_runner_and_is_answered_in_the_same_session():
    life = Life().planned(a="")
    task = life.task("a")
    session = life.begin(task).session
    life.say(task, "needs-user-input", question="which one?")
    life.end(task)
    life.restart()
    life.now += 9 * 24 * 3600
    life.ask("answer", question=life.question.id, text="the second")
    life.restart()
    assert life.begin(task).session == session
    assert "the second" in life.run(task).notes


def test_an_answer_that_comes_before_the_step_has_ended_is_not_lost():
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.say(task, "needs-user-input", question="which one?")
    life.ask("answer", question=life.question.id, text="the second")
    life.end(task)
    assert "the second" in life.begin(task).notes
    assert life.position(task).state == "in_progress"


# Crashes


def test_a_turn_that_ends_without_a_signal_is_a_crash_and_the_role_is_told_so():
    life = Life().planned(a="")
    task = life.task("a")
    session = life.begin(task).session
    life.end(task)
    assert life.position(task).failures == 1
    run = life.begin(task)
    assert (run.ask, run.session, run.role) == ("no_signal", session, "codeweaver")


@pytest.mark.parametrize(("role", "tries"), [("codeweaver", 4), ("siegemaster", 3)])
def test_crashes_in_a_row_are_counted_and_after_the_retries_of_the_role_a_person_is_asked(
    role, tries
):
    life, task = acting_as(role)
    for number in range(tries):
        assert life.position(task).state == "in_progress", number
        life.begin(task)
        life.end(task, error=ErrorKind.CRASHED if number % 2 else None)
    assert life.position(task).state == "blocked"
    assert f"{role} failed {tries} times in a row" in life.question.question
    assert life.question.about == "blocked"


def test_a_word_in_between_begins_the_count_of_crashes_anew():
    life = Life().planned(a="")
    task = life.task("a")
    for _ in range(3):
        life.begin(task)
        life.end(task)
    life.turn(task, "partially-complete")
    assert life.position(task).failures == 0


def test_a_rate_limit_is_no_crash():
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.end(task, error=ErrorKind.RATE_LIMIT)
    assert (life.position(task).failures, life.position(task).state) == (0, "in_progress")


def test_what_a_step_said_counts_although_its_process_came_to_a_bad_end():
    life = Life().planned(a="")
    task = life.task("a")
    life.begin(task)
    life.say(task, "complete", summary="s")
    life.end(task, error=ErrorKind.CRASHED)
    life.look(task)
    assert (life.position(task).stage, life.position(task).failures) == ("ward", 0)
