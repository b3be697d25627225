"""What follows from what happens to a terminal session, and what is done about it."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.commands import (
    CloseTerminal,
    Inspect,
    OpenTerminal,
    RemoveWorktree,
    Step,
    TakeOver,
    TypeIntoTerminal,
    WriteTask,
)
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.merging.merge_plan import returned
from crew.domain.plan import decide, plan
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Ask, RunState
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.run_ends import killed
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.run_outcomes import checked
from crew.domain.terminals import terminal_outcomes
from crew.domain.terminals.terminal_outcomes import Opened
from domain.scenes import RULES, after, at_terminal, holding, with_changes

IDLE = Agent(id="A", agent_kind="claude")


def planned(world, *, busy=()):
    commands = plan(world, Clock(50.0), rules=RULES, busy=frozenset(busy))
    return [command for command in commands if not isinstance(command, WriteTask)]


def run_of(world):
    return world.runs["1.1"]


def terminal_of(world):
    return world.terminals["1.1"]


def test_what_a_terminal_session_costs_is_unknown_and_not_nothing():
    world = at_terminal(pid=None)
    facts = terminal_outcomes.opened(
        world, run_of(world), Opened(pid=5, started=6), session="s-1", at=50.0
    )
    assert run_of(after(world, facts)).cost_usd is None


# What is planned


def test_a_run_that_wants_a_terminal_gets_one():
    world = at_terminal(run_state="init", pid=None, task_worktree="")
    assert planned(world) == [OpenTerminal(subject="1.1")]


def test_nothing_is_done_about_a_session_that_goes_on():
    assert planned(at_terminal()) == []
    assert planned(at_terminal(run_state="complete", task_state="done", task_written="done")) == []


@pytest.mark.parametrize("state", ["ready", "working", "stuck"])
def test_a_run_that_an_agent_holds_is_taken_over_before_anything_else(state):
    world = holding(state, wants_terminal=True)
    assert planned(world) == [TakeOver(subject="1.1")]
    world = with_changes(world, terminal_state="leaving", terminal_leaving="stopped")
    assert planned(world) == [TakeOver(subject="1.1")]


def test_finished_work_is_inspected_where_it_lies():
    assert planned(at_terminal(run_state="reviewing")) == [Inspect(subject="1.1")]


def test_words_for_an_agent_at_a_terminal_are_typed_there_once():
    world = at_terminal(terminal_untyped=True, run_notes="more tests", run_ask="changes")
    assert planned(world) == [TypeIntoTerminal(subject="1.1")]
    world = after(world, terminal_outcomes.typed(world, run_of(world), at=51.0))
    assert (planned(world), run_of(world).ask) == ([], "continue")


@pytest.mark.parametrize(
    ("leaving", "state"),
    [("ended", "in_progress"), ("handed_over", "in_progress"), ("stopped", "error")],
)
def test_words_whose_terminal_ends_before_they_are_typed_go_to_an_agent(leaving, state):
    world = at_terminal(
        terminal_untyped=True, run_notes="more tests", run_ask="changes", leaving=leaving
    )
    assert planned(world) == [CloseTerminal(subject="1.1")]
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=51.0))
    assert world.tasks["1"].state == state
    if state == "in_progress":
        run = run_of(world)
        assert (is_waiting(world, run), run.ask, run.notes, terminal_of(world).untyped) == (
            True,
            "changes",
            "more tests",
            False,
        )


def test_a_conflict_found_by_the_queue_reaches_the_agent_at_its_terminal():
    world = at_terminal(run_state="complete", task_state="done", task_queued_at=1.0)
    facts = returned(
        world,
        "1",
        leads=LEADS,
        ask=Ask.CONFLICT,
        notes="both",
        rules=RULES,
        at=50.0,
        merge_commit="c",
    )
    assert terminal_of(after(world, facts)).untyped


def test_a_complaint_about_complete_is_not_typed_since_the_command_prints_it():
    world = at_terminal(run_state="reviewing")
    facts = checked(
        world,
        run_of(world),
        lead_of(world, run_of(world)),
        Evidence(head="h", uncommitted=("a",)),
        rules=RULES,
        at=50.0,
    )
    assert not terminal_of(after(world, facts)).untyped


@pytest.mark.parametrize("leaving", ["stopped", "ended", "handed_over"])
@pytest.mark.parametrize("state", ["init", "working", "reviewing", "complete", "failed"])
def test_a_session_that_is_to_end_is_closed_whatever_its_run_does(state, leaving):
    world = at_terminal(run_state=state, leaving=leaving)
    assert planned(world) == [CloseTerminal(subject="1.1")]


def test_a_session_that_ends_while_its_work_is_inspected_waits_for_the_answer():
    world = at_terminal(run_state="reviewing", leaving="ended")
    assert planned(world, busy=[Inspect(subject="1.1").key]) == []
    stopped = with_changes(world, terminal_leaving="stopped")
    assert planned(stopped, busy=[Inspect(subject="1.1").key]) == [CloseTerminal(subject="1.1")]


@pytest.mark.parametrize("pid", [42, None])
@pytest.mark.parametrize("state", ["working", "complete", "failed"])
@pytest.mark.parametrize("over", [{"state": "merged"}, {"state": "closed"}, {"gone": True}])
def test_nobody_sits_in_the_worktree_of_a_task_that_is_over(over, state, pid):
    changes = {f"task_{name}": value for name, value in over.items()}
    world = at_terminal(run_state=state, pid=pid, **changes)
    assert planned(world) == [CloseTerminal(subject="1.1")]
    left = after(world, terminal_outcomes.closed(world, run_of(world), at=60.0))
    assert RemoveWorktree(subject="1") in planned(left)


def test_a_failed_run_keeps_no_session_not_even_one_nobody_knows_of():
    assert planned(at_terminal(run_state="failed", pid=None, task_state="error")) == [
        CloseTerminal(subject="1.1")
    ]


def test_a_task_at_a_terminal_is_given_to_no_agent():
    world = at_terminal()
    world = replace(world, agents={"A": IDLE})
    assert decide(world, Clock(50.0), rules=RULES) == []


def test_commands_for_one_session_never_run_at_once_and_closing_does_not_wait_for_an_inspection():
    assert (
        OpenTerminal(subject="1.1").key
        == CloseTerminal(subject="1.1").key
        == TakeOver(subject="1.1").key
    )
    assert Inspect(subject="1.1").key != CloseTerminal(subject="1.1").key


# Taking over


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_a_run_that_is_taken_over_leaves_its_agent_free(state):
    world = holding(state, wants_terminal=True)
    world = after(world, terminal_outcomes.taken_over(world, run_of(world), at=60.0))
    assert world.agents["A"].is_free
    assert (run_of(world).agent, run_of(world).stepping) == (None, False)
    assert run_of(world).is_live
    assert planned(world) == [OpenTerminal(subject="1.1")]


def test_a_session_that_was_in_a_step_may_exist_and_is_resumed():
    world = holding("working", wants_terminal=True, run_stepping=True, run_session="s-1")
    world = after(world, terminal_outcomes.taken_over(world, run_of(world), at=60.0))
    assert (run_of(world).session, run_of(world).session_used) == ("s-1", True)


def test_a_run_whose_agent_was_killed_first_is_taken_over_from_nobody():
    world = holding("working", wants_terminal=True)
    world = after(world, killed(world, world.agents["A"], at=55.0))
    assert (run_of(world).state, terminal_of(world).state) == ("failed", "closed")
    world = after(world, terminal_outcomes.taken_over(world, run_of(world), at=60.0))
    assert world.agents["A"].is_free
    assert planned(world) == []


# Opening


def test_an_opened_session_is_known_by_its_process_and_what_was_said_is_not_said_again():
    world = at_terminal(pid=None, run_session="", run_notes="red", run_told="be quick")
    facts = terminal_outcomes.opened(
        world, run_of(world), Opened(pid=5, started=9), session="s-2", at=60.0
    )
    run, terminal = run_of(after(world, facts)), terminal_of(after(world, facts))
    assert (terminal.pid, terminal.started, terminal.is_open) == (5, 9, True)
    assert (run.session, run.session_used, run.notes, run.told) == ("s-2", True, "", "")


def test_a_task_that_could_not_be_opened_and_had_nothing_is_as_it_was():
    world = at_terminal(run_state="init", pid=None, task_branch="", task_worktree="")
    world = after(world, terminal_outcomes.not_opened(world, run_of(world), "no disk", at=60.0))
    assert world.tasks["1"].state == "todo"
    assert (run_of(world).state, run_of(world).error) == ("failed", "no disk")
    assert terminal_of(world).state == "closed"
    assert planned(world) == []


def test_a_task_that_could_not_be_opened_and_has_work_can_be_started_again():
    world = at_terminal(pid=None)
    world = after(world, terminal_outcomes.not_opened(world, run_of(world), "no tmux", at=60.0))
    assert world.tasks["1"].state == "error"


def test_a_task_that_was_given_up_while_it_could_not_be_opened_stays_given_up():
    world = at_terminal(run_state="failed", pid=None, task_state="closed")
    world = after(world, terminal_outcomes.not_opened(world, run_of(world), "no tmux", at=60.0))
    assert (world.tasks["1"].state, terminal_of(world).state) == ("closed", "closed")
    done = at_terminal(task_state="closed", pid=None)
    left = after(done, terminal_outcomes.not_opened(done, run_of(done), "no tmux", at=60.0))
    assert (left.tasks["1"].state, run_of(left).state) == ("closed", "failed")


# The end of a session


@pytest.mark.parametrize("code", [0, 1, 137, None])
def test_the_end_of_a_session_is_an_error_whatever_its_exit_code(code):
    world = at_terminal()
    world = after(world, terminal_outcomes.ended(world, "1.1", number=0, code=code, at=60.0))
    assert (terminal_of(world).state, terminal_of(world).leaving) == ("leaving", "ended")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=61.0))
    assert (world.tasks["1"].state, run_of(world).state) == ("error", "failed")
    how = "" if code is None else f": exit code {code}"
    assert run_of(world).error == f"the session ended{how}"
    terminal = terminal_of(world)
    assert (terminal.state, terminal.leaving, terminal.has_process) == ("closed", "", False)


def test_only_the_first_word_about_an_end_counts():
    for leaving in ("stopped", "ended", "handed_over"):
        world = at_terminal(leaving=leaving)
        assert terminal_outcomes.ended(world, "1.1", number=0, code=0, at=60.0) == []


def test_a_late_word_about_an_earlier_session_is_nothing():
    closed = at_terminal(is_up=False)
    assert terminal_outcomes.ended(closed, "1.1", number=0, code=0, at=60.0) == []
    again = at_terminal(number=1)
    assert terminal_outcomes.ended(again, "1.1", number=0, code=0, at=60.0) == []
    assert terminal_outcomes.ended(again, "1.1", number=1, code=0, at=60.0)


@pytest.mark.parametrize("state", ["init", "working", "reviewing"])
def test_a_stopped_task_waits_for_whoever_starts_it_again(state):
    world = at_terminal(run_state=state, leaving="stopped", run_error="the gate is missing")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=60.0))
    assert (world.tasks["1"].state, run_of(world).error) == ("error", "stopped")
    assert planned(world) == []


def test_a_done_task_stays_done_when_its_session_ends():
    world = at_terminal(run_state="complete", leaving="ended", task_state="done")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=60.0))
    assert (world.tasks["1"].state, run_of(world).state) == ("done", "complete")
    assert terminal_of(world).state == "closed"


def test_a_task_that_was_closed_meanwhile_stays_closed():
    world = at_terminal(leaving="ended", task_state="closed")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=60.0))
    assert (world.tasks["1"].state, run_of(world).state) == ("closed", "failed")


# Handing over


def handed_over(**changes):
    world = at_terminal(leaving="handed_over", **changes)
    return after(world, terminal_outcomes.closed(world, run_of(world), at=60.0))


def test_a_task_that_is_handed_over_goes_on_in_the_same_session_with_the_first_free_agent():
    world = handed_over()
    run = run_of(world)
    assert (is_waiting(world, run), run.session, run.session_used, run.ask) == (
        True,
        "s-1",
        True,
        "continue",
    )
    world = replace(world, agents={"A": IDLE})
    world = after(world, decide(world, Clock(61.0), rules=RULES))
    assert run_of(world).agent == "A"
    assert planned(world) == [Step(subject="1.1")]


def test_a_session_that_never_began_is_not_told_to_go_on():
    run = run_of(handed_over(run_session_used=False, run_ask=Ask.FIRST))
    assert run.ask == Ask.FIRST


def test_a_complaint_that_the_session_has_not_heard_is_handed_over_too():
    run = run_of(handed_over(run_ask=Ask.RED_GATE, run_notes="1 failed"))
    assert (run.ask, run.notes) == (Ask.RED_GATE, "1 failed")


def test_a_trial_merge_is_no_conflict_that_an_agent_could_be_sent_to_resolve():
    assert run_of(handed_over(run_ask=Ask.CONFLICT, run_notes="a.txt")).ask == Ask.CONTINUE
    real = handed_over(run_ask=Ask.CONFLICT, run_notes="a.txt", run_merge_commit="c1")
    assert run_of(real).ask == Ask.CONFLICT


# Inspections


def test_work_that_could_not_be_inspected_goes_on():
    world = at_terminal(run_state="reviewing")
    world = after(world, terminal_outcomes.not_inspected(world, run_of(world), "no make", at=60.0))
    assert (run_of(world).state, run_of(world).error) == ("working", "no make")


@pytest.mark.parametrize("state", [s for s in RunState if s != RunState.REVIEWING])
def test_an_inspection_that_failed_too_late_means_nothing(state):
    world = at_terminal(run_state=state)
    assert terminal_outcomes.not_inspected(world, run_of(world), "no make", at=60.0) == []


def inspected(world, **evidence):
    run, found = run_of(world), Evidence(head="h", **evidence)
    return after(world, checked(world, run, lead_of(world, run), found, rules=RULES, at=60.0))


def test_work_that_passes_is_done_and_waits_for_a_person_to_merge_it():
    world = at_terminal(run_state="reviewing")
    world = inspected(world)
    task = world.tasks["1"]
    assert (task.state, task.head, task.is_queued) == ("done", "h", False)
    assert terminal_of(world).is_open


@pytest.mark.parametrize(
    ("evidence", "ask", "notes"),
    [
        ({"uncommitted": ("a", "b")}, "uncommitted", "> a\n> b"),
        ({"has_commits": False}, "nothing_committed", ""),
        ({"gate_passed": False, "gate_output": "1 failed"}, "red_gate", "> 1 failed"),
        ({"gate_passed": True, "conflicts": ("a", "b")}, "conflict", "> a\n> b"),
        ({"gate_passed": True, "review_notes": "bob:\nno"}, "review", "bob:\nno"),
    ],
)
def test_whoever_works_at_a_terminal_may_try_for_ever(evidence, ask, notes):
    world = at_terminal(
        run_state="reviewing", run_round=20, run_complaint=ask, run_complaints=9, run_max_rounds=20
    )
    world = inspected(world, **evidence)
    assert (run_of(world).state, run_of(world).ask, run_of(world).notes) == ("working", ask, notes)
    assert world.tasks["1"].state == "in_progress"
    assert planned(world) == []


@pytest.mark.parametrize("rules", [RULES, Rules(conflicts_to_agent=False)])
def test_what_the_merge_queue_sends_back_goes_to_the_terminal_that_is_open(rules):
    world = at_terminal(
        run_state="complete", run_round=20, task_state="done", task_queued_at=1.0, task_head="h"
    )
    facts = returned(world, "1", leads=LEADS, ask=Ask.CONFLICT, notes="a", rules=rules, at=60.0)
    world = after(world, facts)
    assert (world.tasks["1"].state, run_of(world).state) == ("in_progress", "working")
    assert terminal_of(world).is_open
    assert not is_waiting(world, run_of(world))


# An agent that is stopped by the name of its task


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_a_task_that_is_stopped_does_not_go_back_to_the_queue_with_its_agent(state):
    world = holding(state, run_stopping=True, agent_killing=True)
    world = after(world, killed(world, world.agents["A"], at=60.0))
    assert world.tasks["1"].state == "error"
    assert (run_of(world).error, run_of(world).stopping) == ("stopped with agent A", False)


def test_a_session_whose_step_was_killed_may_be_known_to_its_program():
    world = holding("working", run_stepping=True, run_session="s-1")
    world = after(world, killed(world, world.agents["A"], at=60.0))
    assert (run_of(world).session_used, run_of(world).stepping) == (True, False)


def test_a_run_that_finished_before_it_could_be_stopped_is_finished():
    world = holding("done", run_stopping=True, agent_killing=True)
    world = inspected(world)
    assert (world.tasks["1"].state, run_of(world).stopping) == ("done", False)
