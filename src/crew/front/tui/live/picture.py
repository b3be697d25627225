"""A picture of the crew: everything that the view shows at one moment, as frozen values."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task_item import TaskItem
from crew.domain.world import World
from crew.tasks.source_snapshot import Items

MOST_FACTS = 10_000


@frozen
class Picture:
    """The crew at one moment.

    `items` are the tasks as their source has them; `doing` is what each agent does now; `number` is
    the newest fact that is part of the picture; `failure` is why the crew cannot be read now: the
    rest is then as it was before. `namespace` is that of the tasks, if this crew has another one.
    """

    world: World = field(default_factory=World)
    items: Mapping[str, TaskItem] = field(default_factory=lambda: Items({}))
    doing: Mapping[str, str] = field(default_factory=dict)
    runner: Mapping[str, Any] | None = None
    pause: str = ""
    number: int = 0
    failure: str = ""
    namespace: str = ""

    def status_of(self, task: str) -> str:
        """The state that crew recorded, if the task's source does not have it yet."""
        row = self.world.tasks.get(task)
        if row is not None and (row.state != row.written or task not in self.items):
            return str(row.state)
        return str(self.items[task].status)

    def title_of(self, task: str) -> str:
        if task in self.items:
            return self.items[task].title
        row = self.world.tasks.get(task)
        return row.title if row else ""


@frozen
class News:
    """A new picture, and the facts since the last one; `fresh` if it replaces all of the old."""

    picture: Picture
    facts: tuple[tuple[int, Fact], ...] = ()
    fresh: bool = False
    tasks_changed: bool = False

    def after(self, earlier: "News") -> "News":
        """This news together with an earlier one that was not shown yet.

        After very many facts all is new: the terminal was away for hours.
        """
        facts = self.facts if self.fresh else (*earlier.facts, *self.facts)
        is_fresh = self.fresh or earlier.fresh or len(facts) > MOST_FACTS
        return News(
            picture=self.picture,
            facts=() if len(facts) > MOST_FACTS else facts,
            fresh=is_fresh,
            tasks_changed=self.tasks_changed or earlier.tasks_changed,
        )

    def about(self, *kinds: str) -> bool:
        """Whether rows of these kinds may have changed."""
        return self.fresh or any(fact.kind in kinds for _, fact in self.facts)
