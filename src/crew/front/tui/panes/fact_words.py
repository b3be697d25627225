"""Describes a fact about a task in plain words, for its timeline."""

from collections.abc import Callable, Mapping

from crew.domain.kernel.fact import Fact
from crew.domain.rows.run import Ask
from crew.front.tui.widgets.safe_text import Span, safe

LONGEST = 300

_SILENT = frozenset(
    {
        *(("task", "written"), ("task", "read"), ("run", "step_found_done")),
        *(("run", "review_counted"), ("run", "question_asked"), ("run", "asks_during_step")),
        *(("run", "answered"), ("run", "answer_taken"), ("run", "question_withdrawn")),
        *(("run", "terminal_asked"), ("run", "terminal_opened"), ("run", "terminal_ended")),
        *(("run", "terminal_closed"), ("run", "terminal_told"), ("terminal", "to_be_typed")),
        *(("terminal", "prompt_seen"), ("question", "answer_taken"), ("message", "read")),
        *(("walk", "role_named"), ("walk", "said"), ("quest", "session_kept")),
        *(("quest", "session_dropped"), ("quest", "steps_told"), ("run", "reviews_judged")),
    }
)
"""Facts that another line already shows, or that only crew itself needs."""

_ASKS: Mapping[str, str] = {
    Ask.RED_GATE: "the gate is red",
    Ask.REFUSED: "git refuses the commits",
    Ask.NESTED: "a repository is inside the work",
    Ask.UNPUSHED: "a submodule is not pushed",
    Ask.OFF_HEAD: "commits are left behind",
    Ask.UNCOMMITTED: "files are not committed",
    Ask.NOTHING_COMMITTED: "nothing is committed",
    Ask.CONFLICT: "there is a conflict to merge",
    Ask.LOST_SIDE: "one side of the conflict is lost",
    Ask.REVIEW: "a review asks for more",
    Ask.CHANGES: "changes are requested",
    Ask.ANSWER: "an answer has arrived",
    Ask.NO_PLAN: "there is no plan",
    Ask.NO_SIGNAL: "no signal was sent",
    Ask.UNFINISHED: "it did not say that it is finished",
}

_WORDS: Mapping[tuple[str, str], str] = {
    ("task", "seen"): "the task is here",
    ("task", "started"): "started",
    ("task", "prepared"): "has its branch {branch} and its worktree",
    ("task", "gate_known"): "gate: {gate}",
    ("task", "completed"): "done, all checks passed",
    ("task", "queued"): "waits in the merge queue",
    ("task", "landed"): "landed as {landed_commit:.12}",
    ("task", "landing_lost"): "its landed work is gone from the integration ref",
    ("task", "delivered"): "merged",
    ("task", "sent_back"): "sent back for more work",
    ("task", "conflicted"): "conflicts with what landed; a person chooses",
    ("task", "settled"): "the conflict is settled",
    ("task", "failed"): "ended with an error",
    ("task", "closed"): "closed {close_reason}",
    ("task", "killed"): "taken from its agent, back in the queue",
    ("task", "reset"): "back in the queue",
    ("task", "reopened"): "opened again",
    ("task", "worktree_removed"): "its worktree is removed, checkpoints stay",
    ("task", "worktree_lost"): "its worktree is gone",
    ("task", "missing"): "its file is missing",
    ("task", "gone"): "its file is gone for good",
    ("task", "taken_into_quest"): "belongs to quest {quest}",
    ("run", "created"): "run {number} with {agent_kind}",
    ("run", "prepared"): "round 1 begins",
    ("run", "step_started"): "step {step} begins",
    ("run", "done"): "says it is done; the checks begin",
    ("run", "step_limit"): "used all its steps; the checks begin",
    ("run", "approved"): "the checks passed",
    ("run", "review_waits"): "waits for its reviewers",
    ("run", "failed"): "ended: {error}",
    ("run", "next_role"): "the role {role} continues",
    ("run", "signalled"): "signals {signal}: {signal_notes}",
    ("run", "stop_asked"): "a person stops it",
    ("run", "resumed"): "continues with agent {agent}",
    ("run", "said_nothing"): "ended a step without a signal",
    ("run", "conflicted"): "set aside until the conflict is settled",
    ("run", "merge_kept"): "its merge keeps both sides",
    ("run", "merge_accepted"): "a person takes its merge {merge_accepted:.12} as it is",
    ("run", "not_checked"): "could not be checked: {error}",
    ("terminal", "asked"): "a terminal is requested",
    ("terminal", "opened"): "the terminal is open",
    ("terminal", "ended"): "the program of the terminal ended",
    ("terminal", "stop_asked"): "a person ends the terminal",
    ("terminal", "hand_over_asked"): "the terminal hands over to an agent without one",
    ("terminal", "closed"): "the terminal is closed",
    ("terminal", "dialog_seen"): "a dialog waits at the terminal",
    ("terminal", "dialog_closed"): "the dialog is over",
    ("terminal", "not_typed"): "text waits for a prompt at the terminal",
    ("terminal", "typed"): "text was typed into the terminal",
    ("question", "asked"): "asks {id}: {question}",
    ("question", "answered"): "{id} is answered: {answer}",
    ("question", "withdrawn"): "{id} needs no answer any more",
    ("message", "sent"): "message {id} from {sender}: {text}",
    ("message", "given"): "message {id} is with the agent",
    ("suspicion", "suspected"): "the {role} tried {act}",
    ("suspicion", "suspected_again"): "tried it again ({count} times)",
    ("suspicion", "dismissed"): "a person has seen what was tried",
    ("walk", "begun"): "the quest begins",
    ("walk", "planned"): "planned as item {key}",
    ("walk", "next_stage"): "stage {stage}",
    ("walk", "role_began"): "a role begins",
    ("walk", "role_failed"): "the role failed",
    ("walk", "needs_user_input"): "waits for an answer",
    ("walk", "retries_spent"): "blocked: the retries of the role are spent",
    ("quest", "begun"): "quest with the workflow {workflow}",
    ("quest", "planned"): "plan {plan_number} of the quest",
}

