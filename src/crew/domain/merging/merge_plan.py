"""What the merge queues ask for: to be built, tested, landed and delivered, and whom to blame."""

from collections.abc import Iterator
from typing import Any

from crew.domain.commands import (
    Assemble,
    Command,
    Deliver,
    Land,
    TestCandidate,
)
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.names import landed_ref
from crew.domain.kernel.quotation import headline, quoted
from crew.domain.quests.position import (
    is_quest_led,
)
from crew.domain.quests.role_entry import taken_back
from crew.domain.rows.agent import AT_WORK
from crew.domain.rows.merge_queue import (
    Line,
    commits_to_test,
    culprit,
    learned_rate,
    needs_layout,
    prefix_to_land,
)
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run, RunState
from crew.domain.rows.task import SENT_BACK, Task, TaskState
from crew.domain.rules import Rules
from crew.domain.runs.new_question import new_question
from crew.domain.runs.run_outcomes import failed, merge_tries, sent_back
from crew.domain.world import World, apply, born, moved, noted


def new_lines(world: World, now: float) -> list[Fact]:
    """One for each target that a task waits for."""
    targets = {task.target for task in world.tasks.values() if task.is_queued}
    return [born(Line(id=t), "opened", at=now) for t in sorted(targets - world.lines.keys())]


def send_back(world: World, now: float, *, rules: Rules) -> list[Fact]:
    """The first task that makes its line red goes back to its session."""
    blamed = (_send_back_culprit(world, one, rules=rules, now=now) for one in world.lines.values())
    return next((facts for facts in blamed if facts), [])


def _send_back_culprit(world: World, line: Line, *, rules: Rules, now: float) -> list[Fact]:
    found = culprit(line)
    if found is None or line.upstream or not _is_current(world, line):
        return []
    candidate, result = found
    if candidate is None:
        return _red_base(line, now)
    worse = noted(
        line, "blamed", at=now, failure_rate=learned_rate(line.failure_rate, failed=1), held=()
    )
    return [
        worse,
        *returned(
            world, candidate.task, ask=Ask.RED_GATE, notes=quoted(result.notes), rules=rules, at=now
        ),
    ]


def _red_base(line: Line, now: float) -> list[Fact]:
    """What others committed and what landed merge without a conflict, but do not work together."""
    reason = f"{line.id} and what crew landed are red together"
    if line.waiting == reason:
        return []
    remedy = f"bring them together and commit: git merge {landed_ref(line.id)}"
    return [noted(line, "base_red", at=now, waiting=reason, remedy=remedy)]


def returned(
    world: World,
    task_id: str,
    *,
    ask: Ask,
    notes: str,
    rules: Rules,
    at: float,
    merge_commit: str = "",
    merge_paths: tuple[str, ...] = (),
    merge_notes: str = "",
) -> list[Fact]:
    """The queue sends a task back to its own session with the reason."""
    task = world.tasks[task_id]
    run = world.runs.get(task.run or "")
    back = moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=at, **SENT_BACK)
    after = apply(world, back)
    if run is None or run.state != RunState.COMPLETE:
        return [back, moved(after.tasks[task_id], "failed", to=TaskState.ERROR, at=at)]
    aside: dict[str, Any] = {
        "merge_commit": merge_commit,
        "merge_head": task.head,
        "merge_paths": merge_paths,
        "merge_notes": merge_notes,
        "merge_tries": merge_tries(run, ask, merge_commit),
    }
    if ask == Ask.CONFLICT and not rules.conflicts_to_agent and not run.pane:
        return _choice_asked(world, task, run, at=at, **aside)
    if run.round >= run.max_rounds and not run.pane:
        reason = f"the merge queue sent it back after {run.round} rounds"
        return [back, *failed(after, run, reason, at=at, ask=ask, notes=notes, **aside)]
    if is_quest_led(world, run):
        return [back, *taken_back(after, run, ask=ask, notes=notes, at=at, **aside)]
    return [back, *sent_back(after, run, ask=ask, notes=notes, rules=rules, at=at, **aside)]


