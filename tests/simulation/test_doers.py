"""Single doers, for what hardly ever happens in a history: refs that others move, late kills."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from crew.domain.commands import Deliver, Kill, Land, Step
from crew.domain.kernel.errors import Conflict
from crew.domain.merging.merge_reports import Delivered, Signed, Tips
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.merge_queue import OVERTAKEN_LIMIT, Candidate, MergeQueue
from crew.domain.rows.merge_queue import TestResult as Result
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task, TaskState
from crew.domain.rules import Rules
from crew.domain.world import apply_all, with_rows
from crew.runner.doers.merge_doers import deliver, land
from crew.runner.doers.run_doers import kill
from crew.runner.doers.step_doers import step


class Ref:
    """An integration ref that moves by compare-and-swap."""

    def __init__(self, at):
        self.at = at

    async def signed(self, commits, *, count):
        return Signed()

    async def tips(self, target):
        return Tips(integration=self.at, target="base")

    async def contains(self, *, ancestor, descendant):
        return ancestor == descendant

    async def advance(self, target, *, to, expected):
        if self.at != expected:
            raise Conflict("the ref is elsewhere", hint="look again")
        self.at = to


def landed(ref):
    """The facts of landing a merge that was built on `base` and passed."""
    task = Task(id="1", state=TaskState.DONE, head="work", queued_at=1.0, target="main")
    queue = MergeQueue(
        id="main",
        integration="base",
        base="base",
        base_proven=True,
        chain=(Candidate("1", "work", "merge"),),
        results=(Result("merge", True, 1, ""),),
    )
    world = with_rows([task, queue])
    ctx = SimpleNamespace(
        outside=ref,
        world=lambda: world,
        now=lambda: 2.0,
        later=lambda *_: None,
        record=lambda _facts: None,
    )
    return asyncio.run(land(ctx, Land(subject="main")))


def test_a_green_merge_lands_on_what_it_was_built_on():
    ref = Ref("base")
    assert [fact.trigger for fact in landed(ref)] == ["landed", "landed"]
    assert ref.at == "merge"


def test_a_landing_that_died_before_it_was_recorded_is_recorded_now():
    ref = Ref("merge")
    assert [fact.trigger for fact in landed(ref)] == ["landed", "landed"]
    assert ref.at == "merge"


def test_a_ref_that_somebody_moved_stays_where_it_is():
    ref = Ref("somebody else's")
    with pytest.raises(Conflict, match="where crew did not put it") as caught:
        landed(ref)
    assert caught.value.hint == "git update-ref refs/crew/landed/main base"
    assert ref.at == "somebody else's"


def test_a_line_is_built_anew_once_a_person_has_brought_it_together_with_the_target():
    class BroughtTogether:
        async def deliver(self, target, *, landed, last_seen):
            return Delivered(state="current")

        async def tips(self, target):
            return Tips(integration="landed", target="by hand")

    queue = MergeQueue(
        id="main", integration="landed", base="red", target_seen="before", waiting="red"
    )
    world = with_rows([queue])
    ctx = SimpleNamespace(outside=BroughtTogether(), world=lambda: world, now=lambda: 2.0)
    after = apply_all(world, asyncio.run(deliver(ctx, Deliver(subject="main")))).queues["main"]
    assert (after.delivered, after.waiting, after.upstream) == ("landed", "", True)


class Branch:
    """A target branch at a commit, and an integration ref; commits are named by what they have."""

    def __init__(self, target: str, integration: str) -> None:
        self.target, self.integration = target, integration

    async def deliver(self, target, *, landed, last_seen):
        state = "current" if self.target.startswith(self.integration) else "delivered"
        self.target = max(self.target, self.integration)
        return Delivered(state=state, commit=self.target)

    async def signed(self, commits, *, count):
        return Signed()

    async def tips(self, target):
        return Tips(integration=self.integration, target=self.target)

    async def contains(self, *, ancestor, descendant):
        return descendant.startswith(ancestor)


def delivered(branch: Branch, landed_commit: str):
    task = Task(
        id="1", state=TaskState.DONE, target="main", queued_at=1.0, landed_commit=landed_commit
    )
    world = with_rows([MergeQueue(id="main", integration=branch.integration), task])
    ctx = SimpleNamespace(outside=branch, world=lambda: world, now=lambda: 2.0)
    return apply_all(world, asyncio.run(deliver(ctx, Deliver(subject="main")))).tasks["1"]


def test_a_delivery_merges_the_tasks_that_the_branch_has_now_and_no_other():
    assert delivered(Branch("a", "ab"), "ab").state == TaskState.MERGED
    assert delivered(Branch("abc", "ab"), "ab").state == TaskState.MERGED
    assert delivered(Branch("a", "ab"), "abc").state == TaskState.DONE


def test_work_for_a_branch_that_was_merged_and_deleted_is_merged():
    class Deleted:
        async def deliver(self, target, *, landed, last_seen):
            return Delivered(state="over", commit="ab")

    task = Task(id="1", state=TaskState.DONE, target="main", queued_at=1.0, landed_commit="ab")
    queue = MergeQueue(id="main", integration="ab", waiting="it no longer exists", delivered_at=1.0)
    world = with_rows([queue, task])
    ctx = SimpleNamespace(outside=Deleted(), world=lambda: world, now=lambda: 2.0)
    after = apply_all(world, asyncio.run(deliver(ctx, Deliver(subject="main"))))
    assert after.tasks["1"].state == TaskState.MERGED
    assert after.queues["main"] == MergeQueue(id="main")


class Busy(Branch):
    """A target branch that gets a commit of a person before each delivery."""

    async def deliver(self, target, *, landed, last_seen):
        self.target += "x"
        return Delivered(state="diverged", commit=self.target)


def test_a_target_that_moved_on_is_tried_again_at_once_and_a_person_is_told_if_it_goes_on():
    branch, put_off = Busy("a", "ab"), []
    world = with_rows([MergeQueue(id="main", integration="ab", target_seen="a")])
    for times in range(1, OVERTAKEN_LIMIT + 1):
        ctx = SimpleNamespace(
            outside=branch,
            world=lambda world=world: world,
            now=lambda: 2.0,
            rules=Rules(),
            later=lambda *_: put_off.append("put off"),
        )
        world = apply_all(world, asyncio.run(deliver(ctx, Deliver(subject="main"))))
        queue = world.queues["main"]
        assert (queue.upstream, queue.overtaken) == (True, times)
        assert queue.is_outrun == bool(queue.waiting) == (times == OVERTAKEN_LIMIT)
        world = with_rows([replace(queue, upstream=False, target_seen=branch.target)])
    assert put_off == []
    assert "gets new commits before they are tested" in world.queues["main"].waiting


class Slow(Branch):
    """A target whose delivery finds a person's commit, which lands meanwhile."""

    async def deliver(self, target, *, landed, last_seen):
        self.integration = "landed"
        return Delivered(state="diverged", commit=self.target)


