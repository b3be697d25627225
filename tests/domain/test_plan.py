"""What is to be done now, and what follows at once."""

from dataclasses import replace

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from crew.domain.agents.agent_plan import starting_next
from crew.domain.clock import Clock
from crew.domain.commands import (
    Assemble,
    Check,
    CommandKey,
    CommandKind,
    Deliver,
    Kill,
    Land,
    Prepare,
    Recover,
    RemoveWorktree,
    Step,
    WriteTask,
)
from crew.domain.commands import (
    TestCandidate as GateOn,
)
from crew.domain.lead_choice import LEADS
from crew.domain.merging.merge_plan import queued_tasks, returned
from crew.domain.plan import decide, plan
from crew.domain.rows.agent import Agent
from crew.domain.rows.merge_queue import MergeQueue
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.tasks.readiness import is_ready
from domain.scenes import (
    RULES,
    after,
    given,
    holding,
    patient,
    queue_of,
    queued,
    waits,
    with_changes,
)

IDLE = Agent(id="A", agent_kind="claude")


FINISHING = EVERYTHING.finishing()


def decided(world, *, rules=RULES, scope=EVERYTHING):
    return after(world, decide(world, Clock(50.0), rules=rules, scope=scope))


def planned(world, *, rules=RULES, now=50.0, **settings):
    return plan(world, Clock(now), rules=rules, **settings)


def of_runs(world, **settings):
    """What is planned for runs and agents alone."""
    return [c for c in planned(world, **settings) if not isinstance(c, WriteTask | RemoveWorktree)]


# Who gets which task


@pytest.mark.parametrize("state", TaskState)
def test_only_a_task_that_is_to_do_is_ready(state):
    task = Task(id="1", state=state)
    assert is_ready(given(task), task, LEADS) == (state == "todo")


@pytest.mark.parametrize("state", TaskState)
def test_a_task_waits_until_its_dependency_is_merged_or_closed(state):
    task = Task(id="2", deps=("1",))
    world = given(Task(id="1", state=state), task)
    assert is_ready(world, task, LEADS) == (state in {"merged", "closed"})


def test_a_dependency_that_nobody_knows_blocks():
    task = Task(id="2", deps=("1", "9"))
    assert not is_ready(given(Task(id="1", state="merged"), task), task, LEADS)


NOT_READ = ({"corrupt": True}, {"gone": True}, {"missing_at": 40.0})


@pytest.mark.parametrize("fault", NOT_READ)
def test_a_task_that_cannot_be_read_never_starts(fault):
    task = Task(id="1", **fault)
    assert not is_ready(given(task), task, LEADS)


def test_a_ready_task_goes_to_an_idle_agent():
    world = decided(given(IDLE, Task(id="1")))
    assert (world.agents["A"].state, world.agents["A"].task) == ("ready", "1")
    assert world.tasks["1"].state == "in_progress"


@pytest.mark.parametrize(
    ("not_before", "state"), [(None, "ready"), (50.0, "ready"), (51.0, "idle")]
)
def test_a_task_that_rests_is_left_to_whoever_wants_to_change_it(not_before, state):
    world = given(IDLE, Task(id="1", not_before=not_before))
    assert after(world, decide(world, Clock(50.0), rules=RULES)).agents["A"].state == state
    later = {} if not_before != 51.0 else {CommandKind.RUN: 51.0}
    assert waits(world, 50.0) == later


def test_the_targets_of_tasks_that_only_wait_for_an_agent_are_foreseen_in_their_order():
    world = given(
        Task(id="1", target="main"),
        Task(id="2", target="old", priority=0),
        Task(id="3", target="main", deps=("1",)),
        Task(id="4", target="main", state="in_progress"),
        Task(id="5", target="main", not_before=51.0),
    )
    assert starting_next(world, Clock(50.0), leads=LEADS, scope=EVERYTHING) == ("old", "main")
    assert starting_next(world, Clock(51.0), leads=LEADS, scope=EVERYTHING) == (
        "old",
        "main",
        "main",
    )
    assert starting_next(world, Clock(50.0), leads=LEADS, scope=Scope(tasks=("1",))) == ("main",)


@pytest.mark.parametrize("made", [{"branch": "crew-1"}, {"worktree": "/trees/1"}])
def test_a_task_that_has_its_branch_or_worktree_already_needs_none_made_ahead(made):
    assert (
        starting_next(
            given(Task(id="1", target="main", **made)), Clock(50.0), leads=LEADS, scope=EVERYTHING
        )
        == ()
    )


