"""plan: from the world as it is to what should be done now; pure, so that it can be simulated.

`decide` gives the facts that follow at once from others; `plan` gives the commands for the outside.
Both are asked again after every fact, and whatever was lost in a crash is simply planned again.
"""

from collections.abc import Iterator

from crew.domain.agent import Agent, AgentState
from crew.domain.channel_plan import channel_waits, decide_channels, plan_channels
from crew.domain.commands import (
    Assemble,
    Check,
    Command,
    Deliver,
    Kill,
    Land,
    Prepare,
    Recover,
    RemoveWorktree,
    Step,
    TellSteps,
    TestCandidate,
    WriteTask,
)
from crew.domain.councils import follow_councils
from crew.domain.fact import Fact
from crew.domain.merge_queue import (
    Line,
    commits_to_test,
    culprit,
    learned_rate,
    needs_layout,
    prefix_to_land,
)
from crew.domain.names import landed_ref
from crew.domain.pane_plan import plan_panes
from crew.domain.planning import chains_behind, untold
from crew.domain.progress import assigned, failed, sent_back
from crew.domain.questing import follow
from crew.domain.question import About, QuestionState
from crew.domain.rules import Rules
from crew.domain.run import Ask, Run, RunState
from crew.domain.task import FINISHED, Task, TaskState
from crew.domain.walking import taken_back
from crew.domain.whereabouts import (
    has_slot,
    is_held,
    is_told,
    is_walked,
    waits_for_steps,
    walks_steps,
)
from crew.domain.world import World, apply, apply_all, born, moved, noted


def decide(world: World, now: float, *, rules: Rules, taking_work: bool = True) -> list[Fact]:
    """The facts that follow from the present ones without anything being done outside."""
    if facts := decide_channels(world, now, is_running=taking_work):
        return facts
    if facts := _new_lines(world, now):
        return facts
    if facts := _withdraw(world, now):
        return facts
    if world.quests and (facts := follow(world, now) or follow_councils(world, now)):
        return facts
    for line in world.lines.values():
        if facts := _send_back_culprit(world, line, rules=rules, now=now):
            return facts
    return _assign(world, now, rules=rules) if taking_work else []


def plan(
    world: World,
    now: float,
    *,
    rules: Rules,
    epoch: int = 0,
    taking_work: bool = True,
    busy: frozenset[str] = frozenset(),
) -> list[Command]:
    """Everything that should be under way now; the caller leaves out what already is (`busy`)."""
    commands = [
        *(TellSteps(subject=quest) for quest in untold(world)),
        *_for_tasks(world, rules=rules),
        *_for_agents(world, now, rules=rules, epoch=epoch, taking_work=taking_work),
        *plan_panes(world, busy=busy),
        *_for_lines(world, now, rules=rules, busy=busy),
        *plan_channels(world, now, rules=rules, taking_work=taking_work, busy=busy),
    ]
    return [command for command in commands if command.key not in busy]


def waits(world: World, now: float, *, rules: Rules) -> dict[str, float]:
    """What the plan will ask for later although nothing happens: the command's key and when."""
    found: dict[str, float] = {}
    for agent in world.agents.values():
        if agent.task and agent.retry_at and agent.state in _STEPPING and rules.means(agent.task):
            found[f"run {agent.run}"] = agent.retry_at
    for task in world.tasks.values():
        if task.not_before is not None and is_ready(world, task) and rules.means(task.id):
            found[f"run {task.id}"] = task.not_before
    for provider in world.providers.values():
        if provider.is_shut(now) and _is_wanted(world, provider.id, rules):
            found[f"run {provider.id}"] = provider.next_at
    found |= _deliveries(world, rules)
    found |= channel_waits(world, now, rules=rules)
    return {key: at for key, at in found.items() if at > now}


def _deliveries(world: World, rules: Rules) -> dict[str, float]:
    return {
        f"deliver {line.id}": line.delivered_at + rules.deliver_every_s
        for line in world.lines.values()
        if line.delivered != line.integration and line.delivered_at is not None
    }


