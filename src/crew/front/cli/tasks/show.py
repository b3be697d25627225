"""`crew show`: shows everything about one task."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.names import task_id
from crew.domain.merging.merge_requests import refused_merge
from crew.domain.quests.position import ENDLESS
from crew.domain.rows.task import FINISHED
from crew.domain.rows.task_item import blockers
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import (
    counted,
    dollars,
    line,
    painted,
    print_json,
    quotation,
    say,
    status,
)
from crew.front.cli.params import task_argument
from crew.front.cli.quests.quest_table import role_words
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.front.cli.watching.open_questions import open_questions
from crew.front.cli.watching.ps import NO_RUNNER
from crew.runner.pause_views import pause_line, task_pause
from crew.runner.requests.ask_with_token import ask_own
from crew.runner.upkeep.kept_work import kept_views
from crew.runner.views.code_changes import code_changes
from crew.runner.views.quest_views import quest_part
from crew.runner.views.row_views import (
    asked_view,
    gate_view,
    message_view,
    message_words,
    run_view,
    task_view,
)
from crew.store.fact_log import load_world
from crew.store.kept_values import last_gate
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

LONGEST_PAUSE = 800
"""Room for the error of a paused agent kind and for what to do about it."""

MOST_GATE_LINES = 20
"""The lines of a gate's output that are printed; --json has more of them."""

FIELDS = (
    "priority",
    "labels",
    "parent",
    "deps",
    "blocked_by",
    "agent",
    "base",
    "branch",
    "worktree",
)
MORE_FIELDS = (
    "issue",
    "created",
    "started",
    "review_count",
    "landed_commit",
    "dropped_at",
    "close_reason",
    "gate",
    "runs_code",
)


@command("show", example="crew show 12\ncrew show '#12' --json")
@task_argument()
@pass_call
def show(call: Call, task: str) -> None:
    """Show everything about a task."""
    if call.is_shut_in():
        _show_own(call, task)
        return
    workplace = call.workplace()
    runs_at_terminals(workplace.folder, workplace.db)  # one of them may have ended without a report
    world = load_world(workplace.db)
    view = whole_view(workplace, world, workplace.source.resolve(task))
    if call.json:
        print_json(view)
    else:
        _print(call, view)


def _show_own(call: Call, task: str) -> None:
    """Show an agent in a sandbox the task of its own step, which is all that it may read."""
    view = ask_own("get_task", {})
    if task_id(task) != view["id"]:
        raise NotFound(
            f"this agent's step cannot see task {task}",
            hint=f"it may read its own task: crew show {view['id']}",
            code="not_own_task",
        )
    if call.json:
        print_json(view)
        return
    name, state = painted(view["id"], "bold", call), status(view["status"], call)
    say(f"{name}  {line(view['title'])}  {state}")
    _print_texts(view)


def whole_view(workplace: "Workplace", world: World, task: str) -> dict[str, Any]:
    """The task with all its runs and checkpoints."""
    item = workplace.source.show(task)
    runs = sorted((r for r in world.runs.values() if r.task == task), key=lambda run: run.number)
    costs = [run.cost_usd for run in runs]
    row = world.tasks.get(task)
    return {
        **task_view(item, world),
        "runner_up": find_runner(workplace.lock_file) is not None,
        "blocked_by": list(blockers(item, workplace.snapshot().by_id, _landed(world))),
        "close_reason": (row.close_reason if row else "") or None,
        "gate": (row.gate if row else "") or None,
        "last_gate": gate_view(last_gate(workplace.db, task)),
        "runs_code": list(code_changes(workplace, row)) if row else [],
        "quest": quest_part(world, row) if row else None,
        "merge_refused": (refused_merge(world, row) if row else "") or None,
        "questions": [
            asked_view(one) for one in open_questions(world.questions.values()) if one.task == task
        ],
        "messages": [message_view(one) for one in world.messages.values() if one.task == task],
        "paused": task_pause(workplace, world, task),
        "runs": [run_view(run) for run in runs],
        "checkpoints": kept_views(workplace, task),
        "cost_usd": None if None in costs else round(sum(c or 0.0 for c in costs), 6),
    }


def _landed(world: World) -> frozenset[str]:
    return frozenset(task.id for task in world.tasks.values() if task.awaits_delivery)


def _print(call: Call, view: dict[str, Any]) -> None:
    name, state = painted(view["id"], "bold", call), status(view["status"], call)
    say(f"{name}  {line(view['title'])}  {state}")
    if view["corrupt"]:
        say(f"  cannot be read: {line(view['corrupt'])}")
    given = {name: view[name] for name in (*FIELDS, *MORE_FIELDS)}
    terms = {name: value or "none" for name, value in view["terms"].items()}
    for name, value in {**given, **terms}.items():
        if value not in (None, [], ""):
            words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            say(f"  {name.replace('_', ' ')}: {line(words)}")
    for words in _pointers(view):
        say(f"  {words}")
    _print_texts(view)
    _print_gate(call, view)
    _print_history(call, view)