def test_urgent_tasks_go_first_then_old_ones_then_low_numbers():
    tasks = [
        Task(id="10", created_at=1.0),
        Task(id="9", created_at=1.0),
        Task(id="3", created_at=0.5),
        Task(id="4", priority=0, created_at=9.0),
        Task(id="5", priority=4),
    ]
    taken = []
    for count in range(1, 6):
        agents = [replace(IDLE, id=f"A{number}") for number in range(count)]
        world = decided(given(*agents, *tasks))
        taken.append({task.id for task in world.tasks.values() if task.state == "in_progress"})
    order = [min(now - before) for before, now in zip([set(), *taken], taken, strict=False)]
    assert order == ["4", "3", "9", "10", "5"]


def test_a_task_that_was_sent_back_goes_before_the_most_urgent_one():
    world = holding("working", run_agent=None)
    world = replace(world, agents={"A": IDLE}, tasks={"0": Task(id="0", priority=0), **world.tasks})
    world = decided(world)
    assert (world.agents["A"].task, world.agents["A"].run) == ("1", "1.1")
    assert world.tasks["0"].state == "todo"


def test_each_agent_gets_one_task_and_each_task_one_agent():
    agents = [replace(IDLE, id=name) for name in "ABC"]
    world = decided(given(*agents, Task(id="1"), Task(id="2")))
    assert sorted(a.task or "" for a in world.agents.values()) == ["", "1", "2"]


@pytest.mark.parametrize("changes", [{"state": "stuck"}, {"state": "done"}, {"killing": True}])
def test_an_agent_that_is_not_free_gets_nothing(changes):
    assert decide(given(replace(IDLE, **changes), Task(id="1")), Clock(1.0), rules=RULES) == []


def test_a_crew_that_is_stopping_takes_no_new_task():
    assert decide(given(IDLE, Task(id="1")), Clock(1.0), rules=RULES, scope=FINISHING) == []


def test_a_task_waits_for_the_kind_of_agent_it_wants_and_lets_others_pass():
    codex = Agent(id="B", agent_kind="codex", state="stuck")
    world = given(IDLE, codex, Task(id="1", wants_agent="codex"), Task(id="2"))
    assert decided(world).agents["A"].task == "2"


def test_a_task_that_wants_a_kind_nobody_is_goes_to_anybody_as_a_run_of_that_kind():
    world = decided(given(IDLE, Task(id="1", wants_agent="codex")))
    assert world.agents["A"].task == "1"
    assert world.runs["1.1"].agent_kind == "codex"


def test_a_session_is_resumed_by_the_kind_of_agent_that_began_it():
    world = holding("working", run_agent=None, run_agent_kind="codex")
    world = replace(world, agents={"A": IDLE, "B": Agent(id="B", agent_kind="codex")})
    world = decided(world)
    assert (world.agents["A"].task, world.agents["B"].task) == (None, "1")


# What a run needs next


@pytest.mark.parametrize(
    ("state", "command"), [("ready", Prepare), ("working", Step), ("done", Check)]
)
def test_a_run_is_prepared_then_stepped_then_checked(state, command):
    assert of_runs(holding(state)) == [command(subject="1.1")]


def test_a_run_whose_worktree_is_gone_gets_it_back_before_its_next_step():
    assert of_runs(holding("working", task_worktree="")) == [Prepare(subject="1.1")]


def test_a_run_waits_while_its_worktree_is_being_removed():
    world = holding("working", task_cleaning=True)
    assert of_runs(world) == []
    assert RemoveWorktree(subject="1") in planned(world)


@pytest.mark.parametrize(("retry_at", "count"), [(49.0, 1), (50.0, 1), (50.1, 0)])
def test_a_run_waits_until_its_agent_may_try_again(retry_at, count):
    assert len(of_runs(holding("working", agent_retry_at=retry_at), now=50.0)) == count


def test_a_stuck_agent_does_nothing():
    assert of_runs(holding("stuck")) == []


def test_an_agent_whose_run_is_over_does_nothing():
    assert of_runs(holding("done", run_state="complete")) == []


def test_an_idle_agent_does_nothing():
    assert planned(given(IDLE)) == []


def test_an_agent_to_be_killed_is_killed_and_nothing_else():
    assert of_runs(holding("working", agent_killing=True)) == [Kill(subject="A")]


