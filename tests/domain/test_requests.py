"""What people ask for, and how they are refused."""

from dataclasses import replace

import pytest

from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.clock import Clock
from crew.domain.kernel.errors import Conflict, CrewError, NotFound, UsageError
from crew.domain.lead_choice import LEADS
from crew.domain.plan import decide
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.quest import Position, Quest
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.workflow import as_text
from crew.domain.tasks.readiness import startable
from crew.domain.world import World
from domain.scenes import RULES, after, given, holding, queued

IDLE = Agent(id="A", agent_kind="claude")


def ask(world, verb, **args):
    """The reply, and the world after it."""
    found = answer(world, Request(verb=verb, args=args), rules=RULES, at=50.0)
    return found.reply, after(world, found.facts)


def refused(world, verb, *, by=Conflict, **args):
    """The refusal as a person reads it: what, and what next."""
    with pytest.raises(by) as caught:
        ask(world, verb, **args)
    assert type(caught.value) is by
    return f"{caught.value.message}; {caught.value.hint}"


def test_a_verb_that_nobody_knows_is_refused_with_those_that_are_known():
    told = refused(World(), "dance", by=UsageError)
    assert "unknown request 'dance'" in told
    for verb in ("spawn", "assign", "retry", "kill", "cleanup", "merge", "close"):
        assert verb in told


@pytest.mark.parametrize("verb", ["assign", "kill", "cleanup"])
def test_an_agent_that_nobody_knows_is_refused_with_those_that_are_known(verb):
    assert "agents: A" in refused(given(IDLE), verb, by=NotFound, agent="Z", task="1")
    assert "`crew spawn` makes one" in refused(World(), verb, by=NotFound, agent="Z", task="1")


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("assign", {"agent": "A", "task": "9"}),
        ("merge", {"task": "9"}),
        ("close", {"task": "9"}),
        ("retry", {"subject": "9"}),
    ],
)
def test_a_task_that_nobody_knows_is_refused(verb, args):
    told = refused(given(IDLE), verb, by=NotFound, **args)
    assert "there is no task '9'" in told
    assert "crew list -a" in told


# spawn


def test_spawn_makes_idle_agents_by_number():
    reply, world = ask(given(IDLE), "spawn", kind="codex", count=2)
    assert reply == ["B", "C"]
    assert world.agents["B"] == Agent(id="B", agent_kind="codex", started_at=50.0)
    assert list(world.agents) == ["A", "B", "C"]


def test_spawn_makes_an_agent_by_name():
    reply, world = ask(World(), "spawn", kind="claude", name="ann")
    assert reply == ["ann"]
    assert world.agents["ann"].is_free


def test_spawn_makes_sure_that_so_many_exist():
    assert ask(given(IDLE), "spawn", kind="claude", at_least=3)[0] == ["B", "C"]
    assert ask(given(IDLE), "spawn", kind="claude", at_least=1)[0] == []


def test_spawn_without_a_number_makes_nobody():
    assert ask(World(), "spawn", kind="claude") == ([], World())


def test_spawn_refuses_a_name_that_is_taken_or_cannot_be_one():
    assert "agent A exists" in refused(given(IDLE), "spawn", kind="claude", name="A")
    told = refused(World(), "spawn", by=UsageError, kind="claude", name="$(id)")
    assert "starts with a letter" in told


# assign


@pytest.mark.parametrize("state", ["todo", "error"])
def test_assign_gives_a_waiting_or_a_failed_task_to_an_idle_agent(state):
    _, world = ask(given(IDLE, Task(id="1", state=state)), "assign", agent="A", task="1")
    assert (world.agents["A"].state, world.agents["A"].task) == ("ready", "1")
    assert world.tasks["1"].state == "in_progress"


QUEST = as_text(load_workflow(BUILT_IN / "quest.toml"))


def in_quest(*tasks, slots=1, stage="plan", told=()):
    """A quest of task 1, whose items have places in its workflow unless they are only labelled."""
    plan = tuple((t.id, t.title, "", (), (), "", t.id, t.id in told) for t in tasks)
    places = [
        Position(id=t.id, quest="1", task=t.id, key=t.id, stage="build", role="codeweaver")
        for t in tasks
        if t.target == "crew-1"
    ]
    first = Position(id="1", quest="1", task="1", stage=stage, role="pathseeker")
    quest = Quest(id="1", workflow="quest", definition=QUEST, slots=slots, plan=plan)
    return [Task(id="1", quest="1", target="main"), quest, first, *places, *tasks]


def item(name, **fields):
    return Task(id=name, quest="1", target="crew-1", **fields)


