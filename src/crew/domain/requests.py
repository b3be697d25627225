"""A request, its answer, and how an agent or a task that it names is found."""

from collections.abc import Callable, Mapping
from typing import Any

from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.lead import Leads
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World


@frozen
class Request:
    verb: str
    args: Mapping[str, Any]


@frozen
class Asked:
    """A request together with everything that its answer depends on."""

    args: Mapping[str, Any]
    world: World
    leads: Leads
    rules: Rules
    at: float
    scope: Scope = EVERYTHING

    def agent(self) -> Agent:
        return find_agent(self.world, str(self.args["agent"]))

    def task(self) -> Task:
        return find_task(self.world, str(self.args["task"]))


@frozen
class Answer:
    facts: tuple[Fact, ...] = ()
    reply: Any = None


Verb = Callable[[Asked], Answer]


def find_agent(world: World, name: str) -> Agent:
    if name not in world.crew:
        known = ", ".join(world.crew) or "none yet, `crew spawn` makes one"
        raise NotFound(f"no agent is called {name!r}", hint=f"agents: {known}")
    return world.agents[name]


def find_task(world: World, task: str) -> Task:
    if task not in world.tasks:
        raise NotFound(f"there is no task {task!r}", hint="`crew list -a` shows all tasks")
    return world.tasks[task]
