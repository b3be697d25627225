"""What follows from what happened to a run."""

from dataclasses import replace

import pytest

from crew.domain.kernel.quotation import LONGEST_NOTES, quoted
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.merging.merge_plan import returned
from crew.domain.provider_limits import PAUSING
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Ask
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence, ways_out
from crew.domain.runs.lost_sides import Loss, LostSide, Side
from crew.domain.runs.next_round import sent_back
from crew.domain.runs.run_ends import abandoned, killed
from crew.domain.runs.run_outcomes import Prepared, assigned, checked, prepared
from crew.domain.runs.step_errors import troubled
from crew.domain.runs.step_outcomes import step_ended, step_found_done, step_started
from crew.domain.terminals.terminal_outcomes import taken_over
from domain.scenes import RULES, after, given, holding, queued, with_changes

FINE = StepOutcome(session="s1")
DONE = StepOutcome(session="s1", done=True)


def only(world):
    """The one agent, run and task of a small world."""
    return tuple(next(iter(world.rows(kind).values()), None) for kind in ("agent", "run", "task"))


@pytest.mark.parametrize(("stepping", "cost"), [(True, None), (False, 0.25)])
def test_the_cost_of_a_step_that_was_cut_off_is_unknown(stepping, cost):
    world = holding("working", run_stepping=stepping, run_cost_usd=0.25, agent_cost_usd=0.25)
    world = after(world, killed(world, world.agents["A"], at=11.0))
    assert (world.runs["1.1"].cost_usd, world.agents["A"].cost_usd) == (cost, cost)


@pytest.mark.parametrize("follows", [step_started, step_found_done, taken_over])
@pytest.mark.parametrize(("stepping", "cost"), [(True, None), (False, 0.25)])
def test_the_cost_of_a_step_that_crew_died_in_or_gave_to_a_terminal_is_unknown(
    follows, stepping, cost
):
    world = holding("working", run_stepping=stepping, run_cost_usd=0.25, agent_cost_usd=0.25)
    values = {"epoch": 2, "session": "s1"} if follows is step_started else {}
    world = after(world, follows(world, world.runs["1.1"], at=11.0, **values))
    assert world.agents["A"].cost_usd == cost
    if follows is not taken_over:  # its terminal will make it unknown
        assert world.runs["1.1"].cost_usd == cost


@pytest.mark.parametrize(
    ("step", "outcome", "why"),
    [
        (19, FINE, "the step limit of 20 was reached without DONE, and nothing was committed"),
        (19, DONE, "it said DONE, and nothing was committed"),
        (3, DONE, "it said DONE, and nothing was committed"),
    ],
)
def test_a_run_that_gives_up_says_how_its_last_round_ended(step, outcome, why):
    world = holding("working", run_step=step, run_round=3, run_max_rounds=3)
    world = start_step(world)
    world = after(
        world,
        step_ended(
            world,
            world.runs["1.1"],
            lead_of(world, world.runs["1.1"]),
            outcome,
            rules=RULES,
            at=11.0,
        ),
    )
    nothing = Evidence(head="h", has_commits=False)
    world = after(
        world,
        checked(
            world,
            world.runs["1.1"],
            lead_of(world, world.runs["1.1"]),
            nothing,
            rules=RULES,
            at=12.0,
        ),
    )
    assert world.runs["1.1"].error == f"gave up after 3 rounds: {why}"


def start_step(world, *, epoch=1, session="s1", at=10.0):
    run = world.runs["1.1"]
    return after(world, step_started(world, run, epoch=epoch, session=session, at=at))


def end_step(world, outcome, *, rules=RULES, at=20.0):
    facts = step_ended(
        world, world.runs["1.1"], lead_of(world, world.runs["1.1"]), outcome, rules=rules, at=at
    )
    return after(world, facts)


def do_step(world, outcome, *, rules=RULES, at=20.0):
    return end_step(start_step(world, at=at), outcome, rules=rules, at=at)


def error(kind, *, message="it broke", reset_at=None, usage=Usage()):  # noqa: B008 - frozen
    what = StepError(kind=kind, message=message, reset_at=reset_at)
    return StepOutcome(session="s1", error=what, usage=usage)


def check(world, evidence, *, rules=RULES):
    return after(
        world,
        checked(
            world,
            world.runs["1.1"],
            lead_of(world, world.runs["1.1"]),
            evidence,
            rules=rules,
            at=30.0,
        ),
    )


