"""Draws a workflow for a terminal: its stages from top to bottom, and where outcomes lead."""

from collections.abc import Iterator

from crew.domain.quests.role_entry import RETRIES
from crew.domain.rows.workflow import (
    ALL_SIGNALS,
    OUTCOMES,
    Does,
    KeepsSession,
    Role,
    SessionCount,
    Stage,
    Workflow,
    session_count,
)


def drawing(workflow: Workflow) -> list[str]:
    """Lines without colours, at full length; the caller cuts them to the terminal."""
    lines = [f"{workflow.name}: {workflow.description}".rstrip(": "), "", *_limits(workflow)]
    if workflow.step_stages:
        lines += ["", "the request", *_stages(workflow, workflow.stages)]
        lines += ["", "each item", *_stages(workflow, workflow.step_stages)]
    else:
        lines += ["", *_stages(workflow, workflow.stages)]
    return [*lines, "", "roles", *_roles(workflow)]


SAMPLE_ITEMS = 5


def expected_sessions(workflow: Workflow) -> str:
    """How many agent sessions a quest takes if nothing is sent back, as a hint to its cost."""
    count = session_count(workflow)
    if not workflow.step_stages:
        return f"{workflow.name} takes {_sessions(count.fixed)}, more when work is sent back"
    sample = count.for_items(SAMPLE_ITEMS, slots=workflow.slots)
    return (
        f"{workflow.name} takes {_sessions(count.fixed)} plus {_for_items(count, workflow.slots)}: "
        f"{sample} for a plan of {SAMPLE_ITEMS} items, more when work is sent back"
    )


def _sessions(number: int) -> str:
    return f"{number} session" if number == 1 else f"{number} sessions"


def _for_items(count: SessionCount, slots: int) -> str:
    parts = [
        f"{count.per_item} for each item" if count.per_item else "",
        f"up to {count.kept * slots} kept over all items" if count.kept else "",
    ]
    return " and ".join(part for part in parts if part)


def _limits(workflow: Workflow) -> Iterator[str]:
    yield f"  {expected_sessions(workflow).removeprefix(f'{workflow.name} ')}"
    if workflow.step_stages:
        yield f"  slots {workflow.slots}, at most {workflow.most_steps} items"
    yield f"  at most {workflow.deepest} roles wait for each other"


def _stages(workflow: Workflow, stages: tuple[Stage, ...]) -> Iterator[str]:
    """The stages; an outcome that leads to the next one is an arrow down, others point aside."""
    for stage, following in zip(stages, (*stages[1:], None), strict=True):
        yield f"  {stage.name}: {_doing(workflow, stage)}"
        next_name = following.name if following else ""
        ways = [(outcome, stage.routes[outcome]) for outcome in OUTCOMES[stage.does]]
        aside = [(outcome, target) for outcome, target in ways if target != next_name]
        down = [outcome for outcome, target in ways if target == next_name]
        for outcome, target in aside:
            corner = "├" if down else "└" if (outcome, target) == aside[-1] else "├"
            yield f"    {corner}─ {outcome} ─▶ {target}"
        if down:
            yield f"    │ {', '.join(down)}"
            yield "    ▼"


def _doing(workflow: Workflow, stage: Stage) -> str:
    does = {
        Does.ROLE: ", ".join(stage.roles),
        Does.GATE: "the gate",
        Does.REVIEW: f"a review by {' and '.join(stage.roles)}",
        Does.COUNCIL: f"a council of {' and '.join(stage.roles)}, {stage.rounds} rounds at most",
        Does.STEPS: f"every item, {workflow.slots} at a time",
    }[stage.does]
    notes = [
        "plans the items" if stage.plans else "",
        "takes back unmerged work" if stage.takes_back else "",
        f"{stage.limit} times at most" if stage.limit else "",
    ]
    told = ", ".join(note for note in notes if note)
    return f"{does} ({told})" if told else does


def _roles(workflow: Workflow) -> Iterator[str]:
    for role in workflow.roles.values():
        name = f"{role.name}, {role.title}" if role.title else role.name
        yield f"  {name}: {role.owns}".rstrip(": ")
        yield f"    {_may(role)}"


def _may(role: Role) -> str:
    signals = "all four" if set(role.signals) == set(ALL_SIGNALS) else ", ".join(role.signals)
    parts = [
        f"signals {signals}",
        f"often followed by {', '.join(role.followups)}" if role.followups else "",
        f"{RETRIES if role.retries is None else role.retries} retries",
        f"agent {role.agent}" if role.agent else "",
        "keeps its session for the quest" if role.session == KeepsSession.QUEST else "",
    ]
    return "; ".join(part for part in parts if part)
