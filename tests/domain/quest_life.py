"""A quest that is played by hand, fact by fact: agents speak, gates judge, tasks land."""

import json
from dataclasses import dataclass, field, fields
from functools import cache

from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.clock import Clock
from crew.domain.commands import CheckStage, Prepare, RemoveWorktree, Step, WriteItems
from crew.domain.kernel.fact import Fact
from crew.domain.lead_choice import LEADS, lead_of
from crew.domain.merging.merge_plan import returned
from crew.domain.plan import decide, plan
from crew.domain.quests.position import acting, first_position
from crew.domain.quests.quest_plan import next_to_write, tasks_recorded
from crew.domain.quests.stage_outcomes import gate_judged, must_have_commits, role_finished
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.quest import Position, Quest
from crew.domain.rows.run import Run
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.workflow import Workflow, as_text
from crew.domain.rules import Rules
from crew.domain.runs.complaints import Evidence
from crew.domain.runs.run_ends import killed
from crew.domain.runs.run_outcomes import Prepared, prepared
from crew.domain.runs.step_outcomes import step_ended, step_started
from crew.domain.tasks.task_outcomes import Intake, seen_one
from crew.domain.world import TABLES, FactDraft, World, apply_all, born, moved, noted, with_rows

RULES = Rules()
ROOT = "1"


@cache
def built_in() -> Workflow:
    return load_workflow(BUILT_IN / "quest.toml")


def steps(**deps: str) -> list[dict]:
    """Planned steps: `steps(a="", b="a c")` is a step a, and one b that waits for a and c."""
    return [{"id": k, "title": f"Do {k}", "dependencies": d.split()} for k, d in deps.items()]


