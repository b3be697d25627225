"""One history: a crew, a seed, faults, crashes and restarts; the invariants after every event.

Replay one with `.venv/bin/python -m simulation SEED` in the folder `tests`.
"""

import asyncio
import logging
import random
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field, replace

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.request_verbs import answer
from crew.domain.requests import Answer, Request
from crew.domain.rows.agent import AgentState
from crew.domain.rows.question import About
from crew.domain.rows.run import Run
from crew.domain.rows.task import FINISHED, Task, TaskState
from crew.domain.rows.task_item import TaskItem
from crew.domain.rules import Rules
from crew.domain.tasks.task_outcomes import GIVEN_UP_AFTER_S, Intake, seen
from crew.domain.world import World
from crew.runner.engine import Engine
from simulation.ledger import Broken, Ledger
from simulation.outages import SHARE as OUTAGES
from simulation.outages import Outages
from simulation.outside import CALM, Crashed, Faults, SimulatedOutside, State
from simulation.questing import SHARE as QUESTING
from simulation.questing import Quests
from simulation.repository import Repository
from simulation.rewriting import SHARE as REWRITING
from simulation.rewriting import Rewriter
from simulation.talking import SHARE as TALKING
from simulation.talking import Talk
from simulation.terminals import SHARE, SHOWING, STAY_S, People
from simulation.virtual_loop import VirtualLoop

MOST_FACTS = 20_000

ASKING = 0.2
"""The share of histories in which a person decides what becomes of a conflict."""


FAULTS = logging.getLogger("crew.runner.doers.unforeseen")


class _Faults(logging.Handler):
    """Ends a history at a fault of a doer, which costs a real runner one task only."""

    def emit(self, record: logging.LogRecord) -> None:
        raise Broken(f"{record.getMessage()}: {record.exc_info}")


