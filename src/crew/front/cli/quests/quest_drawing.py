"""Draws a quest as a tree for a terminal: the request, its items, and their history."""

from collections.abc import Iterator
from typing import Any

from crew.domain.rows.task import FINISHED
from crew.front.cli.call import Call
from crew.front.cli.output import ago, dollars, line, painted, status
from crew.front.cli.quests.quest_table import quest_head, quest_questions, role_words

View = dict[str, Any]
WORDS = 100
"""The longest text of a role; `--json` has all of it."""


def quest_drawing(view: View, call: Call) -> Iterator[str]:
    """The lines of `crew quest show --full`, from the document that `--json` prints."""
    yield from quest_head(view, call)
    yield from _told(view, "  ", call)
    steps = [*view["steps"], *view["given_up"]]
    for number, step in enumerate(steps, start=1):
        yield from _step(step, call, is_last=number == len(steps))
    yield from quest_questions(view, call)


def _step(step: View, call: Call, *, is_last: bool) -> Iterator[str]:
    branch, stem = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
    after = f", after {', '.join(step['dependencies'])}" if step.get("dependencies") else ""
    task = f" (task {step['task']})" if step["task"] else ""
    name, cost = painted(line(step["id"]), "bold", call), f"cost {dollars(step['task_cost_usd'])}"
    yield f"{branch}{name}  {line(step['title'])}{task}{after}  {cost}"
    yield from _told(step, stem, call)


def _told(view: View, stem: str, call: Call) -> Iterator[str]:
    yield f"{stem}{_status_line(view, call)}"
    if view["sessions"]:
        spoke = (f"{one['role']} {one['session']}" for one in view["sessions"])
        yield f"{stem}  sessions: {', '.join(spoke)}"
    for followup in view["followups"]:
        yield from _followup(followup, stem)
    for at, words in sorted([*_said(view), *_judged(view)]):
        yield f"{stem}  {ago(at)} {words}"
    if view["error"]:
        yield f"{stem}  {painted(line(view['error']), 'red', call)}"


def _status_line(view: View, call: Call) -> str:
    """The status, position and agent of a task; the status alone once it is finished."""
    state = status(view["status"], call)
    if view["status"] in FINISHED:
        return state
    parts = [f"{view['walk']}" if view["walk"] != view["status"] else ""]
    if view["stage"] and view["walk"] != "pending":
        parts.append(f"at {view['stage']}")
    parts.append(role_words(view))
    if view["agent"]:
        parts.append(f"agent {view['agent']} ({view['kind']})")
    return ", ".join([state, *(part for part in parts if part)])


def _followup(view: View, stem: str) -> Iterator[str]:
    afterwards = f"then {view['asked_by']} continues" if view["resume"] else "no role continues"
    yield f"{stem}└─ {view['role']} first, for {view['asked_by']}: {view['state']}, {afterwards}"
    for nested in view["followups"]:
        yield from _followup(nested, f"{stem}   ")


def _said(view: View) -> Iterator[tuple[str, str]]:
    for one in view["said"]:
        yield one["at"], f"{one['role']} {one['signal']}: {line(one['words'], limit=WORDS)}"


def _judged(view: View) -> Iterator[tuple[str, str]]:
    """The passed gates and reviews; failed ones are listed with what roles wrote."""
    for one in view["gates"]:
        if one["outcome"] in {"green", "pass"}:
            yield one["at"], f"{one['stage']} {one['outcome']}"
