"""Shows a quest on one screen: its position, one line for each item, and its open questions."""

from collections.abc import Iterator
from typing import Any

from crew.domain.rows.task import FINISHED
from crew.front.cli.call import Call
from crew.front.cli.output import (
    ago,
    counted,
    dollars,
    line,
    painted,
    status,
    table_lines,
    terminal_width,
)

View = dict[str, Any]
HEAD = ("ITEM", "TASK", "STATE", "AGO", "COST", "TITLE")
WAITING = frozenset({"waiting_for_user", "waiting_for_role", "blocked", "partially_complete"})
"""The states in which a role has no agent and still acts next."""

LONGEST_STATE = 34
LONGEST_ID = 14


def quest_table(view: View, call: Call) -> Iterator[str]:
    """The lines of `crew quest show`; `--full` and `--json` have the rest."""
    yield from quest_head(view, call)
    if now := _now(view):
        yield f"  now: {now}"
    if view["steps"]:
        finished = {one["id"] for one in view["steps"] if one["status"] in FINISHED}
        rows = [_row(view, step, finished) for step in view["steps"]]
        yield ""
        yield from table_lines(HEAD, rows, call, width=terminal_width())
    for one in view["steps_closed"]:
        why = f": {line(one['reason'])}" if one["reason"] else ""
        yield f"closed by a person, not built: {line(one['id'])} (task {one['task']}){why}"
    if view["given_up"]:
        yield f"given up: {', '.join(line(one['id']) for one in view['given_up'])}"
    yield from quest_questions(view, call)


def quest_head(view: View, call: Call) -> Iterator[str]:
    name = painted(f"quest {view['id']}", "bold", call)
    yield f"{name}  {line(view['title'])}  {status(view['state'], call)}"
    parts = [
        f"workflow {view['workflow']}",
        _progress(view),
        f"{view['slots']} slots",
        _cost(view),
        f"begun {ago(view['created'])}",
    ]
    yield f"  {', '.join(parts)}"


def quest_questions(view: View, call: Call) -> Iterator[str]:
    for question in view["questions"]:
        yield ""
        who = f"task {question['task']}, {question['role']}"
        yield f"{painted(question['id'], 'yellow', call)} ({who}): {line(question['question'])}"
        yield f"  {question['answer_with']}"


def role_words(view: View) -> str:
    """The role that acts or is waited for, as in "pathseeker, plans the items"."""
    if not view["agent"] and view["walk"] not in WAITING:
        return ""
    return ", ".join(part for part in (view["role"], view["role_title"]) if part)


def steps_words(view: View) -> str:
    """Finished items of all; for a cancelled quest only merged items count."""
    closed = len(view["steps_closed"])
    return f"{_finished(view)}/{view['steps_all']}{f' ({closed} closed)' if closed else ''}"


def _finished(view: View) -> int:
    return int(view["steps_merged"] if view["state"] == "cancelled" else view["steps_done"])


def closed_words(view: View) -> str:
    """How many of the finished items a person closed, so that nobody takes them for built."""
    closed = len(view["steps_closed"])
    return f", {closed} of them closed by a person" if closed else ""


def _progress(view: View) -> str:
    if not view["steps_all"]:
        return "no plan yet" if view["state"] == "open" else "no plan"
    how = "merged" if view["state"] == "cancelled" else "done"
    return f"{_finished(view)} of {view['steps_all']} items {how}{closed_words(view)}"


def _cost(view: View) -> str:
    if view["cost_usd"] is not None:
        return f"cost {dollars(view['cost_usd'])}"
    known = view["known_cost_usd"]
    return f"cost unknown (known: {dollars(known)})" if known else "cost unknown"


def _now(view: View) -> str:
    """What happens to the request as a whole; empty once it is finished."""
    if view["state"] != "open" or view["status"] in FINISHED:
        return ""
    if view["agent"]:
        return f"{role_words(view)} (agent {view['agent']}, {view['kind']})"
    where = f"at {view['stage']}"
    if view["error"]:
        return f"{where}: {line(view['error'])}"
    working = sum(step["agent"] is not None for step in view["steps"])
    items = counted(working, "item")
    return f"{where}, {items} under way" if view["steps"] else where


def _row(view: View, step: View, finished: set[str]) -> tuple[str, ...]:
    return (
        line(step["id"], limit=LONGEST_ID),
        step["task"] or "-",
        line(_state(view, step, finished), limit=LONGEST_STATE),
        ago(step["changed_at"]).removesuffix(" ago"),
        dollars(step["task_cost_usd"]) if step["agent_steps"] else "-",
        line(step["title"]),
    )


def _state(view: View, step: View, finished: set[str]) -> str:
    """The state of an item, as the one thing to know about it now."""
    if step["status"] in FINISHED:
        return str(step["status"])
    if asked := [one["id"] for one in view["questions"] if one["task"] == step["task"]]:
        return f"{'blocked, ' if step['walk'] == 'blocked' else ''}asks {', '.join(asked)}"
    if step["status"] == "error":
        return f"error: {step['error'] or 'crew show prints why'}"
    if waits := [one for one in step["dependencies"] if one not in finished]:
        return f"after {', '.join(waits)}"
    if step["status"] == "done":
        return "in the merge queue"
    if step["status"] == "todo":
        return "waits for a slot"
    return role_words(step) or f"at {step['stage']}"
