"""What must be true of the quests of a simulated crew, after every fact and at rest."""

from collections import Counter
from collections.abc import Iterable

from crew.domain.kernel.fact import Fact
from crew.domain.rows.quest import ItemState, Position, Quest, QuestState
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import FINISHED, TaskState
from crew.domain.rows.workflow import from_text
from crew.domain.world import World
from simulation.repository import Repository


def check_facts(world: World, facts: Iterable[Fact], repo: Repository) -> None:
    """What holds after every single fact."""
    for fact in facts:
        if fact.kind == "agent" and fact.trigger == "assigned":
            check_slots(world)
            _check_needed(world, fact.changes["task"])
            _check_dependencies(world, fact.changes["task"], repo)
        elif fact.kind == "walk" and fact.trigger == "role_began":
            _check_put_off(world, world.positions[fact.subject], repo)
        elif fact.kind == "run" and fact.trigger == "step_started":
            _check_step(world, world.runs[fact.subject].task)
            _check_session(world, world.runs[fact.subject])
        elif fact.kind == "question" and fact.target == QuestionState.WITHDRAWN:
            _check_withdrawn(world, world.questions[fact.subject])
        elif fact.kind == "quest" and fact.target == QuestState.COMPLETE:
            _check_complete(world, world.quests[fact.subject])


def check_slots(world: World) -> None:
    busy = Counter(
        world.positions[agent.task].quest
        for agent in world.agents.values()
        if agent.task in world.positions
    )
    for quest, count in busy.items():
        assert count <= world.quests[quest].slots, f"quest {quest} uses {count} slots"


def _check_session(world: World, run: Run) -> None:
    """A CLI loses the words of one of two steps that share a session."""
    others = [other for other in world.runs.values() if other.stepping and other.id != run.id]
    clash = [other.id for other in others if other.session == run.session]
    assert not clash, f"{run.id} and {clash} are in the session {run.session} at once"


def _check_step(world: World, task: str) -> None:
    """No step runs again after it is complete, and none that the plan has dropped."""
    if task not in world.positions:
        return
    base = world.positions[task]
    assert not base.is_over, f"task {task} is walked again after it was {base.state}"
    assert world.tasks[task].state == TaskState.IN_PROGRESS, f"task {task} is not under way"


def _check_needed(world: World, task: str) -> None:
    """Nobody is given a request that stands where its steps are walked, and has some left."""
    if task not in world.quests:
        return
    quest, stage = world.quests[task], world.positions[task].stage
    here = next(one for one in from_text(quest.definition).stages if one.name == stage)
    states = {world.tasks[step.task].state if step.task else "" for step in quest.steps}
    assert here.does != "steps" or states <= FINISHED, f"quest {task} does not wait for its steps"


def _check_dependencies(world: World, task: str, repo: Repository) -> None:
    """Whatever a step waits for has landed for the quest's branch, or was given up."""
    if not world.tasks[task].quest:
        return
    assert task in world.positions, f"task {task} began before its walk"
    quest = world.quests[world.positions[task].quest]
    tasks = {step.key: step.task for step in quest.steps}
    planned = [step.deps for step in quest.steps if step.task == task]
    for dep in {*world.tasks[task].deps, *(tasks[key] for deps in planned for key in deps)}:
        assert dep, f"task {task} began before a step that is no task yet"
        found = world.tasks[dep]
        assert found.is_over, f"task {task} began before {dep}"
        if found.landed_commit and not repo.kept_apart:
            landed = repo.integration_of(found.target)
            assert repo.contains(found.head, landed), f"{dep} has landed and is nowhere"


def _check_put_off(world: World, base: Position, repo: Repository) -> None:
    """Whoever begins at a step that has to wait for others now is nobody's yet.

    A follow-up belongs to the turn of whoever asked for it, which had begun before.
    """
    run = world.runs[str(world.tasks[base.task].run)]
    if base.key and run.agent and base.acting in {"", base.id}:
        _check_dependencies(world, base.task, repo)


def _check_withdrawn(world: World, question: Question) -> None:
    over = not world.runs[question.run].is_live
    passes = {About.PERMISSION, About.DIALOG}
    if question.about == About.CONFLICT:  # a person may have opened the task once more
        over = world.tasks[question.task].conflict != question.id
    assert over or question.about in passes, "nobody answers, and who asked goes on"


def _check_complete(world: World, quest: Quest) -> None:
    for step in quest.steps:
        state = world.tasks[step.task].state if step.task else "not even a task"
        assert state in FINISHED, f"quest {quest.id} is complete and step {step.key} is {state}"


def check_at_rest(world: World) -> None:
    """What holds once everything that follows at once has followed."""
    for question in world.questions.values():
        run = world.runs[question.run]
        if question.is_open and question.about == About.CONFLICT:
            assert world.tasks[question.task].conflict == question.id, "nobody needs an answer"
        elif question.is_open and question.about != About.DIALOG:
            assert run.is_live, "a question of a run that is over"
    positions: dict[str, list[Position]] = {}
    for position in world.positions.values():
        positions.setdefault(position.task, []).append(position)
    for task, found in positions.items():
        _check_chain(world, task, found)


def _check_chain(world: World, task: str, positions: list[Position]) -> None:
    """One role acts; whoever else is there waits for it, each for one other, nobody twice."""
    base = world.positions[task]
    state = world.tasks[task].state
    if world.tasks[task].is_over:
        assert all(position.is_over for position in positions), (
            f"task {task} is {state}, its walk is not over"
        )
        return
    acting = world.positions[base.acting or base.id]
    chain = [acting]
    while chain[-1].asker:
        chain.append(world.positions[chain[-1].asker])
    assert chain[-1] is base, f"who acts at task {task} was asked by somebody else"
    left = {position.id for position in positions if not position.is_over}
    assert left == {position.id for position in chain}, f"task {task}: {left} are left"
    assert acting.state != ItemState.WAITING_FOR_ROLE, f"nobody acts at task {task}"
    assert {position.state for position in chain[1:]} <= {ItemState.WAITING_FOR_ROLE}, chain
    run = world.runs.get(world.tasks[task].run or "")
    if run is not None and run.state == RunState.WORKING and world.terminal_of(run.id) is None:
        assert run.role == acting.role, f"{run.role} acts at task {task} for {acting.role}"
    roles = [position.role for position in chain]
    assert len(roles) == len(set(roles)), f"a role waits for itself: {roles}"
    deepest = from_text(world.quests[base.quest].definition).deepest
    assert len(chain) - 1 <= deepest, f"{len(chain) - 1} roles wait at task {task}"


def check_end(world: World, repo: Repository) -> None:
    """Every quest has come to its end, and what it finished is where it belongs."""
    for quest in world.quests.values():
        assert quest.state != QuestState.OPEN, f"quest {quest.id} is still open"
        root = world.tasks[quest.id]
        for step in quest.steps:
            task = world.tasks.get(step.task)
            if task is None or task.state != TaskState.MERGED or repo.kept_apart:
                continue  # a person who rewrites main may have removed it
            is_landed = root.state == TaskState.MERGED
            tip = repo.target if is_landed else repo.integration_of(root.branch)
            assert repo.contains(task.head, tip), f"step {step.key} is merged and nowhere"
    for task in world.tasks.values():
        assert not task.quest or task.state in FINISHED, f"task {task.id} is {task.state}"
