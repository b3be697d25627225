"""A workflow: roles, stages and the routes between them, as data, and the check for its faults."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from enum import StrEnum
from typing import Any, NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.names import is_agent_name
from crew.domain.rows.step import SignalKind

_NAME = re.compile(r"[\w-]{1,40}")

DONE = "done"
"""The route that ends a workflow."""

ALL_SIGNALS = tuple(SignalKind)


class KeepsSession(StrEnum):
    """How long a role keeps one session of its CLI: for one item, or for the whole quest."""

    ITEM = "item"
    QUEST = "quest"


class Does(StrEnum):
    """What happens in a stage, which decides its possible outcomes."""

    ROLE = "role"
    GATE = "gate"
    REVIEW = "review"
    STEPS = "steps"
    COUNCIL = "council"


OUTCOMES: Mapping[Does, tuple[str, ...]] = {
    Does.ROLE: ("complete",),
    Does.GATE: ("green", "red"),
    Does.REVIEW: ("pass", "fail"),
    Does.STEPS: ("complete",),
    Does.COUNCIL: ("agreed", "objected"),
}


@frozen
class Role:
    """A role: what it owns, which signals it may send, which roles often follow, its agent kind.

    `title` says in a few plain words what it does, as in "plans the items". `retries` is how often
    it may start again on the same item before a person is asked. `session` is `quest` for a role
    that takes its session along to the next item.
    """

    name: str
    title: str = ""
    owns: str = ""
    instructions: str = ""
    agent: str = ""
    signals: tuple[str, ...] = ALL_SIGNALS
    followups: tuple[str, ...] = ()
    retries: int | None = None
    session: str = KeepsSession.ITEM


@frozen
class Stage:
    """One stage; `limit` is how often a task may come through it.

    `takes_back` marks the stage for tasks that the merge queue sends back; `rounds` is the most
    turns that each member has in a council.
    """

    name: str
    does: Does
    roles: tuple[str, ...] = ()
    plans: bool = False
    takes_back: bool = False
    limit: int | None = None
    rounds: int = 3
    routes: Mapping[str, str] = field(default_factory=dict)


@frozen
class Workflow:
    """`stages` are for the request as a whole, `step_stages` for each item of its plan.

    `deepest` is how many roles may wait for each other, `most_steps` how many items a plan may
    have.
    """

    name: str
    description: str = ""
    slots: int = 3
    most_steps: int = 50
    deepest: int = 3
    roles: Mapping[str, Role] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    step_stages: tuple[Stage, ...] = ()


class SessionCount(NamedTuple):
    """How many sessions of a CLI a workflow takes if no work is sent back.

    `kept` are those of roles that keep theirs for the quest: one for each slot that is in use.
    """

    fixed: int
    per_item: int
    kept: int

    def for_items(self, items: int, *, slots: int) -> int:
        return self.fixed + self.per_item * items + self.kept * min(items, slots)


def session_count(workflow: Workflow) -> SessionCount:
    items = [role for stage in _good_way(workflow.step_stages) for role in stage.roles]
    kept = {name for name in items if workflow.roles[name].session == KeepsSession.QUEST}
    return SessionCount(
        fixed=sum(len(stage.roles) for stage in _good_way(workflow.stages)),
        per_item=sum(name not in kept for name in items),
        kept=len(kept),
    )


def _good_way(stages: tuple[Stage, ...]) -> Iterator[Stage]:
    """The stages that work passes through if each one ends well."""
    by_name = {stage.name: stage for stage in stages}
    here = stages[0].name if stages else DONE
    while here in by_name:
        stage = by_name.pop(here)
        yield stage
        here = stage.routes[OUTCOMES[stage.does][0]]


def as_text(workflow: Workflow) -> str:
    """The workflow as text for its quest, which keeps it even if the file changes."""
    return json.dumps(asdict(workflow), ensure_ascii=False)


@functools.lru_cache(maxsize=64)
def from_text(text: str) -> Workflow:
    values = json.loads(text)
    roles = {name: Role(**_tuples(role)) for name, role in values.pop("roles").items()}
    stages = tuple(_kept_stage(stage) for stage in values.pop("stages"))
    step_stages = tuple(_kept_stage(stage) for stage in values.pop("step_stages"))
    return Workflow(roles=roles, stages=stages, step_stages=step_stages, **values)


def _kept_stage(values: dict[str, Any]) -> Stage:
    return Stage(**_tuples(values) | {"does": Does(values["does"])})


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def faults(workflow: Workflow) -> list[str]:
    """All faults of a workflow, each with its place; a workflow without faults can be used."""
    found = [] if workflow.stages else ["it has no stages"]
    for place, stages in _places(workflow):
        found += _unknown(workflow, place, stages)
        found += _misplaced(place, stages)
        found += _unreachable(place, stages)
        found += _endless(workflow, place, stages)
        found += _council_faults(place, stages)
    return [*found, *_plan_faults(workflow), *_role_faults(workflow)]


def _places(workflow: Workflow) -> Iterator[tuple[str, tuple[Stage, ...]]]:
    yield "stage", workflow.stages
    yield "step stage", workflow.step_stages


def _unknown(workflow: Workflow, place: str, stages: tuple[Stage, ...]) -> Iterator[str]:
    names = [stage.name for stage in stages]
    for stage in stages:
        if names.count(stage.name) > 1:
            yield f"{place} {stage.name} is defined twice"
        for role in stage.roles:
            if role not in workflow.roles:
                yield f"{place} {stage.name}: unknown role {role}"
        for outcome in OUTCOMES[stage.does]:
            target = stage.routes.get(outcome)
            if target is None:
                yield f"{place} {stage.name}: nothing says where {outcome} leads"
            elif target not in {*names, DONE}:
                yield f"{place} {stage.name}: {outcome} leads to {target}, which does not exist"


def _misplaced(place: str, stages: tuple[Stage, ...]) -> Iterator[str]:
    """Stages without a role where one must act: the first, one that takes back, one that plans."""
    for stage in stages:
        if stage.name == DONE:
            yield f"{place} {DONE}: that is where every way ends; call the stage something else"
        if stage.does is Does.ROLE:
            continue
        if stage is stages[0]:
            yield f"{place} {stage.name}: it is the first one, so a role must act in it"
        if stage.takes_back:
            yield f"{place} {stage.name}: only a role can take back what was not merged"
        if stage.plans:
            yield f"{place} {stage.name}: only a role can plan"


def _council_faults(place: str, stages: tuple[Stage, ...]) -> Iterator[str]:
    """The roles of a council become the names of its channel's members."""
    for stage in stages:
        if stage.does is not Does.COUNCIL:
            continue
        if len(set(stage.roles)) < len(stage.roles):
            yield f"{place} {stage.name}: each role speaks in it once"
        for role in stage.roles:
            if not is_agent_name(role):
                fit = "letters, digits, - and _, at most 32"
                yield f"{place} {stage.name}: {role} cannot be a member's name ({fit})"


