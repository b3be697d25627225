"""What follows when a person takes a merge that crew refused, wherever its run is."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import Check, CheckAccepted, WriteTask
from crew.domain.kernel.errors import Conflict
from crew.domain.lead_choice import LEADS
from crew.domain.merging.sent_back import returned
from crew.domain.plan import decide, plan
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.run import Ask
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.lost_sides import Loss, LostSide, Side
from crew.domain.runs.run_outcomes import checked, not_checked
from crew.domain.scope import Scope
from domain.scenes import RULES, after, holding
from refusals import raises_code

LOST = LostSide(path="f", side=Side.LANDED, loss=Loss.MISSING, lines=("x",), count=1)
ALONE = Scope(takes_work=False)


def check(world, evidence, *, rules=RULES):
    run = world.runs["1.1"]
    lead = LEADS.of_run(world, run)
    return after(world, checked(world, run, lead, evidence, rules=rules, at=2.0))


def ask(world, verb, **args):
    facts = answer(world, Request(verb=verb, args=args), rules=RULES, at=9.0).facts
    return after(world, list(facts))


REFUSED = Evidence(head="h", lost_sides=(LOST,))
STRICT = replace(RULES, same_complaint_limit=1)


@pytest.fixture
def waiting():
    """The run waits for a person, after its merge `h` was refused."""
    return check(holding("done", run_merge_commit="c" * 40), REFUSED, rules=STRICT)


def planned(world, scope):
    due = plan(world, Clock(9.0), rules=RULES, scope=scope)
    return [one for one in due if not isinstance(one, WriteTask)]


def test_the_question_waits_without_an_agent_and_without_a_step(waiting):
    run = waiting.runs["1.1"]
    assert (run.state, run.agent, run.round, run.step) == ("working", None, 2, 0)
    assert (run.error, run.merge_refused) == (
        "gave up after 1 round: its merge drops a part of one side",
        "h",
    )
    assert waiting.agents["A"].state == "idle"
    assert decide(waiting, Clock(9.0), rules=RULES) == []
    assert "`crew merge 1 --accept`" in waiting.questions["q1"].context


@pytest.mark.parametrize("words", [{"verb": "answer", "question": "q1", "text": "accept"}, {}])
def test_an_accepted_merge_is_checked_once_more(waiting, words):
    world = ask(waiting, **(words or {"verb": "accept", "task": "1"}))
    run = world.runs["1.1"]
    assert (run.state, run.merge_accepted, run.question) == ("reviewing", "h", "")
    assert world.questions["q1"].answer == "accept"
    assert planned(world, ALONE) == [CheckAccepted(subject="1.1")]
    assert ask(world, "accept", task="1") == world
    beside = after(world, decide(world, Clock(9.0), rules=RULES))
    assert planned(beside, Scope()) == [Check(subject="1.1")]
    assert planned(beside, ALONE) == []


def test_a_check_that_cannot_be_made_tells_why_and_is_made_later(waiting):
    world = ask(waiting, "accept", task="1")
    world = after(world, not_checked(world.runs["1.1"], "no gate", at=9.0))
    assert (world.runs["1.1"].error, world.runs["1.1"].state) == ("no gate", "reviewing")
    done = check(world, Evidence(head="h", gate_passed=True))
    assert (done.tasks["1"].state, done.runs["1.1"].error) == ("done", "")


def test_the_agent_gets_its_rounds_again(waiting):
    spent = after(waiting, [])
    spent.runs["1.1"] = replace(spent.runs["1.1"], max_rounds=2)
    world = ask(spent, "answer", question="q1", text="agent")
    run = world.runs["1.1"]
    assert (run.state, run.ask, run.question, run.complaints) == ("working", Ask.LOST_SIDE, "", 0)
    assert run.max_rounds == run.round + RULES.same_complaint_limit - 1
    assert decide(world, Clock(9.0), rules=RULES) != []


def test_a_task_that_was_given_up_is_taken_in_a_new_run(waiting):
    world = ask(waiting, "answer", question="q1", text="give up")
    assert (world.tasks["1"].state, world.runs["1.1"].state) == ("error", "failed")
    assert "a person gave it up: its merge h drops" in world.runs["1.1"].error
    world.tasks["1"] = replace(world.tasks["1"], worktree="w")
    taken = ask(world, "accept", task="1")
    run = taken.runs["1.2"]
    assert (run.state, run.merge_accepted, run.merge_commit) == ("reviewing", "h", "c" * 40)
    assert planned(taken, ALONE) == [CheckAccepted(subject="1.2")]
    world.tasks["1"] = replace(world.tasks["1"], worktree="")
    with raises_code(Conflict, "worktree_removed"):
        ask(world, "accept", task="1")


def test_a_merge_is_taken_while_its_agent_waits_for_the_next_step():
    world = check(holding("done", run_merge_commit="c"), REFUSED)
    assert (world.runs["1.1"].state, world.runs["1.1"].merge_refused) == ("working", "h")
    taken = ask(world, "accept", task="1")
    assert (taken.runs["1.1"].state, taken.agents["A"].state) == ("reviewing", "idle")


def test_a_step_that_is_under_way_goes_on():
    world = check(holding("done", run_merge_commit="c"), REFUSED)
    world.runs["1.1"] = replace(world.runs["1.1"], stepping=True)
    taken = ask(world, "accept", task="1")
    run = taken.runs["1.1"]
    assert (run.state, run.merge_accepted, taken.agents["A"].state) == ("working", "h", "working")
    assert ask(taken, "accept", task="1") == taken


def test_a_choice_that_comes_after_another_question_changes_only_the_answer(waiting):
    waiting.runs["1.1"] = replace(waiting.runs["1.1"], question="q2")
    world = ask(waiting, "answer", question="q1", text="agent")
    assert world.runs["1.1"] == waiting.runs["1.1"]
    assert world.questions["q1"].state == "answered"


def test_a_done_task_joins_the_queue():
    done = check(holding("done"), Evidence(head="h", gate_passed=True))
    done.tasks["1"] = replace(done.tasks["1"], queued_at=None)
    assert ask(done, "accept", task="1").tasks["1"].queued_at == 9.0


def test_another_complaint_withdraws_the_offer():
    world = check(holding("done", run_merge_commit="c"), REFUSED)
    world.runs["1.1"] = replace(world.runs["1.1"], state="reviewing", agent=None)
    world = check(world, Evidence(head="h2", gate_passed=False))
    assert world.runs["1.1"].merge_refused == ""
    with raises_code(Conflict, "nothing_to_accept"):
        ask(world, "accept", task="1")


def test_a_new_conflict_is_judged_anew():
    world = holding("done", run_merge_commit="c", run_merge_kept="h", run_merge_refused="h0")
    world = check(world, Evidence(head="h", gate_passed=True))
    facts = returned(
        world,
        "1",
        ask=Ask.CONFLICT,
        notes="",
        leads=LEADS,
        rules=RULES,
        at=5.0,
        merge_commit="d",
    )
    run = after(world, facts).runs["1.1"]
    assert (run.merge_commit, run.merge_kept, run.merge_refused) == ("d", "", "")