STATES = {
    **{state: ([Task(id="1", state=state)], "1" if state == "todo" else "") for state in TaskState},
    "waits": ([Task(id="1"), Task(id="2", deps=("1",))], "1"),
    "waits for nobody known": ([Task(id="1", deps=("9",))], ""),
    "dependency landed": (
        [Task(id="1", state="done", landed_commit="c"), Task(id="2", deps=("1",))],
        "2",
    ),
    "by priority": ([Task(id="1"), Task(id="2", priority=0)], "21"),
    "cannot be read": ([Task(id="1", corrupt=True)], ""),
    "missing": ([Task(id="1", missing_at=1.0)], ""),
    "gone": ([Task(id="1", gone=True)], ""),
    "labelled with no quest": ([Task(id="1", quest="1"), Task(id="2", quest="7")], ""),
    "asks for a kind": ([Task(id="1", wants_agent="claude"), Task(id="2", wants_agent="no")], "1"),
    "was killed": ([Task(id="1", not_before=99.0)], "1"),
    "request": (in_quest(), "1"),
    "request with a full quest": (
        [*in_quest(), Agent(id="B", agent_kind="claude", state="working", task="1")],
        "",
    ),
    "request held by its items": (in_quest(item("2"), stage="walk"), ""),
    "item": (in_quest(item("2"), stage="walk", told="2"), "2"),
    "labelled item in no plan": (
        in_quest(Task(id="2", quest="1", target="main"), stage="walk"),
        "",
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_what_is_listed_as_ready_can_be_assigned_and_nothing_else_that_is_to_do(name):
    """One rule: for the list, for a person who assigns, and for the agents themselves."""
    rows, ready = STATES[name]
    rules = replace(RULES, providers={"claude": "claude"}, default_kind="claude")
    world = given(IDLE, *rows)
    assert "".join(task.id for task in startable(world, LEADS, rules)) == ready
    for task in world.tasks.values():
        request = Request(verb="assign", args={"agent": "A", "task": task.id})
        if task.id in ready:
            assert answer(world, request, rules=rules, at=50.0).facts
        elif task.state != TaskState.ERROR:
            with pytest.raises(CrewError):
                answer(world, request, rules=rules, at=50.0)
    if name != "was killed":
        taken = after(world, decide(world, Clock(50.0), rules=rules)).agents["A"].task
        assert taken == (ready[:1] or None)


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_assign_refuses_an_agent_that_has_a_task(state):
    told = refused(holding(state), "assign", agent="A", task="1")
    assert f"agent A is {state} with task 1" in told
    assert "crew spawn" in told


@pytest.mark.parametrize("state", ["in_progress", "done", "merged", "closed"])
def test_assign_refuses_a_task_that_is_not_to_do(state):
    told = refused(given(IDLE, Task(id="1", state=state)), "assign", agent="A", task="1")
    assert f"task 1 cannot start: it is {state}" in told
    assert "crew show" in told


def test_assign_refuses_a_task_that_waits_and_says_for_what():
    world = given(
        IDLE, Task(id="1", deps=("2", "3", "9")), Task(id="2"), Task(id="3", state="merged")
    )
    assert "it waits for 2, 9;" in refused(world, "assign", agent="A", task="1")


@pytest.mark.parametrize("state", ["todo", "error"])
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"corrupt": True}, "its file cannot be read"),
        ({"gone": True}, "its source does not have it any more"),
        ({"missing_at": 1.0}, "its file is missing"),
    ],
)
def test_assign_refuses_a_task_that_cannot_be_read(state, fault, why):
    task = Task(id="1", state=state, **fault)
    assert why in refused(given(IDLE, task), "assign", agent="A", task="1")


# retry


@pytest.mark.parametrize("subject", ["A", "1"])
def test_retry_lets_a_stuck_agent_try_again_at_once_by_its_name_or_its_task(subject):
    world = holding("stuck", agent_error_count=5, agent_retry_at=99.0)
    reply, world = ask(world, "retry", subject=subject)
    agent = world.agents["A"]
    assert (reply, agent.state, agent.retry_at) == ("A", "working", None)
    assert agent.error_count == 5


@pytest.mark.parametrize("state", ["ready", "working", "done"])
@pytest.mark.parametrize("subject", ["A", "1"])
def test_retry_ends_the_pause_of_an_agent_after_an_error(state, subject):
    world = holding(state, agent_error_count=2, agent_retry_at=99.0)
    reply, world = ask(world, "retry", subject=subject)
    agent = world.agents["A"]
    assert (reply, agent.state, agent.retry_at, agent.error_count) == ("A", state, None, 2)


def test_retry_puts_a_failed_task_back_into_the_queue():
    reply, world = ask(given(Task(id="1", state="error")), "retry", subject="1")
    assert (reply, world.tasks["1"].state) == ("1", "todo")


def test_retry_refuses_an_agent_that_is_not_stuck():
    assert "agent A is working, not stuck" in refused(holding("working"), "retry", subject="A")


def test_retry_refuses_a_task_that_did_not_fail():
    told = refused(given(Task(id="1", state="done")), "retry", subject="1")
    assert "task 1 is done, not failed" in told


def test_a_task_in_progress_that_nobody_works_at_is_put_back():
    _, world = ask(given(Task(id="1", state="in_progress")), "retry", subject="1")
    assert world.tasks["1"].state == "todo"


def test_a_look_changes_nothing():
    world = given(Task(id="1"))
    assert ask(world, "look")[1] == world