# Taking a task


def test_an_idle_agent_gets_a_new_run_of_the_task():
    world = given(Agent(id="A", agent_kind="claude"), Task(id="1"))
    agent, run, task = only(
        after(
            world,
            assigned(
                world,
                world.agents["A"],
                world.tasks["1"],
                lead=LEADS.of_task(world, world.tasks["1"].id),
                rules=Rules(max_rounds=7),
                at=3.0,
            ),
        )
    )
    assert (agent.state, agent.task, agent.run, agent.task_assigned_at) == ("ready", "1", "1.1", 3)
    assert (run.id, run.agent, run.agent_kind, run.max_rounds) == ("1.1", "A", "claude", 7)
    assert (run.state, run.ask, run.started_at) == ("init", Ask.FIRST, 3.0)
    assert (task.state, task.run, task.run_count) == ("in_progress", "1.1", 1)


def test_a_task_that_wants_another_kind_of_agent_gets_a_run_of_that_kind():
    world = given(Agent(id="A", agent_kind="claude"), Task(id="1", wants_agent="codex"))
    _, run, _ = only(
        after(
            world,
            assigned(
                world,
                world.agents["A"],
                world.tasks["1"],
                lead=LEADS.of_task(world, world.tasks["1"].id),
                rules=RULES,
                at=3.0,
            ),
        )
    )
    assert run.agent_kind == "codex"


def test_a_restarted_task_gets_its_next_run_which_is_told_what_its_branch_holds():
    task = Task(id="1", state="error", run="1.2", run_count=2)
    world = given(Agent(id="A", agent_kind="claude"), task)
    world = after(
        world,
        assigned(
            world, world.agents["A"], task, lead=LEADS.of_task(world, task.id), rules=RULES, at=3.0
        ),
    )
    assert world.runs["1.3"].ask == Ask.RESUMED
    assert world.tasks["1"].run_count == 3


def test_a_task_that_was_sent_back_goes_on_with_its_own_run_and_session():
    world = holding("working", run_agent=None, run_session="s7", run_round=2)
    world = replace(world, agents={"B": Agent(id="B", agent_kind="claude")})
    world = after(
        world,
        assigned(
            world,
            world.agents["B"],
            world.tasks["1"],
            lead=LEADS.of_task(world, world.tasks["1"].id),
            rules=RULES,
            at=3.0,
        ),
    )
    assert list(world.runs) == ["1.1"]
    run = world.runs["1.1"]
    assert (run.agent, run.session, run.round) == ("B", "s7", 2)
    assert (world.agents["B"].state, world.agents["B"].run) == ("ready", "1.1")


def test_a_prepared_run_starts_to_work():
    world = holding("ready")
    where = Prepared(worktree="/trees/1", branch="crew-1", base="abc")
    _, run, task = only(after(world, prepared(world, world.runs["1.1"], where, at=4.0)))
    assert (run.state, run.base) == ("working", "abc")
    assert (task.worktree, task.branch) == ("/trees/1", "crew-1")


def test_a_worktree_that_is_made_again_keeps_the_run_and_its_base():
    world = holding("working", run_base="old")
    where = Prepared(worktree="/trees/1", branch="crew-1", base="new")
    _, run, _ = only(after(world, prepared(world, world.runs["1.1"], where, at=4.0)))
    assert (run.state, run.base) == ("working", "old")


# Steps


def test_a_step_is_known_before_its_process_starts():
    agent, run, _ = only(start_step(holding("working"), epoch=4, session="s9"))
    assert (run.step, run.steps, run.attempt, run.stepping) == (1, 1, 1, True)
    assert (run.epoch, run.session) == (4, "s9")
    assert agent.state == "working"


def test_an_interrupted_step_is_tried_again_under_a_new_attempt():
    world = start_step(start_step(holding("working")), epoch=2)
    _, run, _ = only(world)
    assert (run.step, run.steps, run.attempt, run.epoch) == (1, 1, 2, 2)


def test_a_good_step_without_done_is_followed_by_the_next_one():
    agent, run, _ = only(do_step(holding("working", agent_error_count=4), FINE))
    assert (run.state, run.stepping, run.ask, run.session_used) == (
        "working",
        False,
        Ask.CONTINUE,
        True,
    )
    assert (agent.state, agent.error_count, agent.last_step_at) == ("working", 0, 20.0)


