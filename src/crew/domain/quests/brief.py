"""What a role is told of its quest: what was settled, the plan, and what it can build on."""

from typing import NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.quest import PlannedStep, Quest, Said, Walk
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Run
from crew.domain.rows.task import TaskState
from crew.domain.runs.signals import SignalKind
from crew.domain.world import World


class Words(NamedTuple):
    """What one author wrote."""

    author: str
    words: str


class Exchange(NamedTuple):
    """A question and what a person answered."""

    asked: Words
    answer: Words


class PlanLine(NamedTuple):
    """An item of the plan and how far it is."""

    key: str
    title: str
    state: str


class Built(NamedTuple):
    """What an item left in the quest's branch, in the words of its roles."""

    key: str
    title: str
    commit: str
    summaries: tuple[Words, ...]


@frozen
class Brief:
    """`key` names the item it is for; it is empty for the request itself."""

    quest: str
    title: str
    key: str = ""
    decided: tuple[Words, ...] = ()
    answered: tuple[Exchange, ...] = ()
    plan: tuple[PlanLine, ...] = ()
    built: tuple[Built, ...] = ()


def brief_of(world: World, run: Run) -> Brief | None:
    """None for a task that belongs to no quest."""
    walk = world.walks.get(run.task)
    if walk is None:
        return None
    quest = world.quests[walk.quest]
    request = world.tasks.get(quest.id)
    return Brief(
        quest=quest.id,
        title=request.title if request else "",
        key=walk.key,
        decided=tuple(_decisions(world.walks[quest.id])),
        answered=tuple(_answers(world, {quest.id, run.task})),
        plan=tuple(PlanLine(step.key, step.title, _state(world, step)) for step in quest.steps),
        built=tuple(_built(world, step) for step in _foundations(world, quest, walk)),
    )


def _decisions(request: Walk) -> list[Words]:
    """The last summary of each role that worked on the request itself."""
    said = {one.role: one.words for one in request.said if _is_summary(one)}
    return [Words(f"{role} decided", words) for role, words in said.items()]


def _answers(world: World, tasks: set[str]) -> list[Exchange]:
    """In the order in which they were asked; the store keeps questions by name."""
    answered = [
        one
        for one in world.questions.values()
        if one.task in tasks
        and one.state == QuestionState.ANSWERED
        and one.about != About.PERMISSION
    ]
    in_order = sorted(answered, key=lambda one: (one.asked_at, len(one.id), one.id))
    return [
        Exchange(
            Words(f"{_asker(one)} asked a person", one.question), Words("The answer", one.answer)
        )
        for one in in_order
    ]


def _asker(question: Question) -> str:
    """The role for its own questions; crew asks how a blocked item continues."""
    return question.role if question.about == About.INPUT else "crew"


def _state(world: World, step: PlannedStep) -> str:
    task = world.tasks.get(step.task)
    return TaskState.TODO.value if task is None else task.state


def _foundations(world: World, quest: Quest, walk: Walk) -> list[PlannedStep]:
    """The items that this one waits for; of the request, all that are finished."""
    steps = {step.key: step for step in quest.steps}
    wanted = steps[walk.key].deps if walk.key in steps else () if walk.key else tuple(steps)
    return [steps[key] for key in wanted if key in steps and _is_over(world, steps[key])]


def _is_over(world: World, step: PlannedStep) -> bool:
    task = world.tasks.get(step.task)
    return task is not None and task.is_over


def _built(world: World, step: PlannedStep) -> Built:
    walk = world.walks.get(step.task)
    said = {one.role: one.words for one in walk.said if _is_summary(one)} if walk else {}
    summaries = tuple(Words(role, words) for role, words in said.items())
    return Built(step.key, step.title, world.tasks[step.task].landed_commit, summaries)


def _is_summary(said: Said) -> bool:
    return said.signal == SignalKind.COMPLETE and bool(said.words)
