"""start, stop, complete, changes: every verb in every state, and what comes of two at once."""

from dataclasses import replace

import pytest

from crew.domain.clock import Clock
from crew.domain.kernel.errors import Conflict, NotFound
from crew.domain.lead_choice import lead_of
from crew.domain.plan import decide
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.runs.run_ends import killed
from crew.domain.runs.run_holder import is_waiting
from crew.domain.runs.run_outcomes import completed
from crew.domain.terminals import terminal_outcomes
from crew.domain.terminals.terminal_outcomes import Opened
from domain.scenes import RULES, after, at_terminal, given, holding, queued, with_changes

START = {"task": "1", "default_kind": "claude"}


def ask(world, verb, **args):
    """The world after it."""
    found = answer(world, Request(verb=verb, args={"task": "1", **args}), rules=RULES, at=50.0)
    return after(world, found.facts)


def start(world, **args):
    return ask(world, "start", **{**START, **args})


def refused(world, verb="start", **args):
    """The refusal as a person reads it: what, and what next."""
    with pytest.raises(Conflict) as caught:
        ask(world, verb, **{**START, **args})
    assert type(caught.value) is Conflict
    assert caught.value.hint
    return f"{caught.value.message}; {caught.value.hint}"


def run_of(world, run="1.1"):
    return world.runs[run]


def terminal_of(world, run="1.1"):
    return world.terminals[run]


def done_at_terminal(**changes):
    return at_terminal(run_state="complete", task_state="done", task_head="h", **changes)


# start


@pytest.mark.parametrize("verb", ["start", "stop_task", "complete", "changes", "reviewed"])
def test_a_task_that_nobody_knows_is_refused(verb):
    verdict = {"commit": "c", "reviewer": "ann", "passed": True}
    with pytest.raises(NotFound):
        ask(given(), verb, verdict=verdict, **START)


@pytest.mark.parametrize("state", ["todo", "error"])
def test_start_makes_a_run_that_wants_a_terminal(state):
    world = start(given(Task(id="1", state=state)), model="opus", told="be quick")
    run = run_of(world)
    assert world.tasks["1"].state == "in_progress"
    assert (run.agent, run.agent_kind, run.state) == (None, "claude", "init")
    assert (terminal_of(world).name, terminal_of(world).state) == ("crew-1", "asked")
    assert (run.model, run.told, run.ask) == ("opus", "be quick", "first")
    assert not is_waiting(world, run)


def test_start_headless_makes_a_run_for_the_first_agent_that_is_free():
    world = start(given(Task(id="1"), Agent(id="A", agent_kind="codex")), headless=True)
    assert is_waiting(world, run_of(world))
    world = after(world, decide(world, Clock(51.0), rules=RULES))
    assert (world.agents["A"].task, run_of(world).agent) == ("1", "A")


def test_start_names_the_agent_that_is_meant():
    world = start(given(Task(id="1")), kind="codex")
    assert run_of(world).agent_kind == "codex"


def test_start_of_a_task_that_is_in_progress_and_at_which_nobody_works_begins_anew():
    world = start(given(Task(id="1", state="in_progress")))
    assert (world.tasks["1"].state, terminal_of(world).state) == ("in_progress", "asked")
    failed = Run(id="1.1", task="1", state="failed")
    world = start(given(Task(id="1", state="in_progress", run="1.1", run_count=1), failed))
    assert (world.tasks["1"].run, run_of(world, "1.2").ask) == ("1.2", "resumed")


@pytest.mark.parametrize("state", ["merged", "closed"])
@pytest.mark.parametrize("verb", ["start", "complete"])
def test_a_finished_task_is_refused(verb, state):
    told = refused(given(Task(id="1", state=state)), verb)
    assert f"task 1 is {state}; `crew show 1` and `crew diff 1` show what became of it" in told
    assert "crew start" not in told


def test_start_refuses_a_task_that_waits_or_cannot_be_read():
    assert "it waits for 2" in refused(given(Task(id="1", deps=("2",)), Task(id="2")))
    assert "its file cannot be read" in refused(given(Task(id="1", corrupt=True)))
    assert "its source does not have it" in refused(given(Task(id="1", state="error", gone=True)))


def test_start_refuses_a_second_session():
    assert "task 1 already has a terminal; `crew attach 1` shows it" in refused(at_terminal())


@pytest.mark.parametrize("headless", [True, False])
def test_start_refuses_a_task_that_is_being_checked(headless):
    told = refused(at_terminal(run_state="reviewing"), headless=headless)
    assert "task 1 is being checked; `crew complete 1` waits for the result" in told
    assert "is being checked" in refused(holding("done"), headless=headless)