def test_done_ends_the_round():
    agent, run, _ = only(do_step(holding("working"), DONE))
    assert (agent.state, run.state) == ("done", "reviewing")


def test_the_last_step_of_a_round_ends_it_without_done():
    world = holding("working")
    for _ in range(19):
        world = do_step(world, FINE)
        assert only(world)[1].state == "working"
    agent, run, _ = only(do_step(world, FINE))
    assert (agent.state, run.state, run.step) == ("done", "reviewing", 20)


def test_a_new_round_counts_its_steps_anew():
    world = do_step(holding("working"), DONE)
    world = check(world, Evidence(head="h", gate_passed=False))
    _, run, _ = only(start_step(world))
    assert (run.round, run.step, run.steps) == (2, 1, 2)


# Errors


STAYS = ("working", "working")
"""Run and agent go on."""

AFTER_ERROR = {
    ErrorKind.OVERLOADED: (STAYS, "error", 1, 22.0),
    ErrorKind.SESSION_IN_USE: (STAYS, "session_renewed", 0, None),
    ErrorKind.SESSION_UNKNOWN: (STAYS, "session_renewed", 0, None),
    ErrorKind.CONTEXT_FULL: (STAYS, "session_renewed", 0, None),
    ErrorKind.PERMISSION_DENIED: (STAYS, "error", 1, 22.0),
    ErrorKind.TIMEOUT: (STAYS, "session_renewed", 0, None),
    ErrorKind.STALLED: (STAYS, "session_renewed", 0, None),
    ErrorKind.CRASHED: (STAYS, "error", 1, 22.0),
}
"""kind -> (states of run and agent, trigger, errors counted, when the next try may be)"""


def test_every_error_has_its_line_in_the_table_unless_it_pauses_a_provider_or_a_kind():
    assert set(AFTER_ERROR) == set(ErrorKind) - PAUSING


@pytest.mark.parametrize("kind", AFTER_ERROR)
def test_each_kind_of_error_has_its_next_move(kind):
    states, trigger, errors, retry_at = AFTER_ERROR[kind]
    world = start_step(holding("working"))
    facts = step_ended(
        world,
        world.runs["1.1"],
        lead_of(world, world.runs["1.1"]),
        error(kind),
        rules=RULES,
        at=20.0,
    )
    assert [fact.trigger for fact in facts] == ["step_ended", trigger]
    assert facts[0].extra == {"step": 1, "error": kind}
    agent, run, _ = only(after(world, facts))
    assert (run.state, agent.state) == states
    assert (agent.error_count, agent.retry_at) == (errors, retry_at)
    assert agent.last_error == "it broke"
    assert not run.stepping


COUNTED = [kind for kind, (_, trigger, *_) in AFTER_ERROR.items() if trigger == "error"]
RENEWED = [kind for kind, (_, trigger, *_) in AFTER_ERROR.items() if trigger == "session_renewed"]


@pytest.mark.parametrize("kind", COUNTED)
def test_an_error_is_waited_for_twice_as_long_each_time_and_the_fifth_makes_the_agent_stuck(kind):
    world, waits, states = holding("working"), [], []
    for _ in range(5):
        world = do_step(world, error(kind), at=100.0)
        agent = world.agents["A"]
        waits.append(agent.retry_at - 100.0)
        states.append(agent.state)
    assert waits == [2, 4, 8, 16, 32]
    assert states == ["working"] * 4 + ["stuck"]
    assert world.runs["1.1"].state == "working"


def test_after_a_manual_retry_the_waits_are_a_minute_until_the_agent_is_stuck_again():
    world = holding("working", agent_error_count=5)
    waits = []
    for _ in range(5):
        world = do_step(world, error(ErrorKind.CRASHED), at=100.0)
        waits.append(world.agents["A"].retry_at - 100.0)
    assert waits == [60] * 5
    assert (world.agents["A"].state, world.agents["A"].error_count) == ("stuck", 10)


def test_a_good_step_forgets_the_errors_before_it():
    world = holding("working")
    for _ in range(4):
        world = do_step(world, error(ErrorKind.CRASHED))
    world = do_step(do_step(world, FINE), error(ErrorKind.CRASHED), at=100.0)
    agent = world.agents["A"]
    assert (agent.error_count, agent.retry_at, agent.state) == (1, 102.0, "working")