@dataclass(slots=True)
class History:
    """One seed's story; `run` raises `Broken` or returns."""

    seed: int
    loop: VirtualLoop
    lives: int = 0
    died: bool = False
    events: int = 0
    state: State = None
    ledger: Ledger = field(default_factory=Ledger)
    rules: Rules = None
    items: list[TaskItem] = None
    broken: AssertionError | None = None
    terminals: People | None = None
    talk: Talk | None = None
    quests: Quests | None = None
    outages: Outages | None = None
    rewriter: Rewriter | None = None
    rewrites: bool = False
    """Whether a person surely rewrites main, with nobody at a terminal; else the seed decides."""

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        repo = Repository()
        repo.target = repo.integration = repo.commit({"readme": frozenset({"hello"})}, ())
        self.state = State(rng=rng, repo=repo, shared_files=rng.choice([3, 8, 50]))
        self.rules = Rules(
            max_steps=rng.choice([2, 20]),
            test_slots=rng.choice([1, 1, 2, 3, 4, 8]),
            longest_queue=rng.choice([2, 16, 64]),
            one_at_a_time=rng.random() < 0.2,
            reset_on_recovery=rng.random() < 0.3,
        )
        if random.Random(f"conflict {self.seed}").random() < ASKING:
            self.rules = replace(self.rules, conflicts_to_agent=False)
        own = random.Random(-self.seed)
        if own.random() < SHARE and not self.rewrites:
            dialogs = random.Random(f"dialogs {self.seed}")
            shows = dialogs if dialogs.random() < SHOWING else None
            self.terminals = People(self.state, own, self._ask, shows)
            self.rules = replace(self.rules, reviewers=own.choice([(), (), ("judge",)]))
        self.items = _tasks(rng)
        self._begin_to_talk(random.Random(f"talk {self.seed}"))
        self._begin_quests(random.Random(f"quest {self.seed}"))
        self._begin_outages(random.Random(f"outage {self.seed}"))
        chance = random.Random(f"rewrite {self.seed}")
        if chance.random() < REWRITING or self.rewrites:
            self.rewriter = self.state.rewriter = Rewriter(self.state, chance)
        self.state.source = {item.id: str(item.status) for item in self.items}

    def _begin_to_talk(self, chance: random.Random) -> None:
        if chance.random() < TALKING:
            self.talk = self.state.talk = Talk(self.state, chance, self._ask)
            self.rules, self.items = self.talk.rules(self.rules), self.talk.items(self.items)

    def _begin_quests(self, chance: random.Random) -> None:
        if chance.random() < QUESTING:
            self.quests = self.state.quests = Quests(self.state, chance, self._ask)
            self.items = self.quests.items(self.items)
            self.rules = replace(self.rules, movable_sessions=frozenset({"scripted", "other"}))

    def _begin_outages(self, chance: random.Random) -> None:
        if chance.random() < OUTAGES:
            self.outages = self.state.outages = Outages(self.state, chance, self._ask)
            reviewers = self.rules.reviewers or chance.choice([(), ("judge",)])
            self.rules = replace(self.rules, reviewers=reviewers)

    def run(self) -> None:
        rng = self.state.rng
        asyncio.set_event_loop(self.loop)
        calm_after = self.loop.time() + rng.choice([60, 300, 1200])
        if self.terminals:
            calm_after = min(calm_after, self.loop.time() + STAY_S)
        if self.quests:
            calm_after = self.loop.time() + self.quests.trouble_s()
        self.state.faults = _faults(rng)
        while self.loop.time() < calm_after and not self._is_over():
            self.loop.run_until_complete(self._life(until=calm_after))
            self.loop.virtual_time += rng.uniform(0, 20)
        self.state.faults = CALM
        self.come_to_an_end()

    def come_to_an_end(self) -> None:
        """Without faults, life after life, with people who do what is asked of them in between."""
        for _ in range(60):
            self.loop.run_until_complete(self._life(until=None))
            if self._is_over() and not self.died:
                return self._check_end()
            self._retry_all()
            self.loop.virtual_time += GIVEN_UP_AFTER_S
        raise Broken(f"it does not end: {self._open()}")

    async def _life(self, until: float | None) -> None:
        """From a start of the runner to its end or its death."""
        self.lives += 1
        outside = SimulatedOutside(self.state)
        engine = self._engine(outside)
        self._take_in(engine)
        if self.talk:
            self.talk.engine = engine
        if self.quests:
            self.quests.begin(engine)
        if self.outages:
            self.outages.finish(engine)
        if self.rewriter:  # as each start of a runner looks at what people did to main
            self._ask(engine, "deliver", target="main")
        people = self._people_of(engine, outside) if until else [self._obey(engine)]
        living = [asyncio.ensure_future(one) for one in people]
        if self.terminals:
            self.terminals.notice(engine)
        faults = _Faults()
        FAULTS.addHandler(faults)
        try:
            await engine.run(until=lambda: self._ended(engine, outside, until))
        except Crashed:
            outside.dead = True
        finally:
            FAULTS.removeHandler(faults)
            self.died, outside.dead = outside.dead, True
            await _drop([*engine.under_way.values(), *living])
        if isinstance(engine.failure, Exception):
            raise Broken(f"the runner gave up: {engine.failure!r}") from engine.failure

    def _people_of(self, engine: Engine, outside: SimulatedOutside) -> list[Coroutine]:
        living = [self._people(engine)]
        if self.terminals:
            living += [self.terminals.live(engine, outside), self.terminals.look(engine)]
        if self.talk:
            living.append(self.talk.live(engine))
        if self.quests:
            living.append(self.quests.live(engine))
        if self.outages:
            living.append(self.outages.live(engine))
        if self.rewriter:
            living.append(self.rewriter.live())
        return living

    async def _obey(self, engine: Engine) -> None:
        """A person who merges by hand what crew says it cannot bring together."""
        repo = self.state.repo
        while True:
            await asyncio.sleep(60)
            line = engine.world.queues.get("main")
            if line is not None and "git merge" in line.remedy:
                made, clashes = repo.merge(repo.target, repo.integration, salt="by hand")
                assert not clashes, "nobody else writes where a person does"
                repo.move_target(made)
                self.state.made |= 1 << repo.commits[repo.target].number

    def _engine(self, outside: SimulatedOutside) -> Engine:
        def store(world: World, facts: Iterable[Fact]) -> World:
            outside._maybe_die()
            facts = tuple(facts)
            after = self.ledger.record(world, facts)
            try:
                self._check(after, facts)
                self._check_facts(after, facts)
                if self.talk:
                    self.talk.check(after, facts)
                if self.quests:
                    self.quests.check(after, facts)
                if self.outages:
                    self.outages.check(after, facts)
                if self.rewriter:
                    self.rewriter.check(after, facts)
            except (
                AssertionError
            ) as broken:  # who records in the background would keep it to himself
                self.broken = broken
                raise
            outside._maybe_die()
            return after

        world = self.ledger.load()
        self._check_runs(world)
        return Engine(
            outside=outside,
            rules=self.rules,
            epoch=self.lives,
            world=world,
            store=store,
            now=self.loop.time,
            session_of=_session_of,
        )

    def _take_in(self, engine: Engine) -> None:
        if not engine.world.tasks:
            intake = Intake(target="main", at=self.loop.time())
            engine.world = self.ledger.record(engine.world, seen(engine.world, self.items, intake))
        if not engine.world.agents:
            count = self.state.rng.choice([1, 2, 3, 5])
            self._ask(engine, "spawn", kind="scripted", count=count)

    def _ended(self, engine: Engine, outside: SimulatedOutside, until: float | None) -> bool:
        if self.broken is not None:
            raise self.broken
        if self.talk:
            self.talk.check_at_rest(engine.world)
        if self.quests:
            self.quests.check_at_rest(engine.world)
        if outside.dead:
            return True
        self.events += 1
        if self.events > 60_000:
            raise Broken("more events than any history needs: something spins")
        if until is not None and self.loop.time() >= until:
            return True
        waits_for_people = until is not None and self.state.panes
        return not waits_for_people and engine.is_quiet()

    async def _people(self, engine: Engine) -> None:
        """Somebody who kills, closes, retries and assigns at random, also what makes no sense."""
        rng = self.state.rng
        while True:
            await asyncio.sleep(rng.uniform(1, 150))
            agent, task = rng.choice(sorted(engine.world.agents)), rng.choice(self.items).id
            if self.quests:
                task = rng.choice(sorted(engine.world.tasks))
            if not self.rules.conflicts_to_agent:
                self._decide_conflicts(engine, ("agent", "mine", "theirs", "give up", "hm"))
            verb = rng.choice(["kill", "retry", "assign", "merge", "cleanup", "close", "dismiss"])
            if verb == "close" and rng.random() < 0.6:
                continue
            for _ in range(rng.choice([1, 1, 2])):
                self._ask(engine, verb, agent=agent, task=task, subject=rng.choice([agent, task]))
            if verb == "dismiss":  # a crew of nobody would never end
                self._ask(engine, "spawn", kind="scripted", at_least=1)

    def _ask(self, engine: Engine, verb: str, **args) -> Answer | None:
        """What was answered; None when it was refused."""
        try:
            asked = answer(
                engine.world,
                Request(verb=verb, args=args),
                rules=self.rules,
                at=self.loop.time(),
            )
        except CrewError:
            return None
        try:
            engine.record(asked.facts)
        except Crashed:
            engine.outside.dead = True
            engine.changed.set()
        return asked

    def _decide_conflicts(self, engine: Engine, choices: tuple[str, ...]) -> None:
        for question in list(engine.world.questions.values()):
            if question.is_open and question.about == About.CONFLICT:
                text = random.Random(f"{self.seed} {question.id}").choice(choices)
                self._ask(engine, "answer", question=question.id, text=text)

    def _retry_all(self) -> None:
        """What a person does once the faults are over: everything stuck or failed tries again."""
        outside = SimulatedOutside(self.state)
        engine = self._engine(outside)
        if self.terminals:
            self.terminals.finish(engine, outside)
        for others in filter(None, (self.talk, self.quests, self.outages)):
            others.finish(engine)
        self._decide_conflicts(engine, ("agent", "mine", "theirs"))
        # The last may have been dismissed, and crew died before the next one came.
        self._ask(engine, "spawn", kind="scripted", at_least=1)
        for agent in list(engine.world.agents.values()):
            if agent.state == AgentState.STUCK:
                self._ask(engine, "retry", subject=agent.id)
        for task in list(engine.world.tasks.values()):
            if task.state == TaskState.ERROR:
                self._ask(engine, "retry", subject=task.id)

    def _open(self) -> list[str]:
        world = self.ledger.world
        return [f"{t.id} {t.state}" for t in world.tasks.values() if t.state not in FINISHED] + [
            f"{a.id} {a.state} {a.task} {a.last_error}" for a in world.agents.values()
        ]

    def _is_over(self) -> bool:
        tasks = self.ledger.world.tasks.values()
        return bool(tasks) and all(task.state in FINISHED for task in tasks)

    def _check(self, world: World, facts: Iterable[Fact]) -> None:
        """The invariants that hold after every event; what did not change still holds."""
        if self.ledger.count > MOST_FACTS:
            raise Broken("more facts than any history needs: something spins")
        known = self.state.source.keys()
        if not world.tasks.keys() <= known or (world.tasks.keys() != known and not self.quests):
            raise Broken("a task was lost")
        carried = [agent.task for agent in world.agents.values() if agent.task]
        if len(carried) != len(set(carried)):
            raise Broken("two agents carry one task")
        if any(agent.dismissed and agent.task for agent in world.agents.values()):
            raise Broken("an agent was dismissed in the middle of a task")
        if any(fact.kind == "run" for fact in facts):
            self._check_runs(world)
        self._check_repository()

    def _check_runs(self, world: World) -> None:
        live = [run for run in world.runs.values() if run.is_live]
        if len(live) != len({run.task for run in live}):
            raise Broken("a task has two live runs")
        if any(run.agent and _has_terminal(world, run) for run in live):
            raise Broken("a task at a terminal was given to an agent")

    def _check_facts(self, world: World, facts: Iterable[Fact]) -> None:
        """A task starts when all it waits for is finished, and is done when its gate passed."""
        for fact in facts:
            if fact.kind == "agent" and fact.trigger == "killed":
                self._check_kept(facts)
            task = world.tasks.get(fact.subject)
            if fact.kind != "task" or task is None:
                continue
            if fact.target == TaskState.MERGED:
                self._check_merged(task)
            waits = any(not world.tasks[dep].is_over for dep in task.deps)
            if waits and fact.trigger == "started" and fact.source == TaskState.TODO:
                raise Broken(f"task {task.id} started before what it waits for")
            is_done = fact.trigger == "completed" and not self._is_in_quest(task)
            if is_done and not self.rewriter and task.head not in self.state.gate_passed:
                raise Broken(f"task {task.id} is done without a green gate")

    def _check_merged(self, task: Task) -> None:
        """Whoever reads `merged` finds the work in the target branch."""
        repo = self.state.repo
        tip = repo.tip_of(task.target)
        if self.rewriter and task.target == "main":
            if not any(repo.contains(task.landed_commit, one) for one in repo.been):
                raise Broken(f"task {task.id} is merged, but {task.target} never had it")
            return
        if not (tip and repo.contains(task.landed_commit, tip) and repo.contains(task.head, tip)):
            raise Broken(f"task {task.id} is merged, but {task.target} does not have it")

    def _is_in_quest(self, task: Task) -> bool:
        """Its workflow says what is tested when, and quests look where their work is."""
        return bool(self.quests and task.quest)

    def _check_kept(self, facts: Iterable[Fact]) -> None:
        """Whoever is killed leaves nothing that no checkpoint holds."""
        repo = self.state.repo
        for task in [fact.subject for fact in facts if fact.kind == "task"]:
            tree = repo.worktrees.get(task)
            is_changed = tree is not None and not tree.half_made and tree.dirty
            if is_changed and (tree.head, tree.dirty) not in repo.checkpoints.get(task, []):
                raise Broken(f"the work of task {task} was not kept before its agent was killed")

    def _check_repository(self) -> None:
        repo = self.state.repo
        if lost := self.state.made & ~repo.reachable():
            raise Broken(f"commit c{lost.bit_length() - 1} of an agent cannot be reached any more")
        if not repo.is_green(repo.integration):
            raise Broken("the integration ref is red")

    def _check_end(self) -> None:
        """What must be true once everything is merged or closed."""
        world, repo = self.ledger.load(), self.state.repo
        landed = [f.subject for f in self.ledger.facts if f.kind == "task" and f.target == "merged"]
        if len(landed) != len(set(landed)):
            raise Broken("a task landed twice")
        if any(agent.task or agent.pid for agent in world.agents.values()):
            raise Broken("an agent still holds a task or a process")
        if self.state.panes:
            raise Broken(f"sessions are left: {sorted(self.state.panes)}")
        if repo.worktrees:
            raise Broken(f"worktrees are left: {sorted(repo.worktrees)}")
        if not repo.contains(repo.integration, repo.target):
            raise Broken("what landed was not delivered")
        self._check_tasks(world)
        for others in filter(None, (self.rewriter, self.talk, self.quests)):
            others.check_end(world)

    def _check_tasks(self, world: World) -> None:
        for task in world.tasks.values():
            is_merged = task.state == TaskState.MERGED and not self._is_in_quest(task)
            if is_merged and not self.rewriter and not _has_work(self.state.repo, task.id):
                raise Broken(f"task {task.id} is merged, but its work is not in the target")
            if not task.gone and self.state.source[task.id] != task.state:
                raise Broken(f"the source was not told that task {task.id} is {task.state}")