_STYLES: Mapping[str, str] = {
    **dict.fromkeys(("failed", "suspected", "suspected_again", "retries_spent"), "bad"),
    **dict.fromkeys(("sent_back", "conflicted", "stop_asked", "killed", "closed"), "warn"),
    **dict.fromkeys(("asked", "dialog_seen", "signalled"), "note"),
    **dict.fromkeys(("completed", "delivered", "landed", "approved", "answered"), "good"),
    **dict.fromkeys(("started", "created", "step_started", "prepared", "next_role"), "busy"),
}
_SYMBOLS = {"bad": "!", "warn": "←", "note": "?", "good": "✓", "busy": "●", "": "·"}


class _Values(dict[str, object]):
    """The values of a fact for its words; one that it does not have is empty."""

    def __missing__(self, name: str) -> str:
        return ""


def fact_spans(fact: Fact) -> tuple[Span, ...] | None:
    """A symbol and the words; None for a fact that needs no line."""
    if (fact.kind, fact.trigger) in _SILENT:
        return None
    words = _MAKERS.get((fact.kind, fact.trigger), _words)(fact)
    style = _style(fact)
    kind = "" if fact.kind in {"task", "run"} else f"{_KINDS.get(fact.kind, fact.kind)}: "
    return (f"{_SYMBOLS[style]} ", style), (safe(kind), "muted"), (safe(words[:LONGEST]), style)


_KINDS = {"walk": "quest", "question": "question", "terminal": "terminal", "message": "message"}


def _style(fact: Fact) -> str:
    if (fact.kind, fact.trigger) == ("run", "reviewed"):
        return "good" if _verdict(fact)[2] else "warn"
    if fact.kind == "terminal" and fact.trigger == "asked":
        return ""
    return _STYLES.get(fact.trigger, "")


def _words(fact: Fact) -> str:
    words = _WORDS.get((fact.kind, fact.trigger))
    if words is None:
        return fact.trigger.replace("_", " ")
    values = {name: "" if value is None else value for name, value in fact.changes.items()}
    return words.format_map(_Values({**values, "id": fact.subject})).strip().rstrip(":")


def _sent_back(fact: Fact) -> str:
    why = _ASKS.get(str(fact.changes.get("ask") or ""), "")
    words = f"round {fact.changes.get('round')} begins" if fact.changes.get("round") else "back"
    return f"{words}: {why}" if why else words


def _step(fact: Fact) -> str:
    attempt = fact.changes.get("attempt")
    words = _words(fact)
    return f"{words} (attempt {attempt})" if isinstance(attempt, int) and attempt > 1 else words


def _verdict(fact: Fact) -> tuple[str, str, bool]:
    found = fact.changes.get("verdicts")
    *_, last = found if isinstance(found, list | tuple) and found else [("", "a reviewer", False)]
    commit, reviewer, passed = last
    return str(commit), str(reviewer), bool(passed)


def _reviewed(fact: Fact) -> str:
    _, reviewer, passed = _verdict(fact)
    return f"review by {reviewer}: {'passed' if passed else 'asks for more'}"


def _judged(fact: Fact) -> str:
    return f"stage ended: {fact.trigger.removeprefix('stage_')}"


_MAKERS: Mapping[tuple[str, str], Callable[[Fact], str]] = {
    ("run", "sent_back"): _sent_back,
    ("run", "step_started"): _step,
    ("run", "reviewed"): _reviewed,
    **{
        ("walk", f"stage_{outcome}"): _judged
        for outcome in ("green", "red", "pass", "fail", "complete", "agreed", "objected")
    },
}