@pytest.mark.parametrize(("lands_meanwhile", "puts_off"), [(True, False), (False, True)])
def test_a_delivery_that_a_landing_overtakes_is_tried_again_at_once(lands_meanwhile, puts_off):
    branch, put_off = Slow("a", "ab"), []

    def world():
        integration = branch.integration if lands_meanwhile else "ab"
        return with_rows([MergeQueue(id="main", integration=integration, target_seen="a")])

    ctx = SimpleNamespace(
        outside=branch,
        world=world,
        now=lambda: 2.0,
        rules=Rules(),
        later=lambda *a: put_off.append(a),
    )
    assert asyncio.run(deliver(ctx, Deliver(subject="main"))) == []
    assert bool(put_off) == puts_off


class Suspicious(Branch):
    """A target whose delivery finds the integration ref elsewhere than when it began."""

    async def deliver(self, target, *, landed, last_seen):
        self.integration = "moved"
        return Delivered(state="waiting", commit=self.target, reason="not by crew", remedy="look")


@pytest.mark.parametrize("is_by_crew", [True, False])
def test_what_crew_lands_during_a_delivery_is_no_forgery(is_by_crew):
    """The ref moves a moment before the landing is recorded."""
    branch, put_off = Suspicious("a", "ab"), []

    def world():
        green = is_by_crew and branch.integration == "moved"
        queue = MergeQueue(id="main", integration="ab", base="ab", target_seen="a")
        chain = (Candidate("1", "work", "moved"),)
        results = (Result("moved", True, 1, ""),) if green else ()
        return with_rows([replace(queue, chain=chain, results=results)])

    ctx = SimpleNamespace(
        outside=branch,
        world=world,
        now=lambda: 2.0,
        rules=Rules(),
        later=lambda *a: put_off.append(a[1]),
    )
    facts = asyncio.run(deliver(ctx, Deliver(subject="main")))
    assert [fact.trigger for fact in facts] == ([] if is_by_crew else ["delivery_waits"])
    assert put_off == [2.0 if is_by_crew else 2.0 + Rules().delivery_retry_s]


