"""The documents of agents, tasks, runs and facts: the fields of `crew ps`, `show`, `runs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.names import rewrite_id
from crew.domain.kernel.text import as_json, plain
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.private_files import FILE_MODE

if TYPE_CHECKING:
    from crew.domain.kernel.fact import Fact
    from crew.domain.rows.agent import Agent, Manager
    from crew.domain.rows.channel import Member
    from crew.domain.rows.merge_queue import MergeQueue
    from crew.domain.rows.message import Message
    from crew.domain.rows.provider import Outage
    from crew.domain.rows.question import Question, Suspicion
    from crew.domain.rows.run import Run
    from crew.domain.rows.task import Task
    from crew.domain.rows.task_item import TaskItem
    from crew.domain.rows.terms import Terms
    from crew.domain.world import World
    from crew.store.kept_values import LastGate
    from crew.store.quick_rows import ShownWorld


def moment(at: float | None) -> str | None:
    """A time as RFC 3339 in UTC."""
    if at is None:
        return None
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def agent_view(world: ShownWorld, agent: Agent, *, runner_up: bool = True) -> dict[str, Any]:
    """An agent; without a runner its process cannot be alive, whatever the row has.

    `with_pauses` adds the pause of its kind, which only the configuration can tell.
    """
    run = world.runs.get(agent.run or "")
    task = world.tasks.get(agent.task or "")
    return {
        "name": agent.id,
        "kind": kind_now(world, agent),
        "status": agent.state,
        "task": agent.task,
        "session": (run.session if run else "") or None,
        "worktree": (task.worktree if task else "") or None,
        "branch": (task.branch if task else "") or None,
        "task_assigned_at": moment(agent.task_assigned_at),
        "started_at": moment(agent.started_at),
        "step_count": run.steps if run else 0,
        "last_step_at": moment(agent.last_step_at),
        "total_input_tokens": agent.input_tokens,
        "total_output_tokens": agent.output_tokens,
        "total_cost_usd": _dollars(agent.cost_usd),
        "error_count": agent.error_count,
        "last_error": agent.last_error or None,
        "retry_at": None if agent.state == "stuck" else moment(agent.retry_at),
        "pid": agent.pid if runner_up else None,
        "paused": None,
    }


def kind_now(world: ShownWorld, agent: Agent) -> str:
    """The kind that its run has, since a task may want another; its own while it is idle."""
    run = world.runs.get(agent.run or "")
    return (run.agent_kind if run else "") or agent.agent_kind


def agents_by_age(world: ShownWorld) -> list[Agent]:
    """The agents in the order in which they were made; the store sorts them by name."""
    return sorted(
        (a for a in world.agents.values() if not a.dismissed),
        key=lambda a: (a.started_at, len(a.id), a.id),
    )


def run_view(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "task": run.task,
        "state": run.state,
        "round": run.round,
        "max_rounds": run.max_rounds,
        "steps": run.steps,
        "history": list(run.history),
        "session": run.session or None,
        "verdicts": [
            {"commit": commit, "reviewer": reviewer, "passed": passed}
            for commit, reviewer, passed in run.verdicts
        ],
        "error": run.error or None,
        "out_of_steps": run.ended_unfinished,
        "started": moment(run.started_at),
        "ended": moment(run.ended_at),
        "agent": run.agent,
        "kind": run.agent_kind,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "cost_usd": _dollars(run.cost_usd),
    }


def total(found: Iterable[Run | Member | Manager]) -> dict[str, Any]:
    """`cost_usd` is None if one cost is unknown; `known_cost_usd` is the sum of the others."""
    found = list(found)
    known = sum(run.cost_usd for run in found if run.cost_usd is not None)
    unknown = any(run.cost_usd is None for run in found)
    return {
        "runs": sum(one.kind == "run" for one in found),
        "steps": sum(run.steps for run in found),
        "input_tokens": sum(run.input_tokens for run in found),
        "output_tokens": sum(run.output_tokens for run in found),
        "cost_usd": None if unknown else round(known, 6),
        "known_cost_usd": round(known, 6),
    }


def task_view(item: TaskItem, world: World) -> dict[str, Any]:
    """A task as its source has it, with the fields that crew adds."""
    task = world.tasks.get(item.id)
    run = world.runs.get((task.run if task else None) or "")
    terminal = world.terminal_of(run.id) if run else None
    is_ahead = task is not None and task.state != task.written
    return {
        "id": item.id,
        "title": item.title,
        "body": item.body,
        "status": str(task.state if task and is_ahead else item.status),
        "priority": item.priority,
        "labels": list(item.labels),
        "parent": item.parent,
        "deps": list(item.deps),
        "agent": item.agent,
        "base": item.base or (task and task.target) or None,
        "branch": (task and task.branch) or None,
        "worktree": (task and task.worktree) or None,
        "issue": item.issue,
        "created": moment(item.created),
        "started": moment(item.started),
        "review_count": item.review_count,
        "terms": _terms_view(item.terms),
        "comments": [_comment_view(comment) for comment in item.comments],
        "run": run_view(run) if run else None,
        "corrupt": item.corrupt,
        "landed_commit": (task and task.landed_commit) or None,
        "dropped_at": moment(task.dropped_at) if task else None,
        "awaits_merge": task is not None and task.awaits_merge,
        "delivery": _delivery(world, task) if task and task.awaits_delivery else None,
        "session": terminal.name if terminal and terminal.has_process else None,
    }


def _terms_view(terms: Terms) -> dict[str, Any]:
    return {name: list(told) if isinstance(told, tuple) else told for name, told in terms}


def _delivery(world: World, task: Task) -> dict[str, Any]:
    """What a landed task waits for; without a reason, nothing blocks its delivery."""
    queue = world.queues.get(task.target)
    return {
        "target": task.target,
        "reason": (queue.waiting if queue else "") or None,
        "remedy": (queue.remedy if queue else "") or None,
    }


def _comment_view(comment: Any) -> dict[str, Any]:
    return {
        "index": comment.index,
        "author": comment.author,
        "type": comment.kind or None,
        "text": comment.text,
        "at": moment(comment.at),
    }


def question_view(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "task": question.task,
        "run": question.run,
        "role": question.role,
        "question": question.question,
        "context": question.context or None,
        "asked_at": moment(question.asked_at),
        "kind": question.about,
        "choices": list(question.choices),
        "status": question.state,
        "answer": question.answer or None,
    }


def message_view(message: Message) -> dict[str, Any]:
    """A message, and when the agent got it; `state` is queued, given or read."""
    return {
        "id": message.id,
        "from": message.sender,
        "text": message.text,
        "sent_at": moment(message.at),
        "state": message.state,
        "given_at": moment(message.given_at),
        "read_at": moment(message.read_at),
        "step": message.step or None,
    }


def message_words(view: Mapping[str, Any]) -> str:
    """Whether and when the agent got a message."""
    if view["read_at"]:
        return f"given at {view['given_at']}, and its step ended well at {view['read_at']}"
    if view["given_at"]:
        return f"given at {view['given_at']} to the step {view['step']}"
    return "waits for the next step" if view["state"] == "queued" else view["state"]


def asked_view(question: Question) -> dict[str, Any]:
    """An open question with the command that answers it."""
    return {**question_view(question), "answer_with": answer_command(question.id)}


def answer_command(question: str) -> str:
    return f'crew answer {question} "…"'


def suspicion_words(one: Suspicion) -> str:
    """The role, the act that it tried, and how often."""
    who = f"{one.role} of task {one.task}" if one.task else one.role
    often = "" if one.count == 1 else f", {one.count} times"
    return f"the {who} tried {one.act}{often}"


def suspicion_view(one: Suspicion) -> dict[str, Any]:
    """A suspicion with the fields of a question, since both are entries of the inbox."""
    return {
        "id": one.id,
        "task": one.task,
        "run": one.run,
        "role": one.role,
        "question": suspicion_words(one),
        "context": one.context or None,
        "asked_at": moment(one.first_at),
        "kind": "suspicion",
        "choices": ["seen"],
        "status": one.state,
        "answer": one.answer or None,
        "act": one.act,
        "count": one.count,
        "last_at": moment(one.last_at),
    }


def outage_view(outage: Outage) -> dict[str, Any]:
    """An outage with the fields of a question, since both are entries of the inbox."""
    return {
        "id": outage.id,
        "task": "",
        "run": "",
        "role": "",
        "question": f"The agent kind {outage.id} is paused: {outage.reason}",
        "context": f"To continue: {outage.remedy}",
        "asked_at": moment(outage.since),
        "kind": "outage",
        "choices": [],
        "status": outage.state,
        "answer": None,
        "answer_with": f"crew retry {outage.id}",
        "cause": outage.cause,
    }


def rewrite_view(queue: MergeQueue) -> dict[str, Any]:
    """The news of a rewritten target with the fields of a question: an entry of the inbox."""
    entry = rewrite_id(queue.id)
    picks = (f"git cherry-pick {pick}  # task {task}" for task, pick in queue.dropped)
    return {
        "id": entry,
        "task": queue.dropped[0][0] if len(queue.dropped) == 1 else "",
        "run": "",
        "role": "",
        "question": rewrite_words(queue),
        "context": "\n".join((f"To bring work back, with {queue.id} checked out:", *picks)),
        "asked_at": moment(queue.rewritten_at),
        "kind": "rewrite",
        "choices": ["seen"],
        "status": "open",
        "answer": None,
        "answer_with": f"crew answer {entry} seen",
    }


def rewrite_named(world: ShownWorld, entry: str) -> MergeQueue | None:
    """The queue whose news this entry of the inbox is."""
    found = (one for one in world.queues.values() if one.dropped and rewrite_id(one.id) == entry)
    return next(found, None)


def rewrite_words(queue: MergeQueue) -> str:
    tasks = [task for task, _ in queue.dropped]
    which = f"task{'s' * (len(tasks) > 1)} {', '.join(tasks)}"
    return f"{queue.id} was rewritten, and no longer has the work of {which}"


def inbox_view(world: World, named: str) -> dict[str, Any]:
    """One entry of the inbox, open or not."""
    from crew.domain.runs.questions import find_question  # noqa: PLC0415 - lists do without it

    if suspicion := world.suspicions.get(named):
        return suspicion_view(suspicion)
    if outage := world.outages.get(named):
        return outage_view(outage)
    if queue := rewrite_named(world, named):
        return rewrite_view(queue)
    return question_view(find_question(world, named))


def open_question_views(world: World) -> list[dict[str, Any]]:
    """The entries of the inbox, the oldest first: questions, suspicions, outages, rewrites."""
    found = [question_view(one) for one in world.questions.values() if one.is_open]
    found += [suspicion_view(one) for one in world.suspicions.values() if one.is_open]
    found += [outage_view(one) for one in world.outages.values() if one.is_open]
    found += [rewrite_view(one) for one in world.queues.values() if one.dropped]
    return sorted(found, key=lambda view: str(view["asked_at"]))


def fact_view(number: int, fact: Fact) -> dict[str, Any]:
    """One fact as one line of `crew events`."""
    moves = fact.target is not None
    return {
        "id": number,
        "timestamp": moment(fact.at),
        "event": "state_transition" if moves else fact.trigger,
        "subject": f"{fact.kind}:{fact.subject}",
        "agentId": _agent_of(fact),
        "from": fact.source,
        "to": fact.target,
        "trigger": fact.trigger,
        "channel": fact.subject.partition("/")[0] if fact.kind in CHANNEL_KINDS else None,
        **({"details": dict(fact.extra)} if fact.extra else {}),
    }


CHANNEL_KINDS = frozenset({"channel", "member", "post"})
"""Kinds of rows whose ids begin with the name of their channel."""


def _agent_of(fact: Fact) -> Any:
    if fact.kind == "agent":
        return fact.subject
    if fact.kind == "member":
        return fact.subject.partition("/")[2]
    return fact.changes.get("sender" if fact.kind == "post" else "agent")


def _dollars(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def state_document(world: World, *, runner_up: bool) -> Mapping[str, Any]:
    agents = [agent_view(world, one, runner_up=runner_up) for one in agents_by_age(world)]
    return {"version": 1, "agents": agents}


@effect("state.write")
def write_state(path: Path, document: Mapping[str, Any]) -> None:
    """Write `.crew/state.json`, with one agent on each line."""
    agents = ",\n    ".join(as_json(one) for one in document["agents"])
    text = f'{{\n  "version": {document["version"]},\n  "agents": [\n    {agents}\n  ]\n}}\n'
    write_file(path, text.encode(), mode=FILE_MODE)


def gate_view(gate: LastGate | None) -> dict[str, Any] | None:
    """How a task's last gate ended; its output is text of a program, made safe."""
    if gate is None:
        return None
    return {
        "command": gate.command,
        "passed": gate.passed,
        "commit": gate.commit,
        "at": moment(gate.at),
        "output": plain(gate.output),
    }