def _is_wanted(world: World, provider: str, rules: Rules) -> bool:
    """Somebody waits for this provider: a run that has begun, or a task that could."""
    begun = (run for run in world.runs.values() if run.is_live and not run.question)
    return any(
        rules.provider(run.agent_kind) == provider and rules.means(run.task) for run in begun
    ) or any(is_ready(world, task) and rules.means(task.id) for task in world.tasks.values())


def starting_next(world: World, now: float, *, rules: Rules) -> tuple[str, ...]:
    """The targets of the tasks that wait for nothing but an agent and are new, the first first."""
    waiting = _waiting_tasks(world, now)
    return tuple(t.target for t in waiting if rules.means(t.id) and not (t.branch or t.worktree))


_STEPPING = frozenset({AgentState.READY, AgentState.WORKING, AgentState.DONE})


def is_ready(world: World, task: Task) -> bool:
    """todo, readable, and every dependency merged or closed; an unknown dependency blocks."""
    return (
        task.state == TaskState.TODO
        and (not task.quest or task.id in world.walks)
        and not is_held(world, task.id)
        and not task.corrupt
        and not task.gone
        and all(_is_finished(world, dep) for dep in task.deps)
        and is_told(world, task.id)
    )


def _is_finished(world: World, task: str) -> bool:
    found = world.tasks.get(task)
    return found is not None and found.state in FINISHED


def _new_lines(world: World, now: float) -> list[Fact]:
    targets = {task.target for task in world.tasks.values() if task.is_queued}
    return [born(Line(id=t), "opened", at=now) for t in sorted(targets - world.lines.keys())]


def _withdraw(world: World, now: float) -> list[Fact]:
    """Nobody waits for the answer to a question whose run is over, or for leave after its step."""
    facts: list[Fact] = []
    for question in world.questions.values():
        run = world.runs[question.run]
        asks_on = run.stepping if question.about == About.PERMISSION else run.is_live
        if not question.is_open or asks_on:
            continue
        facts.append(moved(question, "withdrawn", to=QuestionState.WITHDRAWN, at=now))
        if run.question == question.id:
            facts.append(noted(run, "question_withdrawn", at=now, question=""))
    return facts


def _assign(world: World, now: float, *, rules: Rules) -> list[Fact]:
    made: list[Fact] = []
    kinds = frozenset(agent.agent_kind for agent in world.agents.values())
    free = [agent for agent in world.agents.values() if agent.is_free]
    if not free:
        return []
    for task in _waiting_tasks(world, now):
        if not rules.means(task.id) or not has_slot(world, task.id):
            continue
        agent = next((a for a in free if _may_take(world, a, task, kinds)), None)
        if agent is None or _is_shut(world, _kind_for(world, agent, task), now, rules):
            continue
        free.remove(agent)
        facts = assigned(world, agent, task, rules=rules, at=now)
        world = apply_all(world, facts)
        made += facts
        if not free:
            break
    return made


def _is_shut(world: World, kind: str, now: float, rules: Rules) -> bool:
    provider = world.providers.get(rules.provider(kind))
    return provider is not None and provider.is_shut(now)


def _kind_for(world: World, agent: Agent, task: Task) -> str:
    run = world.runs.get(task.run or "") if _is_sent_back(world, task) else None
    return run.agent_kind if run else task.wants_agent or agent.agent_kind


def _waiting_tasks(world: World, now: float) -> list[Task]:
    """Tasks sent back first: their dependents wait longest; then by priority and age.

    Of a quest's steps those go first that the longest chain of others waits for.
    """
    back = [task for task in world.tasks.values() if _is_sent_back(world, task)]
    rested = [t for t in world.tasks.values() if t.not_before is None or t.not_before <= now]
    ready = [task for task in rested if is_ready(world, task)]
    behind = chains_behind(world)
    ready.sort(key=lambda t: (t.priority, -behind.get(t.id, 0), t.created_at, len(t.id), t.id))
    return [*back, *ready]


def _is_sent_back(world: World, task: Task) -> bool:
    run = world.runs.get(task.run or "")
    waits = task.state == TaskState.IN_PROGRESS and run is not None and run.is_waiting
    return waits and not is_held(world, task.id) and not waits_for_steps(world, task.id)