@pytest.mark.parametrize("headless", [True, False])
@pytest.mark.parametrize("leaving", ["stopped", "ended", "handed_over"])
@pytest.mark.parametrize("scene", [at_terminal, done_at_terminal])
def test_start_refuses_a_session_that_is_being_closed(scene, leaving, headless):
    told = refused(scene(leaving=leaving), headless=headless)
    assert "the terminal of task 1 is being closed; try again in a moment" in told


def test_start_refuses_another_agent_than_the_one_that_is_under_way():
    told = refused(holding("working"), kind="codex")
    assert "task 1 is under way with claude, not codex; `crew stop 1` first" in told


@pytest.mark.parametrize("state", ["ready", "working", "stuck"])
def test_start_takes_a_task_from_its_agent_in_the_same_session(state):
    world = start(holding(state, run_session="s-1", run_session_used=True), model="opus")
    run = run_of(world)
    assert (run.agent, terminal_of(world).state, run.model) == ("A", "asked", "opus")
    world = after(world, terminal_outcomes.taken_over(world, run, at=51.0))
    facts = terminal_outcomes.opened(
        world, run_of(world), Opened(pid=5, started=6), session="s-1", at=52.0
    )
    world = after(world, facts)
    assert (run_of(world).session, world.agents["A"].is_free) == ("s-1", True)


def test_start_headless_refuses_a_task_that_an_agent_works_at():
    told = refused(holding("working"), headless=True)
    assert "agent A works on task 1 already; `crew ps` shows it" in told


def test_start_headless_hands_a_session_over():
    world = start(at_terminal(), headless=True, told="go on")
    assert (terminal_of(world).leaving, run_of(world).told) == ("handed_over", "go on")


def test_start_headless_of_a_run_that_waits_only_adds_words():
    world = start(at_terminal(is_up=False), headless=True, told="go on")
    assert (is_waiting(world, run_of(world)), run_of(world).told) == (True, "go on")


def test_a_session_can_go_to_and_fro_and_each_time_is_told_from_the_others():
    world = at_terminal()
    for number in (1, 2):
        world = start(world, headless=True)
        world = after(world, terminal_outcomes.closed(world, run_of(world), at=51.0))
        assert is_waiting(world, run_of(world))
        world = start(world)
        assert (terminal_of(world).number, run_of(world).session) == (number, "s-1")


# start --continue


def failed_before(**changes):
    run = Run(
        id="1.1",
        task="1",
        state="failed",
        agent_kind="codex",
        model="o3",
        session="s-1",
        session_number=2,
        session_used=True,
    )
    task = Task(id="1", state="error", run="1.1", run_count=1)
    return with_changes(given(run, task), **changes)


def test_continue_goes_on_with_the_last_session_agent_and_model():
    run = run_of(start(failed_before(), resume=True), "1.2")
    assert (run.session, run.session_number, run.session_used) == ("s-1", 2, True)
    assert (run.agent_kind, run.model, run.ask) == ("codex", "o3", "continue")


def test_continue_with_a_session_that_never_began_begins_it():
    run = run_of(start(failed_before(run_session_used=False), resume=True), "1.2")
    assert (run.session, run.session_used, run.ask) == ("s-1", False, "resumed")


def test_continue_with_another_agent_cannot_have_the_session():
    run = run_of(start(failed_before(), resume=True, kind="claude"), "1.2")
    assert (run.session, run.agent_kind, run.ask, run.model) == ("", "claude", "resumed", "")


@pytest.mark.parametrize("changes", [{}, {"run_session": ""}])
def test_a_start_is_a_new_session_unless_there_is_one_to_continue(changes):
    run = run_of(start(failed_before(**changes), resume=bool(changes)), "1.2")
    assert (run.session, run.session_used, run.ask) == ("", False, "resumed")


def test_continue_of_a_task_that_never_ran_simply_starts():
    assert run_of(start(given(Task(id="1")), resume=True)).ask == "first"


# A done task that is worked at once more


def test_start_reopens_a_done_task_in_a_new_terminal():
    world = start(given(*queued("1")))
    task, run = world.tasks["1"], run_of(world)
    assert (task.state, task.is_queued, task.head) == ("in_progress", False, "")
    assert (run.state, run.round, run.ask) == ("working", 2, "changes")
    assert terminal_of(world).state == "asked"


def test_start_reopens_a_done_task_where_its_terminal_still_is():
    world = start(done_at_terminal())
    terminal = terminal_of(world)
    assert (run_of(world).state, terminal.pid, terminal.number) == ("working", 42, 0)
    handed = start(done_at_terminal(), headless=True)
    assert terminal_of(handed).leaving == "handed_over"


