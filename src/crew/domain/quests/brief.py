"""The brief of a role: the decisions, answers, plan and finished items of its quest."""

from typing import NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.quest import PlanItem, Position, Quest, RoleEntry
from crew.domain.rows.question import About, Question, QuestionState
from crew.domain.rows.run import Run
from crew.domain.rows.step import SignalKind
from crew.domain.rows.task import TaskState
from crew.domain.world import World


class RoleWords(NamedTuple):
    """The text of one author."""

    author: str
    words: str


class Exchange(NamedTuple):
    """A question and the answer of a person."""

    asked: RoleWords
    answer: RoleWords


class PlanLine(NamedTuple):
    """An item of the plan and its state."""

    key: str
    title: str
    state: str


class Built(NamedTuple):
    """The results of an item in the quest's branch, as its roles reported them."""

    key: str
    title: str
    commit: str
    summaries: tuple[RoleWords, ...]


@frozen
class Brief:
    """The brief of a role; `key` names its item and is empty for the request itself."""

    quest: str
    title: str
    key: str = ""
    decided: tuple[RoleWords, ...] = ()
    answered: tuple[Exchange, ...] = ()
    plan: tuple[PlanLine, ...] = ()
    built: tuple[Built, ...] = ()


def brief_of(world: World, run: Run) -> Brief | None:
    """The brief for a task; None if it belongs to no quest."""
    position = world.positions.get(run.task)
    if position is None:
        return None
    quest = world.quests[position.quest]
    request = world.tasks.get(quest.id)
    return Brief(
        quest=quest.id,
        title=request.title if request else "",
        key=position.key,
        decided=tuple(_decisions(world.positions[quest.id])),
        answered=tuple(_answers(world, {quest.id, run.task})),
        plan=tuple(PlanLine(step.key, step.title, _state(world, step)) for step in quest.steps),
        built=tuple(_built(world, step) for step in _foundations(world, quest, position)),
    )


def _decisions(request: Position) -> list[RoleWords]:
    """The last summary of each role that worked on the request itself."""
    said = {one.role: one.words for one in request.said if _is_summary(one)}
    return [RoleWords(f"{role} decided", words) for role, words in said.items()]


def _answers(world: World, tasks: set[str]) -> list[Exchange]:
    """The answered questions, in the order in which they were asked."""
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
            RoleWords(f"{_asker(one)} asked a person", one.question),
            RoleWords("The answer", one.answer),
        )
        for one in in_order
    ]


def _asker(question: Question) -> str:
    """The role that asked, or crew for the question about a blocked item."""
    return question.role if question.about == About.INPUT else "crew"


def _state(world: World, step: PlanItem) -> str:
    task = world.tasks.get(step.task)
    return TaskState.TODO.value if task is None else task.state


def _foundations(world: World, quest: Quest, position: Position) -> list[PlanItem]:
    """The items that this one depends on; for the request, all finished items."""
    steps = {step.key: step for step in quest.steps}
    wanted = (
        steps[position.key].deps if position.key in steps else () if position.key else tuple(steps)
    )
    return [steps[key] for key in wanted if key in steps and _is_over(world, steps[key])]


def _is_over(world: World, step: PlanItem) -> bool:
    task = world.tasks.get(step.task)
    return task is not None and task.is_over


def _built(world: World, step: PlanItem) -> Built:
    position = world.positions.get(step.task)
    said = {one.role: one.words for one in position.said if _is_summary(one)} if position else {}
    summaries = tuple(RoleWords(role, words) for role, words in said.items())
    return Built(step.key, step.title, world.tasks[step.task].landed_commit, summaries)


def _is_summary(said: RoleEntry) -> bool:
    return said.signal == SignalKind.COMPLETE and bool(said.words)
