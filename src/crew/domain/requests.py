"""A request, its answer, and how an agent or a task that it names is found."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Generic, TypeVar, get_args, get_origin

from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.lead import Leads
from crew.domain.rows.agent import Agent
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@frozen
class Request:
    """A request as it is stored; `parsed` makes a value of its verb's class of it."""

    verb: str
    args: Mapping[str, object]


@frozen
class Asked(Generic[R_co]):
    """A request together with everything that its answer depends on."""

    request: R_co
    world: World
    leads: Leads
    rules: Rules
    at: float
    scope: Scope = EVERYTHING

    def instead(self, request: R) -> "Asked[R]":
        """Another request, decided by the same things."""
        return Asked(
            request=request,
            world=self.world,
            leads=self.leads,
            rules=self.rules,
            at=self.at,
            scope=self.scope,
        )


@frozen
class Answer:
    facts: tuple[Fact, ...] = ()
    reply: object = None


Verb = Callable[[Asked[Request]], Answer]


def typed(kind: type[R], answer: Callable[[Asked[R]], Answer]) -> Verb:
    """A verb whose requests are parsed as values of this class before they are answered."""
    return lambda asked: answer(asked.instead(parsed(kind, asked.request)))


def parsed(kind: type[R], request: Request) -> R:
    """The arguments as the fields of a class; an argument that no field is named after is ignored.

    Null means not given, unless the field may be None. A field `for_` is the argument `for`.
    """
    values: dict[str, object] = {}
    for field in fields(kind):  # type: ignore[arg-type] # every request class is frozen
        name = field.name.rstrip("_")
        given = request.args.get(name)
        if given is not None or (name in request.args and NoneType in get_args(field.type)):
            values[field.name] = _value(request.verb, name, given, field.type)
        elif field.default is MISSING:
            raise UsageError(
                f"the request {request.verb} lacks the argument {name!r}",
                hint=f"send {request.verb} again with a value for {name!r}",
                code="missing_argument",
            )
    return kind(**values)


def _value(verb: str, name: str, given: object, kind: object) -> object:
    """What is given, if it is of this kind; lists become tuples, objects become their classes."""
    for one in get_args(kind) if isinstance(kind, UnionType) else (kind,):
        if get_origin(one) is tuple and isinstance(given, list | tuple):
            return tuple(_value(verb, name, each, get_args(one)[0]) for each in given)
        if isinstance(one, type) and isinstance(given, _ACCEPTED.get(one, one)):
            if one is object or isinstance(given, bool) == (one is bool):
                return given
        elif isinstance(one, type) and is_dataclass(one) and isinstance(given, Mapping):
            return parsed(one, Request(verb=verb, args=given))
    raise UsageError(
        f"the argument {name!r} of the request {verb} has the type {type(given).__name__}",
        hint=f"send {verb} again with {name!r} of the type {getattr(kind, '__name__', kind)}",
        code="wrong_argument",
    )


_ACCEPTED: Mapping[type, tuple[type, ...]] = {float: (float, int)}


def find_agent(world: World, name: str) -> Agent:
    if name not in world.crew:
        known = ", ".join(world.crew) or "none yet, `crew spawn` makes one"
        raise NotFound(f"no agent is called {name!r}", hint=f"agents: {known}")
    return world.agents[name]


def find_task(world: World, task: str) -> Task:
    if task not in world.tasks:
        raise NotFound(f"there is no task {task!r}", hint="`crew list -a` shows all tasks")
    return world.tasks[task]