def test_a_crew_that_is_stopping_still_kills_and_starts_no_step():
    busy, doomed = holding("working"), holding("working", agent_killing=True)
    assert of_runs(busy, scope=FINISHING) == []
    assert of_runs(doomed, scope=FINISHING) == [Kill(subject="A")]


def test_what_is_under_way_is_not_planned_again():
    world = holding("working")
    assert of_runs(world, busy=frozenset({Step(subject="1.1").key})) == []
    assert of_runs(world, busy=frozenset({Step(subject="1.2").key})) == [Step(subject="1.1")]


def test_a_run_does_one_thing_at_a_time():
    keys = {command(subject="1.1").key for command in (Prepare, Step, Check, Recover)}
    assert keys == {CommandKey(CommandKind.RUN, "1.1")}


def test_a_line_changes_in_one_way_at_a_time():
    assert Assemble(subject="main").key == Land(subject="main").key


def test_other_commands_are_told_apart_by_what_they_do():
    commands = [c(subject="1") for c in (Kill, WriteTask, RemoveWorktree, Deliver)]
    commands += [GateOn(subject="1", commit=commit) for commit in ("a", "b")]
    assert len({command.key for command in commands}) == 6


# After a crash


INTERRUPTED = {"run_stepping": True, "run_epoch": 3}


def test_an_interrupted_step_is_simply_stepped_again():
    assert of_runs(holding("working", **INTERRUPTED), epoch=4) == [Step(subject="1.1")]


def test_by_the_policy_reset_an_interrupted_step_is_recovered_from():
    world, rules = holding("working", **INTERRUPTED), Rules(reset_on_recovery=True)
    assert of_runs(world, rules=rules, epoch=4) == [Recover(subject="1.1")]


def test_a_step_of_this_runner_is_no_interrupted_one():
    world, rules = holding("working", **INTERRUPTED), Rules(reset_on_recovery=True)
    assert of_runs(world, rules=rules, epoch=3) == [Step(subject="1.1")]


def test_a_run_between_two_steps_was_not_interrupted():
    world, rules = holding("working", run_epoch=3), Rules(reset_on_recovery=True)
    assert of_runs(world, rules=rules, epoch=4) == [Step(subject="1.1")]


# Tasks and their worktrees


def test_a_session_that_knows_its_task_goes_on_while_its_file_is_away():
    for ask in Ask:
        world = holding("working", run_ask=ask, task_missing_at=40.0)
        knows = ask not in {Ask.FIRST, Ask.RESUMED, Ask.PARTIAL, Ask.ROLE}
        assert (Step(subject="1.1") in planned(world)) == knows


def test_a_source_is_told_the_state_it_does_not_know():
    task = Task(id="1", state="in_progress", written="todo")
    assert planned(given(task)) == [WriteTask(subject="1")]
    assert planned(given(replace(task, written="in_progress"))) == []


@pytest.mark.parametrize("fault", NOT_READ)
def test_the_source_of_a_task_that_cannot_be_read_is_not_written_and_nobody_waits_for_it(fault):
    task = Task(id="1", state="closed", written="todo", **fault)
    assert planned(given(task)) == []
    assert task.is_written


def test_the_worktree_of_a_task_that_its_source_lost_is_removed():
    task = Task(id="1", state="error", written="error", worktree="/trees/1", gone=True)
    assert planned(given(task)) == [RemoveWorktree(subject="1")]


@pytest.mark.parametrize("state", TaskState)
def test_the_worktree_of_a_finished_task_is_removed(state):
    task = Task(id="1", state=state, written=state, worktree="/trees/1")
    removed = RemoveWorktree(subject="1") in planned(given(task))
    assert removed == (state in {"merged", "closed"})


def test_a_task_without_a_worktree_has_none_to_remove():
    assert planned(given(Task(id="1", state="merged", written="merged"))) == []


def test_a_worktree_in_which_an_agent_sits_stays():
    world = holding("working", task_state="closed", task_written="closed", agent_killing=True)
    assert planned(world) == [Kill(subject="A")]


def test_worktrees_stay_where_the_config_keeps_them_unless_somebody_cleans_up():
    task = Task(id="1", state="merged", written="merged", worktree="/trees/1")
    rules = Rules(keep_worktrees=True)
    assert planned(given(task), rules=rules) == []
    cleaned = given(replace(task, cleaning=True))
    assert planned(cleaned, rules=rules) == [RemoveWorktree(subject="1")]


# The line