def test_a_wait_is_over_once_the_next_step_starts():
    world = do_step(holding("working"), error(ErrorKind.CRASHED))
    assert start_step(world).agents["A"].retry_at is None


def test_errors_that_do_not_come_from_the_session_keep_it():
    world = do_step(do_step(holding("working"), FINE), error(ErrorKind.OVERLOADED))
    _, run, _ = only(world)
    assert (run.session, run.session_used, run.session_number) == ("s1", True, 0)


@pytest.mark.parametrize("kind", RENEWED)
def test_a_fresh_session_is_tried_once_and_the_same_error_again_counts(kind):
    world = do_step(holding("working"), error(kind))
    _, run, _ = only(world)
    assert (run.session, run.session_used, run.session_number) == ("", False, 1)
    agent, run, _ = only(do_step(world, error(kind), at=100.0))
    assert (agent.error_count, agent.retry_at) == (1, 102.0)
    assert run.session_number == 2


def test_a_good_step_allows_a_fresh_session_again():
    world = do_step(holding("working"), error(ErrorKind.TIMEOUT))
    world = do_step(do_step(world, FINE), error(ErrorKind.TIMEOUT))
    assert world.agents["A"].error_count == 0
    assert world.runs["1.1"].session_number == 2


@pytest.mark.parametrize(
    ("kind", "used", "ask", "next_ask"),
    [
        (ErrorKind.SESSION_IN_USE, False, Ask.FIRST, Ask.FIRST),
        (ErrorKind.SESSION_IN_USE, True, Ask.CONTINUE, Ask.RESUMED),
        (ErrorKind.TIMEOUT, False, Ask.FIRST, Ask.RESUMED),
        (ErrorKind.CONTEXT_FULL, True, Ask.CONTINUE, Ask.RESUMED),
        (ErrorKind.SESSION_UNKNOWN, True, Ask.RED_GATE, Ask.RED_GATE),
        (ErrorKind.STALLED, True, Ask.CONFLICT, Ask.CONFLICT),
    ],
)
def test_a_fresh_session_is_told_what_its_branch_holds_or_what_was_wrong(kind, used, ask, next_ask):
    world = holding("working", run_session_used=used, run_ask=ask)
    assert do_step(world, error(kind)).runs["1.1"].ask == next_ask


@pytest.mark.parametrize("state", ["ready", "working"])
def test_trouble_of_our_own_is_an_error_like_any_other(state):
    world, waits = holding(state), []
    for _ in range(5):
        run = world.runs["1.1"]
        world = after(
            world, troubled(world, run, lead_of(world, run), "no worktree", rules=RULES, at=100.0)
        )
        waits.append(world.agents["A"].retry_at - 100.0)
    agent = world.agents["A"]
    assert waits == [2, 4, 8, 16, 32]
    assert (agent.state, agent.last_error) == ("stuck", "no worktree")


def test_a_check_that_cannot_run_five_times_fails_the_run_and_frees_the_agent():
    world = holding("done")
    for _ in range(4):
        run = world.runs["1.1"]
        world = after(
            world, troubled(world, run, lead_of(world, run), "no gate program", rules=RULES, at=1.0)
        )
        assert world.agents["A"].state == "done"
    run = world.runs["1.1"]
    agent, run, task = only(
        after(
            world, troubled(world, run, lead_of(world, run), "no gate program", rules=RULES, at=1.0)
        )
    )
    assert (agent.state, run.state, run.error) == ("idle", "failed", "no gate program")
    assert (task.state, task.worktree) == ("error", "/trees/1")


def test_trouble_with_a_run_that_nobody_holds_is_nobodys_error():
    world = holding("working", run_agent=None)
    assert (
        troubled(
            world, world.runs["1.1"], lead_of(world, world.runs["1.1"]), "late", rules=RULES, at=1.0
        )
        == []
    )


# Usage


def test_usage_adds_up_for_the_run_and_for_the_agent():
    usage = Usage(input_tokens=10, output_tokens=3, cost_usd=0.25)
    world = do_step(holding("working"), replace(FINE, usage=usage))
    agent, run, _ = only(do_step(world, error(ErrorKind.CRASHED, usage=usage)))
    for row in (agent, run):
        assert (row.input_tokens, row.output_tokens, row.cost_usd) == (20, 6, 0.5)