def _unreachable(place: str, stages: tuple[Stage, ...]) -> Iterator[str]:
    by_name = {stage.name: stage for stage in stages}
    todo = [stage.name for stage in stages if stage.takes_back or stage is stages[0]]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            todo += by_name[name].routes.values()
    for name in by_name:
        if name not in seen:
            yield f"{place} {name}: unreachable"


def _endless(workflow: Workflow, place: str, stages: tuple[Stage, ...]) -> Iterator[str]:
    """Loops of stages without any limit, which would never end."""
    free = {
        stage.name: {target for target in stage.routes.values() if target != DONE}
        for stage in stages
        if not _is_limited(workflow, stage)
    }
    for name, targets in free.items():
        if name in _reached(free, targets):
            yield f"{place} {name}: a loop through it has no limit; give a stage or role one"


def _reached(ways: Mapping[str, set[str]], start: set[str]) -> set[str]:
    """All stages that can be reached through stages without a limit."""
    seen: set[str] = set()
    todo = [name for name in start if name in ways]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [target for target in ways[name] if target in ways]
    return seen


def _is_limited(workflow: Workflow, stage: Stage) -> bool:
    if stage.limit is not None:
        return True
    known = [workflow.roles[role] for role in stage.roles if role in workflow.roles]
    return any(role.retries is not None for role in known)


def _plan_faults(workflow: Workflow) -> Iterator[str]:
    positions = [stage for stage in workflow.stages if stage.does is Does.STEPS]
    plans = [stage for stage in workflow.stages if stage.plans]
    if len(positions) > 1:
        yield "only one stage may run the items"
    if positions and not plans:
        yield f"stage {positions[0].name}: it runs items that no stage plans"
    if plans and not positions:
        yield f"stage {plans[0].name}: no stage runs the items that it plans"
    if bool(positions) != bool(workflow.step_stages):
        yield "step stages and a stage that runs the items belong together"
    for stage in workflow.step_stages:
        if stage.plans or stage.does is Does.STEPS:
            yield f"step stage {stage.name}: an item cannot be planned into items"


def _role_faults(workflow: Workflow) -> Iterator[str]:
    for role in workflow.roles.values():
        if not _NAME.fullmatch(role.name):
            yield f"role {role.name!r}: a name has letters, digits, - and _, at most 40"
        if SignalKind.COMPLETE not in role.signals:
            yield f"role {role.name}: it must be able to send complete, or it never ends"
        for signal in role.signals:
            if signal not in set(SignalKind):
                yield f"role {role.name}: {signal} is not a signal"
        for other in role.followups:
            if other not in workflow.roles:
                yield f"role {role.name}: unknown role {other}"