def _print_gate(call: Call, view: dict[str, Any]) -> None:
    """How the last gate ended, with the end of its output."""
    gate = view["last_gate"]
    if gate is None:
        return
    how = painted("passed", "green", call) if gate["passed"] else painted("failed", "red", call)
    say(f"\ngate {how} on {gate['commit'][:12]}, {gate['at']}: {line(gate['command'])}")
    lines = [one for one in gate["output"].splitlines() if one.strip()]
    if len(lines) > MOST_GATE_LINES:
        say(f"the last {MOST_GATE_LINES} lines (`crew logs {view['id']} --raw` has all of it):")
    say(quotation("\n".join(lines[-MOST_GATE_LINES:])))


def _print_texts(view: dict[str, Any]) -> None:
    if view["body"]:
        say()
        say(quotation(view["body"]))
    for comment in view["comments"]:
        kind = f" ({line(comment['type'])})" if comment["type"] else ""
        author, at = comment["author"] or "unknown", comment["at"] or "at an unknown time"
        say(f"\n{line(author)}{kind}, {at}:")
        say(quotation(comment["text"]))


MOST_MESSAGES = 5
"""The newest messages that are printed one by one; --json has all of them."""

LONGEST_TEXT = 60


def _pointers(view: dict[str, Any]) -> Iterator[str]:
    """Where to see or do more, each with its command."""
    if waits := view["delivery"]:
        yield f"landed; waits for its delivery to {waits['target']}: {line(_why_late(view))}"
    if part := view["quest"]:
        what = f"item {line(part['step'])} of quest {part['id']}" if part["step"] else "its request"
        yield f"quest: {what}{_where(view, part)} (`crew quest show {part['id']}` shows more)"
    for one in view["questions"]:
        yield f"asks {one['id']}: {line(one['question'])} ({one['answer_with']})"
    for one in view["messages"][-MOST_MESSAGES:]:
        text = line(one["text"], limit=LONGEST_TEXT)
        yield f"message {one['id']} from {one['from']}: {message_words(one)}: {text}"
    yield from _waits(view)
    if view["session"]:
        yield f"session: {view['session']} (attach with `crew attach {view['id']}`)"


def _waits(view: dict[str, Any]) -> Iterator[str]:
    """What an open task waits for, besides a delivery and an answer."""
    if view["status"] == "in_progress" and not (view["session"] or view["runner_up"]):
        yield NO_RUNNER
    if view["paused"]:
        yield f"waits: {line(pause_line(view['paused']), limit=LONGEST_PAUSE)}"
    if view["awaits_merge"]:
        yield f"waits for its merge: crew merge {view['id']}"
    if commit := view["merge_refused"]:
        accept = f"crew merge {view['id']} --accept"
        yield f"its merge {commit[:12]} drops a part of one side; if that is right: {accept}"


def _why_late(view: dict[str, Any]) -> str:
    waits = view["delivery"]
    if waits["reason"] is None:
        return f"the runner delivers it soon, `crew merge {view['id']}` now"
    return f"{waits['reason']} ({waits['remedy']})"


def _where(view: dict[str, Any], part: dict[str, Any]) -> str:
    """The stage and the acting role; empty once the task is finished."""
    if not part["stage"]:
        return f": {part['reason']}"
    if view["status"] in FINISHED:
        return ""
    run = view["run"]
    role = role_words({**part, "agent": run["agent"] if run and not run["ended"] else None})
    return f", at {part['stage']}" + (f" ({role})" if role else "")


def _print_history(call: Call, view: dict[str, Any]) -> None:
    if view["runs"]:
        say()
    for run in view["runs"]:
        most = f" of {run['max_rounds']}" if run["max_rounds"] < ENDLESS else ""
        rounds = f"round {run['round']}{most}, {counted(run['steps'], 'step')}"
        cost = "cost unknown" if run["cost_usd"] is None else dollars(run["cost_usd"])
        say(f"run {run['id']}: {run['state']}, {_worker(view, run)}, {rounds}, {cost}")
        if run["out_of_steps"]:
            say("  its last round ended at the step limit; the agent never said it was finished")
        if run["error"]:
            say(f"  {painted(line(run['error']), 'red', call)}")
    if view["checkpoints"]:
        *_, last = view["checkpoints"]
        words = f"{last['number']} at {last['at']}, {line(last['label'])}"
        say(f"{counted(len(view['checkpoints']), 'checkpoint')}, the last one: {words}")


def _worker(view: dict[str, Any], run: dict[str, Any]) -> str:
    """The agent and its kind; for a run without an agent, the kind alone."""
    if run["agent"]:
        return f"{run['agent']} ({run['kind']})"
    is_open = view["session"] and view["run"]["id"] == run["id"]
    return f"{run['kind']} at a terminal" if is_open else str(run["kind"])