def _has_work(repo: Repository, task: str) -> bool:
    lines = {line for v in repo.commits[repo.target].files.values() for line in v}
    return bool(lines & {f"line {task}", f"pair {task}"})


def _session_of(run: Run) -> str:
    return run.session or f"{run.id}/{run.session_number}"


async def _drop(tasks: list) -> None:
    """End what the dead runner had under way; none of it can act, the outside is closed to it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _tasks(rng: random.Random) -> list[TaskItem]:
    count = rng.choice([2, 2, 4, 4, 8, 8, 12, 20])
    items = []
    for number in range(1, count + 1):
        before = [str(n) for n in range(1, number)]
        deps = tuple(rng.sample(before, min(len(before), rng.choice([0, 0, 1, 2]))))
        items.append(TaskItem(id=str(number), title=f"task {number}", deps=deps))
    return items


def _faults(rng: random.Random) -> Faults:
    def rate(most: float) -> float:
        return rng.choice([0.0, rng.random() * most])

    return Faults(
        step_error=rate(0.5),
        hang=rate(0.1),
        crash=rate(0.03),
        flake=rate(0.2),
        lost_worktree=rate(0.1),
        bug=rate(0.3),
        dirty=rate(0.3),
        lazy=rate(0.3),
        busy_checkout=rate(0.5),
        person=rate(0.3),
        bad_merge=rate(0.5),
        late_signal=rate(0.5),
        stray_edit=rate(0.2),
    )


def run_history(seed: int, loop: VirtualLoop | None = None, *, rewrites: bool = False) -> History:
    own = loop or VirtualLoop()
    history = History(seed=seed, loop=own, rewrites=rewrites)
    try:
        history.run()
    finally:
        if loop is None:
            own.close()
    return history


def _has_terminal(world: World, run: Run) -> bool:
    terminal = world.terminals.get(run.id)
    return terminal is not None and terminal.has_process