def test_a_cost_that_nobody_knows_stays_unknown_and_is_never_nothing():
    unknown = replace(FINE, usage=Usage(input_tokens=1, cost_usd=None))
    known = replace(FINE, usage=Usage(input_tokens=1, cost_usd=0.5))
    world = do_step(do_step(holding("working"), known), unknown)
    agent, run, _ = only(do_step(world, known))
    assert agent.cost_usd is None
    assert run.cost_usd is None
    assert run.input_tokens == 3


# Evidence


GOOD = Evidence(head="h1", gate_passed=True)


@pytest.mark.parametrize("gate", [True, None])
def test_proven_work_joins_the_line_and_frees_the_agent(gate):
    world = holding("done", agent_error_count=2, run_complaints=2)
    agent, run, task = only(check(world, replace(GOOD, gate_passed=gate)))
    assert (run.state, run.agent, run.ended_at, run.complaints) == ("complete", None, 30.0, 0)
    assert (task.state, task.head, task.queued_at) == ("done", "h1", 30.0)
    assert (agent.state, agent.task, agent.run, agent.error_count) == ("idle", None, None, 0)


def test_proven_work_counts_even_if_its_agent_is_gone():
    world = replace(holding("done"), agents={})
    assert check(world, GOOD).tasks["1"].state == "done"


LOST = LostSide(
    path="theirs.py",
    side=Side.LANDED,
    loss=Loss.MISSING,
    lines=("x = 1",),
    count=1,
    owners=("4", "5"),
)
WORST = Evidence(
    head="h1",
    refused="not a tree",
    nested=("my app",),
    unpushed=("lib: abc",),
    off_head=("abc work",),
    uncommitted=("a.py", "b.py"),
    unmerged=True,
    lost_sides=(LOST,),
    has_commits=False,
    gate_passed=False,
    gate_output="1 failed",
    unfinished=True,
)


MENDED_ONE_BY_ONE = [
    ({}, Ask.REFUSED, "> not a tree"),
    ({"refused": ""}, Ask.NESTED, quoted(ways_out("my app"), most=LONGEST_NOTES)),
    ({"nested": ()}, Ask.UNPUSHED, "> lib: abc"),
    ({"unpushed": ()}, Ask.OFF_HEAD, "> abc work"),
    ({"off_head": ()}, Ask.UNCOMMITTED, "> a.py\n> b.py"),
    ({"uncommitted": ()}, Ask.CONFLICT, ""),
    (
        {"unmerged": False},
        Ask.LOST_SIDE,
        "> theirs.py\n>     1 line of tasks 4 and 5, which landed, is missing:\n>         x = 1",
    ),
    ({"lost_sides": ()}, Ask.NOTHING_COMMITTED, ""),
    ({"has_commits": True}, Ask.RED_GATE, "> 1 failed"),
    ({"gate_passed": True}, Ask.UNFINISHED, ""),
]


def test_of_several_faults_the_one_that_hides_the_others_is_told():
    evidence = WORST
    for mended, ask, notes in MENDED_ONE_BY_ONE:
        evidence = replace(evidence, **mended)
        agent, run, _ = only(check(holding("done"), evidence))
        assert (run.state, run.ask, run.notes, run.round) == ("working", ask, notes, 2)
        assert agent.state == "working"
    assert check(holding("done"), replace(evidence, unfinished=False)).tasks["1"].state == "done"


def test_long_notes_keep_their_end():
    output = "start" + "x" * LONGEST_NOTES + "the last line"
    evidence = Evidence(head="h", gate_passed=False, gate_output=output)
    notes = check(holding("done"), evidence).runs["1.1"].notes
    assert len(notes) == LONGEST_NOTES
    assert notes.endswith("the last line")


def test_of_very_many_uncommitted_files_the_first_are_named():
    files = tuple(f"{number}.py" for number in range(1000))
    notes = check(holding("done"), Evidence(head="h", uncommitted=files)).runs["1.1"].notes
    assert notes.splitlines() == [f"> {file}" for file in files[:200]]


def round_with(world, evidence, *, rules=RULES):
    return check(do_step(world, DONE, rules=rules), evidence, rules=rules)