def _may_take(world: World, agent: Agent, task: Task, kinds: frozenset[str]) -> bool:
    """A task that asks for a kind nobody is may go to anybody: a slot can run any agent."""
    run = world.runs.get(task.run or "") if _is_sent_back(world, task) else None
    wanted = run.agent_kind if run else task.wants_agent
    return wanted is None or wanted == agent.agent_kind or wanted not in kinds


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
        *returned(world, candidate.task, ask=Ask.RED_GATE, notes=result.notes, rules=rules, at=now),
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
) -> list[Fact]:
    """The queue sends a task back to its own session with the reason."""
    task = world.tasks[task_id]
    run = world.runs.get(task.run or "")
    back = moved(task, "sent_back", to=TaskState.IN_PROGRESS, at=at, head="", queued_at=None)
    after = apply(world, back)
    if run is None or run.state != RunState.COMPLETE:
        return [back, moved(after.tasks[task_id], "failed", to=TaskState.ERROR, at=at)]
    if ask == Ask.CONFLICT and not rules.conflicts_to_agent and not run.pane:
        reason = f"conflicts with {merge_commit[:12]} in {', '.join(merge_paths)}"
        return [back, *failed(after, run, reason, at=at)]
    if run.round >= run.max_rounds and not run.pane:
        reason = f"the merge queue sent it back after {run.round} rounds"
        return [back, *failed(after, run, reason, at=at)]
    if is_walked(world, run):
        aside = {"merge_commit": merge_commit, "merge_head": task.head, "merge_paths": merge_paths}
        return [back, *taken_back(after, run, ask=ask, notes=notes, at=at, **aside)]
    return [
        back,
        *sent_back(
            after,
            run,
            ask=ask,
            notes=notes,
            rules=rules,
            at=at,
            merge_commit=merge_commit,
            merge_head=task.head,
            merge_paths=merge_paths,
        ),
    ]


def _for_tasks(world: World, *, rules: Rules) -> Iterator[Command]:
    for task in world.tasks.values():
        if task.written != task.state and not task.corrupt and not task.gone:
            yield WriteTask(subject=task.id)
        if task.worktree and _is_worktree_over(world, task, rules):
            yield RemoveWorktree(subject=task.id)


def _is_worktree_over(world: World, task: Task, rules: Rules) -> bool:
    run = world.runs.get(task.run or "")
    if run is not None and run.pane:
        return False
    held = any(agent.task == task.id for agent in world.agents.values())
    over = task.gone or (task.state in FINISHED and not rules.keep_worktrees)
    return task.cleaning or ((over or walks_steps(world, task.id)) and not held)


def _for_agents(
    world: World, now: float, *, rules: Rules, epoch: int, taking_work: bool
) -> Iterator[Command]:
    for agent in world.agents.values():
        if agent.killing:
            yield Kill(subject=agent.id)
            continue
        run = world.runs.get(agent.run or "")
        if run is None or agent.state in {AgentState.IDLE, AgentState.STUCK}:
            continue
        command = _for_run(world, run, agent, now, rules=rules, epoch=epoch)
        if command is not None and taking_work:
            yield command


def _for_run(
    world: World, run: Run, agent: Agent, now: float, *, rules: Rules, epoch: int
) -> Command | None:
    if agent.retry_at is not None and agent.retry_at > now:
        return None
    if world.tasks[run.task].cleaning or run.pane or not rules.means(run.task):
        return None
    if run.state == RunState.WORKING and _is_shut(world, run.agent_kind, now, rules):
        return None
    if rules.reset_on_recovery and run.stepping and run.epoch != epoch and not run.signal:
        return Recover(subject=run.id)
    if run.state == RunState.INIT or not world.tasks[run.task].worktree:
        return Prepare(subject=run.id)
    if run.state == RunState.WORKING:
        return Step(subject=run.id)
    if run.state == RunState.REVIEWING:
        return Check(subject=run.id)
    return None


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


def _for_lines(
    world: World, now: float, *, rules: Rules, busy: frozenset[str]
) -> Iterator[Command]:
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
    if line.delivered == line.integration or line.upstream:
        return False
    working = any(agent.run and agent.state in _STEPPING for agent in world.agents.values())
    working = working or any(task.is_queued for task in world.tasks.values())
    recently = line.delivered_at is not None and now - line.delivered_at < rules.deliver_every_s
    return not (working and recently)