def test_the_first_task_in_the_queue_opens_the_line_of_its_target():
    world = given(*queued("1"), *queued("2", target="dev"))
    assert set(decided(world).queues) == {"dev", "main"}
    assert decide(decided(world), Clock(50.0), rules=RULES) == []


def test_tasks_stand_in_the_line_of_their_target_in_the_order_they_came():
    rows = [*queued("3", "1", "2"), *queued("9", target="dev")]
    assert [task.id for task in queued_tasks(given(*rows), "main")] == ["3", "1", "2"]


def test_tasks_that_came_at_the_same_time_stand_by_name():
    world = given(*(replace(row, queued_at=1.0) for row in queued("b", "a") if row.kind == "task"))
    assert [task.id for task in queued_tasks(world, "main")] == ["a", "b"]


def test_a_line_that_is_not_built_of_those_who_wait_is_assembled():
    assert planned(given(*queued("1"), queue_of())) == [Assemble(subject="main")]
    assert planned(given(*queued("1", "2"), queue_of("1")))[0] == Assemble(subject="main")
    assert Assemble(subject="main") in planned(given(*queued("2"), queue_of("1", "2")))


def test_a_line_that_is_built_of_those_who_wait_is_tested():
    tests = [GateOn(subject="main", commit="base+1")]
    assert planned(given(*queued("1"), queue_of("1"))) == tests


def test_a_task_that_is_held_is_in_the_line_too():
    queue = queue_of("1", held=(("2", "head-2"),))
    tests = [GateOn(subject="main", commit="base+1")]
    assert planned(given(*queued("1", "2"), queue)) == tests


def test_the_line_is_assembled_anew_when_a_task_offers_another_commit():
    world = given(*queued("1"), queue_of("1"))
    task = replace(world.tasks["1"], head="other")
    world = replace(world, tasks={"1": task})
    assert planned(world) == [Assemble(subject="main")]


def test_the_line_is_assembled_anew_when_the_target_moved():
    world = given(*queued("1"), queue_of("1", upstream=True))
    assert Assemble(subject="main") in planned(world)


def test_only_so_many_stand_in_the_line_at_once():
    world = given(*queued("1", "2", "3"), queue_of("1", "2"))
    assert Assemble(subject="main") not in planned(world, rules=Rules(longest_queue=2))
    assert Assemble(subject="main") in planned(world, rules=Rules(longest_queue=3))


def test_a_green_prefix_lands_while_the_rest_is_tested():
    queue = queue_of("1", "2", results=(("base+1", True, 1, ""),))
    commands = planned(given(*queued("1", "2"), queue))
    assert commands == [
        Land(subject="main"),
        GateOn(subject="main", commit="base+1+2"),
    ]


def test_a_green_prefix_of_a_line_that_is_not_current_does_not_land():
    queue = queue_of("1", results=(("base+1", True, 1, ""),))
    assert planned(given(*queued("2"), queue)) == [Assemble(subject="main")]


def test_what_crew_merged_of_others_is_tested_although_nobody_waits():
    queue = queue_of(base_proven=False, base="merged")
    assert planned(given(queue)) == [GateOn(subject="main", commit="merged")]


def test_a_test_that_runs_already_takes_a_slot_of_its_own_line_only():
    world = given(*queued("1", "2"), queue_of("1", "2"))

    def busy(line, commit):
        return frozenset({GateOn(subject=line, commit=commit).key})

    assert planned(world, busy=busy("main", "base+1+2")) == []
    assert len(planned(world, busy=busy("dev", "x"))) == 1
    two = planned(world, rules=Rules(test_slots=2), busy=busy("main", "old"))
    assert len(two) == 1


RED_TWICE = (("base+1", False, 2, "1 failed"),)


def test_the_culprit_goes_back_to_its_session_with_the_output():
    world = decided(given(*queued("1", "2"), queue_of("1", "2", results=RED_TWICE)))
    task, run, queue = world.tasks["1"], world.runs["1.1"], world.queues["main"]
    assert (task.state, task.head, task.queued_at) == ("in_progress", "", None)
    assert (run.state, run.ask, run.notes) == ("working", Ask.RED_GATE, "> 1 failed")
    assert (run.round, run.agent, run.merge_head) == (2, None, "head-1")
    assert queue.failure_rate > queue_of().failure_rate
    assert world.tasks["2"].is_queued