def test_a_landing_is_delivered_at_once_although_the_last_try_was_put_off():
    branch, put_off = Branch("a", "green"), []
    queue = MergeQueue(id="main", integration="a", base="green", base_proven=False)
    world = with_rows([replace(queue, results=(Result("green", True, 1, ""),))])
    ctx = SimpleNamespace(
        outside=branch,
        world=lambda: world,
        now=lambda: 2.0,
        later=lambda *a: put_off.append(a),
        record=lambda _facts: None,
    )
    assert asyncio.run(land(ctx, Land(subject="main")))
    assert put_off == [(Deliver(subject="main"), 2.0)]


def test_what_was_built_again_while_crew_signed_does_not_land_untested():
    queue = MergeQueue(
        id="main",
        integration="base",
        base="base",
        chain=(Candidate("1", "work", "old+1"),),
        results=(Result("old+1", True, 1, ""),),
    )
    rows = [queue]

    class Signing(Ref):
        async def signed(self, commits, *, count):
            rows[0] = replace(queue, chain=(Candidate("1", "work", "new+1"),), results=())
            return Signed()

    ref = Signing("base")
    ctx = SimpleNamespace(
        outside=ref,
        world=lambda: with_rows(rows),
        now=lambda: 2.0,
        later=lambda *_: None,
        record=lambda _facts: None,
    )
    assert asyncio.run(land(ctx, Land(subject="main"))) == []
    assert ref.at == "base"


def test_a_landing_that_no_ref_has_any_more_is_made_again():
    lost = delivered(Branch("a", "a"), "ab")
    assert (lost.is_queued, lost.landed_commit) == (True, "")


def test_a_kill_ends_the_step_then_keeps_its_work_and_only_then_gives_the_task_back():
    agent = Agent(id="A", agent_kind="x", state=AgentState.DONE, task="1", run="1.1", killing=True)
    task = Task(id="1", state=TaskState.IN_PROGRESS, run="1.1", worktree="trees/1")
    run = Run(id="1.1", task="1", number=1, agent="A", state=RunState.REVIEWING)
    world, did = with_rows([agent, task, run]), []

    async def cancel(key):
        did.append(str(key))

    async def checkpoint(kept, label, **_more):
        did.append(f"checkpoint of {kept.id}: {label}")

    outside = SimpleNamespace(checkpoint=checkpoint)
    ctx = SimpleNamespace(
        outside=outside, world=lambda: world, now=lambda: 2.0, cancel=cancel, rules=Rules()
    )
    facts = asyncio.run(kill(ctx, Kill(subject="A")))
    assert did == ["run 1.1", "checkpoint of 1: kill of agent A"]
    assert [(fact.kind, fact.target) for fact in facts] == [
        ("run", RunState.FAILED),
        ("task", TaskState.TODO),
        ("agent", AgentState.IDLE),
    ]


def test_a_step_begins_once_the_locks_of_a_dead_one_are_gone():
    """The runner was killed during a step whose git held a lock."""
    agent = Agent(id="A", agent_kind="x", state=AgentState.WORKING, task="1", run="1.1")
    task = Task(id="1", state=TaskState.IN_PROGRESS, run="1.1", worktree="trees/1")
    run = Run(
        id="1.1", task="1", number=1, agent="A", state=RunState.WORKING, step=3, stepping=True
    )
    seen, locked = [], True

    class Locked:
        async def tips(self, target):
            return Tips(integration="", target="", has_target=False)

        async def has_worktree(self, task):
            return True

        async def clear_locks(self, task):
            nonlocal locked
            locked = False

        async def run_step(self, call):
            seen.append((call.resume, locked))
            return StepOutcome(session="s")

        async def checkpoint(self, task, label, *, is_last):
            seen.append(label)

    ctx = alone(Locked(), with_rows([agent, task, run]))
    asyncio.run(step(ctx, Step(subject="1.1")))
    assert seen == [(True, False), "run 1.1 round 1 step 3"]


def alone(outside, world):
    """The context of one doer, whose facts are applied to its world at once."""

    def record(facts):
        nonlocal world
        world = apply_all(world, facts)

    async def never(_run):
        await asyncio.Event().wait()

    def found(command):
        return world.runs[command.subject], world.tasks["1"]

    return SimpleNamespace(
        outside=outside,
        world=lambda: world,
        run=found,
        record=record,
        now=lambda: 2.0,
        epoch=2,
        rules=Rules(),
        session_of=lambda _run: "s",
        doing=lambda *_: None,
        controls=lambda _run: None,
        signalled=never,
    )
