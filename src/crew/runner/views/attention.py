"""Waits until a task or a quest has ended, or needs a person."""

import time
from collections.abc import Collection
from typing import Any

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import FINISHED, TaskState
from crew.domain.world import World
from crew.store.database import change_count
from crew.store.fact_log import load_world
from crew.store.runner_lock import find_runner
from crew.workplace import Workplace

LOOK_EVERY_S = 0.2
SOURCE_EVERY_S = 2.0
ENDS = frozenset({*map(str, FINISHED), str(TaskState.ERROR), "complete", "cancelled"})


@frozen
class Attention:
    """The state of a task or a quest, and what it needs from a person."""

    id: str
    status: str
    questions: tuple[str, ...]
    stuck: tuple[str, ...]  # agents
    runner_up: bool

    def is_due(self, statuses: Collection[str]) -> bool:
        return self.status in statuses or bool(self.questions or self.stuck) or not self.runner_up

    def view(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.status,
            "questions": list(self.questions),
            "stuck": list(self.stuck),
            "runner_up": self.runner_up,
        }


def await_attention(
    workplace: Workplace, subject: str, *, statuses: Collection[str] = ENDS, timeout_s: float
) -> Attention:
    """Return when one of these statuses is reached or a person is needed, else at the timeout.

    Without a runner nothing can change, so it returns at once.
    """
    give_up_at = time.monotonic() + timeout_s
    while True:
        seen, looked_at = change_count(workplace.db), time.monotonic()
        found = attention(workplace, subject)
        if found.is_due(statuses) or time.monotonic() >= give_up_at:
            return found
        # A task's file can change without crew, and a runner can die without a word.
        while change_count(workplace.db) == seen and time.monotonic() - looked_at < SOURCE_EVERY_S:
            time.sleep(LOOK_EVERY_S)


def attention(workplace: Workplace, subject: str) -> Attention:
    world = load_world(workplace.db)
    quest = world.quests.get(subject)
    mine = {subject, *_tasks_of(world, subject)}
    if quest is not None:
        status = str(quest.state)
    elif subject in world.tasks:
        status = str(world.tasks[subject].state)
    else:
        status = str(workplace.source.show(subject).status)
    return Attention(
        id=subject,
        status=status,
        questions=tuple(
            one.id for one in world.questions.values() if one.is_open and one.task in mine
        ),
        stuck=tuple(
            name
            for name, agent in world.crew.items()
            if agent.task in mine and str(agent.state) == "stuck"
        ),
        runner_up=find_runner(workplace.lock_file) is not None,
    )


def _tasks_of(world: World, quest: str) -> set[str]:
    return {task for task, position in world.positions.items() if position.quest == quest}