@dataclass
class Life:
    """`world` is what is known now; the clock goes on by a second with everything that happens."""

    workflow: Workflow = field(default_factory=built_in)
    slots: int = 3
    agents: int = 4
    rules: Rules = RULES
    world: World = field(default_factory=World)
    now: float = 100.0
    facts: list[Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        root = Task(id=ROOT, title="Big request", quest=ROOT, target="main", written="todo")
        names = "ABCDEFGH"[: self.agents]
        self.world = with_rows([root, *(Agent(id=name, agent_kind="claude") for name in names)])
        definition = as_text(self.workflow)
        self.ask("quest_new", task=ROOT, workflow="q", definition=definition, slots=self.slots)

    # What happens

    def record(self, facts: list[Fact]) -> None:
        """And everything that follows from it: decisions, worktrees, tasks for planned steps."""
        self.now += 1
        self.facts += facts
        self.world = apply_all(self.world, facts)
        while following := decide(self.world, Clock(self.now), rules=self.rules) or self._done():
            self.facts += following
            self.world = apply_all(self.world, following)

    def _done(self) -> list[Fact]:
        for command in plan(self.world, Clock(self.now), rules=self.rules):
            if isinstance(command, Prepare):
                run = self.world.runs[command.subject]
                where = Prepared(worktree=f"/t/{run.task}", branch=f"crew-{run.task}", base="base")
                return prepared(self.world, run, where, at=self.now)
            if isinstance(command, RemoveWorktree):
                task = self.world.tasks[command.subject]
                return [noted(task, "worktree_removed", at=self.now, worktree="")]
            if isinstance(command, WriteItems):
                return self._told(self.world.quests[command.subject])
        return []

    def _told(self, quest: Quest) -> list[Fact]:
        step = next_to_write(self.world, quest)[0]
        tasks = {other.key: other.task for other in quest.steps}
        made = step.task or str(len(self.world.tasks) + 1)
        deps = tuple(tasks[dep] for dep in step.deps)
        labels = (f"quest-{quest.id}",)
        state = self.world.tasks[made].written if step.task else "todo"
        item = TaskItem(
            id=made, title=step.title, labels=labels, deps=deps, base="crew-1", status=state
        )
        draft = FactDraft(self.world)
        draft.add(tasks_recorded(quest, {step.key: made}, at=self.now))
        draft.add(*seen_one(draft.world, item, Intake(target="main", at=self.now)))
        if made not in draft.world.positions:
            draft.add(born(first_position(quest, made, key=step.key), "planned", at=self.now))
        return draft.facts

    def restart(self) -> None:
        """As after a crash: everything is read back from the text that the store keeps."""
        rows = []
        for kind, table in TABLES.items():
            names = [f.name for f in fields(table)]
            for row in self.world.rows(kind).values():
                text = json.dumps({name: getattr(row, name) for name in names})
                rows.append(_read(table, json.loads(text)))
        self.world = with_rows(rows)
        self.record([])

    # What people and agents do

    def ask(self, verb: str, **args: object) -> object:
        asked = answer(self.world, Request(verb=verb, args=args), rules=self.rules, at=self.now)
        self.record(list(asked.facts))
        return asked.reply

    def begin(self, task: str) -> Run:
        """The agent of this task is called."""
        run = self.run(task)
        assert run.agent, f"no agent works on task {task}: {run.state}"
        assert Step(subject=run.id) in self.due(), f"no step of {run.id} is due"
        session = run.session or f"{run.id}/{run.session_number}"
        self.record(step_started(self.world, run, epoch=1, session=session, at=self.now))
        return self.run(task)

    def say(self, task: str, signal: str, **told: object) -> object:
        run = self.run(task)
        return self.ask("signal", run=run.id, attempt=run.attempt, signal=signal, **told)

    def plan(self, task: str, planned: object) -> object:
        run = self.run(task)
        return self.ask("plan_steps", run=run.id, attempt=run.attempt, steps=planned)

    def end(self, task: str, *, done: bool = False, error: ErrorKind | None = None) -> None:
        run = self.run(task)
        failed = StepError(kind=error, message="it broke") if error else None
        outcome = StepOutcome(session=run.session, done=done, error=failed)
        self.record(
            step_ended(
                self.world, run, lead_of(self.world, run), outcome, rules=self.rules, at=self.now
            )
        )
        retry_at = [a.retry_at or 0.0 for a in self.world.agents.values()]
        self.now = max(self.now, *retry_at)

    def look(self, task: str, **evidence: object) -> None:
        """crew looks at what the role left."""
        run = self.run(task)
        assert CheckStage(subject=run.id) in self.due(), f"{run.id} is not to be looked at"
        if "has_commits" not in evidence:
            evidence["has_commits"] = True
        seen = Evidence(head=f"head-{task}", **evidence)
        if not must_have_commits(self.world, run):
            seen = Evidence(head=seen.head, uncommitted=seen.uncommitted)
        self.record(role_finished(self.world, run, seen, rules=self.rules, at=self.now))

    def turn(self, task: str, signal: str = "complete", **told: object) -> None:
        """A whole turn of whoever acts at the task."""
        self.begin(task)
        self.say(task, signal, **{**_NEEDED[signal], **told})
        self.end(task)
        if signal == "complete":
            self.look(task)

    def gate(
        self, task: str, *, passed: bool = True, output: str = "2 failed", is_same: bool = False
    ) -> None:
        told = {"passed": passed, "output": output, "is_same": is_same}
        judged = gate_judged(self.world, self.run(task), head=f"head-{task}", at=self.now, **told)
        self.record(judged)

    def land(self, task: str) -> None:
        self.record([moved(self.world.tasks[task], "delivered", to="merged", at=self.now)])

    def send_back(self, task: str, **how: object) -> None:
        """The merge queue does."""
        self.record(returned(self.world, task, leads=LEADS, rules=self.rules, at=self.now, **how))

    def kill(self, task: str) -> None:
        """What the doer does once an agent is to be killed."""
        agent = self.world.agents[str(self.run(task).agent)]
        self.record(killed(self.world, agent, at=self.now))

    # Shorter ways

    def planned(self, **deps: str) -> "Life":
        """The request is thought over, planned so, and walked."""
        self.turn(ROOT)
        self.begin(ROOT)
        self.plan(ROOT, steps(**deps))
        self.say(ROOT, "complete", summary="planned")
        self.end(ROOT)
        self.look(ROOT)
        return self

    def finish(self, key: str) -> None:
        """A step from its first role into the quest's branch."""
        task = self.task(key)
        self.turn(task)
        self.gate(task)
        self.turn(task)
        self.land(task)

    # What is so

    def due(self) -> list:
        return plan(self.world, Clock(self.now), rules=self.rules)

    def run(self, task: str) -> Run:
        return self.world.runs[str(self.world.tasks[task].run)]

    def position(self, task: str) -> Position:
        return acting(self.world, task)

    def task(self, key: str) -> str:
        return next(step.task for step in self.quest.steps if step.key == key)

    def state(self, key: str) -> str:
        return self.world.tasks[self.task(key)].state

    @property
    def quest(self) -> Quest:
        return self.world.quests[ROOT]

    @property
    def question(self) -> object:
        return list(self.world.questions.values())[-1]

    @property
    def working(self) -> set[str]:
        """The tasks that somebody holds."""
        return {agent.task for agent in self.world.agents.values() if agent.task}


_NEEDED = {
    "complete": {"summary": "all done"},
    "partially-complete": {"progress": "half", "continue_at": "line 7"},
    "needs-user-input": {"question": "which one?"},
    "needs-role-followup": {"reason": "not mine"},
}


def _read(table: type, values: dict) -> object:
    return table(**{name: _tuples(value) for name, value in values.items()})


def _tuples(value: object) -> object:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value