def test_held_tasks_are_merged_anew_once_a_culprit_has_left():
    queue = queue_of("1", results=RED_TWICE, held=(("2", "head-2"),))
    world = decided(given(*queued("1", "2"), queue))
    assert Assemble(subject="main") in planned(world)


def test_nobody_is_blamed_by_a_line_that_is_not_current():
    line = queue_of("1", results=RED_TWICE)
    assert decide(given(*queued("2"), line), Clock(1.0), rules=RULES) == []


def test_nobody_is_blamed_by_a_line_that_is_to_be_built_anew():
    line = queue_of("1", base_proven=False, results=(("base", False, 2, "red"),), upstream=True)
    assert decide(given(*queued("1"), line), Clock(1.0), rules=RULES) == []


def test_nobody_is_blamed_for_a_red_base_but_a_person_is_told_once():
    queue = queue_of("1", base_proven=False, results=(("base", False, 2, "red"),))
    world = decided(given(*queued("1"), queue))
    assert world.tasks["1"].is_queued
    assert world.queues["main"].waiting == "main and what crew landed are red together"
    assert "git merge refs/crew/landed/main" in world.queues["main"].remedy
    assert decide(world, Clock(51.0), rules=RULES) == []


def test_a_task_that_no_run_made_is_an_error_when_the_queue_refuses_it():
    world = replace(given(*queued("1")), runs={})
    facts = returned(world, "1", leads=LEADS, ask=Ask.RED_GATE, notes="", rules=RULES, at=1.0)
    assert after(world, facts).tasks["1"].state == "error"


def test_a_task_whose_rounds_are_spent_is_an_error_when_the_queue_refuses_it():
    world = with_changes(given(*queued("1")), run_round=20)
    facts = returned(world, "1", leads=LEADS, ask=Ask.RED_GATE, notes="", rules=RULES, at=1.0)
    world = after(world, facts)
    assert (world.tasks["1"].state, world.runs["1.1"].state) == ("error", "failed")
    assert world.runs["1.1"].error == "the merge queue sent it back after 20 rounds"


def conflict(world, **settings):
    facts = returned(
        world,
        "1",
        leads=LEADS,
        ask=Ask.CONFLICT,
        notes="both changed a.py",
        rules=Rules(**settings),
        at=1.0,
        merge_commit="0123456789abcdef",
        merge_paths=("a.py", "b.py"),
    )
    return after(world, facts)


def test_a_conflict_goes_to_the_agent_with_both_sides():
    run = conflict(given(*queued("1"))).runs["1.1"]
    assert (run.state, run.ask, run.notes) == ("working", Ask.CONFLICT, "both changed a.py")
    assert (run.merge_commit, run.merge_head) == ("0123456789abcdef", "head-1")
    assert run.merge_paths == ("a.py", "b.py")


def test_a_conflict_is_left_to_a_person_where_the_config_says_so():
    world = conflict(given(*queued("1")), conflicts_to_agent=False)
    assert (world.tasks["1"].state, world.tasks["1"].conflict) == ("done", "q1")
    assert (
        "conflicts with 0123456789ab, which landed, in a.py, b.py" in world.questions["q1"].question
    )


# Delivery


LANDED = queue_of(integration="new", base="new", delivered="old", delivered_at=45.0)


def test_what_landed_is_delivered():
    assert planned(given(LANDED)) == [Deliver(subject="main")]
    assert planned(given(replace(LANDED, delivered="new"))) == []


def test_a_line_whose_target_moved_is_assembled_before_it_is_delivered():
    assert planned(given(replace(LANDED, upstream=True))) == [Assemble(subject="main")]


@pytest.mark.parametrize(("now", "count"), [(54.9, 0), (55.0, 1)])
def test_landings_are_delivered_together_while_others_work(now, count):
    world = holding("working")
    world = replace(world, queues={"main": LANDED})
    delivers = [command for command in planned(world, now=now) if isinstance(command, Deliver)]
    assert len(delivers) == count


def test_a_stuck_agent_keeps_nobody_from_a_delivery():
    world = replace(holding("stuck"), queues={"main": LANDED})
    assert Deliver(subject="main") in planned(world, now=46.0)


def test_landings_are_delivered_together_while_others_wait():
    assert Deliver(subject="main") not in planned(given(LANDED, *queued("1", target="dev")))


def test_the_first_landing_is_delivered_at_once():
    task = Task(id="1", state="in_progress", written="in_progress")
    world = given(replace(LANDED, delivered_at=None), task)
    assert planned(world) == [Deliver(subject="main")]


# What comes by itself