def _choice_asked(world: World, task: Task, run: Run, *, at: float, **aside: Any) -> list[Fact]:
    """A person decides; the task stays done, and out of the line until then."""
    files = ", ".join(map(headline, aside["merge_paths"]))
    question = new_question(
        world,
        run,
        text=f"Task {task.id} conflicts with {aside['merge_commit'][:12]}, which landed, in "
        f"{files}. Who resolves it, or which lines win: mine (the task's) or theirs (what landed)?",
        context=aside["merge_notes"],
        at=at,
        about=About.CONFLICT,
        choices=CONFLICT_CHOICES,
    )
    return [
        born(question, "asked", at=at),
        noted(run, "conflicted", at=at, question=question.id, **aside),
        noted(task, "conflicted", at=at, conflict=question.id),
    ]


CONFLICT_CHOICES = ("agent", "mine", "theirs", "give up")
"""The agent resolves it; the task's side wins; the landed side wins; the task fails."""


def queue(world: World, target: str) -> list[Task]:
    """The tasks that wait for this target, the longest waiting first."""
    waiting = [t for t in world.tasks.values() if t.is_queued and t.target == target]
    return sorted(waiting, key=lambda task: (task.queued_at or 0.0, task.id))


def _is_current(world: World, line: Line) -> bool:
    """Everybody in the chain still waits with the commit that was merged."""
    return all(
        (task := world.tasks.get(c.task)) is not None and task.is_queued and task.head == c.head
        for c in line.candidates
    )


def plan_lines(
    world: World, now: float, *, rules: Rules, busy: frozenset[str]
) -> Iterator[Command]:
    """`busy` are the keys of what is under way: a commit is not tested twice at once."""
    for line in world.lines.values():
        yield from _line_work(world, line, rules=rules, busy=busy)
        if _should_deliver(world, line, now, rules=rules):
            yield Deliver(subject=line.id)


def _line_work(
    world: World, line: Line, *, rules: Rules, busy: frozenset[str]
) -> Iterator[Command]:
    waiting = queue(world, line.id)[: rules.longest_line]
    current = _is_current(world, line)
    if current and prefix_to_land(line) is not None:
        yield Land(subject=line.id)
    elif (
        line.upstream
        or frozenset((t.id, t.head) for t in waiting) != line.entries
        or needs_layout(line, rules=rules)
    ):
        yield Assemble(subject=line.id)
    if current and (line.candidates or not line.base_proven):
        prefix = f"test {line.id} "
        under_test = frozenset(key.removeprefix(prefix) for key in busy if key.startswith(prefix))
        for commit in commits_to_test(line, rules, busy=under_test):
            yield TestCandidate(subject=line.id, commit=commit)


def _should_deliver(world: World, line: Line, now: float, *, rules: Rules) -> bool:
    is_current = line.delivered == line.integration and not undelivered(world, line.id)
    if is_current or line.upstream:
        return False
    working = any(agent.run and agent.state in AT_WORK for agent in world.agents.values())
    working = working or any(task.is_queued for task in world.tasks.values())
    pause_s = rules.deliver_every_s if line.is_shown else 0.0
    recently = line.delivered_at is not None and now - line.delivered_at < pause_s
    return not (working and recently)


def undelivered(world: World, target: str) -> list[Task]:
    """The tasks that have landed for this target, whose branch does not have them yet."""
    return [t for t in world.tasks.values() if t.awaits_delivery and t.target == target]


def delivery_waits(world: World, rules: Rules) -> dict[str, float]:
    """When what landed is to be delivered, although nothing happens until then."""
    return {
        f"deliver {line.id}": line.delivered_at + rules.deliver_every_s
        for line in world.lines.values()
        if line.delivered != line.integration and line.delivered_at is not None
    }