STUBBORN = {
    Ask.REFUSED: Evidence(head="h", refused="not a tree"),
    Ask.NESTED: Evidence(head="h", nested=("app",)),
    Ask.UNPUSHED: Evidence(head="h", unpushed=("lib: abc",)),
    Ask.OFF_HEAD: Evidence(head="h", off_head=("abc work",)),
    Ask.UNCOMMITTED: Evidence(head="h", uncommitted=("a.py",)),
    Ask.NOTHING_COMMITTED: Evidence(head="h", has_commits=False),
}


@pytest.mark.parametrize("ask", STUBBORN)
def test_an_agent_that_says_done_three_times_with_the_same_fault_is_given_up(ask):
    world = holding("working")
    for _ in range(2):
        world = round_with(world, STUBBORN[ask])
        assert world.runs["1.1"].state == "working"
    agent, run, task = only(round_with(world, STUBBORN[ask]))
    assert (run.state, task.state, agent.state) == ("failed", "error", "idle")
    assert "gave up after 3 rounds" in run.error


def test_a_merge_that_drops_a_side_three_times_asks_a_person():
    world = holding("working")
    for _ in range(3):
        world = round_with(world, Evidence(head="h", lost_sides=(LOST,)))
        assert world.runs["1.1"].merge_refused == "h"
    agent, run, task = only(world)
    assert (run.state, run.agent, task.state, agent.state) == (
        "working",
        None,
        "in_progress",
        "idle",
    )
    question = world.questions[run.question]
    assert (question.about, question.choices) == ("lost_side", ("accept", "agent", "give up"))
    assert "x = 1" in question.context
    assert "tasks 4 and 5" in question.context


def test_another_complaint_in_between_starts_the_count_again():
    world = holding("working")
    for _ in range(3):
        world = round_with(world, STUBBORN[Ask.UNCOMMITTED])
        world = round_with(world, STUBBORN[Ask.NOTHING_COMMITTED])
    assert world.runs["1.1"].state == "working"


def test_a_red_gate_may_stay_red_until_the_rounds_are_spent():
    world = holding("working", run_max_rounds=4)
    red = Evidence(head="h", gate_passed=False)
    for _ in range(3):
        world = round_with(world, red)
        assert world.runs["1.1"].state == "working"
    agent, run, task = only(round_with(world, red))
    assert (run.state, run.error) == ("failed", "gave up after 4 rounds: the gate is red")
    assert (task.state, agent.state) == ("error", "idle")


def test_a_run_that_nobody_holds_is_sent_back_without_an_agent():
    world = holding("working", run_agent=None, run_state="complete")
    facts = sent_back(
        world,
        world.runs["1.1"],
        lead_of(world, world.runs["1.1"]),
        ask=Ask.CONFLICT,
        notes="",
        rules=RULES,
        at=1.0,
        merge_head="h",
    )
    assert [fact.kind for fact in facts] == ["run"]
    assert facts[0].changes["merge_head"] == "h"


def unresolved(times):
    """The merge queue finds a conflict, and the agent says `times` times that it is done."""
    world = given(*queued("1"))
    aside = {"merge_commit": "c" * 40, "merge_paths": ("a.py",), "merge_notes": "both sides"}
    facts = returned(
        world, "1", leads=LEADS, ask=Ask.CONFLICT, notes="", rules=RULES, at=2.0, **aside
    )
    world = after(world, facts)
    for _ in range(times):
        world = replace(world, runs={"1.1": replace(world.runs["1.1"], state="reviewing")})
        world = round_again(world, Evidence(head="h", unmerged=True))
    return world


def round_again(world, evidence):
    return after(
        world,
        checked(
            world,
            world.runs["1.1"],
            lead_of(world, world.runs["1.1"]),
            evidence,
            rules=RULES,
            at=60.0,
        ),
    )


def test_a_conflict_is_sent_three_times_with_both_sides_and_then_the_run_ends():
    for times in (0, 1, 2):
        run = unresolved(times).runs["1.1"]
        assert (run.state, run.ask, run.merge_notes) == ("working", Ask.CONFLICT, "both sides")
        assert run.merge_tries == times + 1
    run = unresolved(3).runs["1.1"]
    assert run.state == "failed"
    assert run.error.startswith("gave up: asked 3 times to resolve the conflict with cccccccccccc")
    assert run.error.endswith("in a.py, and it is not merged")