def test_start_headless_reopens_a_done_task_for_an_agent():
    world = start(given(*queued("1")), headless=True)
    assert is_waiting(world, run_of(world))


def test_changes_send_a_done_task_back_to_its_session_with_the_words():
    world = ask(given(*queued("1")), "changes", notes="more tests")
    run = run_of(world)
    assert (is_waiting(world, run), run.ask, run.notes) == (True, "changes", "> more tests")
    assert world.tasks["1"].state == "in_progress"


def test_a_persons_wish_is_none_of_the_rounds_an_agent_has():
    world = given(*queued("1"))
    run = run_of(world)
    spent = given(world.tasks["1"], Run(**{**_values(run), "round": 20, "max_rounds": 20}))
    world = ask(spent, "changes", notes="more")
    assert (run_of(world).state, run_of(world).round, run_of(world).max_rounds) == (
        "working",
        21,
        21,
    )


def _values(run):
    return {name: getattr(run, name) for name in ("id", "task", "agent_kind", "state")}


@pytest.mark.parametrize("state", ["todo", "in_progress", "error", "merged", "closed"])
def test_changes_are_asked_of_a_done_task_only(state):
    told = refused(given(Task(id="1", state=state)), "changes")
    assert f"task 1 is {state}, not done" in told
    assert "crew comment" in told


@pytest.mark.parametrize("verb", ["start", "changes"])
def test_a_done_task_of_which_crew_knows_no_run_cannot_be_reopened(verb):
    told = refused(given(Task(id="1", state="done")), verb)
    assert "task 1 is done; `crew merge` lands it" in told


def test_changes_reach_the_agent_at_a_terminal_that_is_open():
    world = ask(done_at_terminal(), "changes", notes="more tests")
    run = run_of(world)
    assert (run.state, run.notes) == ("working", "> more tests")
    assert (terminal_of(world).pid, terminal_of(world).untyped) == (42, True)
    assert not is_waiting(world, run)


def test_words_that_come_with_a_start_reach_the_terminal_that_is_still_open():
    world = start(done_at_terminal(), told="the docs too")
    assert (run_of(world).notes, terminal_of(world).untyped) == ("> the docs too", True)
    assert not terminal_of(start(done_at_terminal())).untyped


@pytest.mark.parametrize("scene", [lambda: given(*queued("1")), done_at_terminal])
def test_nothing_is_typed_for_an_agent_that_gets_the_words_with_its_next_step(scene):
    terminals = start(scene(), headless=True, told="the docs too").terminals
    assert not any(terminal.untyped for terminal in terminals.values())


# stop


def test_stop_closes_a_session():
    world = ask(at_terminal(), "stop_task")
    assert (terminal_of(world).state, terminal_of(world).leaving) == ("leaving", "stopped")


def test_stop_wins_over_everything_that_was_asked_of_the_session_before():
    for leaving in ("ended", "handed_over"):
        assert terminal_of(ask(at_terminal(leaving=leaving), "stop_task")).leaving == "stopped"


def test_stop_of_a_done_task_closes_its_session_and_leaves_it_done():
    world = ask(done_at_terminal(), "stop_task")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=51.0))
    assert (world.tasks["1"].state, terminal_of(world).state) == ("done", "closed")


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_stop_ends_the_step_of_an_agent_and_keeps_the_task_from_the_others(state):
    world = ask(holding(state), "stop_task")
    assert world.agents["A"].killing
    world = after(world, killed(world, world.agents["A"], at=51.0))
    assert (world.tasks["1"].state, world.agents["A"].is_free) == ("error", True)


def test_stop_of_a_run_that_waits_for_an_agent_is_done_at_once():
    world = ask(at_terminal(is_up=False), "stop_task")
    assert (world.tasks["1"].state, run_of(world).state, run_of(world).error) == (
        "error",
        "failed",
        "stopped",
    )


def test_stop_of_a_task_that_is_on_its_way_to_a_terminal_stops_it_there():
    world = ask(start(holding("working")), "stop_task")
    world = after(world, terminal_outcomes.taken_over(world, run_of(world), at=51.0))
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=52.0))
    assert (world.tasks["1"].state, world.agents["A"].is_free) == ("error", True)


@pytest.mark.parametrize("state", ["todo", "in_progress", "done", "merged", "closed", "error"])
def test_stop_refuses_a_task_at_which_nobody_works(state):
    told = refused(given(Task(id="1", state=state)), "stop_task")
    assert f"task 1 is {state}, so no agent works on it" in told


# The end of a session, and races with it


def ended(world, *, run="1.1", number=0, code=0):
    return ask(world, "terminal_ended", run=run, number=number, code=code)


