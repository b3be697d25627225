"""`crew ps`: lists the agents and what they do."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.config.agent_names import glance
from crew.domain.kernel.names import rewrite_id
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import dollars, narrate, print_json, table, thousands
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.front.cli.watching.open_questions import asked_lines, suspicion_lines
from crew.runner.pause_views import pause_lines, with_pauses
from crew.runner.views.row_views import agent_view, agents_by_age, rewrite_words
from crew.store.database import open_database
from crew.store.kept_values import paused_why
from crew.store.quick_rows import load_agents, load_unmerged
from crew.store.runner_lock import find_runner, is_stopped

if TYPE_CHECKING:
    from crew.store.quick_rows import ShownWorld

HEAD = ("NAME", "STATUS", "TASK", "KIND", "STEPS", "TOKENS", "COST", "NOTE")


@command("ps", example="crew ps\ncrew ps --json | jq '.[] | select(.status == \"stuck\")'")
@pass_call
def ps(call: Call) -> None:
    """List the agents and what they do."""
    folder = call.folder()
    db = open_database(folder / "crew.db")
    sessions = runs_at_terminals(folder, db)
    world = load_agents(db)
    runner = find_runner(folder / "lock")
    is_up = runner is not None
    agents = [agent_view(world, agent, runner_up=is_up) for agent in agents_by_age(world)]
    _bring_up_to_date(agents, world, folder.parent)
    if call.json:
        print_json(with_pauses(world, agents, lambda: call.workplace().rules))
        return
    if agents:
        table(HEAD, [_row(agent, runner_up=is_up) for agent in agents], call)
    else:
        narrate(call, "no agents yet: `crew spawn` makes one, `crew run` makes some by itself")
    for task, run in sessions.items():
        narrate(call, f"task {task} is at a terminal with {run.agent_kind}: crew attach {task}")
    if is_up and (paused := paused_why(db, folder)):
        narrate(call, paused_line(paused))
    for words in around(world, runner, unmerged=load_unmerged(db)):
        narrate(call, words)


def _bring_up_to_date(agents: list[dict[str, Any]], world: "ShownWorld", root: Path) -> None:
    """Update idle agents from the config, which may have changed since the rows were written."""
    seen = glance(root) if any(agent["status"] == "idle" for agent in agents) else None
    if seen is None:
        return
    for agent in agents:
        if agent["status"] != "idle":
            continue
        if not world.agents[agent["name"]].kind_chosen:
            agent["kind"] = seen.worker_default
        if agent["kind"] not in seen.kinds:
            agent["last_error"] = (
                f"no agent is configured as {agent['kind']!r}: add [agents.{agent['kind']}] to "
                f".crew/config.toml, or `crew agents set {agent['name']} KIND`"
            )


def _row(agent: dict[str, Any], *, runner_up: bool) -> tuple[str, ...]:
    tokens = agent["total_input_tokens"] + agent["total_output_tokens"]
    return (
        agent["name"],
        agent["status"],
        agent["task"] or "-",
        agent["kind"],
        str(agent["step_count"]),
        thousands(tokens),
        dollars(agent["total_cost_usd"]),
        _note(agent, runner_up=runner_up),
    )


NO_RUNNER = "no runner: `crew run` continues it"
"""The note for unfinished work without a runner, whatever its row has."""

UNDER_WAY = frozenset({"ready", "working", "done"})


def _note(agent: dict[str, Any], *, runner_up: bool) -> str:
    error = agent["last_error"]
    if agent["status"] == "stuck":
        return f"{error} (crew retry {agent['name']})"
    if agent["status"] in UNDER_WAY and not runner_up:
        return without_runner(error, tries_again=bool(agent["retry_at"]))
    if error and agent["retry_at"]:
        return f"tries again at {agent['retry_at']}: {error}"
    return error if error and agent["status"] == "idle" else ""


def without_runner(error: str | None, *, tries_again: bool) -> str:
    """The note without a runner, with the error after which the agent would try again."""
    return f"{NO_RUNNER}; last error: {error}" if error and tries_again else NO_RUNNER


MOST_UNMERGED = 5
"""The most tasks waiting for their merge that are listed one by one."""


def around(
    world: "ShownWorld", runner: dict[str, Any] | None, *, unmerged: Sequence[str]
) -> Iterable[str]:
    """What else to know: the runner, speakers, pauses, open questions, waiting merges."""
    if runner is None:
        yield "no runner is up: `crew run` starts one"
    else:
        stopped = f"; it is stopped: `fg` or `kill -CONT {runner['pid']}` continues it"
        is_stopped_now = is_stopped(runner["pid"])
        yield f"runner: pid {runner['pid']}, since {runner['started']}{stopped * is_stopped_now}"
        yield from speakers(world)
    yield from pause_lines(world)
    yield from asked_lines(world.questions.values())
    yield from suspicion_lines(world.suspicions.values())
    yield from rewrites(world)
    yield from deliveries(world, runner_up=runner is not None)
    for task in unmerged[:MOST_UNMERGED]:
        yield f"task {task} is {waits_for_merge(task)}"
    if more := len(unmerged[MOST_UNMERGED:]):
        yield f"{more} more tasks wait for their merge: crew list --status done"


def paused_line(reason: str) -> str:
    return f"the runner starts no new work and tries again by itself: {reason}"


def waits_for_merge(task: str) -> str:
    """What a done task waits for that is in no merge queue."""
    return f"done and waits for its merge: crew merge {task}"


def speakers(world: "ShownWorld") -> Iterable[str]:
    """The members that have a step under way; a turn costs as much as a step."""
    for one in world.members.values():
        if one.speaking:
            where = f"{one.channel} ({one.agent_kind})"
            yield f"{one.name} speaks in {where}: crew channel tail {one.channel} -f"


def rewrites(world: "ShownWorld") -> Iterable[str]:
    """The targets that a person rewrote, with the work that is gone from them."""
    for queue in world.queues.values():
        if queue.dropped:
            yield f"{rewrite_words(queue)}: crew inbox {rewrite_id(queue.id)}"


def deliveries(world: "ShownWorld", *, runner_up: bool) -> Iterable[str]:
    """Landed work that its target branch lacks: the reason, and the command to deliver it."""
    for queue in world.queues.values():
        if queue.waiting:
            remedy = f" ({queue.remedy})" if queue.remedy else ""
            yield f"delivery to {queue.id} waits: {queue.waiting}{remedy}"
        elif queue.remedy:
            yield f"submodules moved with the last delivery to {queue.id}: {queue.remedy}"
        if landed := _landed(world, queue.id):
            how = "the runner delivers" if runner_up else f"`crew merge {landed[0]}` delivers"
            yield f"landed, and not in {queue.id} yet: {', '.join(landed)} ({how})"


def _landed(world: "ShownWorld", target: str) -> list[str]:
    """Landed tasks, by stored fields only: the quick rows here lack the domain's properties."""
    done = [task for task in world.tasks.values() if task.state == "done"]
    return sorted(task.id for task in done if task.landed_commit and task.target == target)