def test_another_fault_in_between_does_not_count_the_conflict_anew():
    world = unresolved(1)
    world = replace(world, runs={"1.1": replace(world.runs["1.1"], state="reviewing")})
    world = round_again(world, Evidence(head="h", uncommitted=("a.py",)))
    assert world.runs["1.1"].merge_tries == 2


def test_a_conflict_with_another_commit_is_counted_anew():
    world = unresolved(2)
    run = replace(world.runs["1.1"], state="complete")
    task = replace(world.tasks["1"], state="done", head="h2", queued_at=5.0)
    world = replace(world, runs={"1.1": run}, tasks={"1": task})
    aside = {"merge_commit": "d" * 40, "merge_paths": ("b.py",), "merge_notes": "other sides"}
    facts = returned(
        world, "1", leads=LEADS, ask=Ask.CONFLICT, notes="", rules=RULES, at=2.0, **aside
    )
    run = after(world, facts).runs["1.1"]
    assert (run.merge_tries, run.merge_notes) == (1, "other sides")


# Ends


def test_a_failed_run_leaves_everything_where_it_is():
    world = holding("done", task_branch="crew-1")
    agent, run, task = only(
        after(
            world,
            lead_of(world, world.runs["1.1"]).out_of_tries(
                world, world.runs["1.1"], "no luck", at=9.0
            ),
        )
    )
    assert (run.state, run.error, run.ended_at) == ("failed", "no luck", 9.0)
    assert (task.state, task.worktree, task.branch) == ("error", "/trees/1", "crew-1")
    assert agent.state == "idle"


def test_a_failed_run_of_a_task_that_was_closed_meanwhile_leaves_it_closed():
    world = holding("done", task_state="closed")
    _, run, task = only(
        after(
            world,
            lead_of(world, world.runs["1.1"]).out_of_tries(
                world, world.runs["1.1"], "no luck", at=9.0
            ),
        )
    )
    assert (run.state, task.state) == ("failed", "closed")


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_a_killed_agent_is_idle_its_run_over_and_its_task_back_in_the_queue(state):
    world = holding(state, agent_killing=True, agent_pid=7, agent_error_count=3, run_stepping=True)
    agent, run, task = only(after(world, killed(world, world.agents["A"], at=9.0)))
    free = Agent(id="A", agent_kind="claude", cost_usd=None)
    assert agent == free
    assert (run.state, run.agent, run.stepping) == ("failed", None, False)
    assert run.error == "killed with agent A"
    assert task.state == "todo"


def test_a_kill_of_an_agent_whose_task_was_closed_leaves_the_task_closed():
    world = holding("working", agent_killing=True, task_state="closed")
    agent, run, task = only(after(world, killed(world, world.agents["A"], at=9.0)))
    assert (agent.state, run.state, task.state) == ("idle", "failed", "closed")


def test_a_kill_that_comes_too_late_changes_only_the_mark():
    world = given(Agent(id="A", agent_kind="claude", killing=True))
    facts = killed(world, world.agents["A"], at=9.0)
    assert after(world, facts).agents["A"] == Agent(id="A", agent_kind="claude")
    assert [fact.target for fact in facts] == [None]


def test_a_kill_does_not_touch_a_run_that_is_over():
    world = with_changes(holding("done"), run_state="complete", task_state="done")
    _, run, task = only(after(world, killed(world, world.agents["A"], at=9.0)))
    assert (run.state, task.state) == ("complete", "done")


@pytest.mark.parametrize("state", ["ready", "working"])
def test_a_reset_is_a_kill_by_another_name(state):
    world = holding(state)
    facts = killed(world, world.agents["A"], at=9.0, trigger="reset")
    agent, run, task = only(after(world, facts))
    assert (agent.state, run.error, task.state) == ("idle", "reset with agent A", "todo")


def test_whoever_works_at_a_closed_task_is_to_be_killed_once():
    world = holding("working")
    facts = abandoned(world, world.tasks["1"], at=9.0)
    assert [(fact.subject, fact.trigger) for fact in facts] == [("A", "kill_asked")]
    world = after(world, facts)
    assert abandoned(world, world.tasks["1"], at=9.0) == []


def test_a_run_that_waits_for_an_agent_ends_with_its_task():
    world = replace(holding("working", run_agent=None), agents={})
    _, run, _ = only(after(world, abandoned(world, world.tasks["1"], at=9.0)))
    assert (run.state, run.error, run.ended_at) == ("failed", "closed", 9.0)