def test_a_session_that_says_it_ended_is_closed():
    world = ended(at_terminal(), code=3)
    assert (terminal_of(world).leaving, run_of(world).error) == ("ended", "exit code 3")


def test_stop_and_the_end_of_the_session_are_one_end_in_either_order():
    one = ended(ask(at_terminal(), "stop_task"))
    other = ask(ended(at_terminal()), "stop_task")
    for world in (one, other):
        left = after(world, terminal_outcomes.closed(world, run_of(world), at=51.0))
        assert (left.tasks["1"].state, run_of(left).error) == ("error", "stopped")
        assert ended(left) == left


def test_the_end_of_a_session_that_is_told_twice_is_told_once():
    once = ended(at_terminal())
    assert ended(once, code=9) == once


def test_the_end_of_a_session_of_an_older_run_is_nothing():
    world = start(failed_before())
    assert ended(world) == world
    assert ended(world, run="7.1") == world


def test_the_late_end_of_an_earlier_session_does_not_end_the_next_one_of_the_same_run():
    world = start(at_terminal(), headless=True)
    world = start(after(world, terminal_outcomes.closed(world, run_of(world), at=51.0)))
    assert ended(world, number=0) == world
    assert terminal_of(ended(world, number=1)).leaving == "ended"


def test_closing_a_task_ends_its_session_and_keeps_its_branch():
    world = ask(at_terminal(), "close")
    assert (world.tasks["1"].state, run_of(world).state) == ("closed", "failed")
    world = after(world, terminal_outcomes.closed(world, run_of(world), at=51.0))
    assert (terminal_of(world).state, world.tasks["1"].branch) == ("closed", "crew-1")


# complete


def test_complete_has_the_work_of_a_terminal_checked():
    world = ask(at_terminal(run_error="no make"), "complete")
    assert (run_of(world).state, run_of(world).error) == ("reviewing", "")


def test_complete_by_a_second_person_waits_for_the_same_answer():
    world = at_terminal(run_state="reviewing")
    assert ask(world, "complete") == world
    assert run_of(ask(world, "complete", merge=True)).merges


@pytest.mark.parametrize(
    ("config", "asked", "merges"),
    [
        (False, None, False),
        (False, True, True),
        (True, None, True),
        (True, False, False),
    ],
)
def test_complete_queues_the_task_where_the_request_or_the_config_says_so(config, asked, merges):
    rules = replace(RULES, merge_completed=config)
    request = Request(verb="complete", args={"task": "1", "merge": asked})
    found = answer(at_terminal(), request, rules=rules, at=50.0)
    world = after(at_terminal(), found.facts)
    assert run_of(world).merges is merges
    world = after(
        world, completed(world, run_of(world), lead_of(world, run_of(world)), "h", at=51.0)
    )
    assert world.tasks["1"].queued_at == (51.0 if merges else None)
    assert world.tasks["1"].awaits_merge is not merges


@pytest.mark.parametrize("state", ["todo", "error", "in_progress"])
def test_complete_refuses_a_task_at_which_nobody_works(state):
    told = refused(given(Task(id="1", state=state)), "complete")
    assert f"task 1 is {state}, not in progress; `crew start 1` begins it" in told


def test_complete_refuses_a_task_that_is_done_already():
    told = refused(done_at_terminal(), "complete")
    assert "task 1 is done, not in progress; `crew merge 1` merges it, `crew start 1`" in told


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_complete_refuses_a_task_that_an_agent_works_at(state):
    told = refused(holding(state), "complete")
    assert "agent A works on task 1 and crew checks it itself" in told
    assert "DONE alone on a line" in told


def test_complete_refuses_a_run_that_is_in_no_terminal_yet_or_any_more():
    for world in (
        at_terminal(run_state="init", pid=None),
        at_terminal(pid=None),
        at_terminal(is_up=False),
    ):
        assert "no agent works on task 1; `crew start 1`" in refused(world, "complete")


@pytest.mark.parametrize("leaving", ["stopped", "ended", "handed_over"])
def test_complete_refuses_a_session_that_is_being_closed(leaving):
    assert "is being closed" in refused(at_terminal(leaving=leaving), "complete")


# review


def test_a_verdict_is_kept_with_the_run():
    verdict = {"commit": "c", "reviewer": "bob", "passed": True}
    world = ask(at_terminal(), "reviewed", verdict=verdict)
    assert run_of(world).verdicts == (("c", "bob", True),)


def test_a_task_that_was_never_started_has_nothing_to_review():
    verdict = {"commit": "c", "reviewer": "bob", "passed": True}
    assert "never started" in refused(given(Task(id="1")), "reviewed", verdict=verdict)