def test_the_plan_knows_when_a_waiting_agent_tries_again():
    assert waits(holding("working", agent_retry_at=60.0), 50.0) == {CommandKind.RUN: 60.0}


@pytest.mark.parametrize(
    "world",
    [
        holding("working"),
        holding("working", agent_retry_at=50.0),
        holding("stuck", agent_retry_at=60.0),
        given(replace(IDLE, retry_at=60.0)),
    ],
)
def test_nothing_is_waited_for_that_is_due_or_will_never_come(world):
    assert waits(world, 50.0) == {}


def test_the_plan_knows_when_the_next_delivery_is():
    working = [*holding("working").agents.values(), *holding("working").tasks.values()]
    assert waits(given(LANDED, *working), 50.0) == {CommandKind.DELIVER: 55.0}
    assert waits(given(LANDED), 50.0) == {}  # it is due now
    for one in (replace(LANDED, delivered="new"), replace(LANDED, delivered_at=None)):
        assert waits(given(one, *working), 50.0) == {}


# Any world at all


@st.composite
def worlds(draw):
    """Worlds that nobody would think of, as long as their rows fit together."""
    rows = []
    for number in range(draw(st.integers(0, 4))):
        id_, run = str(number), f"{number}.1"
        state = draw(st.sampled_from(["idle", "ready", "working", "done", "stuck"]))
        held = state != "idle"
        rows += [
            Agent(
                id=f"A{id_}",
                agent_kind=draw(st.sampled_from(["claude", "codex"])),
                state=state,
                task=id_ if held else None,
                run=run if held else None,
                killing=draw(st.booleans()),
                retry_at=draw(st.none() | st.floats(0, 100)),
            ),
            Task(
                id=id_,
                state=draw(st.sampled_from(list(TaskState))),
                run=run,
                run_count=1,
                target=draw(st.sampled_from(["main", "dev"])),
                head=draw(st.sampled_from(["", f"head-{id_}"])),
                queued_at=draw(st.none() | st.floats(0, 9)),
                worktree=draw(st.sampled_from(["", "/work"])),
                cleaning=draw(st.booleans()),
                deps=draw(st.sampled_from([(), ("0",), ("9",)])),
            ),
            Run(
                id=run,
                task=id_,
                agent=f"A{id_}" if held else None,
                state=draw(st.sampled_from(["init", "working", "reviewing", "complete", "failed"])),
                stepping=draw(st.booleans()),
                round=draw(st.sampled_from([1, 20])),
            ),
        ]
    ids = draw(st.lists(st.sampled_from("0123"), unique=True, max_size=3))
    commits = [entry[2] for entry in queue_of(*ids).chain] + ["base"]
    results = [(c, draw(st.booleans()), draw(st.integers(1, 2)), "") for c in commits]
    queue = queue_of(
        *ids,
        results=tuple(draw(st.lists(st.sampled_from(results), unique_by=lambda r: r[0]))),
        base_proven=draw(st.booleans()),
        upstream=draw(st.booleans()),
        delivered=draw(st.sampled_from(["", "base"])),
    )
    known = {row.id for row in rows if row.kind == "task"}
    return given(*rows, *([queue] if set(ids) <= known else [MergeQueue(id="main")]))


@patient
@for_all(worlds(), st.integers(1, 4), st.booleans(), st.booleans())
def test_no_two_commands_have_one_key_and_none_is_busy(world, slots, serial, reset):
    rules = Rules(test_slots=slots, one_at_a_time=serial, reset_on_recovery=reset)
    commands = plan(world, Clock(50.0), rules=rules, epoch=1)
    keys = [command.key for command in commands]
    assert len(set(keys)) == len(keys)
    assert plan(world, Clock(50.0), rules=rules, epoch=1, busy=frozenset(keys)) == []


@patient
@for_all(worlds(), st.booleans())
def test_what_is_decided_is_always_legal_and_soon_all_is_decided(world, serial):
    rules = Rules(one_at_a_time=serial)
    for _ in range(20):
        facts = decide(world, Clock(50.0), rules=rules)
        if not facts:
            return
        world = after(world, facts)
    pytest.fail("the same facts are decided for ever")


def test_a_task_that_rests_after_a_kill_is_looked_at_again_when_its_rest_is_over():
    world = given(IDLE, Task(id="1", not_before=80.0))
    assert waits(world, 50.0) == {CommandKind.RUN: 80.0}
    assert waits(world, 80.0) == {}