# kill and cleanup


@pytest.mark.parametrize("state", ["ready", "working", "done", "stuck"])
def test_kill_marks_an_agent_that_has_a_task(state):
    _, world = ask(holding(state), "kill", agent="A")
    assert world.agents["A"].killing


def test_kill_refuses_an_idle_agent():
    assert "agent A is idle" in refused(given(IDLE), "kill", agent="A")


def test_cleanup_asks_for_the_worktree_of_a_stuck_agent_to_go():
    reply, world = ask(holding("stuck"), "cleanup", agent="A")
    assert reply == "1"
    assert world.tasks["1"].cleaning
    assert world.agents["A"].state == "stuck"


@pytest.mark.parametrize("state", ["ready", "working", "done"])
def test_cleanup_refuses_while_somebody_works_there(state):
    assert "`crew kill A` first" in refused(holding(state), "cleanup", agent="A")


def test_cleanup_works_wherever_nothing_runs():
    reply, world = ask(holding("working"), "cleanup", agent="A", idle=True)
    assert (reply, world.tasks["1"].cleaning) == ("1", True)


@pytest.mark.parametrize("world", [given(IDLE), holding("stuck", task_worktree="")])
def test_cleanup_has_nothing_to_do_where_there_is_no_worktree(world):
    assert ask(world, "cleanup", agent="A") == (None, world)


def test_cleanup_works_once_the_run_is_over():
    reply, world = ask(holding("done", run_state="failed"), "cleanup", agent="A")
    assert reply == "1"
    assert world.tasks["1"].cleaning


# merge


def test_prune_asks_for_the_worktrees_of_tasks_that_are_over_and_of_no_others():
    world = given(
        *(Task(id=state, state=state, worktree=f"/trees/{state}") for state in TaskState),
        Task(id="gone", state="todo", worktree="/trees/gone", gone=True),
        Task(id="bare", state="closed"),
    )
    reply, world = ask(world, "prune", tasks=[*world.tasks, "unknown"])
    assert sorted(reply) == ["closed", "gone", "merged"]
    assert sorted(task.id for task in world.tasks.values() if task.cleaning) == sorted(reply)


def test_a_branch_that_was_pruned_is_named_by_no_task_that_is_over():
    world = given(
        Task(id="1", state="closed", branch="crew-1"), Task(id="2", state="error", branch="crew-2")
    )
    reply, world = ask(world, "pruned", branches=["crew-1", "crew-2"])
    assert (reply, world.tasks["1"].branch, world.tasks["2"].branch) == (["1"], "", "crew-2")


def test_merge_puts_a_done_task_into_the_queue():
    world = given(Task(id="1", state="done"))
    reply, world = ask(world, "merge", task="1", head="abc")
    task = world.tasks["1"]
    assert (reply, task.is_queued, task.head, task.queued_at) == ("1", True, "abc", 50.0)


@pytest.mark.parametrize("head", [None, "head-1"])
def test_merge_leaves_a_task_that_waits_in_its_place(head):
    world = given(*queued("1"))
    assert ask(world, "merge", task="1", head=head) == ("1", world)


def test_merge_refuses_a_done_task_of_which_crew_knows_no_commit():
    told = refused(given(Task(id="1", state="done")), "merge", task="1")
    assert "crew knows no commit of it; `crew close 1` ends it" in told
    assert not Task(id="1", state="done").awaits_merge


def test_merge_queues_a_task_again_that_has_new_work():
    _, world = ask(given(*queued("1")), "merge", task="1", head="new")
    assert (world.tasks["1"].head, world.tasks["1"].queued_at) == ("new", 50.0)


@pytest.mark.parametrize("state", [state for state in TaskState if state != "done"])
def test_merge_refuses_a_task_that_is_not_done(state):
    told = refused(given(Task(id="1", state=state)), "merge", task="1")
    assert f"task 1 is {state}, not done" in told


# close


@pytest.mark.parametrize("state", ["todo", "in_progress", "done", "error"])
def test_close_gives_up_a_task_and_its_place_in_the_queue(state):
    world = given(Task(id="1", state=state, queued_at=3.0))
    reply, world = ask(world, "close", task="1", reason="too big")
    task = world.tasks["1"]
    assert (reply, task.state, task.close_reason) == ("1", "closed", "too big")
    assert task.queued_at is None


def test_close_kills_whoever_works_at_the_task():
    _, world = ask(holding("working"), "close", task="1")
    assert world.agents["A"].killing
    assert world.runs["1.1"].is_live


def test_close_ends_a_run_that_waits_for_an_agent():
    world = replace(holding("working", run_agent=None), agents={})
    _, world = ask(world, "close", task="1")
    assert (world.runs["1.1"].state, world.runs["1.1"].error) == ("failed", "closed")


@pytest.mark.parametrize("state", ["merged", "closed"])
def test_close_refuses_a_task_that_is_over(state):
    told = refused(given(Task(id="1", state=state)), "close", task="1")
    assert f"task 1 is {state} already" in told
